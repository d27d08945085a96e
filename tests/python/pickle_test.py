"""What is pickled answers as before, in this process and in another."""

import pickle
import subprocess
import sys
import unittest

import numpy as np

import stepcast
import support


def again(value):
    return pickle.loads(pickle.dumps(value))


class Pickles(unittest.TestCase):
    def test_records(self):
        cluster = stepcast.read_cluster("ufrgs-tupi")
        self.assertEqual(again(cluster), cluster)
        for name in stepcast.workload_names():
            workload = stepcast.workload(name)
            self.assertEqual(again(workload), workload)
        t4 = stepcast.find_device("t4")
        copy = again(t4)
        for name in ("name", "aliases", "fp32_flop_per_s", "memory_bytes", "power_w"):
            self.assertEqual(getattr(copy, name), getattr(t4, name))

    def test_plans(self):
        for plan in (
            stepcast.Plan(),
            stepcast.Plan(workers=4, nodes=2, hosts=["a", "b"], rtt_s=1 / 3, bucket_bytes=1e6 / 3),
            stepcast.Plan(workers=4, nodes=2, strategy="ps-sync", servers=2, sharding="even"),
        ):
            self.assertEqual(again(plan), plan)

    def test_predictors_and_compiled_plans_have_the_same_bits(self):
        predictor = support.predictor()
        plan = stepcast.Plan(workers=8, devices_per_node=4, local_batch=64, strategy="auto")
        self.assertEqual(again(predictor).predict(plan).to_dict(),
                         predictor.predict(plan).to_dict())
        compiled = predictor.compile(plan, most_servers=3)
        batch = np.arange(1, 100)
        np.testing.assert_array_equal(again(compiled).predict(local_batch=batch),
                                      compiled.predict(local_batch=batch))
        self.assertEqual(repr(again(compiled)), repr(compiled))

    def test_errors(self):
        with self.assertRaises(stepcast.InputError) as caught:
            stepcast.Plan(local_batch=0)
        copy = again(caught.exception)
        self.assertEqual((str(copy), copy.key, copy.value),
                         (str(caught.exception), "local_batch", "0"))

    def test_another_process_reads_it(self):
        compiled = support.predictor().compile(stepcast.Plan(workers=8, devices_per_node=4))
        answer = subprocess.run(
            [sys.executable, "-c",
             "import pickle, sys; print(pickle.load(sys.stdin.buffer).predict().hex())"],
            input=pickle.dumps(compiled), check=True, capture_output=True).stdout
        self.assertEqual(answer.decode().strip(), compiled.predict().hex())


if __name__ == "__main__":
    support.main()
