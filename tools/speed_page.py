"""Writes the page of speed. Called by tools/bench --page.

    python3 tools/speed_page.py PAGE.md [--results RESULTS.json] [--goodput GOODPUT.json]
                                [--estimators ESTIMATORS.json]

The files are a benchmark's JSON and what tools/compare_goodput.py and tools/compare_estimators.py
print with --json. What no file is given for stays on the page as it was, with the date of its run.
"""
import argparse
import json
import math
import pathlib
import re
import textwrap

from compare_benchmarks import medians, processor

STRATEGIES = [("ring_curve", "ring"), ("tree_curve", "tree"),
              ("hierarchical_curve", "hierarchical"),
              ("byteps_curve", "BytePS, 4 servers"), ("ps_sync_curve", "parameter servers, 4"),
              ("ps_async_curve", "the same, asynchronous"), ("sharded", "sharded, BERT-base"),
              ("topk", "top-k, BERT-base"), ("local_steps", "an exchange each 8 steps"),
              ("slow_nodes", "one node at half speed"), ("over_a_core", "over a shared core")]
OTHERS = [("Choose/one_allocation", "the best of 50 batches for one allocation"),
          ("Choose/allocations_64_x_16", "the same for each of 1,024 allocations, together"),
          ("CompileTime/ring", "a plan of BERT-base compiled"),
          ("Predict/bert_base_buckets_64_workers",
           "`Predictor::Predict` of BERT-base, with interval and breakdown"),
          ("Observe/resnet50_ring", "a running job learns a step"),
          ("ExportAndImport", "its state saved and read again"),
          ("CalibrateUfrgs", "a cluster of 20 nodes fitted, intervals followed"),
          ("CalibrateRows/1000", "1,000 runs of four workloads fitted"),
          ("CalibrateRows/100000", "100,000 runs of four workloads fitted")]
SERIES = [("Workers", "workers, one compiled plan"), ("CompiledBuckets", "buckets, compiled"),
          ("Buckets", "buckets, `Predictor::PredictStep`"),
          ("Plans/step_times", "plans in an array"),
          ("Plans/with_intervals", "plans in an array, with intervals"),
          ("CalibrateRows", "runs that are fitted"),
          ("Read/rows of runs", "rows of a CSV file that are read")]
# The sections of the page beside others, in their order, by what is compared.
SECTIONS = {"goodput": "## Beside a goodput function", "Calculon": "## Beside Calculon",
            "Paleo": "## Beside Paleo"}
ESTIMATORS = {
    "Calculon": ("github.com/calculon-ai/calculon",
                 "Calculon builds its model anew for each step, and answers with a breakdown, "
                 "memory and efficiency."),
    "Paleo": ("github.com/TalwalkarLab/paleo",
              "Paleo, written for Python 2.7, runs on Python 3 unchanged. It works the layers of "
              "a network out anew for each local batch, and answers with the forward and backward "
              "pass, the update, and four ways to exchange, none hidden.")}


def time_text(nanoseconds):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.3g} {unit}"
    return f"{nanoseconds:.3g} ns"


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "---:|" * (len(heads) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def questions(times):
    rows = []
    for name, what in STRATEGIES:
        limit = times.get(f"Limit/{name}")
        rows.append([what, time_text(times[f"StepTime/{name}"]),
                     time_text(times[f"WithInterval/{name}"]), time_text(limit) if limit else ""])
    return table(["one question to a compiled plan", "step time", "with interval",
                  "the formula's arithmetic"], rows)


def arrays(times, results):
    """Millions of plans a second, from the items of the last size."""
    rates = {b["run_name"]: b["items_per_second"] / 1e6 for b in results["benchmarks"]
             if b.get("aggregate_name") == "median" and "items_per_second" in b}
    rows = [[what, f"{rates[f'Plans/{name}/1000000{clock}']:.3g}"]
            for name, clock, what in (
                ("step_times", "", "step times, one thread"),
                ("with_intervals", "", "with intervals, one thread"),
                ("step_times_2_threads", "/real_time", "step times, two threads"),
                ("with_intervals_2_threads", "/real_time", "with intervals, two threads"))]
    return table(["a million plans in one call", "millions a second"], rows)


def growth(times):
    rows = []
    for name, what in SERIES:
        points = []
        for key, time in times.items():
            start, _, size = key.rpartition("/")
            if start == name and size.isdigit():
                points.append((int(size), time))
        points.sort()
        (first, before), (last, after) = points[0], points[-1]
        slope = math.log(after / before) / math.log(last / first)
        rows.append([what, f"{first:,} to {last:,}", time_text(before), time_text(after),
                     f"{slope:.2f}"])
    return table(["the cost of", "from", "the first", "the last", "slope"], rows)


def ratio_text(ratio):
    return f"{ratio:.3g}" if ratio < 1000 else f"{float(f'{ratio:.3g}'):,.0f}"


def wrapped(text):
    return textwrap.fill(text, 100, break_on_hyphens=False, break_long_words=False) + "\n"


def beside(name, compared, *more):
    """The table of {question: {"stepcast": seconds, other: seconds}}, and what to know of it."""
    rows = []
    for what, seconds in compared["seconds"].items():
        own, other = seconds.values()
        rows.append([what, time_text(1e9 * own), time_text(1e9 * other),
                     ratio_text(other / own)])
    lines = [*(f"{note}." for note in compared["notes"]), *more,
             f"Measured on an {compared['machine']}."]
    return "\n".join([table(["", "stepcast", name, "times as fast"], rows), *map(wrapped, lines)])


def goodput_section(compared):
    return f"""{SECTIONS["goodput"]}

The goodput function of AdaptDL (`adaptdl/goodput.py`) and `stepcast.pollux`, which has its
interface and answers from compiled plans, turn by turn in one run, from Python
(`tools/compare_goodput.py`):

{beside("goodput.py", compared)}"""


def estimator_section(name, compared):
    where, does = ESTIMATORS[name]
    own, low, high = (time_text(1e9 * seconds) for seconds in compared["stepcast"])
    said = time_text(1e9 * compared["said"])
    asked = wrapped(
        f"{name} {compared['version']} ({where}) and the Python package, turn by turn in one run "
        f"(`tools/compare_estimators.py`), asked for one step: {compared['asked']}.")
    answers = (f"{does} stepcast answers the last two questions from a compiled plan. Nobody "
               f"measured this step, and they assume other rates: {name} says {said}, stepcast "
               f"{own} (90 % interval {low} to {high}).")
    return f"{SECTIONS[name]}\n\n{asked}\n{beside(name, compared, answers)}"


def own_part(path):
    times, context = medians(path)
    results = json.loads(path.read_text())
    other = table(["", "time"], [[what, time_text(times[name])] for name, what in OTHERS])
    return f"""# Speed

What answers cost. `tools/bench --page` measures all of this in one run and writes this page:
medians of seven repetitions, of processor time on one core where nothing else is said. This time
the processor was an {processor()} with {context['num_cpus']} cores, on {context['date'][:10]}. A
ratio of two lines says more than either, since machines differ and others may use them. A part
beside another program is measured anew where the run is given that program, and says when that
was.

## One question

{questions(times)}
The last column is a limit to be seen beside the others: as many additions, multiplications,
divisions, roots and exponentials as one evaluation of the model's own formula has, on numbers that
do not wait for each other. A compiled plan has less to do than the formula, because what a query
cannot change is worked out before.

## Arrays

{arrays(times, results)}
Threads pay from some thousands of plans on, and answers do not depend on how many there are. Two
cores that are threads of one processor core have less than twice its speed.

## Other work

{other}
## How costs grow

The slope is that of ln(time) by ln(size): 0 where size does not matter, 1 where time goes with it.

{growth(times)}"""


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=pathlib.Path)
    for kind in ("results", "goodput", "estimators"):
        parser.add_argument(f"--{kind}", type=pathlib.Path)
    arguments = parser.parse_args()

    page = arguments.page.read_text() if arguments.page.exists() else ""
    own, *sections = re.split(r"^(?=## Beside )", page, flags=re.MULTILINE)
    sections = {section.partition("\n")[0]: section for section in sections}
    if arguments.results:
        own = own_part(arguments.results)
    if arguments.goodput:
        compared = json.loads(arguments.goodput.read_text())
        sections[SECTIONS["goodput"]] = goodput_section(compared)
    if arguments.estimators:
        for name, compared in json.loads(arguments.estimators.read_text()).items():
            sections[SECTIONS[name]] = estimator_section(name, compared)
    ordered = [sections[title] for title in SECTIONS.values() if title in sections]
    arguments.page.write_text("\n".join(part.strip() + "\n" for part in [own, *ordered]))
    print(f"written to {arguments.page}")


if __name__ == "__main__":
    main()
