"""Medians of a benchmark's JSON beside a recorded baseline: RESULTS.json BASELINE.csv [--record]

The baseline is a table of name and nanoseconds of processor time, under comment lines that say on
what it was recorded. --record replaces it by the results.
"""
import csv
import datetime
import json
import os
import pathlib
import sys

NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}


def medians(path):
    """Name -> median of processor time [ns], and the context of the run."""
    run = json.loads(path.read_text())
    times = {
        b["run_name"]: b["cpu_time"] * NANOSECONDS[b["time_unit"]]
        for b in run["benchmarks"]
        if b.get("aggregate_name") == "median"
    }
    return times, run["context"]


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown processor"


def machine_today():
    """Where and when something is measured: what follows "measured on an"."""
    return f"{processor()} with {os.cpu_count()} cores, on {datetime.date.today().isoformat()}"


def record(path, times, context):
    with path.open("w", newline="") as file:
        file.write(f"# {processor()}, {context['num_cpus']} cores, {context['date'][:10]}\n")
        file.write("# medians of processor time, as tools/bench --record writes them\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["name", "cpu_time_ns"])
        for name, time in times.items():
            writer.writerow([name, f"{time:.4g}"])


def main():
    if len(sys.argv) not in (3, 4) or (len(sys.argv) == 4 and sys.argv[3] != "--record"):
        sys.exit(__doc__.splitlines()[0])
    times, context = medians(pathlib.Path(sys.argv[1]))
    baseline = pathlib.Path(sys.argv[2])
    before = {}
    if baseline.exists():
        with baseline.open(newline="") as file:
            rows = csv.DictReader(line for line in file if not line.startswith("#"))
            before = {row["name"]: float(row["cpu_time_ns"]) for row in rows}
    print(f"{'benchmark':48} {'now':>12} {'recorded':>12}  now / recorded")
    for name, time in times.items():
        then = before.get(name)
        print(f"{name:48} {time:9,.4g} ns", f"{then:9,.4g} ns" if then else f"{'none':>12}",
              f"{time / then:10.2f}" if then else "")
    if len(sys.argv) == 4:
        record(baseline, times, context)
        print(f"written to {baseline}")


if __name__ == "__main__":
    main()
