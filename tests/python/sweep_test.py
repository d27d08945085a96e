"""Physics that `stepcast sweep` keeps on whatever plans it is asked for.

Each question is a random plan and a grid over what must have a direction: STEPCAST_PLANS rows in
all (2,000; a long run takes 50,000).
"""

import itertools
import json
import math
import os
import random
import subprocess
import sys
import unittest

import support

PROGRAM = os.environ.get("STEPCAST_PROGRAM")
PLANS = int(os.environ.get("STEPCAST_PLANS", "2000"))
SEED = int(os.environ.get("STEPCAST_SEED", "20261123"))
CLUSTERS = ("gce-t4", "ufrgs-tupi", "aws-g4dn-12xlarge", "ec2-g3-ps", "ufrgs-poti")
WORKLOADS = ("resnet50", "vgg16", "bert_base", "mobilenet_v2", "inception_v3")
STRATEGIES = ("none", "allreduce", "ring", "tree", "halving-doubling", "hierarchical", "byteps",
              "auto", "ps-sync", "ps-async")
# Axes in their order: the step must not get longer (-1) or shorter (1) along one.
AXES = {"bandwidth": (-1, ("10 Mbit/s", "300 Mbit/s", "1 Gbit/s", "10 Gbit/s", "100 Gbit/s")),
        "rtt": (1, ("50 us", "1 ms", "20 ms", "300 ms")),
        "loss": (1, ("0", "1e-5", "1e-3", "0.02")),
        "local-batch": (1, ("1", "2", "7", "32", "129")),
        "accumulation": (1, ("1", "2", "5")),
        "backup-workers": (-1, ("0", "1")),
        "staleness-bound": (-1, ("0", "1", "3", "20")),
        # An exchange of every step hides behind its backward pass, rarer ones do not.
        "local-steps": (-1, ("2", "3", "16", "100")),
        "input-rate": (-1, ("1 samples/s", "50 samples/s", "1000 samples/s", "1e6 samples/s")),
        "compress-rate": (-1, ("0.1 GB/s", "1 GB/s", "30 GB/s")),
        "multicast": (-1, ("no", "yes")),
        "in-network-aggregation": (-1, ("no", "yes"))}
HALVES = ("allreduce", "ring", "hierarchical")
ALLREDUCES = HALVES + ("tree", "halving-doubling")
ROUNDING = 1e-9


def question(draw):
    """Options of a plan, and the axes to sweep."""
    strategy = draw.choice(STRATEGIES)
    workers = 1 if strategy == "none" else draw.choice((2, 3, 4, 8, 13, 16))
    options = ["--workload", draw.choice(WORKLOADS), "--strategy", strategy,
               "--workers", str(workers)]
    axes = ["local-batch", "accumulation", "input-rate"]
    if strategy != "none":
        axes += ["bandwidth", "rtt", "loss"]
        shard = draw.choice(("optimizer", "gradients", "parameters", None, None))
        if strategy not in HALVES:
            shard = None
        if shard:
            options += ["--shard", shard]
        elif strategy != "ps-async" and workers > 2:
            axes.append("backup-workers")
        compress = draw.choice(("fp16", "bf16", "int8", "topk=0.01", "powersgd=4", None, None,
                                None))
        needs = {"topk=0.01": HALVES, "powersgd=4": ALLREDUCES}
        if shard or strategy in ("ps-async", "byteps") or strategy not in needs.get(
                compress, STRATEGIES):
            compress = None
        if compress:
            options += ["--compress", compress]
            axes.append("compress-rate")
        elif not shard and strategy in ALLREDUCES:
            axes.append("local-steps")
        options += ["--overlap", draw.choice(("buckets", "none"))]
        if draw.random() < 0.5:
            options += ["--bucket", draw.choice(("tensor", "100 KiB", "1 MiB", "25 MiB", "4 GiB",
                                                 "one-message"))]
        if not compress and draw.random() < 0.2:
            options += ["--bytes-per-parameter", draw.choice(("1", "2", "6"))]
        if draw.random() < 0.5:
            options += ["--congestion-control", draw.choice(("reno", "cubic", "bbr"))]
        if draw.random() < 0.2:
            options += ["--transport", draw.choice(("tcp", "rdma"))]
    if strategy.startswith("ps-"):
        options += ["--servers", str(draw.choice((1, 2, 4))),
                    "--sharding", draw.choice(("tensor", "even", "round-robin"))]
        if draw.random() < 0.4:
            options += ["--colocated-servers"]
        if strategy == "ps-async":
            axes.append("staleness-bound")
        else:
            axes += ["multicast", "in-network-aggregation"]
            if draw.random() < 0.3 and "none" not in options:  # which is an overlap
                options += ["--pipelined-servers"]
    chosen = draw.sample(axes, 2 if strategy == "none" else 3)
    for axis in AXES:
        if axis not in chosen and axis in ("local-batch", "bandwidth", "rtt") and axis in axes:
            options += [f"--{axis}", draw.choice(AXES[axis][1])]
    # A loss without a round trip says nothing of what it costs.
    if "loss" in chosen and "rtt" not in chosen and "--rtt" not in options:
        options += ["--rtt", "1 ms"]
    where = (["--cluster", draw.choice(CLUSTERS)] if draw.random() < 0.7 else
             ["--device", draw.choice(("t4", "v100", "rtx_2080_ti"))])
    return where + options, chosen


def ask(command, options):
    run = subprocess.run([PROGRAM, command, *options, "--json"], capture_output=True, text=True,
                         check=False, timeout=120)
    assert run.returncode in (0, 1), (options, run.stderr)  # 1: does not fit into memory
    return json.loads(run.stdout)


@unittest.skipUnless(PROGRAM, "built without the program")
class Sweep(unittest.TestCase):
    def check_row(self, row):
        step = row["step_time_s"]
        plan = row["plan"]
        self.assertTrue(math.isfinite(step) and step > 0)
        self.assertAlmostEqual(sum(row["breakdown"].values()) / step, 1, delta=ROUNDING)
        self.assertTrue(all(part >= 0 for part in row["breakdown"].values()))
        backup = plan.get("backup_workers", 0)
        counted = plan["global_batch"] * (1 - backup / plan["workers"])
        self.assertAlmostEqual(row["throughput_samples_per_s"] * step / counted, 1, delta=ROUNDING)
        self.assertLessEqual(row["low_s"], step)
        self.assertLessEqual(step, row["high_s"])
        quantiles = row["quantiles"]
        self.assertLessEqual(row["low_s"], quantiles["p50_s"])
        self.assertLessEqual(quantiles["p50_s"], quantiles["p95_s"])
        self.assertLessEqual(quantiles["p95_s"], quantiles["p99_s"])
        self.assertLessEqual(quantiles["p50_s"], row["high_s"])
        self.assertGreaterEqual(row["idle_ratio"], 0)
        self.assertLess(row["idle_ratio"], 1)

    def check_directions(self, chosen, rows):
        grid = list(itertools.product(*(range(len(AXES[axis][1])) for axis in chosen)))
        self.assertEqual(len(grid), len(rows))
        steps = {at: row["step_time_s"] for at, row in zip(grid, rows)}
        for at, step in steps.items():
            for i, axis in enumerate(chosen):
                after = at[:i] + (at[i] + 1,) + at[i + 1:]
                if after in steps:
                    grown = (steps[after] / step - 1) * AXES[axis][0]
                    self.assertGreaterEqual(grown, -ROUNDING, (axis, at, step, steps[after]))

    def test_physics(self):
        draw = random.Random(SEED)
        told = 0
        while told < PLANS:
            options, chosen = question(draw)
            over = [word for axis in chosen
                    for word in ("--over", f"{axis}={','.join(AXES[axis][1])}")]
            told += math.prod(len(AXES[axis][1]) for axis in chosen)
            with self.subTest(options=" ".join(options), over=chosen):
                rows = ask("sweep", options + over)["points"]
                for row in rows:
                    self.check_row(row)
                self.check_directions(chosen, rows)
                # One of them, asked alone.
                which = draw.randrange(len(rows))
                at = which
                fixed = []
                for axis in reversed(chosen):
                    values = AXES[axis][1]
                    fixed += [f"--{axis}", values[at % len(values)]]
                    at //= len(values)
                self.assertEqual(ask("predict", options + fixed), rows[which])
        print(f"{told} plans")


if __name__ == "__main__":
    sys.exit(support.main())
