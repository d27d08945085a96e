"""What is pickled answers as before, in this process and in another."""

import copy as copying
import pickle
import subprocess
import sys
import unittest

import numpy as np

import stepcast
import support


def again(value):
    return pickle.loads(pickle.dumps(value))


PLANS = [stepcast.Plan(workers=w, nodes=n, local_batch=b)
         for w, n, b in [(1, 1, 32), (1, 1, 64), (4, 1, 64), (8, 2, 64), (3, 3, 7)]]


def properties(value):
    """All that is shown of a record."""
    shown = {name: getattr(value, name) for name, kind in vars(type(value)).items()
             if isinstance(kind, property)}
    assert len(shown) > 5, shown
    return shown


def answers(value, workload):
    """What is asked of a cluster, or of what has one."""
    if isinstance(value, stepcast.OnlineCalibration):
        return value.to_json(), answers(value.cluster, workload)
    if isinstance(value, stepcast.Cluster):
        return value.to_yaml(), answers(stepcast.Predictor(value, workload), workload)
    if isinstance(value, stepcast.Predictor):
        return [answers(value.predict(plan), workload) for plan in PLANS]
    if isinstance(value, stepcast.Prediction):
        return value.plan.to_dict(), value.to_dict()
    if isinstance(value, stepcast.CompiledPlan):
        return [value.predict(workers=w, nodes=2, intervals=True).low_s.hex()
                for w in (2, 8)]
    if isinstance(value, (stepcast.Run, stepcast.Parameter)):
        return properties(value)
    if isinstance(value, stepcast.Observation):
        return value.predicted_s, value.log_ratio, value.surprise, value.drifted
    # The outcome of a fit.
    return (value.status, value.usable, value.message, list(value.predicted_s),
            list(value.log_ratio), value.mape, value.iterations, answers(value.cluster, workload))


class Pickles(unittest.TestCase):
    def test_records(self):
        cluster = stepcast.read_cluster("ufrgs-tupi")
        self.assertEqual(again(cluster), cluster)
        for name in stepcast.workload_names():
            workload = stepcast.workload(name)
            self.assertEqual(again(workload), workload)

    def test_devices_with_what_is_not_shown(self):
        resnet = stepcast.workload("resnet50")
        devices = stepcast.read_devices()
        self.assertGreater(len(devices), 10)
        for device in devices:
            copy = again(device)
            self.assertEqual(properties(copy), properties(device))
            # Caches and links of devices show in what is predicted.
            cluster = stepcast.cluster(device.name, nodes=2, devices_per_node=4,
                                       bandwidth_bytes_per_s=1e9)
            plan = stepcast.Plan(workers=8, nodes=2, local_batch=16)
            self.assertEqual(
                *(stepcast.Predictor(cluster, resnet, device=one).predict(plan).to_dict()
                  for one in (device, copy)))

    def test_runs_with_every_part(self):
        parts = dict(workload="resnet50", device="t4", plan=stepcast.Plan(workers=2, nodes=2),
                     step_time_s=0.5, exposed_sync_s=0.1, source="a log: 1", stopped=True,
                     step_time_sd_s=0.02, p50_s=0.49, p95_s=0.6, p99_s=0.7)
        run = stepcast.Run(**parts)
        self.assertEqual(properties(run), parts)
        self.assertEqual(properties(again(run)), parts)
        read = stepcast.read_runs(str(support.SOURCE / "data/measurements/ufrgs-tupi-fit.csv"))
        for run in read:
            self.assertEqual(properties(again(run)), properties(run))
            self.assertEqual(again(run).__getstate__(), run.__getstate__())

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
        of_servers = predictor.compile(plan.replace(strategy="ps-sync", servers=1), most_servers=3)
        for one in (of_servers, again(of_servers)):
            one.predict(servers=3)
            with self.assertRaises(stepcast.InputError):
                one.predict(servers=4)

    def test_what_was_learnt_answers_the_same_in_each_copy(self):
        cluster = stepcast.cluster("t4", nodes=4, devices_per_node=4,
                                   bandwidth_bytes_per_s=1e10 / 7, rtt_s=1e-4 / 3)
        rng = np.random.default_rng(1)
        for name in ("resnet50", "bert_base"):
            workload = stepcast.workload(name)
            truth = stepcast.Predictor(stepcast.read_cluster("gce-t4"), workload)
            times = [truth.predict(plan).step_time_s * float(np.exp(rng.normal(0.3, 0.05)))
                     for plan in PLANS]
            runs = [stepcast.Run(name, "t4", plan, time, source=source)
                    for plan, time in zip(PLANS, times) for source in ("", "a log: 1")]
            made = list(runs)
            starts = [cluster]
            try:
                made.append(stepcast.calibrate(cluster, runs))
                starts.append(made[-1].cluster)
            except ImportError:
                pass  # built without Ceres
            for start in starts:
                job = stepcast.OnlineCalibration(start, workload)
                made += [job.observe(plan, time) for plan, time in zip(PLANS, times)]
                made += [job, job.cluster, job.predictor(), *job.cluster.parameters,
                         job.predictor().predict(PLANS[3]), job.predictor().compile(PLANS[3])]
                made.append(stepcast.OnlineCalibration(job.cluster, workload))
            for value in made:
                expected = answers(value, workload)
                for copy in (again(value), copying.copy(value), copying.deepcopy(value)):
                    self.assertEqual(answers(copy, workload), expected, repr(value))
                if isinstance(value, stepcast.Cluster):
                    read = stepcast.parse_cluster(value.to_yaml())
                    self.assertEqual(answers(read, workload), expected)

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
