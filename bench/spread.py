"""The arithmetic of paired measurements: medians, and how far they can be trusted. No dependencies, no clock, no files.

A measurement is a list of groups; a group holds what one pair of processes gave, one (without, with) for each four
rounds. Rounds of one pair of processes share its luck (where its memory lies, which core it runs on), so the interval
of a median is made by drawing whole groups.
"""
import random

RESAMPLES = 1000
FEWEST_GROUPS = 5  # below that an interval would be a guess
ENOUGH_GROUPS = 9  # all of so few on one side of the truth, by chance, is less than one in a hundred: not before that is a row done


def median(values):
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no values")
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def quartiles(values):
    """(lower, upper): the medians of the halves, the middle value left out."""
    ordered = sorted(values)
    half = len(ordered) // 2
    if half == 0:
        return ordered[0], ordered[0]
    return median(ordered[:half]), median(ordered[-half:])


def interval(groups, seed=1):
    """The 95 % interval of the median over all values, from resampled groups; None where there are too few groups."""
    if len(groups) < FEWEST_GROUPS:
        return None
    # One value a group, so that a resample is cheap: its median. The middle of medians is what is drawn.
    middles = [median(group) for group in groups]
    draw = random.Random(seed)
    found = sorted(median(draw.choices(middles, k=len(middles))) for _ in range(RESAMPLES))
    return found[int(RESAMPLES * 0.025)], found[int(RESAMPLES * 0.975) - 1]


def pooled(summaries):
    """One summary of several of the same row: their pairs of processes together."""
    return dict(summaries[-1], **Pairs([group for one in summaries for group in one["groups"]]).summary())


class Pairs:
    """What was measured of one row: groups of (without, with), in ns an operation."""

    def __init__(self, groups=()):
        self.groups = [list(group) for group in groups]

    def new_group(self):
        self.groups.append([])

    def add(self, without, with_it):
        self.groups[-1].append((without, with_it))

    def count(self):
        return sum(len(group) for group in self.groups)

    def _full_groups(self, value):
        return [[value(pair) for pair in group] for group in self.groups if group]

    def noise(self):
        """Half the width of the ratio's interval; None while there are too few groups."""
        found = interval(self._full_groups(lambda pair: pair[1] / pair[0]))
        return None if found is None else (found[1] - found[0]) / 2

    def summary(self):
        groups = self._full_groups(lambda pair: pair)
        if not groups:
            return None
        result = {"pairs": self.count(), "process_pairs": len(groups),
                  "groups": [[[round(one, 1) for one in pair] for pair in group] for group in groups]}
        for name, value in (("without_ns", lambda pair: pair[0]), ("with_ns", lambda pair: pair[1]),
                            ("added_ns", lambda pair: pair[1] - pair[0]), ("ratio", lambda pair: pair[1] / pair[0])):
            by_group = [[value(pair) for pair in group] for group in groups]
            result[name] = median([median(group) for group in by_group])
            result[name + "_interval"] = interval(by_group)
            result[name + "_quartiles"] = quartiles([one for group in by_group for one in group])
        return result
