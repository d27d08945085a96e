"""Calibration from Python: as the program fits, where the package was built with it."""

import pickle
import unittest

import numpy as np

import stepcast
import support

try:
    import stepcast._calibrate  # noqa: F401

    MISSING = ""
except ImportError as error:
    MISSING = f"built without calibration: {error}"

RUNS = support.SOURCE / "data/measurements/ufrgs-tupi-fit.csv"


@unittest.skipIf(MISSING, MISSING)
class Calibrations(unittest.TestCase):
    def test_the_readmes_first_calibration(self):
        cluster = stepcast.read_cluster("ufrgs-tupi")
        outcome = stepcast.calibrate(cluster, RUNS)
        self.assertEqual(outcome.status, "converged")
        self.assertTrue(outcome.usable)
        self.assertLess(outcome.mape, 0.01)
        self.assertEqual(outcome.predicted_s.shape, (3,))
        runs = stepcast.read_runs(str(RUNS))
        np.testing.assert_allclose(outcome.log_ratio,
                                   np.log([run.step_time_s for run in runs] / outcome.predicted_s))
        fitted = outcome.cluster
        self.assertTrue(fitted.calibrated)
        slow = next(p for p in fitted.parameters if p.scope == "hosts tupi5+tupi6")
        self.assertEqual((slow.name, slow.unit, slow.decided_by),
                         ("link_bandwidth", "Gbit/s", "data"))
        self.assertTrue(0.09 < slow.value < 0.14)
        self.assertTrue(slow.low < slow.value < slow.high)
        self.assertIn("tupi5", fitted._repr_html_())
        self.assertEqual(pickle.loads(pickle.dumps(fitted)), fitted)
        plan = stepcast.Plan(placement=[1, 1], hosts=["tupi1", "tupi2"], local_batch=128)
        step_s = stepcast.Predictor(fitted, stepcast.workload("resnet50")).predict(plan).step_time_s
        self.assertAlmostEqual(step_s, 1.37, delta=0.03)

    def test_own_runs_and_workloads(self):
        job = stepcast.workload("mine", parameters=25_000_000)
        runs = [stepcast.Run("mine", "T4", stepcast.Plan(workers=w, nodes=1, local_batch=b),
                             0.01 + 0.002 * b + (0.02 if w > 1 else 0))
                for w, b in [(1, 16), (1, 64), (2, 16), (2, 64)]]
        outcome = stepcast.calibrate(stepcast.read_cluster("gce-t4"), runs,
                                     workloads={"mine": job}, profiled_plans=0)
        self.assertLess(outcome.mape, 0.05)
        self.assertIn("CalibrationOutcome", repr(outcome))
        predictor = stepcast.Predictor(outcome.cluster, job)
        self.assertAlmostEqual(predictor.predict(runs[1].plan).step_time_s, 0.138, delta=0.01)

    def test_networks_and_devices_go_by_their_own_names(self):
        cluster = stepcast.read_cluster("gce-t4")
        plan = stepcast.Plan(local_batch=8)
        runs = [stepcast.Run("bert_large@384", "T4", plan, 0.5, step_time_sd_s=0.1),
                stepcast.Run("bert", "Tesla T4", plan, 0.2)]
        outcome = stepcast.calibrate(cluster, runs)
        self.assertEqual({p.scope for p in outcome.cluster.parameters
                          if p.scope.startswith("workload")},
                         {"workload bert_large on t4", "workload bert_base on t4"})
        for name, step_s in [("bert_large", 0.5), ("bert_large@384", 0.5), ("bert_base", 0.2)]:
            predictor = stepcast.Predictor(outcome.cluster, stepcast.workload(name))
            predicted = predictor.predict(plan)
            self.assertEqual(predicted.compute_source, "calibration")
            self.assertAlmostEqual(predicted.step_time_s / step_s, 1, delta=0.03)
        # A spread that the runs told is not lost with the device's other name.
        spread = {p.scope: p.value for p in outcome.cluster.parameters
                  if p.name == "straggler_spread"}
        self.assertGreater(spread["workload bert_large on t4"], 0.08)
        own = stepcast.workload("mine", parameters=1_000_000)
        other = stepcast.workload("mine", parameters=2_000_000)
        with self.assertRaisesRegex(stepcast.InputError, "another mine"):
            stepcast.calibrate(cluster, [stepcast.Run("a", "t4", plan, 0.1),
                                         stepcast.Run("b", "t4", plan, 0.1)],
                               workloads={"a": own, "b": other})

    def test_refusals(self):
        cluster = stepcast.read_cluster("gce-t4")
        with self.assertRaises(stepcast.InputError) as caught:
            stepcast.calibrate(cluster, [stepcast.Run("mine", "t4", stepcast.Plan(), 1.0)])
        self.assertEqual(caught.exception.key, "workload")
        with self.assertRaises(stepcast.InputError):
            stepcast.calibrate(cluster, [stepcast.Run("resnet50", "t4", stepcast.Plan(), -1.0)])
        for spread in ("step_time_sd_s", "p50_s", "p95_s", "p99_s"):
            with self.assertRaisesRegex(stepcast.InputError, spread):
                stepcast.calibrate(cluster, [stepcast.Run(
                    "resnet50", "t4", stepcast.Plan(), 1.0, **{spread: float("nan")})])

    def test_learns_from_spreads_and_stopped_runs(self):
        cluster = stepcast.read_cluster("gce-t4")
        one = stepcast.Plan(local_batch=32)

        def spread_of(runs):
            fitted = stepcast.calibrate(cluster, runs)
            return next(p for p in fitted.cluster.parameters
                        if p.name == "straggler_spread").value
        narrow = stepcast.Run("resnet50", "t4", one, 0.3, step_time_sd_s=0.003)
        wide = stepcast.Run("resnet50", "t4", one, 0.3, p50_s=0.29, p95_s=0.4, p99_s=0.45)
        self.assertEqual((wide.p50_s, wide.p95_s, wide.p99_s, narrow.step_time_sd_s),
                         (0.29, 0.4, 0.45, 0.003))
        self.assertGreater(spread_of([wide]), 5 * spread_of([narrow]))
        stopped = stepcast.Run("resnet50", "t4", stepcast.Plan(placement=[1] * 8, local_batch=32),
                               60.0, stopped=True)
        self.assertTrue(stopped.stopped)
        outcome = stepcast.calibrate(cluster, [narrow, stopped])
        self.assertGreater(outcome.predicted_s[1], 10)
        self.assertIn("stopped before a step ended",
                      stepcast.calibrate(cluster, [stopped]).message)
        self.assertFalse(stepcast.calibrate(cluster, []).usable)
        self.assertIsNone(stepcast.calibrate(cluster, []).cluster)


@unittest.skipUnless(MISSING, "built with calibration")
class WithoutCalibration(unittest.TestCase):
    def test_the_error_says_why(self):
        with self.assertRaisesRegex(ImportError, "Ceres"):
            stepcast.calibrate(stepcast.read_cluster("ufrgs-tupi"), RUNS)


if __name__ == "__main__":
    support.main()
