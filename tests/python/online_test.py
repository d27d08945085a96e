"""A job's parameters follow its measured steps."""

import pickle
import unittest

import stepcast
import support


class OnlineCalibrations(unittest.TestCase):
    def setUp(self):
        self.cluster = stepcast.read_cluster("gce-t4")
        self.workload = stepcast.workload("resnet50")
        self.job = stepcast.OnlineCalibration(self.cluster, self.workload)
        self.plans = [stepcast.Plan(workers=w, nodes=n, local_batch=b)
                      for w, n, b in [(1, 1, 32), (1, 1, 64), (4, 1, 64), (8, 2, 64)]]

    def observe(self, job, factor=1.7, rounds=2):
        truth = stepcast.Predictor(self.cluster, self.workload)
        for _ in range(rounds):
            for plan in self.plans:
                job.observe(plan, factor * truth.predict(plan).step_time_s)

    def test_it_learns(self):
        truth = stepcast.Predictor(self.cluster, self.workload)
        before = self.job.observe(self.plans[0], 1.7 * truth.predict(self.plans[0]).step_time_s)
        self.assertAlmostEqual(before.predicted_s, truth.predict(self.plans[0]).step_time_s)
        self.assertAlmostEqual(before.log_ratio, 0.5306, places=3)
        self.assertIn("predicted", repr(before))
        self.observe(self.job)
        self.assertEqual(self.job.rows, 9)
        learnt = self.job.predictor()
        for plan in self.plans:
            ratio = learnt.predict(plan).step_time_s / truth.predict(plan).step_time_s
            self.assertAlmostEqual(ratio, 1.7, delta=0.1)
        self.assertTrue(self.job.cluster.calibrated)
        self.assertIn("9 rows", repr(self.job))

    def test_it_goes_on_where_it_was(self):
        self.observe(self.job)
        copies = [pickle.loads(pickle.dumps(self.job)),
                  stepcast.OnlineCalibration(self.cluster, self.workload)]
        copies[1].load_json(self.job.to_json())
        for job in (self.job, *copies):
            self.observe(job, factor=1.5, rounds=1)
        for copy in copies:
            self.assertEqual(copy.rows, self.job.rows)
            self.assertEqual(copy.to_json(), self.job.to_json())

    def test_a_job_is_learnt_of_which_only_the_size_is_known(self):
        job = stepcast.workload("bert-job", parameters=110_000_000)
        unknown = stepcast.Predictor(self.cluster, job).predict(self.plans[0])
        self.assertEqual(unknown.compute_source, "prior")
        self.assertGreater(unknown.high_s, 1000 * unknown.low_s)
        self.assertTrue(any("no layers" in flag for flag in unknown.flags))
        online = stepcast.OnlineCalibration(self.cluster, job)
        truth = stepcast.Predictor(self.cluster, stepcast.workload("bert_base"))
        for plan in self.plans:
            online.observe(plan, truth.predict(plan).step_time_s)
        learnt = online.predictor().predict(self.plans[-1].replace(workers=16, nodes=4))
        expected = truth.predict(learnt.plan).step_time_s
        self.assertLess(abs(learnt.step_time_s / expected - 1), 0.2)

    def test_refusals(self):
        plan = self.plans[0]
        for call in [
            lambda: self.job.observe(plan, 0.0),
            lambda: self.job.observe(plan, float("nan")),
            lambda: self.job.observe(plan.replace(workers=2, nodes=1, strategy="auto"), 1.0),
            lambda: self.job.load_json("{}"),
            lambda: stepcast.OnlineCalibration(self.cluster, stepcast.workload("vgg16")).load_json(
                self.job.to_json()),
        ]:
            with self.assertRaises(stepcast.InputError):
                call()
        self.assertEqual(self.job.rows, 0)


if __name__ == "__main__":
    support.main()
