"""What spread.py promises, on numbers that can be checked by hand."""
import random
import unittest

import spread


def pairs_of(groups):
    pairs = spread.Pairs()
    for group in groups:
        pairs.new_group()
        for without, with_it in group:
            pairs.add(without, with_it)
    return pairs


class Spread(unittest.TestCase):
    def test_the_median_is_the_middle_or_between_the_two(self):
        self.assertEqual(spread.median([3, 1, 2]), 2)
        self.assertEqual(spread.median([4, 1, 2, 3]), 2.5)

    def test_quartiles_leave_the_middle_out(self):
        self.assertEqual(spread.quartiles([1, 2, 3, 4, 5]), (1.5, 4.5))

    def test_too_few_process_pairs_give_no_interval(self):
        pairs = pairs_of([[(100, 110)]] * (spread.FEWEST_GROUPS - 1))
        self.assertIsNone(pairs.noise())
        self.assertIsNone(pairs.summary()["ratio_interval"])

    def test_runs_of_the_same_row_are_pooled_pair_by_pair(self):
        first, second = [[(100, 110), (100, 112)]] * 3, [[(50, 60)]] * 4
        together = spread.pooled([pairs_of(first).summary(), pairs_of(second).summary()])
        self.assertEqual(together, pairs_of(first + second).summary())
        self.assertEqual(together["process_pairs"], 7)

    def test_the_same_ratio_everywhere_is_known_exactly(self):
        summary = pairs_of([[(100, 110), (200, 220)]] * 6).summary()
        self.assertAlmostEqual(summary["ratio"], 1.1)
        self.assertAlmostEqual(summary["ratio_interval"][0], 1.1)
        self.assertAlmostEqual(summary["ratio_interval"][1], 1.1)

    def test_an_interval_holds_the_truth_about_as_often_as_it_says(self):
        draw = random.Random(7)
        hits = 0
        for trial in range(100):
            groups = [[draw.gauss(1, 0.05) for _ in range(5)] for _ in range(12)]
            low, high = spread.interval(groups, seed=trial)
            hits += low <= 1 <= high
        self.assertGreaterEqual(hits, 85)
        self.assertLess(hits, 100)

    def test_rounds_of_one_process_pair_do_not_narrow_the_interval(self):
        draw = random.Random(3)
        middles = [draw.gauss(1, 0.1) for _ in range(8)]
        few = spread.interval([[middle] for middle in middles])
        many = spread.interval([[middle] * 100 for middle in middles])
        self.assertEqual(few, many)


if __name__ == "__main__":
    unittest.main()
