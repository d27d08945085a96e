#!/usr/bin/env python3
"""Times stepcast beside other estimators of a training step, as they are published.

    tools/compare_estimators.py [--calculon DIR] [--paleo DIR]

DIR holds a checkout of github.com/calculon-ai/calculon or of github.com/TalwalkarLab/paleo. Each is
asked for the step of one network on one cluster, turn by turn with stepcast in one process. Without
either, stepcast alone.

What an estimator imports and these questions do not need gets an empty module for a stand-in, and
the output says so.
"""

import argparse
import importlib
import importlib.util
import json
import logging
import sys
import types
from pathlib import Path

import numpy as np

import stepcast
from compare_benchmarks import machine_today
from compare_goodput import median_times, time_text

_MANY = range(2, 129)
ANEW = "a step, the network read anew"
FULL = "a step of a network that is known, with interval, breakdown and memory"
TIME = "its time alone"
CURVE = f"the times of {_MANY[0]} to {_MANY[-1]} workers"

# Calculon's own description of the machine is systems/a100_80g.json: its network between nodes has
# 25 GB/s and 20 us.
_BLOCKS, _HIDDEN, _HEADS, _TOKENS = 24, 2048, 16, 2048
_SEQUENCES = 4
_GPUS = 64
# Paleo's are in paleo/device.py: K80, and ethernet20 with 20 Gbit/s. Shares of the peak rates are
# those of its own API.
_IMAGES = 64
_K80S = 8


def stand_in(name, why, notes):
    sys.modules[name] = types.ModuleType(name)
    notes.append(why)


def calculon_steps(folder, notes):
    """workers -> the step time [s] that Calculon says, and its version."""
    for name in ("pandas", "psutil"):
        if importlib.util.find_spec(name) is None:
            stand_in(name, f"{name} is not installed, which only Calculon's searches use: an empty "
                     "module stands in", notes)
    sys.path.insert(0, str(folder))
    package = importlib.import_module("calculon")
    llm = importlib.import_module("calculon.llm.llm").Llm
    system = package.System(json.loads((folder / "systems/a100_80g.json").read_text()))
    network = {"hidden": _HIDDEN, "feedforward": 4 * _HIDDEN, "seq_size": _TOKENS,
               "attn_heads": _HEADS, "attn_size": _HIDDEN // _HEADS, "num_blocks": _BLOCKS}
    log = logging.getLogger("calculon")

    def step(workers):
        execution = llm.Execution.from_json({
            "num_procs": workers, "tensor_par": 1, "pipeline_par": 1, "data_par": workers,
            "tensor_par_net": 0, "pipeline_par_net": 1, "data_par_net": 1,
            "batch_size": _SEQUENCES * workers, "microbatch_size": _SEQUENCES,
            "datatype": "float16", "fused_activation": False, "attention_type": "multihead",
            "activation_recompute": "none", "pipeline_interleaving": 1,
            "optimizer_sharding": False, "tensor_par_comm_type": "ar",
            "tensor_par_overlap": "none", "seq_par_ag_redo": False, "data_par_overlap": True,
            "weight_offload": False, "activations_offload": False, "optimizer_offload": False,
            "training": True})
        model = llm(llm.Application(network), log)
        model.compile(system, execution)
        model.run(system)
        return model.get_total_time()

    return step, package.__version__


def beside_calculon(folder):
    notes = []
    theirs, version = calculon_steps(folder, notes) if folder else (None, None)
    cluster = stepcast.cluster("a100_80gb", nodes=_GPUS, bandwidth_bytes_per_s=25e9, rtt_s=20e-6)
    plan = stepcast.Plan(workers=_GPUS, nodes=_GPUS, local_batch=_SEQUENCES, strategy="ring",
                         transport="rdma")

    def workload():
        return stepcast.workload(f"gpt:layers={_BLOCKS}:hidden={_HIDDEN}:heads={_HEADS}@{_TOKENS}",
                                 precision="fp16", optimizer="adam")

    return {
        "version": version,
        "asked": f"a decoder of {_BLOCKS} blocks of {_HIDDEN:,} "
                 f"({workload().parameters / 1e9:.2g} billion parameters) in fp16 with Adam, "
                 f"{_SEQUENCES} sequences of {_TOKENS:,} tokens on each of {_GPUS} A100 of 80 GB, "
                 "without tensor and pipeline parallelism, over links of 25 GB/s",
        **answers(cluster, workload, plan, theirs and {
            ANEW: lambda: theirs(_GPUS), FULL: lambda: theirs(_GPUS), TIME: lambda: theirs(_GPUS),
            CURVE: lambda: [theirs(workers) for workers in _MANY]}),
        "said": theirs and theirs(_GPUS),
        "notes": notes,
    }


def paleo_steps(folder, notes):
    """(graph, numbers of workers) -> the step times [s] that Paleo says; a graph; its version."""
    stand_in("paleo.profilers.cudnn_profiler", "Paleo counts convolutions as matrix products: its "
             "choice of algorithms needs cuDNN 4, and an empty module stands in for what loads it",
             notes)
    sys.path.insert(0, str(folder))
    package = importlib.import_module("paleo")
    simulation = importlib.import_module("paleo.simulation")
    device = importlib.import_module("paleo.device")
    read = importlib.import_module("paleo.graph").OperationGraph

    def graph():
        return read(str(folder / "nets/vgg16.json"))

    def steps(network, workers):
        heads, rows = simulation.simulate_scaling(
            network.nested_list, network.topology_order, workers, "weak", _IMAGES,
            device.DEVICES["K80"], device.NETWORKS["ethernet20"], False, True, 0.62, 0.72)
        compute, tree = heads.index("time_comp"), heads.index("TreeAllReduce")
        return [1e-3 * (row[compute] + row[tree]) for row in rows]

    return steps, graph, package.__version__


def beside_paleo(folder):
    notes = []
    steps, graph, version = paleo_steps(folder, notes) if folder else (None, None, None)
    cluster = stepcast.cluster("k80", nodes=_K80S, bandwidth_bytes_per_s=20e9 / 8)
    plan = stepcast.Plan(workers=_K80S, nodes=_K80S, local_batch=_IMAGES, strategy="tree")
    theirs = None
    if folder:
        known = graph()
        theirs = {ANEW: lambda: steps(graph(), [_K80S]), FULL: lambda: steps(known, [_K80S]),
                  TIME: lambda: steps(known, [_K80S]), CURVE: lambda: steps(known, _MANY)}
    return {
        "version": version,
        "asked": f"VGG-16, {_IMAGES} images on each of {_K80S} K80, a tree over links of 20 Gbit/s",
        **answers(cluster, lambda: stepcast.workload("vgg16"), plan, theirs),
        "said": theirs and theirs[FULL]()[0],
        "notes": notes,
    }


def answers(cluster, workload, plan, theirs):
    """What stepcast says of the plan, and the calls that are timed: by question, of each."""
    predictor = stepcast.Predictor(cluster, workload())
    compiled = predictor.compile(plan)
    many = np.array(_MANY)
    ours = {
        ANEW: lambda: stepcast.Predictor(cluster, workload()).predict(plan),
        FULL: lambda: predictor.predict(plan),
        TIME: lambda: compiled.predict(workers=plan.workers, nodes=plan.nodes),
        CURVE: lambda: compiled.predict(workers=many, nodes=many),
    }
    prediction = predictor.predict(plan)
    return {"calls": {what: [call] + ([theirs[what]] if theirs else [])
                      for what, call in ours.items()},
            "stepcast": [prediction.step_time_s, prediction.low_s, prediction.high_s]}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calculon", metavar="DIR", type=Path, help="a checkout of Calculon")
    parser.add_argument("--paleo", metavar="DIR", type=Path, help="a checkout of Paleo")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each question (2)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()

    estimators = [("Calculon", beside_calculon, arguments.calculon),
                  ("Paleo", beside_paleo, arguments.paleo)]
    given = [estimator for estimator in estimators if estimator[2]]
    compared = {}
    for name, beside, folder in given or estimators:
        found = beside(folder)
        found["seconds"] = {
            what: dict(zip(("stepcast", name), median_times(calls, arguments.seconds)))
            for what, calls in found.pop("calls").items()}
        compared[name] = {"machine": machine_today(), **found}
    if arguments.json:
        print(json.dumps(compared, indent=2))
        return
    for name, found in compared.items():
        print(f"{name} {found['version'] or 'is not given'}: {found['asked']}")
        for note in found["notes"]:
            print("!", note)
        for what, times in found["seconds"].items():
            line = f"{what:72}" + "".join(f"{time_text(t):>10}" for t in times.values())
            print(line + (f"{times[name] / times['stepcast']:10,.1f}" if name in times else ""))


if __name__ == "__main__":
    main()
