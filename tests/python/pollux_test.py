"""stepcast.pollux has the interface of Pollux's goodput function, and answers with the model."""

import json
import math
import pickle
import re
import unittest

import numpy as np

import stepcast
import stepcast.pollux as pollux
import support

# A job on nodes of 4 devices, as measured: computes 20 ms and 3 ms a sample, exchanges 100 MB.
NODES = np.array([1, 1, 1, 1, 2, 2, 4])
REPLICAS = np.array([1, 1, 2, 4, 2, 8, 16])
BATCH = np.array([16, 64, 32, 32, 32, 32, 64])
ACCUM_S = 0.02 + 0.003 * BATCH
SYNC_S = np.array([0, 0, 0.01, 0.015, 0.05, 0.1, 0.06])


def fitted(**known):
    return pollux.fit_perf_params(NODES, REPLICAS, BATCH, ACCUM_S, ACCUM_S + SYNC_S, **known)


class PerfParams(unittest.TestCase):
    def test_they_are_numbers_with_names(self):
        params = fitted()
        self.assertIsInstance(params, tuple)
        self.assertEqual(pollux.PerfParams(*params), params)
        self.assertEqual(pollux.PerfParams(**json.loads(json.dumps(params._asdict()))), params)
        self.assertEqual(pickle.loads(pickle.dumps(params)), params)
        self.assertEqual(pollux.GradParams(1.0, 2.0)._fields, ("sqr", "var"))

    def test_what_was_measured_is_met(self):
        fn = pollux.GoodputFunction(fitted(), (0.0, 1.0), 1)
        steps = REPLICAS * BATCH / fn.throughput(NODES, REPLICAS, BATCH, 0)
        error = np.abs(steps / (ACCUM_S + SYNC_S) - 1)
        self.assertLess(error.mean(), 0.05)
        self.assertLess(error.max(), 0.15)

    def test_more_that_is_known_is_kept(self):
        cluster = stepcast.cluster("t4", nodes=4, devices_per_node=4, bandwidth_bytes_per_s=1.25e9,
                                   rtt_s=2e-4, nics_per_node=2)
        params = fitted(gradient_bytes=1e8, cluster=cluster, strategy="tree")
        self.assertEqual((params.gradient_bytes, params.rtt_s, params.nics_per_node,
                          params.strategy), (1e8, 2e-4, 2, "tree"))
        fn = pollux.GoodputFunction(params, (0.0, 1.0), 1)
        self.assertGreater(fn.throughput(2, 4, 32, 0), 0)

    def test_a_calibrated_cluster_is_where_it_starts(self):
        other = stepcast.workload("other", gradient_bytes=3e8)
        learnt = stepcast.OnlineCalibration(stepcast.read_cluster("gce-t4"), other)
        for nodes in (1, 2, 4):
            learnt.observe(stepcast.Plan(workers=4, nodes=nodes, local_batch=8), 0.3 * nodes)
        calibrated = learnt.cluster
        job = stepcast.workload("job", gradient_bytes=1e8)
        one = pollux.fit_perf_params(1, 1, 32, 0.1, 0.1, cluster=calibrated, gradient_bytes=1e8)
        before = stepcast._core.si_parameters(calibrated, job)
        self.assertAlmostEqual(one.link_bandwidth_bytes_per_s /
                               before["link_bandwidth_bytes_per_s"], 1, places=6)

    def test_parameters_of_a_calibration_are_told_in_si(self):
        values = {("cluster", "link_bandwidth", "Gbit/s"): 8, ("cluster", "link_latency", "us"): 40,
                  ("cluster", "flow_window", "MB"): 3, ("cluster", "overlap_share", None): 0.5,
                  ("workload job on t4", "sample_time", "ms"): 7}
        rows = "".join(
            f"    - {{scope: {scope}, name: {name}, {f'unit: {unit}, ' if unit else ''}"
            f"value: {value}, log_sd: 0.1, prior_value: 1, prior_log_sd: 1, decided_by: data}}\n"
            for (scope, name, unit), value in values.items())
        cluster = stepcast.parse_cluster(
            "name: c\ndevice: t4\nnodes: 2\ndevices_per_node: 1\n"
            f"calibration:\n  residual_log_sd: 0.05\n  parameters:\n{rows}")
        told = stepcast._core.si_parameters(cluster, stepcast.workload("job", gradient_bytes=1e8))
        expected = {"link_bandwidth_bytes_per_s": 1e9, "link_latency_s": 40e-6,
                    "flow_window_bytes": 3e6, "overlap_share": 0.5, "sample_time_s": 7e-3}
        self.assertEqual(set(told), set(expected))
        for name, value in expected.items():
            self.assertAlmostEqual(told[name] / value, 1, places=12, msg=name)

    def test_a_calibration_keeps_its_scatter(self):
        learnt = stepcast.OnlineCalibration(stepcast.read_cluster("gce-t4"),
                                            stepcast.workload("other", gradient_bytes=3e8))
        for i in range(40):
            learnt.observe(stepcast.Plan(local_batch=8), 0.3 * (1.25 if i % 2 else 0.8))
        job = stepcast.workload("job", gradient_bytes=1e8)
        def scatter(cluster):
            line = re.search(r"residual_log_sd: *([0-9.e-]+)", cluster.to_yaml())
            return float(line.group(1))
        known = learnt.cluster
        self.assertGreater(scatter(known), 0.1)
        self.assertEqual(scatter(stepcast._core.with_unknown_message(known, job, 0.5)),
                         scatter(known))
        self.assertEqual(scatter(stepcast._core.with_unknown_message(
            stepcast.read_cluster("gce-t4"), job, 0.5)), 0.06)

    def test_what_is_said_of_the_link_counts(self):
        params = fitted(gradient_bytes=1e8)
        def throughput(**link):
            job = params._replace(**link)
            return pollux.GoodputFunction(job, (0.0, 1.0), 1).throughput(2, 8, 32, 0)
        near = throughput(rtt_s=1e-5)
        self.assertGreater(near, throughput(rtt_s=0.5))
        self.assertGreater(throughput(rtt_s=1e-2), throughput(rtt_s=1e-2, loss_rate=0.05))

    def test_refusals(self):
        for arguments, key in [
            ((0, 1, 8, 0.1, 0.1), "num_nodes"),
            ((2, 1, 8, 0.1, 0.1), "nodes"),
            ((1, 1, 0.5, 0.1, 0.1), "atomic_bsz"),
            ((1, 1, 8, 0.0, 0.1), None),
            ((1, 1, 8, 0.1, math.nan), None),
        ]:
            with self.subTest(arguments), self.assertRaises(stepcast.InputError) as caught:
                pollux.fit_perf_params(*arguments)
            if key:
                self.assertEqual(caught.exception.key, key)
        params = fitted()
        for changed, key in [
            (dict(strategy="ps-sync"), "strategy"),
            (dict(gradient_bytes=0.0), "gradient_bytes"),
            (dict(link_latency_s=1e9), "job.calibration of cluster, link_latency"),
            (dict(overlap_share="most"), "overlap_share"),
        ]:
            fn = pollux.GoodputFunction(params._replace(**changed), (1, 1), 8)
            with self.subTest(changed), self.assertRaises(stepcast.InputError) as caught:
                fn(1, 1, 8, 0)
            self.assertEqual(caught.exception.key, key)


class GoodputFunctions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.params = fitted()
        cls.fn = pollux.GoodputFunction(cls.params, pollux.GradParams(0.001, 0.01), 128)

    def test_goodput_is_throughput_times_efficiency(self):
        nodes, replicas = np.array([[1], [2], [4]]), np.array([[4], [8], [16]])
        batch, steps = np.array([32, 64, 128, 32]), np.array([0, 1, 2, 3])
        goodput = self.fn(nodes, replicas, batch, steps)
        self.assertEqual(goodput.shape, (3, 4))
        throughput = self.fn.throughput(nodes, replicas, batch, steps)
        efficiency = self.fn.efficiency(replicas * batch * (steps + 1))
        np.testing.assert_allclose(goodput, throughput * efficiency, rtol=1e-14)
        np.testing.assert_array_equal(goodput, self.fn.evaluate(nodes, replicas, batch, steps))
        self.assertTrue(((efficiency > 0) & (efficiency <= 1)).all())
        for i, j in np.ndindex(3, 4):
            one = self.fn(int(nodes[i, 0]), int(replicas[i, 0]), int(batch[j]), int(steps[j]))
            self.assertIsInstance(one, np.float64)
            self.assertAlmostEqual(one / goodput[i, j], 1, places=12)

    def test_the_model_answers(self):
        """A micro-step more costs a micro-step; one that synchronises costs what was measured."""
        single = 32 / self.fn.throughput(1, 1, 32, 0)
        double = 64 / self.fn.throughput(1, 1, 32, 1)
        self.assertAlmostEqual(single, 0.116, delta=0.006)
        self.assertAlmostEqual(double / single, 2, delta=0.05)
        more = np.arange(1, 257)
        rate = self.fn.throughput(2, 8, more, 0)
        self.assertTrue((np.diff(rate) > 0).all())
        per_device = self.fn.throughput(1, np.arange(1, 5), 32, 0) / np.arange(1, 5)
        self.assertTrue((np.diff(per_device) < 0).all())

    def test_efficiency(self):
        self.assertAlmostEqual(self.fn.efficiency(128), 1)
        self.assertIsInstance(self.fn.efficiency(256), np.float64)
        # var / sqr = 10 initial batches.
        self.assertAlmostEqual(self.fn.efficiency(256), 11 / 12)
        noise_only = pollux.GoodputFunction(self.params, (0.0, 1.0), 128)
        np.testing.assert_array_equal(noise_only.efficiency(np.array([128, 4096])), [1, 1])
        signal_only = pollux.GoodputFunction(self.params, (1.0, 0.0), 128)
        self.assertAlmostEqual(signal_only.efficiency(512), 0.25)
        neither = pollux.GoodputFunction(self.params, (0.0, 0.0), 128)
        self.assertAlmostEqual(neither.efficiency(512), 0.25)
        self.assertGreater(neither(1, 2, 128, 0), 0)

    def test_the_best_batch_is_the_best_of_all(self):
        for nodes, replicas in [(1, 2), (2, 8), (4, 16), (16, 16)]:
            with self.subTest((nodes, replicas)):
                goodput, batch, steps = self.fn.optimize(nodes, replicas, 4096, (8, 256), True)
                self.assertAlmostEqual(goodput / self.fn(nodes, replicas, batch, steps), 1,
                                       places=9)
                self.assertTrue(8 <= batch <= 256)
                self.assertTrue(128 <= batch * replicas * (steps + 1) <= 4096)
                every_batch, every_steps = np.meshgrid(np.arange(8, 257), np.arange(0, 16))
                samples = every_batch * replicas * (every_steps + 1)
                allowed = (samples >= 128) & (samples <= 4096)
                best = self.fn(nodes, replicas, every_batch[allowed], every_steps[allowed]).max()
                self.assertLessEqual(goodput, best * (1 + 1e-9))
                self.assertGreater(goodput, 0.97 * best)

    def test_numbers_for_numbers_and_arrays_for_arrays(self):
        goodput, batch, steps = self.fn.optimize(1, 4, 1024, (8, 256), True)
        self.assertIs(type(goodput), float)
        self.assertIs(type(batch), int)
        self.assertIs(type(steps), int)
        replicas = np.array([[1, 2, 4], [8, 9, 16]])
        nodes = -(-replicas // 4)
        many = self.fn.optimize(nodes, replicas, 1024, (8, 256), True)
        for part in many:
            self.assertEqual(part.shape, (2, 3))
        self.assertEqual([part.dtype.kind for part in many], ["f", "i", "i"])
        for index in np.ndindex(2, 3):
            one = self.fn.optimize(int(nodes[index]), int(replicas[index]), 1024, (8, 256), True)
            self.assertEqual(tuple(part[index] for part in many), one)
        scalar = self.fn.optimize(np.int64(1), np.int64(4), 1024, (8, 256), True)
        self.assertEqual(scalar, (goodput, batch, steps))
        self.assertEqual(self.fn.optimize(np.array(1), np.array(4), 1024)[0].shape, ())

    def test_without_accumulation_steps_are_zero(self):
        replicas = np.arange(1, 33)
        goodput, batch, steps = self.fn.optimize(-(-replicas // 4), replicas, 4096, (8, 256))
        self.assertTrue((steps == 0).all())
        self.assertTrue((goodput > 0).all())
        self.assertEqual(batch[0], 128)  # a single replica keeps its batch
        self.assertTrue((batch[1:] * replicas[1:] >= 128).all())
        self.assertTrue((batch * replicas <= 4096).all())

    def test_the_least_shares_make_up_the_initial_batch(self):
        """Where noise is nothing, samples beyond the initial batch are worth nothing."""
        fn = pollux.GoodputFunction(self.params, (1.0, 0.0), 128)
        for replicas in range(1, 41):
            _, batch, steps = fn.optimize(-(-replicas // 4), replicas, 4096, (8, 256))
            self.assertEqual((batch, steps), (max(8, math.ceil(128 / replicas)), 0), replicas)

    def test_by_default_the_initial_batch_is_the_limit(self):
        for replicas in (1, 2, 4, 8):
            _, batch, steps = self.fn.optimize(1, replicas)
            self.assertEqual((batch * replicas, steps), (128, 0))

    def test_a_single_replica_with_more_has_micro_steps(self):
        goodput, batch, steps = self.fn.optimize(1, 1, 1280, (8, 256), True)
        self.assertTrue(steps >= 1 or batch == 128)
        self.assertLessEqual(batch * (steps + 1), 1280)
        alone = pollux.GoodputFunction(self.params, (0.0, 1.0), 128)
        _, batch, steps = alone.optimize(1, 1, 1280, (8, 1280), True)
        self.assertGreaterEqual(steps, 1)

    def test_limits_that_leave_one_choice_or_none(self):
        # The least micro-steps of all are beyond the limit.
        goodput, batch, steps = self.fn.optimize(4, 16, 512, (64, 256), True)
        self.assertEqual((batch, steps), (64, 0))
        self.assertGreater(goodput, 0)
        # The largest are below the initial batch.
        self.assertEqual(self.fn.optimize(1, 2, 512, (8, 32), False), (0.0, 0, 0))
        self.assertGreater(self.fn.optimize(1, 2, 512, (8, 32), True)[0], 0)
        np.testing.assert_array_equal(
            self.fn.optimize(1, np.array([2, 8]), 512, (8, 32), False)[0] > 0, [False, True])
        self.assertEqual(self.fn.optimize(1, 4, 512, (None, None)),
                         self.fn.optimize(1, 4, 512, None))

    def test_whole_floats_are_whole_numbers(self):
        self.assertEqual(self.fn(2.0, 8.0, 32.0, 0.0), self.fn(2, 8, 32, 0))
        whole = self.fn(np.array([2]), 8, 32, 0)
        np.testing.assert_array_equal(self.fn(np.array([2.0]), 8, 32, 0), whole)
        np.testing.assert_allclose(whole, self.fn(2, 8, 32, 0), rtol=1e-14)

    def test_refusals(self):
        fn = self.fn
        for call in [
            lambda: fn(2, 1, 128, 0),
            lambda: fn(0, 1, 128, 0),
            lambda: fn(1, 1, 127, 0),
            lambda: fn(1, 1, 128, -1),
            lambda: fn(1, 2, 64.5, 0),
            lambda: fn(np.array([1, 2]), np.array([2, 1]), 128, 0),
            lambda: fn(1, np.array([1, 2]), 64, 0),
            lambda: fn(1, np.array([2, 2.5]), 64, 0),
            lambda: fn(1, None, 64, 0),
            lambda: fn(np.array([1, 1]), np.array([2, 2, 2]), 128, 0),
            lambda: fn.optimize(2, 1),
            lambda: fn.optimize(np.array([1, 3]), np.array([2, 2])),
            lambda: fn.optimize(1, 1, 64),
            lambda: fn.optimize(1, 1, 256, (64, 32)),
            lambda: pollux.GoodputFunction(self.params, (-1.0, 1.0), 128),
            lambda: pollux.GoodputFunction(self.params, (1.0, math.inf), 128),
            lambda: pollux.GoodputFunction(self.params, (1.0, 1.0), 0),
        ]:
            with self.assertRaises(stepcast.InputError):
                call()

    def test_pickles(self):
        copy = pickle.loads(pickle.dumps(self.fn))
        self.assertEqual(copy(2, 8, 32, 1), self.fn(2, 8, 32, 1))
        self.assertIn("GoodputFunction", repr(copy))


if __name__ == "__main__":
    support.main()
