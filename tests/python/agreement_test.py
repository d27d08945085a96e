"""The program, the service, the package and the C library answer random questions alike.

STEPCAST_QUESTIONS of them: 40, or 2,000 in a long run.
"""

import ctypes
import json
import os
import random
import subprocess
import sys
import unittest
import urllib.request

import support

import stepcast

PROGRAM = os.environ.get("STEPCAST_PROGRAM")
LIBRARY = os.environ.get("STEPCAST_C_LIBRARY")
CLUSTER = str(support.SOURCE / "data/machines/gce-t4.yaml")
DEVICES = str(support.SOURCE / "data/machines/gpus.yaml")
QUESTIONS = int(os.environ.get("STEPCAST_QUESTIONS", "40"))


def questions():
    """Plans as columns of the runs CSV, and the most samples of one update."""
    draw = random.Random(20261122)
    for _ in range(QUESTIONS):
        plan = {"workload": draw.choice(["resnet50", "vgg16", "bert_base", "mobilenet_v2"]),
                "workers": draw.choice([1, 2, 4, 8, 16]),
                "strategy": draw.choice(["allreduce", "ring", "tree", "hierarchical", "ps-sync",
                                         "ps-async"]),
                "local_batch": draw.choice([1, 3, 8, 32, 100]),
                "accumulation_steps": draw.choice([1, 1, 4, 7]),
                "link_gbit_per_s": draw.choice([0.01, 0.3, 1, 10, 100]),
                "rtt_ms": draw.choice([0.05, 1, 20])}
        if plan["strategy"].startswith("ps-"):
            plan["servers"] = draw.choice([1, 2, 4])
            plan["sharding"] = draw.choice(["tensor", "even", "round-robin"])
        elif plan["workers"] > 2 and draw.random() < 0.3:
            plan["backup_workers"] = 1
        elif plan["strategy"] in ("allreduce", "ring", "hierarchical") and draw.random() < 0.3:
            plan["shard"] = draw.choice(["optimizer", "gradients", "parameters", "hybrid"])
        elif draw.random() < 0.3:
            plan["local_steps"] = draw.choice([2, 16])
        elif plan["strategy"] in ("allreduce", "ring", "hierarchical") and draw.random() < 0.5:
            plan["compress"] = draw.choice(["fp16", "int8", "topk=0.01", "powersgd=4"])
        if draw.random() < 0.2:
            plan["input_samples_per_s"] = draw.choice([5, 100, 1e5])
        if "compress" not in plan and draw.random() < 0.2:
            plan["bytes_per_parameter"] = draw.choice([2, 6])
        yield plan, draw.choice([64, 512, 8192, 100000])


FLAGS = {"workload": "--workload", "workers": "--workers", "strategy": "--strategy",
         "local_batch": "--local-batch", "accumulation_steps": "--accumulation",
         "servers": "--servers", "backup_workers": "--backup-workers", "sharding": "--sharding",
         "shard": "--shard", "local_steps": "--local-steps", "compress": "--compress",
         "bytes_per_parameter": "--bytes-per-parameter"}


def words(plan):
    """The plan as options of the command line."""
    for key, value in plan.items():
        if key == "link_gbit_per_s":
            yield from ("--bandwidth", f"{value} Gbit/s")
        elif key == "rtt_ms":
            yield from ("--rtt", f"{value} ms")
        elif key == "input_samples_per_s":
            yield from ("--input-rate", f"{value} samples/s")
        else:
            yield from (FLAGS[key], str(value))


def program(command, plan, *more):
    """What the program prints as JSON; exit codes 0 and 1 are answers."""
    run = subprocess.run([PROGRAM, command, "--cluster", CLUSTER, *words(plan), *more, "--json"],
                         capture_output=True, text=True, check=False)
    assert run.returncode in (0, 1), run.stderr
    return json.loads(run.stdout)


class Service:
    """`stepcast serve` on a port of its own."""

    def __enter__(self):
        self.process = subprocess.Popen(
            [PROGRAM, "serve", "--cluster", CLUSTER, "--listen", "127.0.0.1:0", "--json"],
            stdout=subprocess.PIPE, text=True)
        self.address = json.loads(self.process.stdout.readline())["listen"]
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()

    def ask(self, path, body):
        request = urllib.request.Request(
            f"http://{self.address}{path}", json.dumps(body).encode(),
            {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.load(reply)


def package_plan(plan):
    """The plan of the package, which takes SI units."""
    fields = {key: value for key, value in plan.items()
              if key not in ("workload", "workers", "link_gbit_per_s", "rtt_ms")}
    cluster = stepcast.read_cluster(CLUSTER)
    nodes, rest = divmod(plan["workers"], cluster.devices_per_node)
    placement = [cluster.devices_per_node] * nodes + ([rest] if rest else [])
    return stepcast.Plan(placement=placement,
                         bandwidth_bytes_per_s=plan["link_gbit_per_s"] * 1e9 / 8,
                         rtt_s=plan["rtt_ms"] * 1e-3, **fields)


class C:
    """The C library, as far as these questions need it."""

    class Search(ctypes.Structure):
        _fields_ = [("struct_size", ctypes.c_size_t)] + [
            (name, ctypes.c_int32) for name in
            ("least_global_batch", "most_global_batch", "least_local_batch", "most_local_batch",
             "accumulate", "candidates")] + [
            ("noise_scale_samples", ctypes.c_double), ("initial_batch_samples", ctypes.c_double)]

    class Allocations(ctypes.Structure):
        _fields_ = [("struct_size", ctypes.c_size_t), ("count", ctypes.c_size_t)] + [
            (name, ctypes.POINTER(ctypes.c_int32)) for name in
            ("workers", "nodes", "devices_per_node", "servers")]

    class Choices(ctypes.Structure):
        _fields_ = [("struct_size", ctypes.c_size_t),
                    ("local_batch", ctypes.POINTER(ctypes.c_int32)),
                    ("accumulation_steps", ctypes.POINTER(ctypes.c_int32))] + [
            (name, ctypes.POINTER(ctypes.c_double)) for name in
            ("step_time_s", "throughput", "statistical_efficiency", "goodput")]

    class Values(ctypes.Structure):
        _fields_ = [("struct_size", ctypes.c_size_t)] + [
            (name, ctypes.c_double) for name in
            ("step_time_s", "low_s", "high_s", "log_sd", "p50_s", "p95_s", "p99_s",
             "throughput_samples_per_s", "forward_s", "backward_s", "update_s",
             "exposed_latency_s", "exposed_transfer_s", "straggler_wait_s", "synchronisation_s",
             "memory_need_bytes", "memory_available_bytes")] + [
            ("strategy", ctypes.c_char_p)] + [
            (name, ctypes.c_int32) for name in
            ("limiter", "memory_verdict", "compute_source", "buckets")] + [
            (name, ctypes.c_double) for name in ("input_wait_s", "coding_s")]

    def __init__(self):
        self.library = ctypes.CDLL(LIBRARY)

    def make(self, name, *arguments):
        handle, error = ctypes.c_void_p(), ctypes.c_char_p()
        status = getattr(self.library, name)(*arguments, ctypes.byref(handle),
                                             ctypes.byref(error))
        assert status == 0, (name, error.value)
        return handle

    def set(self, plan, field, value):
        error = ctypes.c_char_p()
        if isinstance(value, str):
            status = self.library.stepcast_plan_set_text(plan, field.encode(), value.encode(),
                                                         ctypes.byref(error))
        else:
            status = self.library.stepcast_plan_set_number(
                plan, field.encode(), ctypes.c_double(value), ctypes.byref(error))
        assert status == 0, (field, error.value)

    def answer(self, plan, most):
        """The step time, and the best batch."""
        cluster = self.make("stepcast_cluster_read", CLUSTER.encode())
        workload = self.make("stepcast_workload_find", plan["workload"].encode())
        device = self.make("stepcast_device_read", DEVICES.encode(), b"t4")
        predictor = self.make("stepcast_predictor_create", cluster, workload, device)
        made = self.make("stepcast_plan_create")
        nodes, rest = divmod(plan["workers"], 4)
        placement = "-".join(["4"] * nodes + ([str(rest)] if rest else []))
        for key, value in {**plan, "placement": placement}.items():
            if key not in ("workload", "workers"):
                self.set(made, key, value)
        prediction = self.make("stepcast_predictor_predict", predictor, made)
        values = self.Values(struct_size=ctypes.sizeof(self.Values))
        assert self.library.stepcast_prediction_get_values(prediction, ctypes.byref(values)) == 0
        compiled = self.make("stepcast_compiled_create", predictor, made, None)
        search = self.Search(struct_size=ctypes.sizeof(self.Search))
        assert self.library.stepcast_batch_search_init(ctypes.byref(search)) == 0
        search.most_global_batch = most
        batch, steps, score = ctypes.c_int32(), ctypes.c_int32(), ctypes.c_double()
        choices = self.Choices(struct_size=ctypes.sizeof(self.Choices),
                               local_batch=ctypes.pointer(batch),
                               accumulation_steps=ctypes.pointer(steps),
                               throughput=ctypes.pointer(score))
        allocations = self.Allocations(struct_size=ctypes.sizeof(self.Allocations), count=1)
        assert self.library.stepcast_compiled_choose_batches(
            compiled, ctypes.byref(allocations), ctypes.byref(search), ctypes.byref(choices),
            None) == 0
        for name, handle in (("compiled", compiled), ("prediction", prediction), ("plan", made),
                             ("predictor", predictor), ("device", device),
                             ("workload", workload), ("cluster", cluster)):
            getattr(self.library, f"stepcast_{name}_free")(handle)
        return values, (batch.value, steps.value, score.value)


@unittest.skipUnless(PROGRAM, "built without the program")
class Agreement(unittest.TestCase):
    def test_answers(self):
        library = C() if LIBRARY else None
        cluster = stepcast.read_cluster(CLUSTER)
        answered = 0
        with Service() as service:
            for plan, most in questions():
                with self.subTest(plan, most=most):
                    told = program("predict", plan)
                    served = service.ask("/v1/predict", plan)
                    self.assertEqual(told, served)
                    predictor = stepcast.Predictor(cluster, stepcast.workload(plan["workload"]))
                    packed = package_plan(plan)
                    self.assertAlmostEqual(
                        predictor.predict(packed).step_time_s / told["step_time_s"], 1, places=12)

                    shared = {key: value for key, value in plan.items() if key != "workload"}
                    many = service.ask("/v1/predict_batch", {
                        "workload": plan["workload"], "plan": shared,
                        "queries": {"workers": [plan["workers"]]}})
                    self.assertAlmostEqual(many["step_time_s"][0] / told["step_time_s"], 1,
                                           places=9)
                    self.assertEqual(many["memory"], [told["memory"]["verdict"]])
                    self.assertEqual([flag["flag"] for flag in many["flags"]], told["flags"])

                    best = program("recommend", plan, "--most-global-batch", str(most))["best"]
                    chosen = service.ask("/v1/recommend", {
                        "workload": plan["workload"], "plan": shared,
                        "allocations": {"workers": [plan["workers"]]},
                        "search": {"most_global_batch": most}})
                    packaged = predictor.compile(packed).choose_batches(most_global_batch=most)
                    answers = {
                        "service": (chosen["local_batch"][0], chosen["accumulation_steps"][0],
                                    chosen["throughput_samples_per_s"][0]),
                        "package": (packaged.local_batch, packaged.accumulation_steps,
                                    packaged.throughput_samples_per_s)}
                    if library is not None:
                        values, answers["C"] = library.answer(plan, most)
                        for key in ("step_time_s", "low_s", "high_s"):
                            self.assertAlmostEqual(getattr(values, key) / told[key], 1, places=12)
                    for batch, steps, throughput in answers.values():
                        if best is None:
                            self.assertIn(batch, (None, 0), answers)
                            continue
                        answered += 1
                        self.assertEqual((batch, steps),
                                         (best["plan"]["local_batch"],
                                          best["plan"]["accumulation_steps"]), answers)
                        self.assertAlmostEqual(
                            throughput / best["throughput_samples_per_s"], 1, places=9)
        self.assertGreater(answered, QUESTIONS)

    def test_defaults(self):
        plan = {"workload": "resnet50", "workers": 8, "local_batch": 32}
        best = program("recommend", plan)["best"]["plan"]
        with Service() as service:
            chosen = service.ask("/v1/recommend", {
                "workload": "resnet50", "plan": {"local_batch": 32},
                "allocations": {"workers": [8]}})
        self.assertEqual((chosen["local_batch"], chosen["accumulation_steps"]),
                         ([best["local_batch"]], [best["accumulation_steps"]]))


if __name__ == "__main__":
    sys.exit(support.main())
