"""How a program under test speaks to the harness: one line of JSON after "@" on stdout. Knows nothing of gpucap."""
import json
import sys


def _say(**what):
    sys.stdout.write("@" + json.dumps(what) + "\n")
    sys.stdout.flush()


def fact(name, value):
    _say(fact=name, value=value)


def check(what, ok, detail=""):
    _say(check=what, ok=bool(ok), detail=str(detail)[:400])


def skip(why):
    _say(skip=why)
    sys.exit(0)


def ready(label):
    """Rest here, with nothing in flight, until the harness has looked."""
    _say(ready=label)
    if not sys.stdin.readline():
        sys.exit("the harness went away")
