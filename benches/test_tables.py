"""What the tables of the peers must not tell."""

import unittest

import tables
from kit import Figures, Row


def peers(*speeds):
    """The lines of the ratios, from the sets, their speeds, and whether they were wrong."""
    rows = []
    for name, speed, is_wrong in speeds:
        figures = {"hit": speed, "bits an item": 17, "hit: wrong": int(is_wrong)}
        rows += [Row("peers", name, what, "2 MiB, 1 thread", value, None, None, 1, "", "") for what, value in figures.items()]
    return tables.peers(Figures("peers", rows)).split("koel : best peer")[1]


class Best(unittest.TestCase):
    def test_a_wrong_peer_is_not_the_best(self):
        self.assertIn("3.00  slow 0.5", peers(("koel", 1.5, False), ("wrong", 1.6, True), ("slow", 0.5, False)))

    def test_the_limit_is_no_peer_and_nor_is_another_koel(self):
        told = peers(("koel", 1.5, False), ("(one random line)", 9, False), ("koel (growing)", 8, False), ("slow", 0.5, False))
        self.assertIn("3.00  slow 0.5", told)


class Heavy(unittest.TestCase):
    def test_a_heavy_peer_takes_far_more_than_koel_at_its_size(self):
        bits = {
            ("koel", "small"): 10,
            ("koel", "large"): 20,
            ("peer", "small"): 13.1,
            ("peer", "large"): 13.1,
            ("light", "small"): 12.9,
        }
        rows = [
            Row("peers", *key[:1], what, key[1], value, None, None, 1, "", "")
            for key, value in bits.items()
            for what in ("hit", "bits an item")
        ]
        self.assertEqual(tables.peers(Figures("peers", rows)).count("*"), 1)
