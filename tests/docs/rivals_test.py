"""The five other forecasts of docs/reference/sources.md find what follows their own forms."""

import math
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SKIPPED = 77

try:
    import numpy  # noqa: F401
except ImportError:
    print("skipped: this Python has no NumPy")
    sys.exit(SKIPPED)

sys.path.insert(0, str(ROOT / "tools"))
from sources import rivals  # noqa: E402

SCALES = [(1, 1), (1, 2), (1, 4), (2, 2), (2, 4), (2, 8), (3, 12), (4, 16)]
BEYOND = [(8, 32), (16, 64)]


def step(nodes, workers, batch, seconds, **others):
    facts = {"servers": 0, "accumulation": 1, "bytes": 1e8, "rate": None, "rtt": 0, "exposed": None,
             "bare": False, **others}
    return rivals.Step(nodes=nodes, workers=workers, batch=batch, seconds=seconds, **facts)


class OwnForms(unittest.TestCase):
    """Steps of each form, without noise: fitted to 16 workers, the form goes on to 64."""

    def assert_found(self, kind, truth, tolerance=1e-6, rows_of=None, beyond=None):
        def rows(scales):
            return [(rows_of or step)(n, w, b, truth(n, w, b)) for n, w in scales
                    for b in (8, 16, 32)]

        model = kind()
        model.fit(rows(SCALES), [])
        for row in rows(beyond or BEYOND):
            with self.subTest(workers=row.workers, batch=row.batch):
                self.assertLess(abs(model.seconds(row) / row.seconds - 1), tolerance)

    def test_last_point(self):
        self.assert_found(rivals.LastPoint, lambda n, w, b: 0.1 + 0.01 * b + 0.2 * (n > 1))

    def test_last_point_scales_compute_with_the_batch(self):
        model = rivals.LastPoint()
        model.fit([step(1, 1, b, 0.1 + 0.01 * b) for b in (8, 16, 32)] + [step(2, 2, 8, 0.5)], [])
        self.assertAlmostEqual(model.seconds(step(4, 4, 32, 1)), 0.5 + 0.01 * 24)

    def test_ring(self):
        self.assert_found(rivals.Ring, lambda n, w, b: 0.1 + 0.01 * b + (n > 1) * (
            1e-3 * (w - 1) + 1e8 * 2e-9 * (w - 1) / w))

    def test_ring_goes_by_bytes(self):
        def message(workers, size):
            return step(workers, workers, 0, 1e-3 * (workers - 1) + 2e-9 * size * (workers - 1) /
                        workers, bytes=size, bare=True)

        model = rivals.Ring()
        model.fit([message(w, size) for w in (2, 4) for size in (1e6, 1e7, 1e8)], [])
        asked = message(16, 3e8)
        self.assertAlmostEqual(model.seconds(asked) / asked.seconds, 1)

    def test_ring_without_a_fitted_exchange_is_the_closed_form(self):
        model = rivals.Ring()
        model.fit([step(1, 1, b, 0.1 + 0.01 * b) for b in (8, 16, 32)], [])
        asked = step(4, 4, 8, 1, rate=1e9, rtt=0.01)
        self.assertAlmostEqual(model.seconds(asked),
                               0.18 + 2 * 0.75 * 1e8 / 1e9 * 1538 / 1448 + 3 * 0.01)

    def test_ring_takes_the_network_of_other_jobs(self):
        def other(n, w):
            return step(n, w, 8, 0.3 + (n > 1) * (1e-3 * (w - 1) + 5e7 * 2e-9 * (w - 1) / w),
                        bytes=5e7)

        model = rivals.Ring()
        model.fit([step(1, 1, b, 0.1 + 0.01 * b) for b in (8, 16, 32)],
                  [other(n, w) for n, w in SCALES])
        self.assertAlmostEqual(model.seconds(step(8, 8, 8, 1)), 0.18 + 7e-3 + 0.2 * 7 / 8, 6)

    def test_optimus(self):
        def with_servers(nodes, workers, batch, seconds):
            return step(nodes, workers, batch, seconds, servers=max(1, nodes // 2))

        def truth(n, w, b):
            p = max(1, n // 2)
            return 0.01 * b + 0.1 + 0.02 * w / p + 0.003 * w + 0.004 * p

        self.assert_found(rivals.Optimus, truth, rows_of=with_servers)

    def test_power_law(self):
        self.assert_found(rivals.PowerLaw,
                          lambda n, w, b: 0.1 + 0.01 * b + 0.02 * w**0.5 * math.log2(w))

    def test_pollux(self):
        truth = [0.05, 0.01, 0.2, 0.005, 0.03, 0.002, 2.5]

        def seconds(n, w, b):
            compute = truth[0] + truth[1] * b
            more = max(w - 2, 1e-8)
            network = (truth[2] + truth[3] * more if n > 1 else
                       truth[4] + truth[5] * more if w > 1 else 1e-8)
            return (compute**truth[6] + network**truth[6])**(1 / truth[6])

        def with_sync(nodes, workers, batch, total):
            return step(nodes, workers, batch, total, exposed=total - truth[0] - truth[1] * batch)

        # The penalties of the published objective keep it a little off.
        self.assert_found(rivals.Pollux, seconds, 0.01, rows_of=with_sync)

    def test_a_row_goes_by_the_first_of_its_keys_that_was_fitted(self):
        fitted = [((("job", "net"), ("job",), ("method",)), step(2, 2, 8, 0.5)),
                  ((("job", "other"), ("job",), ("method",)), step(2, 2, 8, 0.9))]
        asked = [((("job", "net"), ("job",), ("method",)), step(4, 4, 8, 1)),
                 ((("new", "net"), ("new",), ("none",)), step(4, 4, 8, 1))]
        found = rivals.forecasts(fitted, asked)["last point"]
        self.assertAlmostEqual(found[0], 0.5)
        self.assertTrue(math.isnan(found[1]))


if __name__ == "__main__":
    unittest.main()
