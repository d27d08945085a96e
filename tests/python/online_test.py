"""A job's parameters follow its measured steps."""

import copy
import json
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
        self.assertGreater(abs(before.surprise - before.log_ratio), 0.1)
        self.assertEqual(repr(before), f"<Observation: predicted {before.predicted_s:.4g} s, "
                                       f"{before.surprise:+.1f} standard deviations>")
        self.observe(self.job)
        self.assertEqual(self.job.rows, 9)
        learnt = self.job.predictor()
        for plan in self.plans:
            ratio = learnt.predict(plan).step_time_s / truth.predict(plan).step_time_s
            self.assertAlmostEqual(ratio, 1.7, delta=0.1)
        self.assertTrue(self.job.cluster.calibrated)
        self.assertIn("9 rows", repr(self.job))

    def test_a_drift_is_told_by_the_row_and_by_the_job(self):
        truth = stepcast.Predictor(self.cluster, self.workload)
        plan = self.plans[-1]
        said = []
        for i in range(80):
            seconds = truth.predict(plan).step_time_s * (0.99 + 0.02 * (i % 2))
            said.append(self.job.observe(plan, seconds * (1 if i < 40 else 2)).drifted)
            self.assertEqual(self.job.drifted, said[-1])
        self.assertNotIn(True, said[:40])
        self.assertIn(True, said)

    def test_it_goes_on_where_it_was(self):
        self.observe(self.job)
        copies = [pickle.loads(pickle.dumps(self.job)),
                  stepcast.OnlineCalibration(self.cluster, self.workload)]
        copies[1].load_json(self.job.to_json())
        for job in (self.job, *copies):
            self.observe(job, factor=1.5, rounds=1)
        for copied in copies:
            self.assertEqual(copied.rows, self.job.rows)
            self.assertEqual(copied.to_json(), self.job.to_json())

    def test_a_batch_that_has_run_fits(self):
        cluster = stepcast.cluster("rtx_2080_ti", nodes=3, devices_per_node=8)

        def most(job):
            asked = job.predictor().compile(stepcast.Plan(workers=2, nodes=1, local_batch=8))
            return int(asked.choose_batches(workers=2, nodes=1, least_global_batch=400,
                                            most_global_batch=400, candidates=1,
                                            noise_scale=1e5, initial_batch=400).local_batch)

        job = stepcast.OnlineCalibration(cluster, self.workload)
        self.assertLess(most(job), 200)
        job.observe(stepcast.Plan(workers=1, local_batch=200), 0.46)  # with half precision
        # One worker keeps no copies for an exchange, which may just fit beside it.
        self.assertEqual(most(job), 200)
        alone = job.predictor().predict(stepcast.Plan(workers=2, nodes=1, local_batch=200)).memory
        self.assertEqual(alone["verdict"], "tight")
        job.observe(stepcast.Plan(workers=2, nodes=1, local_batch=200), 0.47)
        self.assertEqual(most(job), 200)
        memory = job.predictor().predict(stepcast.Plan(workers=2, nodes=1, local_batch=200)).memory
        self.assertEqual(memory["verdict"], "fits")

    def test_what_did_not_fit_bounds_the_batch_of_a_job_known_by_its_size(self):
        job = stepcast.OnlineCalibration(stepcast.cluster("t4", nodes=4, devices_per_node=4),
                                         stepcast.workload("job", parameters=25_000_000))
        plan = stepcast.Plan(workers=4, nodes=1, local_batch=64)

        def chosen():
            asked = job.predictor().compile(plan)
            return int(asked.choose_batches(workers=4, nodes=1, most_global_batch=100_000,
                                            noise_scale=1e5, initial_batch=64).local_batch)

        self.assertGreater(chosen(), 64)
        job.observe_out_of_memory(plan)
        self.assertLess(chosen(), 64)
        self.assertEqual(job.rows, 0)
        memory = job.predictor().predict(plan).memory
        self.assertEqual(memory["verdict"], "out of memory")
        self.assertLess(pickle.loads(pickle.dumps(job)).predictor().predict(plan).memory[
            "available_bytes"], memory["total_bytes"])
        with self.assertRaisesRegex(stepcast.InputError, "local_batch"):
            job.observe_out_of_memory(plan.replace(local_batch=0))

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


class Fleets(unittest.TestCase):
    def setUp(self):
        self.cluster = stepcast.read_cluster("gce-t4")
        self.truth = stepcast.Predictor(self.cluster, stepcast.workload("resnet50"))
        self.plans = [stepcast.Plan(workers=w, nodes=n, local_batch=b)
                      for w, n, b in [(1, 1, 32), (1, 1, 64), (4, 1, 64), (8, 2, 64)]]
        self.fleet = stepcast.Fleet(self.cluster)

    def error(self, predictor):
        return max(abs(predictor.predict(plan).step_time_s /
                       (1.7 * self.truth.predict(plan).step_time_s) - 1) for plan in self.plans)

    def run_one(self, name):
        job = self.fleet.add(name, stepcast.workload("resnet50"))
        for _ in range(5):
            for plan in self.plans:
                job.observe(plan, 1.7 * self.truth.predict(plan).step_time_s)
        return job

    def test_jobs_teach_the_next_one(self):
        before = self.error(self.fleet.predictor(stepcast.workload("resnet50")))
        job = self.run_one("first")
        self.assertIs(self.fleet.jobs["first"], job)
        self.assertLess(self.error(self.fleet.predictor(stepcast.workload("resnet50"))), before / 5)
        self.fleet.end("first")
        self.assertEqual(self.fleet.jobs, {})
        self.assertLess(self.error(self.fleet.predictor(stepcast.workload("resnet50"))), before / 5)
        second = self.fleet.add("second", stepcast.workload("resnet50"))
        self.assertLess(self.error(second.predictor()), before / 5)
        self.assertEqual(second.rows, 0)
        self.assertEqual(job.rows, 20)  # which outlives its place in the fleet

    def test_what_is_removed_is_forgotten(self):
        before = self.error(self.fleet.predictor(stepcast.workload("resnet50")))
        self.run_one("a mistake")
        self.fleet.remove("a mistake")
        self.assertEqual(self.error(self.fleet.predictor(stepcast.workload("resnet50"))), before)

    def test_copies_go_on_where_it_was(self):
        self.run_one("over")
        self.fleet.end("over")
        self.run_one("running")
        for again in (lambda fleet: pickle.loads(pickle.dumps(fleet)), copy.deepcopy):
            copied = again(self.fleet)
            self.assertEqual(list(copied.jobs), ["running"])
            self.assertIn("1 jobs", repr(copied))
            for fleet in (self.fleet, copied):
                fleet.jobs["running"].observe(self.plans[0], 0.9)
            self.assertEqual(copied.jobs["running"].to_json(), self.fleet.jobs["running"].to_json())
            for name in ("resnet50", "bert_base"):
                self.assertEqual(
                    copied.predictor(stepcast.workload(name)).predict(self.plans[3]).high_s,
                    self.fleet.predictor(stepcast.workload(name)).predict(self.plans[3]).high_s)
            copied.end("running")
            self.assertEqual(list(self.fleet.jobs), ["running"])

    def test_goes_on_from_its_text(self):
        self.run_one("over")
        self.fleet.end("over")
        job = self.run_one("running")
        text = self.fleet.to_json()
        self.assertEqual(json.loads(text)["format"], "stepcast fleet")
        other = stepcast.Fleet(self.cluster)
        old = other.add("old", stepcast.workload("vgg16"))
        other.load_json(text)
        self.assertEqual(list(other.jobs), ["running"])
        self.assertEqual(other.to_json(), text)
        for calibration in (job, other.jobs["running"]):
            calibration.observe(self.plans[0], 0.9)
        self.assertEqual(other.to_json(), self.fleet.to_json())
        self.assertEqual(other.jobs["running"].predictor().predict(self.plans[2]).step_time_s,
                         job.predictor().predict(self.plans[2]).step_time_s)
        old.observe(self.plans[0], 0.9)  # goes on by itself
        self.assertEqual(other.to_json(), self.fleet.to_json())
        elsewhere = stepcast.Fleet(stepcast.cluster(name="lab", device="t4"))
        for fleet, text, why in [(elsewhere, self.fleet.to_json(), "cluster: 'gce-t4' is another"),
                                 (other, "{", "fleet: .* is not JSON"),
                                 (other, self.fleet.to_json().replace("stepcast fleet", "x"),
                                  "format: 'x' is another; allowed: stepcast fleet")]:
            before = fleet.to_json()
            with self.assertRaisesRegex(stepcast.InputError, why):
                fleet.load_json(text)
            self.assertEqual(fleet.to_json(), before)

    def test_refusals(self):
        self.run_one("a")
        with self.assertRaisesRegex(stepcast.InputError, "running already"):
            self.fleet.add("a", stepcast.workload("vgg16"))
        with self.assertRaisesRegex(stepcast.InputError, "not running.*allowed: a"):
            self.fleet.end("b")
        with self.assertRaisesRegex(stepcast.InputError, "not running"):
            self.fleet.remove("b")
        with self.assertRaisesRegex(stepcast.InputError, "other gradients"):
            self.fleet.add("b", stepcast.workload("resnet50", parameters=1_000_000))
        with self.assertRaisesRegex(stepcast.InputError, "job: is empty"):
            self.fleet.add("", stepcast.workload("vgg16"))
        self.assertEqual(list(self.fleet.jobs), ["a"])


if __name__ == "__main__":
    support.main()
