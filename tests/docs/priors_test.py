"""Priors are what public sources teach.

The pooling finds known laws, fitted values are found again, and the program's priors are those that
are learnt.
"""

import math
import os
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SKIPPED = 77
# Fitted in seconds.
QUICK = ["ufrgs_low_bandwidth_cells", "hkbu_methods"]

try:
    import numpy as np
except ImportError:
    print("skipped: this Python has no NumPy")
    sys.exit(SKIPPED)

sys.path.insert(0, str(ROOT / "tools"))
from sources import learning, public_sets  # noqa: E402


def row(source, value, below, above=None):
    return {"source": source, "cluster": "", "parameter": "x", "value": str(value),
            "log_sd_below": str(below), "log_sd_above": str(above or below)}


SPEC = {"name": "x", "unit": "1", "prior": 7.0, "prior_log_sd": 0.5}


class Pooling(unittest.TestCase):
    def test_finds_the_law_that_values_were_drawn_from(self):
        random = np.random.default_rng(1)
        for centre, spread in ((0.1, 0.3), (40, 0.8)):
            logs = math.log(centre) + spread * random.standard_normal(150)
            errors = random.choice([0.05, 0.3], 150)
            values = [row(f"s{i}", math.exp(x + e * random.standard_normal()), e)
                      for i, (x, e) in enumerate(zip(logs, errors))]
            of = learning.pool(values, SPEC)
            self.assertTrue(of.informed)
            self.assertAlmostEqual(math.log(of.centre / centre), 0, delta=spread / 4)
            self.assertAlmostEqual(of.log_sd / spread, 1, delta=0.2)

    def test_two_sources_teach_nothing(self):
        values = [row("a", 1, 0.1), row("a", 2, 0.1), row("b", 3, 0.1), row("c", 9, 5)]
        of = learning.pool(values, SPEC)
        self.assertFalse(of.informed)
        self.assertEqual((of.centre, of.log_sd), (7, 0.5))

    def test_a_source_is_left_out(self):
        values = [row(name, value, 0.1) for name, value in zip("abcd", (1, 1.1, 0.9, 50))]
        self.assertEqual(learning.pool(values, SPEC, without="d"), learning.pool(values[:3], SPEC))

    def test_clusters_of_a_source_share_its_vote(self):
        values = [row("a", 1, 0.1), row("b", 2, 0.1), row("c", 4, 0.1)]
        many = values + [row("c", 4, 0.1)] * 9
        once, often = learning.pool(values, SPEC), learning.pool(many, SPEC)
        self.assertAlmostEqual(math.log(often.centre / once.centre), 0, delta=0.02)
        self.assertAlmostEqual(often.log_sd, once.log_sd, delta=0.02)

    def test_a_bound_moves_the_centre_only_where_it_contradicts(self):
        values = [row(name, value, 0.1) for name, value in zip("abc", (2, 3, 4.5))]
        base = math.log(learning.pool(values, SPEC).centre)

        def moved(value):
            return math.log(learning.pool(values + [row("d", value, 0.1, 10)], SPEC).centre) - base
        self.assertAlmostEqual(moved(0.3), 0, delta=0.02)
        self.assertGreater(moved(8), 0.15)


class Program(unittest.TestCase):
    def test_believes_what_is_learnt(self):
        for spec in learning.specs_of(PROGRAM):
            of = learning.pool(learning.read(), spec)
            with self.subTest(learning.title(spec), learnt=(of.centre, of.log_sd)):
                self.assertEqual(spec["name"] in learning.PHYSICAL and
                                 spec.get("kind") != "varying", of.informed)
                if of.informed or "kind" in spec:
                    self.assertTrue(of.agrees(spec),
                                    "tools/learn_priors shows what the program is to have")

    def test_the_page_shows_the_table(self):
        page = (ROOT / "docs" / "reference" / "sources.md").read_text()
        self.assertTrue(learning.table(learning.read(), learning.specs_of(PROGRAM)) in page,
                        "tools/judge_sources --update writes the page anew")

    def test_finds_the_fitted_values_of_quick_sources(self):
        known = learning.read()
        for name in QUICK:
            with tempfile.TemporaryDirectory() as scratch:
                source = public_sets.READERS[name](DATASETS, PROGRAM, Path(scratch))
                found = [of for label, case in learning.clusters(source)
                         for of in learning.fit(name, label, case, PROGRAM,
                                                learning.specs_of(PROGRAM))]
            key = ("source", "cluster", "parameter")
            of = {tuple(r[k] for k in key): r for r in known if r["source"] == name}
            sure = [r for r in found if float(r["log_sd_below"]) + float(r["log_sd_above"]) < 1]
            self.assertGreater(len(sure), 0)
            for r in sure:
                with self.subTest(r):
                    before = of[tuple(r[k] for k in key)]
                    self.assertAlmostEqual(math.log(float(r["value"]) / float(before["value"])), 0,
                                           delta=0.02, msg="tools/learn_priors --fit")


if __name__ == "__main__":
    if not os.environ.get("STEPCAST_PROGRAM"):
        print("skipped: built without the program")
        sys.exit(SKIPPED)
    PROGRAM = Path(os.environ["STEPCAST_PROGRAM"])
    DATASETS = Path(os.environ.get("STEPCAST_DATASETS") or ROOT.parent / "shared" / "datasets")
    if not DATASETS.exists():
        print(f"skipped: there is no {DATASETS}; set STEPCAST_DATASETS to it")
        sys.exit(SKIPPED)
    unittest.main()
