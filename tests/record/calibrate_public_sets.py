"""Calibrations of public sets, and what differs between those of two versions.

    calibrate_public_sets.py run PROGRAM FOLDER [--datasets DATASETS] [--only NAME ...]
    calibrate_public_sets.py compare BEFORE AFTER

`run` fits each set with the program and leaves NAME.json (what was fitted) and NAME.check.json
(whether the same runs agree with the fit) in FOLDER. Sets of DATASETS are left out where the folder
is not there. `compare` prints the largest difference of each kind of number, and ends with 1 where
a parameter differs by more than 1e-6, another number by more than 1e-4, or a text at all.
"""
import argparse
import csv
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
MEASUREMENTS = ROOT / "data" / "measurements"

PARAMETER_TOLERANCE = 1e-6
OTHER_TOLERANCE = 1e-4  # ends of intervals are searched for

CATALOGUE = {"InceptionV3": "inception_v3", "ResNet-101": "resnet101", "VGG-16": "vgg16",
             "VGG16": "vgg16", "ResNet-50": "resnet50", "ResNet-152": "resnet152"}
# Of which only the parameters are known: name, parameters.
OWN = {"ResNet-15": ("resnet15", 693818), "ResNet-32": ("resnet32_t2t", 1944330),
       "Shake-Shake big": ("shake_big", 26204362), "Shake-Shake small": ("shake_small", 3000000),
       "ResNet-50 (CIFAR)": ("resnet50_cifar", 23705252)}


class Set:
    """Measured runs, and the cluster that they are of."""

    def __init__(self, name, cluster, runs, workloads=()):
        self.name, self.cluster, self.runs, self.workloads = name, cluster, runs, workloads


def shipped_sets():
    def of(name, cluster, *files):
        return Set(name, cluster, [MEASUREMENTS / file for file in files])

    return [
        of("tupi-fit", "ufrgs-tupi", "ufrgs-tupi-fit.csv"),
        of("tupi-all", "ufrgs-tupi", "ufrgs-tupi-fit.csv", "ufrgs-tupi-holdout.csv"),
        of("poti", "ufrgs-poti", "low-bandwidth-training.csv"),
        of("gce", "gce-t4", "communication-patterns.csv"),
        of("perspective", "networking-perspective", "networking-perspective.csv"),
    ]


def write_cluster(folder, name, device, nodes, devices):
    path = folder / f"{name}.yaml"
    path.write_text(f"name: {name}\ntitle: {name}\nsource: public runs\ndevice: {device}\n"
                    f"nodes: {nodes}\ndevices_per_node: {devices}\n")
    return path


def write_runs(folder, name, rows):
    path = folder / f"{name}.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return path


def write_workloads(folder, rows):
    used = {row["workload"] for row in rows}
    paths = []
    for name, parameters in OWN.values():
        if name in used:
            path = folder / f"{name}.yaml"
            path.write_text(f"name: {name}\ntitle: {name}\nparameters: {parameters}\n")
            paths.append(path)
    return paths


def trace_sets(program, folder, datasets, source, device, nodes, devices):
    """One set for each job, one of all, and one of at most two nodes."""
    jobs = ("bert", "cifar10", "deepspeech2", "imagenet")
    cluster = write_cluster(folder, source, device, nodes, devices)
    paths = []
    for job in jobs:
        paths.append(folder / f"{source}-{job}.csv")
        files = sorted((datasets / source).glob(f"{job}_*.csv"))
        subprocess.run([program, "import", "adaptdl", *files, "--device", device, "--output",
                        paths[-1]], check=True, capture_output=True)
    sets = [Set(path.stem, cluster, [path]) for path in paths]
    sets.append(Set(f"{source}-all", cluster, paths))
    rows = [row for path in paths for row in csv.DictReader(path.open())]
    few = [row for row in rows if row["placement"].count("-") < 2]
    columns = list(dict.fromkeys(key for row in few for key in row))
    few = [{key: row.get(key, "") for key in columns} for row in few]
    sets.append(Set(f"{source}-two-nodes", cluster,
                    [write_runs(folder, f"{source}-two-nodes", few)]))
    return sets


def placement(workers, devices):
    full, rest = divmod(workers, devices)
    return "-".join([str(devices)] * full + ([str(rest)] if rest else []))


def run_of(row, device):
    """A row of the wide files as a run; nothing for what no plan stands for."""
    names = {**CATALOGUE, **{model: name for model, (name, _) in OWN.items()}}
    strategy = {"single": "none", "ps_sync": "ps-sync", "ps_async": "ps-async",
                "allreduce": "ring"}.get(row["strategy"])
    if strategy is None or row["model"] not in names:
        return None
    workers = int(row["workers"])
    nodes = placement(workers, int(row["gpus_per_node"]))
    servers = 0
    if strategy.startswith("ps"):
        servers = int(row["servers"] or nodes.count("-") + 1)
    return {"workload": names[row["model"]], "device": device, "placement": nodes,
            "servers": servers, "strategy": strategy, "local_batch": row["local_batch"],
            "step_time_s": row["step_time_s"], "link_gbit_per_s": row["link_gbps"],
            "rtt_ms": row["latency_ms"], "source": "row of " + row["source"][:40]}


def wide_set(folder, datasets, file, name, device, nodes, devices):
    with (datasets / file).open() as table:
        rows = [run_of(row, device) for row in csv.DictReader(table)]
    rows = [row for row in rows if row]
    return Set(name, write_cluster(folder, name, device, nodes, devices),
               [write_runs(folder, name, rows)], write_workloads(folder, rows))


def method_sets(folder, datasets):
    """Data-parallel methods on two networks of one cluster."""
    sets = []
    with (datasets / "hkbu_methods.csv").open() as table:
        rows = [row for row in csv.DictReader(table) if row["strategy"]]
    for network, name in (("10GbE", "hkbu-ethernet"), ("100GbIB", "hkbu-infiniband")):
        runs = [{"workload": row["model"], "device": "rtx_2080_ti", "placement": row["placement"],
                 "servers": row["servers"], "strategy": row["strategy"],
                 "local_batch": row["local_batch"], "step_time_s": row["step_time_s"],
                 "overlap": row["overlap"], "bucket_mib": row["bucket_mib"]}
                for row in rows if row["network"] in (network, "none")]
        sets.append(Set(name, write_cluster(folder, name, "rtx_2080_ti", 8, 4),
                        [write_runs(folder, name, runs)]))
    return sets


def all_sets(program, folder, datasets):
    sets = shipped_sets()
    if datasets is None or not datasets.is_dir():
        print("no folder of data sets: the shipped measurements alone")
        return sets
    sets += trace_sets(program, folder, datasets, "adaptdl", "t4", 16, 4)
    # The fit of its two nodes is left out: it ends elsewhere, by 1e-2 of a parameter, when times
    # move by 1e-14.
    sets += [of for of in trace_sets(program, folder, datasets, "sia-rtx", "rtx_2080_ti", 3, 8)
             if of.name != "sia-rtx-two-nodes"]
    sets.append(wide_set(folder, datasets, "horovod_2017_ps_vs_ring.csv", "horovod", "p100", 16, 4))
    sets.append(wide_set(folder, datasets, "tf_benchmarks_2017.csv", "tensorflow", "k80", 8, 8))
    sets.append(wide_set(folder, datasets, "cmdare_ps_async_scaling.csv", "cmdare", "k80", 8, 1))
    sets.append(wide_set(folder, datasets, "cmdare_ps_latency.csv", "cmdare-latency", "k80", 2, 1))
    sets.append(wide_set(folder, datasets, "syncswitch_bsp_vs_asp.csv", "syncswitch", "k80", 16, 1))
    return sets + method_sets(folder, datasets)


def calibrate(program, output, of, folder):
    fitted = folder / f"{of.name}-fitted.yaml"
    files = [argument for path in of.workloads for argument in ("--workload-file", path)]

    def ask(name, *arguments):
        answer = subprocess.run([program, "calibrate", *arguments, *files, "--json"],
                                capture_output=True, text=True, check=False)
        if answer.returncode == 2:
            sys.exit(f"{of.name}: {answer.stderr}")
        # Paths differ from run to run and from machine to machine.
        text = re.sub(r'"[^"]*/([^"/]+)"', r'"\1"', answer.stdout)
        (output / name).write_text(text)

    began = time.monotonic()
    ask(f"{of.name}.json", "--cluster", of.cluster, "--runs", *of.runs, "--output", fitted)
    if fitted.exists():
        ask(f"{of.name}.check.json", "--cluster", fitted, "--check", *of.runs)
    print(f"{of.name}: {time.monotonic() - began:.1f} s", flush=True)


def run(arguments):
    output = pathlib.Path(arguments.folder)
    output.mkdir(parents=True, exist_ok=True)
    program = pathlib.Path(arguments.program).resolve()
    datasets = pathlib.Path(arguments.datasets) if arguments.datasets else None
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for of in all_sets(program, folder, datasets):
            if not arguments.only or of.name in arguments.only:
                calibrate(program, output, of, folder)


def flat(value, path=""):
    """Path and value of each leaf; a parameter is found by scope and name, not by its position."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from flat(inner, f"{path}/{key}")
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            named = isinstance(inner, dict) and "scope" in inner
            label = f"{inner['scope']} {inner['name']}" if named else str(i)
            yield from flat(inner, f"{path}/{label}")
    else:
        yield path, value


def number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def compare(arguments):
    before, after = pathlib.Path(arguments.before), pathlib.Path(arguments.after)
    worst = {}
    wrong = []
    names = sorted({path.name for path in before.glob("*.json")} |
                   {path.name for path in after.glob("*.json")})
    for name in names:
        if not (before / name).exists() or not (after / name).exists():
            wrong.append(f"{name}: on one side only")
            continue
        old = dict(flat(json.loads((before / name).read_text())))
        new = dict(flat(json.loads((after / name).read_text())))
        for path in sorted(old.keys() | new.keys()):
            a, b = old.get(path), new.get(path)
            if not (number(a) and number(b)):
                if a != b:
                    wrong.append(f"{name}{path}: {a!r} became {b!r}")
                continue
            if path == "/iterations":
                continue
            apart = 0 if a == b else abs(a - b) / max(abs(a), abs(b))
            is_parameter = "/parameters/" in path and path.endswith("/value")
            kind = "parameters" if is_parameter else path.rsplit("/", 1)[-1]
            if apart > worst.get(kind, (0, ""))[0]:
                worst[kind] = (apart, f"{name}{path}")
            if apart > (PARAMETER_TOLERANCE if is_parameter else OTHER_TOLERANCE):
                wrong.append(f"{name}{path}: {a!r} became {b!r}, {apart:.2g} apart")
    for kind, (apart, place) in sorted(worst.items(), key=lambda item: -item[1][0]):
        print(f"{kind:24} {apart:8.2g}  {place}")
    print(f"{len(names)} answers compared, {len(wrong)} differences")
    for line in wrong[:40]:
        print("  " + line)
    sys.exit(1 if wrong or not names else 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    runs = commands.add_parser("run")
    runs.add_argument("program")
    runs.add_argument("folder")
    runs.add_argument("--datasets")
    runs.add_argument("--only", nargs="*")
    runs.set_defaults(do=run)
    both = commands.add_parser("compare")
    both.add_argument("before")
    both.add_argument("after")
    both.set_defaults(do=compare)
    arguments = parser.parse_args()
    arguments.do(arguments)


if __name__ == "__main__":
    main()
