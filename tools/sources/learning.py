"""Priors from values that were fitted to public sources.

A cluster here is one network of one source. All of its rows are fitted with priors WIDE (one
standard deviation of ln), and what the rows say of a parameter is a normal law of ln(value) with
one width on either side, from the ends of the 95 % interval that the fit prints, less the wide
prior. A value that is only bounded is thereby flat on one side, and counts as a bound.

Between clusters ln(value) is normal, and a source has one vote, shared by its clusters. The
spread is the likeliest for any centre, with the physical prior's own as one more source; the
centre is then the mean, and the prior's width the spread and what is not known of the centre. A
parameter that fewer than LEAST_SOURCES inform, each to a factor of e, keeps its physical prior.
"""
from __future__ import annotations

import csv
import dataclasses
import math
import pathlib
import re
import tempfile

import numpy as np

from sources import public_sets
from sources.program import ROOT, ask

WIDE = 2.0
LEAST_SOURCES = 3
VALUES = pathlib.Path(__file__).with_name("fitted_values.csv")
FIELDS = ["source", "cluster", "parameter", "value", "log_sd_below", "log_sd_above"]
# What one job or host takes is no news of another.
OWN = {"fixed_time", "floor_time", "sample_time", "update_time", "compute_slowdown"}
# What is relative to tables of the program, which say where its centre is: its width is learnt.
RELATIVE = {"device_speed"}
SHARE = "stated_share"
# What the jobs of a cluster share only nearly (model/step/job_spread.h).
JOBS_OWN = ["host_contention", "host_bandwidth", "overlap_share"]
NO_JOBS = {"lab": "its compute is emulated", "deepbench_allreduce": "bare messages",
           "tc_netem_collectives": "bare messages"}
# The spread of workers comes in two kinds (Workload::inputs_vary), each with its constants in
# priors.h: their names, whether the inputs vary, and what physics alone lets expect.
SPREAD = "straggler_spread"
KINDS = {"alike": ("kSpreadOfAlike", False, (0.03, 1.3)),
         "varying": ("kSpreadOfVarying", True, (0.09, 1.0))}
VARYING = {"deepspeech2", "yolov3"}
# Priors (centre, standard deviation of ln) from physics alone, where the program has learnt ones.
PHYSICAL = {"host_bandwidth": (4, 1.0), "overlap_share": (0.55, 0.3),
            "straggler_spread": (0.06, 1.3), "device_speed": (1, 0.35), SHARE: (1, 0.5)}
# Fitted values that are not of what the parameter means elsewhere.
APART = {
    ("lab", "overlap_share"): "its compute is emulated",
    ("lab", "straggler_spread"): "its compute is emulated",
    ("ufrgs_tf_resnet50", "link_bandwidth"): "a port had negotiated a tenth of its rate",
    ("deepbench_allreduce", "flow_bandwidth"): "its transport is not stated, and no kernel's TCP "
                                               "carries 70 to 150 Gbit/s in a flow",
    ("hkbu_methods", "device_speed"): "its GPU is a guess",
}


def clusters(source):
    """(label, case) of each cluster of the source, with the rows of one network each."""
    split = next(split for split in ("distance", "cold") if any(
        case.split == split for case in source.cases))
    for case in source.cases:
        if case.split != split:
            continue
        rows = case.fitted + case.judged
        singles = [row for row in rows if row.workers == 1]
        networks = {}
        for row in rows:
            if row.workers > 1:
                networks.setdefault(row.columns.get("link_gbit_per_s") or "", []).append(row)
        for rate, of in networks.items():
            cluster, label = case.cluster, case.label
            if rate:
                cluster = dataclasses.replace(cluster, link_gbps=float(rate))
                of = [row.but(link_gbit_per_s="") for row in of]
                if len(networks) > 1:
                    label = f"{label}, {float(rate):.3g} Gbit/s".removeprefix(", ")
            yield label, dataclasses.replace(case, cluster=cluster, fitted=singles + of)


def fit(source, label, case, program, specs):
    """Rows of FIELDS: what the rows of one cluster say."""
    found = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        cluster, workloads = case.write(folder, case.fitted)
        stated = getattr(case.cluster, "link_gbps", None)
        files = [argument for path in workloads for argument in ("--workload-file", path)]
        priors = []
        for spec in specs:
            if spec["name"] in OWN | {SHARE, "device_speed"} or "kind" in spec:
                continue
            at = stated if stated and spec["name"] == "link_bandwidth" else spec["prior"]
            priors += ["--prior", statement(spec, at, max(WIDE, spec["prior_log_sd"]))]
        runs = public_sets.write_runs(folder / "runs.csv", case.fitted)
        answer = ask(program, "calibrate", "--cluster", cluster, "--runs", runs, *files, *priors)
    by_name = {spec["name"]: spec for spec in specs if "kind" not in spec}
    for of in answer.get("parameters", []):
        if of["name"] in OWN or of["decided_by"] == "prior":
            continue
        name, value = of["name"], of["value"]
        if name == "link_bandwidth" and stated:
            name, value = SHARE, value / stated

        spec = by_name[of["name"]]

        def width(ratio, wide=of["prior_log_sd"]):
            left = (1.96 / max(math.log(ratio), 1e-3))**2 - wide**-2
            return 1 / math.sqrt(max(left, 1e-2))

        # An interval that ends where the range does ends nowhere.
        below = width(of["value"] / of["low"]) if of["low"] > 1.001 * spec["low"] else 10
        above = width(of["high"] / of["value"]) if of["high"] < spec["high"] / 1.001 else 10

        scope = "" if of["scope"] == "cluster" else ", " + of["scope"].split(" on ")[0]
        found.append(dict(zip(FIELDS, (
            source, (label + scope).removeprefix(", "), name, f"{value:.4g}",
            f"{below:.3g}", f"{above:.3g}"))))
    return found


def of_jobs(source):
    """(label, case) of each job alone, on each cluster where several have exchanged."""
    if source.name in NO_JOBS:
        return
    for label, case in clusters(source):
        jobs = {}
        for row in case.fitted:
            jobs.setdefault(row.columns.get("workload"), []).append(row)
        jobs = {job: rows for job, rows in jobs.items()
                if job and any(row.workers > 1 for row in rows)}
        if len(jobs) > 1:
            for job, rows in jobs.items():
                yield label, dataclasses.replace(case, fitted=rows)


def between_jobs(values):
    """Parameter: (clusters, standard deviation of ln(value) between the jobs of one), from (source
    and label of the cluster, rows of one job) of of_jobs(). Each cluster has a centre of its own,
    of which nothing is known; what few jobs leave open of the spread counts in its mean square."""
    x = np.linspace(-14, 8, 1100)  # ln(value)
    off = x - x[:, None]
    spreads = np.geomspace(0.03, 3, 80)
    found = {}
    for name in JOBS_OWN:
        laws = {}
        for cluster, rows in values:
            for row in rows:
                if row["parameter"] != name:
                    continue
                from_value = x - math.log(float(row["value"]))
                sd = np.where(from_value < 0, float(row["log_sd_below"]),
                              float(row["log_sd_above"]))
                laws.setdefault(cluster, []).append(np.exp(-0.5 * (from_value / sd)**2))
        laws = {cluster: np.array(of).T for cluster, of in laws.items() if len(of) > 1}

        if not laws:
            continue
        likelihoods = []
        for spread in spreads:
            between = np.exp(-0.5 * (off / spread)**2) / spread
            likelihoods.append(sum(math.log(np.prod(between @ of, axis=1).sum())
                                   for of in laws.values()))
        weights = np.exp(np.array(likelihoods) - max(likelihoods))
        found[name] = sorted(laws), math.sqrt(np.average(spreads**2, weights=weights))
    return found


def read(path=VALUES):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def statement(spec, centre, log_sd, source="learnt"):
    unit = "" if spec["unit"] == "1" else " " + spec["unit"]
    return f"{spec['name']}={centre:.4g}{unit} x/ {math.exp(log_sd):.4g}; {source}"


def specs_of(program):
    """The parameters of the program, the share of a stated rate that is reached, and the two kinds
    of spread."""
    source = (ROOT / "model" / "step" / "priors.h").read_text()

    def constant(name):
        return float(re.search(rf"\b{name} = ([0-9.]+);", source).group(1))

    share = {"name": SHARE, "unit": "1", "prior": 1, "prior_log_sd": constant("kStatedLinkLogSd")}
    kinds = [{"name": SPREAD, "kind": kind, "unit": "1", "prior": constant(name),
              "prior_log_sd": constant(f"{name}LogSd")} for kind, (name, _, _) in KINDS.items()]
    return ask(program, "models")["parameters"] + [share] + kinds


def title(spec):
    return f"{spec['name']}, inputs {spec['kind']}" if "kind" in spec else spec["name"]


@dataclasses.dataclass
class Learnt:
    sources: dict    # name: fitted values of its clusters
    informed: bool   # by enough sources
    centre: float
    log_sd: float

    def agrees(self, spec):
        """With the program's, as priors are written: 5 % of the centre, 0.05 of the width."""
        return (abs(math.log(self.centre / spec["prior"])) < 0.05 and
                abs(self.log_sd - spec["prior_log_sd"]) < 0.05)


def pool(values, spec, without=None):
    """What the fitted values of a parameter say of the next cluster."""
    name, sources, kind = spec["name"], {}, spec.get("kind")
    physical = KINDS[kind][2] if kind else PHYSICAL.get(name, (spec["prior"],
                                                              spec["prior_log_sd"]))
    for row in values:
        if kind and KINDS[kind][1] != (row["cluster"].split("workload ")[-1] in VARYING):
            continue
        if (row["parameter"] == name and row["source"] != without and
                (row["source"], name) not in APART):
            sources.setdefault(row["source"], []).append(row)
    # A source informs where some cluster of it is known on both sides to a factor of e.
    informing = [name for name, rows in sources.items() if any(
        max(float(row["log_sd_below"]), float(row["log_sd_above"])) < 1 for row in rows)]
    if len(informing) < LEAST_SOURCES:
        return Learnt(sources, False, *physical)

    at = [math.log(float(row["value"])) for rows in sources.values() for row in rows]
    x = np.linspace(min(at) - 3, max(at) + 3, 800)
    votes, laws = [], []
    for rows in sources.values():
        for row in rows:
            off = x - math.log(float(row["value"]))
            sd = np.where(off < 0, float(row["log_sd_below"]), float(row["log_sd_above"]))
            laws.append(np.exp(-0.5 * (off / sd)**2))
            votes.append(1 / len(rows))
    laws, votes = np.array(laws).T, np.array(votes)
    centres = np.linspace(min(at) - 1, max(at) + 1, 400)
    log_sd = physical[1]
    best = (-np.inf,)
    for tau in np.geomspace(0.02, 3, 60):
        law = np.exp(-0.5 * ((x - centres[:, None]) / tau)**2) / tau
        likelihood = np.log(np.maximum(law @ laws, 1e-300)) @ votes
        of_centres = np.exp(likelihood - likelihood.max())
        of_physical = -math.log(tau) - 0.5 * (log_sd / tau)**2
        total = likelihood.max() + math.log(of_centres.sum()) + of_physical
        if total > best[0]:
            best = total, tau, of_centres / of_centres.sum()
    _, tau, of_centres = best
    mean = float(of_centres @ centres)
    sd = math.sqrt(tau**2 + float(of_centres @ (centres - mean)**2))
    if name in RELATIVE:
        off = mean - math.log(spec["prior"])
        mean, sd = mean - off, math.hypot(sd, off)
    return Learnt(sources, True, math.exp(mean), sd)


def without(source, values, specs):
    """(kind, --prior) of a fit that knows nothing of the source, where it differs from the
    program's: without a kind for all, else for networks whose inputs are of that kind ("unknown"
    where nobody says).

    The share of a stated rate is no parameter of a fit: that of all sources is used."""
    statements = []
    for spec in specs:
        if spec["name"] == SHARE:
            continue
        of = pool(values, spec, source)
        if not of.agrees(spec):
            kind = spec.get("kind", "unknown" if spec["name"] == SPREAD else None)
            statements.append((kind, statement(spec, of.centre, of.log_sd,
                                               f"learnt without {source}")))
    return statements


def table(values, specs):
    """The page's: what is learnt of each parameter, from what, and what the program believes."""
    def law(spec, centre, log_sd):
        return f"{centre:.3g} {'' if spec['unit'] == '1' else spec['unit'] + ' '}x/ " \
               f"{math.exp(log_sd):.2f}"

    def fitted(row):
        width = max(float(row["log_sd_below"]), float(row["log_sd_above"]))
        bound = ">" if float(row["log_sd_below"]) < 1 <= width else \
            "<" if float(row["log_sd_above"]) < 1 <= width else "" if width < 1 else "?"
        return None if bound == "?" else f"{bound}{float(row['value']):.2g}"

    lines = ["| parameter | fitted, by source | learnt | in the program |", "|---|---|---|---|"]
    for spec in specs:
        of = pool(values, spec)
        parts = []
        for name, rows in of.sources.items():
            told = [value for value in map(fitted, rows) if value]
            if told:
                parts.append(f"{name} {', '.join(told)}")
        if spec["name"] in OWN:
            learnt = "a job's or a host's own"
        elif of.informed:
            learnt = law(spec, of.centre, of.log_sd)
        else:
            learnt = "by fewer than three sources: physical"
        believed = law(spec, spec["prior"], spec["prior_log_sd"])
        lines.append(f"| {title(spec)} | {'; '.join(parts) or '-'} | {learnt} | {believed} |")
    return "\n".join(lines)
