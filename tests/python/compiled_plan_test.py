"""Array calls: broadcasting, types, places for answers, refusals, the same bits as one by one."""

import math
import threading
import time
import unittest

import numpy as np

import stepcast
import support

NAN = math.nan


def counted_during(call):
    """How far another thread counts during a call, in the middle of some."""
    counted = [0]
    done = threading.Event()

    def count():
        while not done.is_set():
            counted[0] += 1
            time.sleep(0)

    counter = threading.Thread(target=count)
    counter.start()
    grown = []
    try:
        for _ in range(7):
            before = counted[0]
            call()
            grown.append(counted[0] - before)
    finally:
        done.set()
        counter.join()
    return sorted(grown)[len(grown) // 2]


class CompiledPlans(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.predictor = support.predictor()
        cls.plan = stepcast.Plan(workers=8, devices_per_node=4, local_batch=64)
        cls.compiled = cls.predictor.compile(cls.plan)

    def one_by_one(self, shape, **arguments):
        """The answers as a loop over numbers gives them."""
        columns = {name: np.broadcast_to(value, shape) for name, value in arguments.items()}
        return np.array([
            self.compiled.predict(**{name: column[index].item()
                                     for name, column in columns.items()})
            for index in np.ndindex(*shape)
        ]).reshape(shape)

    def test_numbers(self):
        time_s = self.compiled.predict()
        self.assertIs(type(time_s), float)
        self.assertAlmostEqual(time_s, self.predictor.predict(self.plan).step_time_s, places=12)
        for plan in (
            self.plan.replace(workers=16, nodes=4),
            self.plan.replace(local_batch=3, accumulation_steps=7),
            self.plan.replace(workers=10, nodes=3, devices_per_node=4),
            self.plan.replace(bandwidth_bytes_per_s=1e8, rtt_s=1e-3, loss_rate=1e-3),
        ):
            answer = self.compiled.predict(
                plan.workers, plan.nodes, plan.devices_per_node, None, plan.local_batch,
                plan.accumulation_steps, plan.bandwidth_bytes_per_s, plan.rtt_s, plan.loss_rate)
            self.assertAlmostEqual(answer / self.predictor.predict(plan).step_time_s, 1, places=9)

    def test_intervals(self):
        prediction = self.predictor.predict(self.plan)
        answer = self.compiled.predict(intervals=True)
        self.assertIsInstance(answer, stepcast.StepTimes)
        for got, expected in zip(answer, (prediction.step_time_s, prediction.low_s,
                                          prediction.high_s)):
            self.assertAlmostEqual(got / expected, 1, places=6)
        many = self.compiled.predict(local_batch=[[32, 64]], intervals=True)
        self.assertEqual(many.low_s.shape, (1, 2))
        np.testing.assert_allclose([part[0, 1] for part in many], answer, rtol=1e-12)

    def test_what_is_left_out_follows(self):
        p = self.compiled.predict
        self.assertEqual(p(workers=8), p(workers=8, nodes=2, devices_per_node=4))
        self.assertEqual(p(workers=10, nodes=3), p(10, 3, 4))
        self.assertEqual(p(nodes=4), p(8, 4, 2))
        self.assertEqual(p(nodes=3, devices_per_node=4), p(12, 3, 4))
        np.testing.assert_allclose(p(workers=np.array([10, 12]), nodes=3),
                                   [p(10, 3, 4), p(12, 3, 4)], rtol=1e-14)
        np.testing.assert_allclose(p(nodes=np.array([2, 3]), devices_per_node=4),
                                   [p(8, 2, 4), p(12, 3, 4)], rtol=1e-14)

    def test_any_number_of_slow_nodes(self):
        plan = self.plan.replace(workers=8, nodes=4, devices_per_node=2, slow_nodes=1,
                                 slow_speed=0.5)
        compiled = self.predictor.compile(plan)
        slow = np.array([1, 0, 3])
        expected = [self.predictor.predict(plan.replace(slow_nodes=int(n),
                                                        slow_speed=0.5 if n else None)).step_time_s
                    for n in slow]
        np.testing.assert_allclose(compiled.predict(slow_nodes=slow), expected, rtol=1e-12)
        np.testing.assert_allclose([compiled.predict(slow_nodes=int(n)) for n in slow], expected,
                                   rtol=1e-12)
        self.assertAlmostEqual(compiled.predict(), expected[0], places=12)
        chosen = compiled.choose_batches(slow_nodes=slow, least_local_batch=64, most_local_batch=64,
                                         accumulate=False)
        np.testing.assert_allclose(chosen.step_time_s, expected, rtol=1e-12)
        with self.assertRaises(stepcast.InputError) as caught:
            compiled.predict(slow_nodes=5)
        self.assertEqual(str(caught.exception),
                         "query: 'slow_nodes 5' is out of range; allowed: a whole number from 0 to "
                         "4 of 4 nodes, or invalid=\"nan\"")
        with self.assertRaises(stepcast.InputError):
            self.compiled.predict(slow_nodes=1)  # at what speed?

    def test_arrays_broadcast_as_in_numpy(self):
        workers = np.array([4, 8, 16])
        nodes = np.array([[1], [2], [4]]).T
        batch = np.array([[[8]], [[16]]])
        got = self.compiled.predict(workers=workers, nodes=nodes, local_batch=batch)
        self.assertEqual(got.shape, (2, 1, 3))
        np.testing.assert_allclose(
            got, self.one_by_one((2, 1, 3), workers=workers, nodes=nodes, local_batch=batch),
            rtol=1e-12)
        self.assertEqual(self.compiled.predict(local_batch=[]).shape, (0,))
        self.assertEqual(self.compiled.predict(local_batch=np.ones((3, 0), int)).shape, (3, 0))
        self.assertEqual(self.compiled.predict(local_batch=(1, 2)).shape, (2,))
        self.assertIs(type(self.compiled.predict(local_batch=np.int32(4))), float)

    def test_each_column_counts(self):
        stated = dict(bandwidth_bytes_per_s=1e8, rtt_s=1e-3, loss_rate=1e-3)
        columns = dict(workers=[2, 8], nodes=[2, 4], devices_per_node=[4, 7], local_batch=[8, 80],
                       accumulation_steps=[1, 5], bandwidth_bytes_per_s=[1e8, 1e9],
                       rtt_s=[1e-3, 0.1], loss_rate=[1e-4, 0.01])
        for name, values in columns.items():
            with self.subTest(name):
                asked = dict(stated)
                if name == "devices_per_node":
                    asked.update(workers=8, nodes=2)
                asked[name] = np.array(values)
                got = self.compiled.predict(**asked)
                np.testing.assert_allclose(got, self.one_by_one((2,), **asked), rtol=1e-12)
                self.assertNotEqual(got[0], got[1])

    def test_all_memory_layouts_have_the_same_bits(self):
        batch = np.arange(1, 25).reshape(2, 3, 4)
        expected = self.compiled.predict(local_batch=batch)
        np.testing.assert_allclose(expected, self.one_by_one(batch.shape, local_batch=batch),
                                   rtol=1e-12)
        base = np.zeros(2 * batch.size + 1, np.int32)
        strided = base[1::2].reshape(batch.shape)
        strided[...] = batch
        unaligned = np.zeros(batch.size * 4 + 1, np.uint8)[1:].view(np.int32).reshape(batch.shape)
        unaligned[...] = batch
        for name, array in {
            "int64": batch,
            "int32": batch.astype(np.int32),
            "int16": batch.astype(np.int16),
            "uint8": batch.astype(np.uint8),
            "swapped": batch.astype(">i4"),
            "fortran": np.asfortranarray(batch),
            "strided": strided,
            "reversed": batch[::-1, :, ::-1][::-1, :, ::-1],
            "unaligned": unaligned,
            "list": batch.tolist(),
        }.items():
            with self.subTest(name):
                np.testing.assert_array_equal(self.compiled.predict(local_batch=array), expected)

    def test_elements_that_are_several_times_in_memory_are_read_where_they_are(self):
        base = np.arange(1, 10)
        for kind in (np.int64, np.int32):
            windows = np.lib.stride_tricks.sliding_window_view(base.astype(kind), 4)
            self.assertEqual(windows.strides[0], windows.strides[1])
            diagonals = np.lib.stride_tricks.as_strided(base.astype(kind), (3, 2, 2),
                                                        (2 * kind().itemsize,) * 2 + (0,))
            for batch in (windows, windows.T, windows[::2, ::-1], diagonals):
                with self.subTest(kind=kind, shape=batch.shape):
                    np.testing.assert_array_equal(self.compiled.predict(local_batch=batch),
                                                  self.compiled.predict(local_batch=batch.copy()))

    def test_many_blocks(self):
        rng = np.random.default_rng(1)
        nodes = rng.integers(1, 9, (7, 1, 300))
        per_node = rng.integers(1, 5, (1, 11, 300))
        batch = rng.integers(1, 200, 300)
        bandwidth = np.where(rng.random((7, 1, 1)) < 0.5, NAN, rng.uniform(1e8, 1e10, (7, 1, 1)))
        arguments = dict(nodes=nodes, devices_per_node=per_node, local_batch=batch,
                         bandwidth_bytes_per_s=bandwidth)
        got = self.compiled.predict(**arguments)
        self.assertEqual(got.shape, (7, 11, 300))
        for index in [(0, 0, 0), (6, 10, 299), (3, 4, 123), (2, 7, 31), (5, 1, 298)]:
            at = {name: np.broadcast_to(value, got.shape)[index].item()
                  for name, value in arguments.items()}
            self.assertAlmostEqual(got[index] / self.compiled.predict(**at), 1, places=12)

    def test_nan_is_not_stated(self):
        stated = self.compiled.predict(bandwidth_bytes_per_s=np.array([NAN, 1e7]))
        self.assertAlmostEqual(stated[0] / self.compiled.predict(), 1, places=12)
        self.assertGreater(stated[1], stated[0])
        self.assertEqual(self.compiled.predict(rtt_s=NAN), self.compiled.predict())

    def test_out(self):
        batch = np.array([[1, 2], [3, 4]])
        expected = self.compiled.predict(local_batch=batch)
        out = np.empty((2, 2))
        self.assertIs(self.compiled.predict(local_batch=batch, out=out), out)
        np.testing.assert_array_equal(out, expected)
        three = tuple(np.empty((2, 2)) for _ in range(3))
        answer = self.compiled.predict(local_batch=batch, intervals=True, out=three)
        self.assertIs(answer.high_s, three[2])
        for one, other in ((0, 1), (0, 2), (1, 2)):
            shared = list(three)
            shared[one] = shared[other]
            with self.assertRaisesRegex(stepcast.InputError, "shares memory with itself"):
                self.compiled.predict(local_batch=batch, intervals=True, out=tuple(shared))
        links = np.array([[1e7, 2e7], [3e7, 4e7]])
        for again in (links[0], links.T):  # both begin where it does
            with self.assertRaisesRegex(stepcast.InputError, "shares memory with bandwidth"):
                self.compiled.predict(local_batch=batch, bandwidth_bytes_per_s=again, out=links)
        in_place = links.copy()
        self.compiled.predict(bandwidth_bytes_per_s=in_place, out=in_place)
        np.testing.assert_array_equal(in_place,
                                      self.compiled.predict(bandwidth_bytes_per_s=links))
        single = np.empty(())
        self.assertIs(self.compiled.predict(local_batch=1, out=single), single)
        self.assertEqual(single, expected[0, 0])
        frozen = np.empty((2, 2))
        frozen.flags.writeable = False
        for bad in (np.empty(4), np.empty((2, 2), np.float32), np.empty((2, 2)).T[::-1], frozen,
                    [[0, 0], [0, 0]]):
            with self.assertRaises(stepcast.InputError) as caught:
                self.compiled.predict(local_batch=batch, out=bad)
            self.assertEqual(caught.exception.key, "out")

    def test_refusals(self):
        for arguments, key in [
            (dict(workers=1.5), "workers"),
            (dict(local_batch=np.array([1.5])), "element 0"),
            (dict(local_batch=np.array([True])), "local_batch"),
            (dict(local_batch="64"), "local_batch"),
            (dict(local_batch=[1, None]), "local_batch"),
            (dict(local_batch=2**40), "local_batch"),
            (dict(rtt_s="1 ms"), "rtt_s"),
            (dict(nodes=[1, 2], local_batch=[1, 2, 3]), "local_batch"),
            (dict(invalid="ignore"), "invalid"),
            (dict(workers=0), "query"),
            (dict(workers=3, nodes=4), "query"),
            (dict(servers=1), "query"),
            (dict(local_batch=0), "query"),
            (dict(accumulation_steps=-1), "query"),
            (dict(bandwidth_bytes_per_s=0.0), "query"),
            (dict(rtt_s=-1.0), "query"),
            (dict(loss_rate=1.0), "query"),
        ]:
            with self.subTest(arguments), self.assertRaises(stepcast.InputError) as caught:
                self.compiled.predict(**arguments)
            self.assertEqual(caught.exception.key, key)

    def test_queries_that_make_no_sense(self):
        batch = np.full((3, 700), 8)
        batch[1, 5] = 0
        batch[2, 600] = 2**40
        with self.assertRaises(stepcast.InputError) as caught:
            self.compiled.predict(local_batch=batch)
        self.assertEqual(caught.exception.key, "element 705")
        self.assertEqual(caught.exception.value, "local_batch 0")
        self.assertIn("a whole number from 1 to 100000000", caught.exception.allowed)
        for wrong, value in ((2**40, "1099511627776"), (np.float64(1.5), "1.5"),
                             (NAN, "nan"), (np.inf, "inf")):
            with self.assertRaises(stepcast.InputError) as caught:
                self.compiled.predict(local_batch=np.array([8, wrong]))
            self.assertEqual(caught.exception.key, "element 1")
            self.assertEqual(caught.exception.value, "local_batch " + value)
        with self.assertRaises(stepcast.InputError) as caught:
            self.compiled.predict(loss_rate=np.array([[0.0], [1.5]]), local_batch=[8, 16])
        self.assertEqual((caught.exception.key, caught.exception.value),
                         ("element 2", "loss_rate 1.5"))
        self.assertIn("0, or from 1e-15 to below 1", caught.exception.allowed)
        with self.assertRaises(stepcast.InputError) as caught:
            self.compiled.predict(nodes=np.array([4, 0]), workers=8)
        self.assertEqual(caught.exception.value, "nodes 0")
        for intervals in (False, True):
            answers = np.array(self.compiled.predict(local_batch=batch, invalid="nan",
                                                     intervals=intervals))
            wrong = np.isnan(answers.reshape(-1, 3, 700))
            self.assertTrue((wrong == (batch != 8)).all())
        self.assertTrue(math.isnan(self.compiled.predict(workers=0, invalid="nan")))

    def test_threads(self):
        batch = np.arange(1, 20001)
        for intervals in (False, True):
            alone = np.array(self.compiled.predict(local_batch=batch, intervals=intervals))
            for threads in (2, 3, 1000):
                shared = np.array(self.compiled.predict(local_batch=batch, intervals=intervals,
                                                        threads=threads))
                np.testing.assert_array_equal(shared, alone)
        batch[[7000, 15000]] = 0
        with self.assertRaises(stepcast.InputError) as caught:
            self.compiled.predict(local_batch=batch, threads=4)
        self.assertEqual(caught.exception.key, "element 7000")
        with self.assertRaises(stepcast.InputError) as caught:
            self.compiled.predict(local_batch=batch, threads=0)
        self.assertEqual((caught.exception.key, caught.exception.value), ("threads", "0"))

    def test_servers(self):
        plan = stepcast.Plan(workers=8, devices_per_node=4, local_batch=64, strategy="ps-sync",
                             servers=2)
        compiled = self.predictor.compile(plan, most_servers=4)
        times = compiled.predict(servers=[1, 2, 4])
        self.assertTrue((np.diff(times) < 0).all())
        for servers, time_s in zip((1, 2, 4), times):
            expected = self.predictor.predict(plan.replace(servers=servers)).step_time_s
            self.assertAlmostEqual(time_s / expected, 1, places=9)
        with self.assertRaises(stepcast.InputError):
            compiled.predict(servers=5)

    def test_auto_is_resolved(self):
        compiled = self.predictor.compile(self.plan.replace(strategy="auto"))
        self.assertNotEqual(compiled.plan.strategy, "auto")
        self.assertIn("CompiledPlan of resnet50 on gce-t4", repr(compiled))
        self.assertIs(compiled.predictor, self.predictor)

    def test_other_threads_run_meanwhile(self):
        # Tens of milliseconds each.
        many = np.arange(1, 1_000_001)
        some = many[:100_000]
        calls = {
            "predict": lambda: self.compiled.predict(local_batch=some, intervals=True),
            "choose_batches": lambda: self.compiled.choose_batches(servers=0 * some[:10_000]),
            "most_local_batch": lambda: self.compiled.most_local_batch(accumulation_steps=many),
        }
        for name, call in calls.items():
            with self.subTest(name):
                # A call that kept the GIL would let another thread run once or twice, at its end.
                self.assertGreater(counted_during(call), 50)

    def test_threads_may_ask_at_once(self):
        batch = np.arange(1, 400_001)
        answers = {}

        def ask(i):
            answers[i] = self.compiled.predict(local_batch=batch)

        expected = self.compiled.predict(local_batch=batch)
        askers = [threading.Thread(target=ask, args=(i,)) for i in range(2)]
        for thread in askers:
            thread.start()
        for thread in askers:
            thread.join()
        for i in range(2):
            np.testing.assert_array_equal(answers[i], expected)


class BatchChoices(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.compiled = support.predictor().compile(
            stepcast.Plan(workers=8, devices_per_node=4, local_batch=64))

    def test_one_is_the_same_as_of_many(self):
        limits = dict(least_global_batch=128, most_global_batch=4096, noise_scale=2000.0,
                      initial_batch=128.0)
        workers = np.array([[1, 4], [8, 16]])
        nodes = np.array([[1, 1], [2, 4]])
        many = self.compiled.choose_batches(workers, nodes, **limits)
        self.assertIsInstance(many, stepcast.BatchChoices)
        for index in np.ndindex(2, 2):
            one = self.compiled.choose_batches(int(workers[index]), int(nodes[index]), **limits)
            self.assertEqual(tuple(part[index] for part in many), tuple(one))
            samples = one.local_batch * one.accumulation_steps * workers[index]
            self.assertTrue(128 <= samples <= 4096)
            step = self.compiled.predict(int(workers[index]), int(nodes[index]),
                                         local_batch=one.local_batch,
                                         accumulation_steps=one.accumulation_steps)
            self.assertAlmostEqual(one.step_time_s / step, 1, places=9)
            self.assertAlmostEqual(one.throughput_samples_per_s, samples / step, places=6)
            self.assertAlmostEqual(one.statistical_efficiency, 2128 / (samples + 2000), places=12)
            self.assertAlmostEqual(
                one.goodput, one.throughput_samples_per_s * one.statistical_efficiency)

    def test_none_are_none(self):
        for none in ([], np.ones((0, 3), int)):
            many = self.compiled.choose_batches(workers=none, nodes=1)
            for part in many:
                self.assertEqual(part.shape, np.shape(none))

    def test_allocations_that_cannot_be(self):
        # One worker on the plan's two nodes: no matter of batches.
        for workers, named in [(1, "allocation"), ([8, 1], "element 1")]:
            with self.subTest(workers), self.assertRaises(stepcast.InputError) as caught:
                self.compiled.choose_batches(workers=workers)
            self.assertEqual(str(caught.exception),
                             f"{named}: 'nodes 2' is out of range; allowed: a whole number from 1 "
                             "to 1 for 1 workers, or invalid=\"nan\"")
            choices = self.compiled.choose_batches(workers=workers, invalid="nan")
            self.assertEqual(np.min(choices.local_batch), 0)
            self.assertEqual(np.max(choices.goodput) > 0, named != "allocation")
        with self.assertRaises(stepcast.InputError) as caught:
            self.compiled.choose_batches(workers=8, invalid="0")
        self.assertEqual(caught.exception.key, "invalid")

    def test_what_memory_holds(self):
        most = self.compiled.most_local_batch()
        self.assertIsInstance(most, int)
        for batch, fits in [(most, True), (most + 1, False)]:
            plan = self.compiled.plan.replace(local_batch=batch)
            verdict = self.compiled.predictor.predict(plan).memory["verdict"]
            self.assertEqual(verdict != "out of memory", fits)
        steps = np.array([1, 4])
        many = self.compiled.most_local_batch([[1], [8]], [[1], [2]], accumulation_steps=steps)
        self.assertEqual(many.shape, (2, 2))
        self.assertEqual(many[1, 0], most)
        self.assertEqual(many[1, 1], most)  # gradients add up where they are
        self.assertEqual(self.compiled.most_local_batch(placement=[4, 4]), most)
        with self.assertRaises(stepcast.InputError) as caught:
            self.compiled.most_local_batch(workers=[8, 1, 0])
        self.assertTrue(str(caught.exception).startswith("element 1: 'nodes 2' is out of range"))
        with self.assertRaises(stepcast.InputError) as caught:
            self.compiled.most_local_batch(workers=1)
        self.assertTrue(str(caught.exception).startswith("allocation: 'nodes 2' is out of range"))
        self.assertEqual(self.compiled.most_local_batch(workers=1, invalid="nan"), 0)
        np.testing.assert_array_equal(
            self.compiled.most_local_batch(workers=[8, 1], invalid="nan"), [most, 0])

    def test_what_does_not_fit(self):
        choice = self.compiled.choose_batches(8, 2, most_global_batch=4)
        self.assertEqual((choice.local_batch, choice.goodput), (0, 0))
        without = self.compiled.choose_batches(1, 1, least_global_batch=256, most_global_batch=256,
                                               most_local_batch=64, accumulate=False)
        self.assertEqual(without.local_batch, 0)

    def test_refusals(self):
        for limits, key in [
            (dict(most_global_batch=0), "most_global_batch"),
            (dict(most_global_batch=8, least_global_batch=9), "most_global_batch"),
            (dict(most_global_batch=8, least_local_batch=0), "least_local_batch"),
            (dict(most_global_batch=8, candidates=-1), "candidates"),
            (dict(most_global_batch=8, noise_scale=1.0), "noise_scale"),
            (dict(most_global_batch=8, initial_batch=1.0), "initial_batch"),
            (dict(most_local_batch=3, least_local_batch=4), "most_local_batch"),
            (dict(most_global_batch=8, noise_scale=-1.0, initial_batch=1.0), "noise_scale"),
        ]:
            with self.subTest(limits), self.assertRaises(stepcast.InputError) as caught:
                self.compiled.choose_batches(1, 1, **limits)
            self.assertEqual(caught.exception.key, key)


if __name__ == "__main__":
    support.main()
