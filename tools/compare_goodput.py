#!/usr/bin/env python3
"""Compares stepcast.pollux with another goodput module of the same interface.

    tools/compare_goodput.py --reference PATH/TO/goodput.py [--rows JOB.csv ...]

measures both in one run, turn by turn: predictions and recommendations in a second, one at a time
and as arrays of the size that a scheduler asks for, and the time of a fit. With measured rows, both
are fitted to the same few of them and judged on the others. Without a reference, stepcast alone.

Rows are CSV with the columns num_nodes and num_replicas (or placement, a digit a node), local_bsz,
step_time and sync_time, the part of a step that waits for its synchronisation. Files whose names
begin alike up to the first _ are one job.

A reference that needs what is not installed gets a stand-in, and the output says so: central
differences for autograd, int for numpy.int.
"""

import argparse
import csv
import importlib.util
import json
import statistics
import sys
import time
import types
from pathlib import Path

import numpy as np

import stepcast.pollux as ours
from compare_benchmarks import machine_today

# A job like many: it computes for 0.1 s a micro-step, and exchanges 100 MB over some Gbit/s.
_NODES = np.array([1, 1, 1, 1, 2, 2, 2, 4, 4, 8])
_REPLICAS = np.array([1, 1, 2, 4, 2, 4, 8, 8, 16, 32])
_BATCH = np.array([16, 32, 32, 32, 32, 64, 32, 32, 64, 32])
_SYNC_S = np.array([0, 0, 0.02, 0.03, 0.1, 0.09, 0.12, 0.08, 0.07, 0.11])
_ACCUM_S = 0.02 + 0.0025 * _BATCH
_MOST_BATCH = 4096
_RANGE = (8, 256)
_CANDIDATES = 50


def load_reference(path):
    """The module in the file, and what had to stand in for a missing library."""
    notes = []
    if not hasattr(np, "int"):
        np.int = int
        notes.append("numpy has no int: int stands in")
    if importlib.util.find_spec("autograd") is None:
        notes.append("autograd is not installed: gradients are central differences")
        stand_in = types.ModuleType("autograd")
        stand_in.numpy = np
        stand_in.grad = central_differences
        sys.modules["autograd"] = stand_in
    spec = importlib.util.spec_from_file_location("reference_goodput", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, notes


def central_differences(function):
    def gradient(values, *others):
        values = np.array(values, dtype=float)
        slopes = np.empty_like(values)
        for i, value in enumerate(values):
            step = 1e-6 * max(abs(value), 1e-6)
            above, below = values.copy(), values.copy()
            above[i], below[i] = value + step, value - step
            slopes[i] = (function(above, *others) - function(below, *others)) / (2 * step)
        return slopes

    return gradient


def median_times(functions, seconds):
    """Median processor time of a call of each [s].

    Turn by turn, so that whatever else keeps the machine busy slows all alike.
    """
    loops = []
    for function in functions:
        function()  # what is made once
        start = time.process_time()
        function()
        loops.append(max(1, int(0.005 / max(time.process_time() - start, 1e-9))))
    times = [[] for _ in functions]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 5:
        for of_one, function, count in zip(times, functions, loops):
            start = time.process_time()
            for _ in range(count):
                function()
            of_one.append((time.process_time() - start) / count)
    return [statistics.median(of_one) for of_one in times]


def allocations():
    """All of up to 16 nodes and 64 replicas."""
    nodes, replicas = np.meshgrid(np.arange(1, 17), np.arange(1, 65), indexing="ij")
    fits = nodes <= replicas
    return nodes[fits], replicas[fits]


def rates(modules, seconds):
    """{what: {"unit", times by module name}}; times are of one prediction, recommendation, fit."""
    made = {}
    for name, module in modules.items():
        params = module.fit_perf_params(_NODES, _REPLICAS, _BATCH, _ACCUM_S, _ACCUM_S + _SYNC_S)
        made[name] = module.GoodputFunction(params, module.GradParams(0.001, 0.01), 128)
    nodes, replicas = allocations()
    batch = np.maximum(np.geomspace(8, 256, _CANDIDATES).astype(int)[:, None],
                       -(-128 // replicas)[None, :])
    steps = np.zeros_like(batch)
    size = batch.size
    work = {
        "prediction, one at a time": (1, lambda fn: lambda: fn(2, 8, 32, 1)),
        f"prediction, {batch.shape[0]} x {batch.shape[1]} at once": (
            size, lambda fn: lambda: fn(nodes, replicas, batch, steps)),
        "recommendation, one at a time": (
            1, lambda fn: lambda: fn.optimize(2, 8, _MOST_BATCH, _RANGE, True)),
        f"recommendation, {len(nodes)} at once": (
            len(nodes), lambda fn: lambda: fn.optimize(nodes, replicas, _MOST_BATCH, _RANGE, True)),
    }
    table = {}
    for what, (count, call) in work.items():
        times = median_times([call(fn) for fn in made.values()], seconds)
        table[what] = {name: t / count for name, t in zip(made, times)}

    def fit(module):
        return lambda: module.fit_perf_params(_NODES, _REPLICAS, _BATCH, _ACCUM_S,
                                              _ACCUM_S + _SYNC_S)

    times = median_times([fit(module) for module in modules.values()], seconds)
    table[f"fit to {len(_NODES)} rows"] = dict(zip(made, times))
    return table


def read_jobs(paths):
    jobs = {}
    for path in map(Path, paths):
        with open(path, newline="") as file:
            for row in csv.DictReader(file):
                placement = row.get("placement")
                nodes = len(placement) if placement else int(row["num_nodes"])
                replicas = (sum(map(int, placement)) if placement else int(row["num_replicas"]))
                step_s, sync_s = float(row["step_time"]), float(row["sync_time"])
                jobs.setdefault(path.stem.split("_")[0], []).append(
                    (nodes, replicas, int(row["local_bsz"]), step_s - sync_s, step_s))
    return {name: np.array(rows) for name, rows in jobs.items()}


def splits(rows):
    """{name: rows that are fitted}; the others judge."""
    small = (rows[:, 0] <= 2) & (rows[:, 1] <= 4)
    fifth = np.random.default_rng(1).random(len(rows)) < 0.2
    return {"to 2 nodes, 4 replicas": small, "a random fifth": fifth}


def accuracy(modules, jobs, gradient_bytes):
    """Mean |predicted / measured - 1| of the steps that were kept back."""
    table = {}
    for job, rows in jobs.items():
        for split, fitted in splits(rows).items():
            nodes, replicas, batch = (column.astype(int) for column in rows.T[:3])
            scores = {}
            for name, module in modules.items():
                known = ({"gradient_bytes": gradient_bytes[job]}
                         if module is ours and job in gradient_bytes else {})
                params = module.fit_perf_params(nodes[fitted], replicas[fitted], batch[fitted],
                                                rows[fitted, 3], rows[fitted, 4], **known)
                fn = module.GoodputFunction(params, module.GradParams(0.0, 1.0), 1)
                throughput = fn.throughput(nodes, replicas, batch, np.zeros_like(batch))
                predicted = replicas * batch / throughput
                scores[name] = float(np.mean(np.abs(predicted / rows[:, 4] - 1)[~fitted]))
            table[f"{job}, {split}"] = {"fitted": int(fitted.sum()),
                                        "judged": int((~fitted).sum()), **scores}
    return table


def time_text(seconds):
    for factor, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reference", metavar="GOODPUT.py", help="the module to compare with")
    parser.add_argument("--rows", metavar="JOB.csv", nargs="*", default=[],
                        help="measured steps of jobs")
    parser.add_argument("--gradient-bytes", metavar="JOB=BYTES", nargs="*", default=[],
                        help="gradient bytes of jobs, which stepcast alone is told")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each measured rate (2)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()

    modules = {"stepcast": ours}
    notes = []
    if arguments.reference:
        modules["reference"], notes = load_reference(arguments.reference)
    table = rates(modules, arguments.seconds)
    known = {job: float(size) for job, size in
             (text.split("=") for text in arguments.gradient_bytes)}
    judged = accuracy(modules, read_jobs(arguments.rows), known)
    if arguments.json:
        print(json.dumps({"machine": machine_today(), "notes": notes, "seconds": table,
                          "mape": judged}, indent=2))
        return
    for note in notes:
        print("!", note)
    print(f"{'median time of one':36}" + "".join(f"{name:>12}" for name in modules) + "   ratio")
    for what, times in table.items():
        line = f"{what:36}" + "".join(f"{time_text(t):>12}" for t in times.values())
        if "reference" in times:
            line += f"{times['reference'] / times['stepcast']:8.1f}"
        print(line)
    if judged:
        print(f"\n{'mean error of rows kept back':36}fitted judged" +
              "".join(f"{name:>12}" for name in modules))
    for what, row in judged.items():
        print(f"{what:36}{row['fitted']:6} {row['judged']:6}" +
              "".join(f"{100 * row[name]:10.1f} %" for name in modules))


if __name__ == "__main__":
    main()
