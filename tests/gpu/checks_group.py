"""Budgets that several processes share, on a real card: the truth summed over the processes is never above the group's
limit, a killed member's share is there for the others, and who waits is served."""
import signal
import sys
import time

from checks_python import need
from harness import GIB, PROGRAMS, Program, TookTooLong, file_name

LIMIT = 12 * GIB
BLOCK = 256 << 20


def member_environment(place, **more):
    environment = place.capped("")
    del environment["GPUCAP_LIMIT"]
    return dict(environment, GPUCAP_GROUP="gpu-test", GPUCAP_GROUP_LIMIT=str(LIMIT), **more)


def start(place, outcome, script, arguments, number, **more):
    return Program([sys.executable, "-u", PROGRAMS / script] + arguments, member_environment(place, **more),
                   place.out / file_name("%s-%d" % (outcome.name, number), ".stderr"), 120)


def finish(outcome, programs):
    for number, program in enumerate(programs):
        status = program.end()
        outcome.require(status == 0, "process %d: exit status %s: %s" % (number, status, program.stderr()[-400:]))
        for what, ok, detail in program.checks:
            outcome.require(ok, "process %d: %s (%s)" % (number, what, detail))


def one_of_three_is_killed(place, truth, outcome):
    need("torch")
    truth.ask("sum-reset")
    programs = [start(place, outcome, "torch_group_member.py", ["6"], number) for number in range(3)]
    try:
        for label in ("up", "full"):  # all have their contexts before the first of them takes what is left
            labels = [program.next_rest() for program in programs]
            if not outcome.require(labels == [label] * 3, "they came to rest as %s" % labels):
                return
            if label == "up":
                for program in programs:
                    program.go_on()
        held = sum(sum(truth.ask("now %d" % p.pid)["now"].values()) for p in programs)
        outcome.figures["together_full_bytes"] = held
        outcome.require(LIMIT - BLOCK - (64 << 20) <= held <= LIMIT, "full together at %d B of %d" % (held, LIMIT))
        victim = programs[0]
        victims = sum(truth.ask("now %d" % victim.pid)["now"].values())
        victim.process.send_signal(signal.SIGKILL)
        killed_at = time.monotonic()
        victim.process.wait()
        for program in programs[1:]:
            program.go_on()
        labels = [program.next_rest() for program in programs[1:]]
        outcome.figures["seconds_from_kill_to_full_again"] = round(time.monotonic() - killed_at, 3)
        outcome.require(labels == ["full again"] * 2, "they came to rest as %s" % labels)
        held = sum(sum(truth.ask("now %d" % p.pid)["now"].values()) for p in programs[1:])
        outcome.figures["victim_held_bytes"] = victims
        outcome.figures["survivors_full_bytes"] = held
        outcome.require(LIMIT - BLOCK - (64 << 20) <= held <= LIMIT, "the survivors are full at %d B of %d" % (held, LIMIT))
        for _ in range(2):
            for program in programs[1:]:
                program.go_on()
            [program.next_rest() for program in programs[1:]]
        finish(outcome, programs[1:])
    except TookTooLong:
        outcome.require(False, "took too long: " + programs[1].stderr()[-400:])
    finally:
        for program in programs:
            program.kill()
    require_below(truth, outcome)


def require_below(truth, outcome):
    highest = max(truth.ask("sum")["max"].values(), default=0)
    outcome.figures.update(cap_bytes=LIMIT, highest_truth_bytes=highest)
    outcome.require(highest <= LIMIT, "truth together reached %d B, %d above the group's limit" % (highest, highest - LIMIT))


def two_that_do_not_fit(place, truth, outcome):
    need("torch")
    truth.ask("sum-reset")
    programs = [start(place, outcome, "torch_waiting_training.py", ["7", "5"], number, GPUCAP_ON_LIMIT="wait") for number in range(2)]
    try:
        for program in programs:
            while program.next_rest() is not None:
                program.go_on()
        finish(outcome, programs)
    except TookTooLong:
        outcome.require(False, "took too long: " + programs[1].stderr()[-400:])
    finally:
        for program in programs:
            program.kill()
    waited = sum("gpucap: waiting for" in program.stderr() for program in programs)
    outcome.require(waited == 1, "%d of the two waited" % waited)
    require_below(truth, outcome)


CHECKS = [
    ("group: three in 12 GiB, one killed", one_of_three_is_killed),
    ("group: two that do not fit together wait", two_that_do_not_fit),
]
