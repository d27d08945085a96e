"""Predictions are those of the program, to the key."""

import json
import os
import subprocess
import unittest

import numpy as np

import stepcast
import support

PROGRAM = os.environ.get("STEPCAST_PROGRAM")


class Predictions(unittest.TestCase):
    def setUp(self):
        self.plan = stepcast.Plan(workers=8, devices_per_node=4, local_batch=64)
        self.predictor = support.predictor()
        self.prediction = self.predictor.predict(self.plan)

    def test_parts_add_up(self):
        p = self.prediction
        self.assertAlmostEqual(sum(p.breakdown.values()), p.step_time_s, places=12)
        self.assertLess(p.low_s, p.step_time_s)
        self.assertLess(p.step_time_s, p.high_s)
        self.assertLessEqual(p.p50_s, p.p95_s)
        self.assertLessEqual(p.p95_s, p.p99_s)
        self.assertAlmostEqual(p.throughput_samples_per_s, 512 / p.step_time_s)
        self.assertEqual(p.algorithm, "ring")
        self.assertEqual(p.compute_source, "data sheet")
        self.assertTrue(any("not calibrated" in flag for flag in p.flags))
        self.assertEqual(p.binding["part"], "compute")
        self.assertEqual(p.memory["verdict"], "fits")
        self.assertGreater(p.traffic["bytes_per_worker"], 1e8)
        self.assertEqual(p.plan, self.plan)

    def test_reprs(self):
        self.assertIn("resnet50 on gce-t4 (t4)", repr(self.prediction))
        self.assertIn("90 % interval", repr(self.prediction))
        html = self.prediction._repr_html_()
        self.assertIn("<table>", html)
        self.assertIn("straggler", html)
        self.assertEqual(repr(self.predictor), "<Predictor of resnet50 on gce-t4 (t4)>")

    def test_to_dict_has_what_properties_have(self):
        answer = self.prediction.to_dict()
        self.assertEqual(answer["step_time_s"], self.prediction.step_time_s)
        self.assertEqual(answer["breakdown"], self.prediction.breakdown)
        for part in ({name: answer[name] for name in ("low_s", "high_s")}, answer["quantiles"]):
            for name, value in part.items():
                self.assertEqual(getattr(self.prediction, name), value, name)
        self.assertEqual(len({self.prediction.p50_s, self.prediction.p95_s,
                              self.prediction.p99_s}), 3)
        self.assertEqual(answer["plan"]["placement"], "4-4")
        json.dumps(answer)

    @unittest.skipUnless(PROGRAM, "the program was not built")
    def test_slow_nodes_are_weighed_as_by_the_program(self):
        plan = stepcast.Plan(placement=[2, 2, 2, 2], strategy="ring", local_batch=32, slow_nodes=1,
                             slow_speed=0.5)
        weighed = self.predictor.weigh_slow_nodes(plan)
        text = subprocess.run(
            [PROGRAM, "recommend", "--cluster", "gce-t4", "--workload", "resnet50", "--placement",
             "2-2-2-2", "--strategy", "ring", "--local-batch", "32", "--slow-nodes", "1",
             "--slow-speed", "0.5", "--try-local-batch", "32", "--try-accumulation", "1", "--json"],
            check=True, capture_output=True).stdout
        self.assertEqual(weighed, json.loads(text)["shares"])
        self.assertLess(weighed["by_speed"]["step_time_s"], weighed["equal"]["step_time_s"])
        self.assertIsNone(weighed["why_equal"])

    def test_hosts_and_placements_are_lists_or_their_text(self):
        listed = stepcast.Plan(placement=[1, 1], hosts=["tupi1", "tupi2"])
        self.assertEqual(stepcast.Plan(placement="1-1", hosts="tupi1+tupi2"), listed)
        self.assertEqual(stepcast.Plan(hosts="t5").hosts, ["t5"])
        self.assertEqual(stepcast.Plan(placement=np.array([1, 1]),
                                       hosts=np.array(["tupi1", "tupi2"])), listed)
        for hosts, problem in ((["a", "a"], "twice"), (["a", ""], "empty"),
                               (["a+b", "c"], "one host")):
            with self.assertRaises(stepcast.InputError) as caught:
                stepcast.Plan(placement=[1, 1], hosts=hosts)
            self.assertIn(problem, str(caught.exception))
        for key in ("placement", "hosts"):
            with self.assertRaises(stepcast.InputError) as caught:
                stepcast.Plan(**{key: 5})
            self.assertEqual((caught.exception.key, caught.exception.value), (key, "5"))

    def test_nobody_waits_for_slow_nodes_that_are_none_or_all(self):
        for slow in (0, 2):
            plan = stepcast.Plan(placement=[2, 2], local_batch=32, slow_nodes=slow,
                                 slow_speed=0.5 if slow else None)
            self.assertIsNone(self.predictor.weigh_slow_nodes(plan))
        with self.assertRaises(stepcast.InputError):
            self.predictor.weigh_slow_nodes(
                stepcast.Plan(placement=[2, 2], strategy="ps-sync", local_batch=32, slow_nodes=1,
                              slow_speed=0.5))

    @unittest.skipUnless(PROGRAM, "the program was not built")
    def test_the_program_says_the_same(self):
        text = subprocess.run(
            [PROGRAM, "predict", "--cluster", "gce-t4", "--workload", "resnet50", "--local-batch",
             "64", "--workers", "8", "--json"], check=True, capture_output=True).stdout
        self.assertEqual(self.prediction.to_dict(), json.loads(text))

    def test_the_device(self):
        cluster = stepcast.read_cluster("gce-t4")
        workload = stepcast.workload("resnet50")
        self.assertEqual(
            stepcast.Predictor(cluster, workload, "Tesla V100-SXM2-16GB").device, "v100")
        p100 = stepcast.find_device("p100")
        self.assertEqual(stepcast.Predictor(cluster, workload, p100).device, "p100")
        for device in (7, "no such"):
            with self.subTest(device), self.assertRaises(stepcast.InputError):
                stepcast.Predictor(cluster, workload, device)

    def test_a_workload_known_by_its_size_has_a_prior(self):
        mine = stepcast.workload("mine", parameters=1000)
        predictor = stepcast.Predictor(stepcast.read_cluster("gce-t4"), mine)
        self.assertEqual(predictor.predict(stepcast.Plan(local_batch=8)).compute_source, "prior")
        with self.assertRaises(stepcast.InputError) as caught:
            stepcast.Predictor(stepcast.read_cluster("gce-t4"), mine, "no such")
        self.assertEqual((caught.exception.key, caught.exception.value), ("device", "no such"))


if __name__ == "__main__":
    support.main()
