"""Calibrations of public sets, and what differs between those of two versions.

    calibrate_public_sets.py run PROGRAM FOLDER [--datasets DATASETS] [--only NAME ...]
    calibrate_public_sets.py compare BEFORE AFTER

`run` fits each set with the program and leaves NAME.json (what was fitted) and NAME.check.json
(whether the same runs agree with the fit) in FOLDER: the shipped measurements and, of DATASETS, all
rows of each cluster, and of each two networks, that tools/judge_sources judges. What is not there
is left out. `compare` prints the largest difference of each kind of number, and ends with 1 where a
parameter differs by more than 1e-6, another number by more than 1e-4, or a text at all.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from sources import public_sets  # noqa: E402

MEASUREMENTS = ROOT / "data" / "measurements"

PARAMETER_TOLERANCE = 1e-6
OTHER_TOLERANCE = 1e-4  # ends of intervals are searched for


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


def all_sets(program, folder, datasets):
    sets = shipped_sets()
    if datasets is None or not datasets.is_dir():
        print("no folder of data sets: the shipped measurements alone")
        return sets
    for read in public_sets.READERS.values():
        try:
            source = read(datasets, program, folder)
        except FileNotFoundError as error:
            print(f"left out: {error}")
            continue
        for case in source.cases:
            if case.split not in ("distance", "new network"):
                continue
            name = re.sub(r"\W+", "-", f"{case.source} {case.split} {case.label}").strip("-")
            place = folder / name
            place.mkdir()
            rows = case.fitted + case.judged
            cluster, workloads = case.write(place, rows)
            runs = public_sets.write_runs(place / f"{name}.csv", rows)
            sets.append(Set(name, cluster, [runs], workloads))
    return sets


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
