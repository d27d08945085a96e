"""Public measurements as runs of stepcast, with the clusters that their sources state.

A Source has cases: what is fitted, what is judged, and under which split. Only what a source or the
description of the data states is stated here. Each reader below is one source; the folder's
README.md says where the files come from.
"""
from __future__ import annotations

import csv
import dataclasses
import re
import subprocess

SPLITS = {
    "distance": "fitted to the smallest scale of several nodes, judged beyond it",
    "one node": "fitted within one node, judged across nodes, with the link that the source "
                "states, if any",
    "new job": "all jobs fitted but one, of which only one device's steps are",
    "new network": "one network fitted, another stated",
    "cold": "nothing fitted but one device's steps; nothing at all for bare messages",
    "a fifth": "every fifth row fitted, the others judged",
    "size only": "as by distance, the network known by its number of parameters",
    "some": "twelve lossless runs fitted, the other lossless ones judged",
    "loss": "lossless runs fitted, those with loss judged",
}


@dataclasses.dataclass
class Cluster:
    name: str
    device: str
    nodes: int
    devices_per_node: int
    link_gbps: float | None = None
    hosts: tuple = ()

    def text(self):
        lines = [f"name: {self.name}", f"device: {self.device}", f"nodes: {self.nodes}",
                 f"devices_per_node: {self.devices_per_node}"]
        if self.link_gbps:
            lines += ["link:", f'  bandwidth: "{self.link_gbps:g} Gbit/s"']
        if self.hosts:
            lines += ["hosts:"] + [f"  - name: {host}" for host in self.hosts]
        return "\n".join(lines) + "\n"


@dataclasses.dataclass
class Row:
    """A run: its columns, and what the comparison groups it by."""
    columns: dict
    job: str            # what a rival is fitted to
    method: str         # jobs of one method share a network; "" is every method
    network: str = ""   # of several networks of one cluster
    bytes: float = 0    # of a synchronisation; 0 is the catalogue's
    tags: dict = dataclasses.field(default_factory=dict)

    @property
    def placement(self):
        return [int(part) for part in self.columns["placement"].split("-")]

    @property
    def nodes(self):
        return len(self.placement)

    @property
    def workers(self):
        return sum(self.placement)

    def but(self, **columns):
        return dataclasses.replace(self, columns={**self.columns, **columns})


@dataclasses.dataclass
class Case:
    source: str
    split: str
    label: str          # of several cases of one split
    cluster: Cluster | str
    fitted: list
    judged: list
    workloads: dict     # name: lines of a workload file
    between_networks: bool = False  # a rival knows the other network's row as its last point

    def write(self, folder, rows):
        """The cluster (a file or the name of a shipped one) and the workload files of rows."""
        cluster = self.cluster
        if not isinstance(cluster, str):
            cluster = folder / "cluster.yaml"
            cluster.write_text(self.cluster.text())
        files = []
        for name in sorted({row.columns["workload"] for row in rows} & self.workloads.keys()):
            files.append(folder / f"{name}.yaml")
            files[-1].write_text("\n".join([f"name: {name}"] + self.workloads[name]) + "\n")
        return cluster, files


@dataclasses.dataclass
class Source:
    name: str
    what: str
    cases: list
    unjudged: list      # (split or what, why)


def write_runs(path, rows):
    keys = list(dict.fromkeys(key for row in rows for key in row.columns))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, keys, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(row.columns for row in rows)
    return path


def placement(devices, workers):
    full, rest = divmod(workers, devices)
    return "-".join([str(devices)] * full + [str(rest)] * (rest > 0))


def message(size):
    return [f"gradient_bytes: {size:.0f}", "compute: none"]


def wide(folder, file):
    with (folder / file).open(newline="") as table:
        return list(csv.DictReader(table))


def note(row, key):
    return float(re.search(key + r"=([0-9.]+)", row["notes"]).group(1))


def beyond(rows, fits):
    """By distance: what `fits`, and the others with how far they lie beyond all of it."""
    fitted = [row for row in rows if fits(row)]
    most = max((row.workers for row in fitted), default=1)

    def distance(row):
        return next((text for factor, text in ((2, "up to 2x"), (4, "2-4x"), (8, "4-8x"))
                     if row.workers <= factor * most), "above 8x")

    judged = [dataclasses.replace(row, tags={**row.tags, "beyond the fitted": distance(row)})
              for row in rows if not fits(row)]
    return fitted, judged


def new_jobs(source, cluster, rows, workloads, jobs, label=""):
    cases = []
    for job in jobs:
        def known(row):
            return row.columns["workload"] != job or row.workers == 1
        cases.append(Case(source, "new job", f"{label}{job}", cluster,
                          [row for row in rows if known(row)],
                          [row for row in rows if not known(row)], workloads))
    return cases


def cold(source, cluster, rows, workloads, label=""):
    return Case(source, "cold", label, cluster, [row for row in rows if row.workers == 1],
                [row for row in rows if row.workers > 1], workloads)


def read_hkbu(folder, program, scratch):
    name = "hkbu_methods"
    table = wide(folder, "hkbu_methods.csv")
    rows = {}
    for row in table:
        if not row["strategy"]:
            continue
        of = Row({"workload": row["model"], "device": "rtx_2080_ti", "placement": row["placement"],
                  "servers": row["servers"], "strategy": row["strategy"],
                  "local_batch": row["local_batch"], "step_time_s": row["step_time_s"],
                  "overlap": row["overlap"], "bucket_mib": row["bucket_mib"]},
                 job=f"{row['model']} {row['method']}", method=row["method"],
                 network=row["network"],
                 tags={"job": row["model"], "network": row["network"],
                       "choice": f"{row['network']} {row['model']} {row['gpus']}",
                       "method": row["method"]})
        if row["network"] != "none":
            stack = "byteps" if row["strategy"] == "byteps" else "nccl"
            of.columns.update(library=stack, transport="rdma" if "IB" in row["network"] else "tcp")
        rows.setdefault(row["network"], []).append(of)
    networks = {"10GbE": 10, "100GbIB": 100}
    single = [dataclasses.replace(row, method="") for row in rows["none"]]
    cases = []
    for network, rate in networks.items():
        cluster = Cluster(f"hkbu-{network}", "rtx_2080_ti", 8, 4, rate)
        of = single + rows[network]
        fitted, judged = beyond(of, lambda row: row.workers <= 8)
        cases.append(Case(name, "distance", network, cluster, fitted, judged, {}))
        fitted = [row for row in of if row.nodes == 1]
        cases.append(Case(name, "one node", network, cluster, fitted,
                          [row for row in of if row.nodes > 1], {}))
        cases += new_jobs(name, cluster, of, {}, ("resnet50", "bert_base"), f"{network} ")
        cases.append(cold(name, cluster, of, {}, network))
        other = next(n for n in networks if n != network)
        cases.append(Case(name, "new network", f"{network} fitted, {other} stated", cluster, of,
                          [row.but(link_gbit_per_s=networks[other]) for row in rows[other]
                           if row.nodes > 1], {}, between_networks=True))
    what = "six of seven methods, ResNet-50 and BERT-base, fitted to 8 GPUs, to 32 judged"
    return Source(name, what, cases, [
        ("ByteScheduler-A2A", "no plan stands for priorities between rings"),
        ("100 Gbit/s Ethernet", "not in the public file")])


TRACE_JOBS = {"bert_base": 109.5e6, "resnet18_cifar10": 11.17e6, "deepspeech2": 41.2e6,
              "resnet50": 25.56e6}


def read_traces(name, device, cluster, most_devices):
    def read(folder, program, scratch):
        path = scratch / f"{name}.csv"
        files = [file for job in ("bert", "cifar10", "deepspeech2", "imagenet")
                 for file in sorted((folder / name).glob(f"{job}_*.csv"))]
        if not files:
            raise FileNotFoundError(name)
        subprocess.run([program, "import", "adaptdl", *files, "--device", device, "--output", path],
                       check=True, capture_output=True)
        rows = [Row(row, job=row["workload"], method="ring", tags={"job": row["workload"]})
                for row in csv.DictReader(path.open())]

        def small(row):
            return row.nodes <= 2 and row.workers <= most_devices

        fitted, judged = beyond(rows, small)
        for row in judged:
            row.tags["many nodes"] = f"{row.job} on 12-16" if row.nodes >= 12 else ""
        sizes = {f"{job}_by_size": [f"parameters: {count:.0f}"]
                 for job, count in TRACE_JOBS.items()}

        def by_size(of):
            return [dataclasses.replace(row.but(workload=row.columns["workload"] + "_by_size"),
                                        bytes=4 * TRACE_JOBS[row.job]) for row in of]

        cases = [Case(name, "distance", "", cluster, fitted, judged, {}),
                 Case(name, "size only", "", cluster, by_size(fitted), by_size(judged), sizes),
                 Case(name, "one node", "", cluster, [row for row in rows if row.nodes == 1],
                      [row for row in rows if row.nodes > 1], {}),
                 Case(name, "a fifth", "", cluster, *a_fifth(rows), {}),
                 cold(name, cluster, rows, {})]
        cases += new_jobs(name, cluster, rows, {}, TRACE_JOBS)
        return Source(name, f"four jobs, fitted to 2 nodes and {most_devices} devices", cases,
                      [("new network", "one network")])
    return read


def a_fifth(rows):
    """By the generator of the reference of accuracy, in the order of the file."""
    fitted, judged, state = [], [], 1
    for row in rows:
        state = state * 16807 % 2147483647
        (fitted if state < 429496730 else judged).append(row)
    return fitted, judged


def read_tc(folder, program, scratch):
    name = "tc_netem_collectives"
    libraries, workloads = {}, {}
    for row in wide(folder, f"{name}.csv"):
        if row["strategy"] != "allreduce":
            continue
        library = "gloo" if "Gloo" in row["notes"] else "nccl"
        size = (256 if "256" in row["model"] else 128) * 1048576
        workload = f"message_{size}"
        workloads[workload] = message(size)
        columns = {"workload": workload, "device": "v100",
                   "placement": placement(1, int(row["workers"])), "servers": "0",
                   "strategy": "ring", "local_batch": "1", "step_time_s": row["sync_time_s"],
                   "bucket_mib": "512", "link_gbit_per_s": row["link_gbps"], "library": library}
        # The delay is set at both ends; it did not act on NCCL's rows.
        if row["latency_ms"] and library == "gloo":
            columns["rtt_ms"] = f"{2 * float(row['latency_ms']):g}"
        libraries.setdefault(library, []).append(
            Row(columns, job=f"{library} {size}", method=library, network=row["link_gbps"] or "AWS",
                bytes=size, tags={"library": library, "network": row["link_gbps"] or "10 (AWS)"}))
    cases = []
    for library, rows in libraries.items():
        cluster = Cluster(f"tc-{library}", "v100", 8, 1, 10)
        fitted, judged = beyond(rows, lambda row: row.nodes <= 4)
        cases.append(Case(name, "distance", library, cluster, fitted, judged, workloads))
        fast = [row for row in rows if row.network in ("AWS", "5")]
        cases.append(Case(name, "new network", library, cluster, fast,
                          [row for row in rows if row.network not in ("AWS", "5")], workloads,
                          between_networks=True))
        cases.append(Case(name, "cold", library, cluster, [], rows, workloads))
    return Source(name, "all-reduce of 128 and 256 MiB on shaped links, fitted to 4 nodes", cases, [
        ("new job", "bare messages"),
        ("broadcast, reduce, point to point", "no plan stands for them")])


CATALOGUE = {"InceptionV3": "inception_v3", "ResNet-50": "resnet50", "ResNet-101": "resnet101",
             "ResNet-152": "resnet152", "VGG16": "vgg16", "VGG-16": "vgg16", "AlexNet": "alexnet"}


def read_lab(folder, program, scratch):
    name = "lab"
    path = folder.parent / "lab" / "gloo_sweep_cases.csv"
    rows, singles, workloads, busy = [], {}, {}, 0
    for row in csv.DictReader(path.open()):
        if row["op"] == "ddp" or not row["mean_s"]:
            continue
        if float(row["cpu_pct"]) >= 80:  # the lab's own limit of what to trust
            busy += 1
            continue
        compute, size = float(row["compute_s"]), float(row["bytes"])
        workload = f"message_{size:.0f}" + (f"_compute_{compute:g}" if compute else "")
        workloads[workload] = message(size) if not compute else [
            f"gradient_bytes: {size:.0f}", "inputs: alike"]
        servers = int(row["servers"])
        # The lab counts 1514 bytes a frame and not 1538; its switch adds 0.3 ms to a round trip.
        columns = {"workload": workload, "device": "none",
                   "placement": placement(1, int(row["workers"])), "servers": servers,
                   "strategy": "ps-sync" if servers else "ring", "local_batch": 1,
                   "pipelined_servers": "yes" if servers else "", "step_time_s": row["mean_s"],
                   "link_gbit_per_s": float(row["link_mbit"]) * 1538 / 1514 / 1000,
                   "rtt_ms": float(row["rtt_ms"]) + 0.3, "loss_rate": float(row["loss_pct"]) / 100,
                   "congestion_control": row["cc"], "library": "gloo",
                   "bucket_mib": size / 2**20 / int(row["buckets"]) * 1.0001}
        kind = "servers" if servers else "overlap" if compute else "rings"
        rows.append(Row(columns, job=f"{workload} {kind} {row['rtt_ms']}", method=kind,
                        network=row["link_mbit"], bytes=size,
                        tags={"kind": kind, "loss": row["loss_pct"] + " % lost"}))
        if compute:
            # What the emulated device computes is stated, not measured.
            singles[workload] = Row(
                {"workload": workload, "device": "none", "placement": "1", "servers": 0,
                 "strategy": "none", "local_batch": 1, "step_time_s": compute}, workload, "",
                bytes=size)
    singles = list(singles.values())
    quiet = [row for row in rows if not row.columns["loss_rate"]]
    lossy = [row for row in rows if row.columns["loss_rate"]]
    cluster = Cluster("lab", "none", 16, 1)

    def quietly(split, fits):
        fitted, judged = beyond(quiet, fits)
        return Case(name, split, "", cluster, singles + fitted, judged, workloads,
                    between_networks=split == "new network")

    twelve = set(map(id, quiet[::len(quiet) // 12][:12]))
    cases = [quietly("distance", lambda row: row.workers + int(row.columns["servers"]) <= 2),
             quietly("some", lambda row: id(row) in twelve),
             quietly("new network", lambda row: row.network == "250"),
             quietly("cold", lambda row: False),
             Case(name, "loss", "", cluster, singles + quiet, lossy, workloads)]
    return Source(name, "Gloo's rings and servers over emulated links, 2-16 hosts", cases, [
        ("new job", "bare messages and emulated compute"),
        ("DistributedDataParallel", "real networks of all ranks share two cores"),
        (f"{busy} rows", "the processor was busier than the lab trusts"),
        ("other engines", "Open MPI's ranks poll; their rows are indicative only")])


def read_cells(folder, program, scratch):
    name = "ufrgs_low_bandwidth_cells"
    # Trainable parameters, counted from the two programs; the loop sums its gradients as float16
    # and then again as float32.
    jobs = {"ResNet50_sync": (1, 25.84e6, 4), "EfficientNetB0_sync": (1, 5.52e6, 4),
            "ResNet50_ctl": (4, 23.94e6, 6), "EfficientNetB0_ctl": (4, 4.26e6, 6)}
    rows = []
    for row in wide(folder, f"{name}.csv"):
        # The series 734... had a host on a slower link; some cells ran out of memory.
        if "_734" in row["source"] or not row["step_time_s"]:
            continue
        job = next(job for job in jobs if job in row["source"])
        accumulation, parameters, each = jobs[job]
        rows.append(Row({"workload": job, "device": "rtx_4070",
                         "placement": placement(1, int(row["nodes"])), "servers": 0,
                         "strategy": "ring" if int(row["nodes"]) > 1 else "none",
                         "overlap": "none", "local_batch": row["local_batch"],
                         "accumulation_steps": accumulation, "bytes_per_parameter": each,
                         "step_time_s": row["step_time_s"]},
                        job, "ring", bytes=each * parameters, tags={"job": job}))
    workloads = {job: [f"parameters: {count:.0f}", "inputs: alike"]
                 for job, (_, count, _) in jobs.items()}
    cluster = Cluster("ufrgs-poti", "rtx_4070", 5, 1, 1)
    fitted, judged = beyond(rows, lambda row: row.nodes <= 2)
    return Source(name, "two networks, two loops, 1-3 nodes on 1 Gbit/s", [
        Case(name, "distance", "", cluster, fitted, judged, workloads),
        *new_jobs(name, cluster, rows, workloads, jobs),
        cold(name, cluster, rows, workloads)], [
            ("new network", "one network"), ("series 734...", "a host had a slower link")])


def read_tupi(folder, program, scratch):
    name = "ufrgs_tf_resnet50"
    rows = []
    for row in wide(folder, f"{name}.csv"):
        nodes = int(row["nodes"])
        # A printed step of one node has the validation in it; the data's description takes it out.
        seconds = 0.204 if nodes == 1 else row["step_time_s"]
        hosts = re.search(r"hosts (\S+?);", row["notes"]).group(1)
        rows.append(Row({"workload": "resnet50_keras", "device": "rtx_4090",
                         "placement": placement(1, nodes), "servers": 0,
                         "strategy": "none" if nodes == 1 else "ring", "overlap": "none",
                         "local_batch": row["local_batch"], "hosts": hosts,
                         "step_time_s": seconds}, "resnet50", "ring"))
    rows = [row for i, row in enumerate(rows) if row.nodes > 1 or i == 0]
    for row in rows:
        row.bytes = 4 * 25.64e6
    cluster = Cluster("ufrgs-tupi", "rtx_4090", 4, 1, None, ("tupi1", "tupi2", "tupi5", "tupi6"))
    fitted, judged = beyond(rows, lambda row: row.nodes <= 2)
    return Source(name, "ResNet-50 on named hosts, 1-3 nodes", [
        Case(name, "distance", "", cluster, fitted, judged,
             {"resnet50_keras": ["parameters: 25640000", "inputs: alike"]})], [
                 ("new job", "one job"), ("cold, new network", "no link speed is stated")])


def read_cmdare(folder, program, scratch):
    name = "cmdare"
    workloads = {}

    def rows_of(file):
        rows = []
        for row in wide(folder, file):
            job = re.sub(r"\W+", "_", row["model"]).lower()
            workloads[job] = [f"parameters: {note(row, 'params'):.0f}", "inputs: alike"]
            rows.append(Row({"workload": job, "device": "k80",
                             "placement": placement(1, int(row["workers"])), "servers": 1,
                             "strategy": "ps-async", "local_batch": row["local_batch"],
                             "rtt_ms": row["latency_ms"], "step_time_s": row["step_time_s"],
                             "library": "grpc"},
                            job, "ps-async", row["latency_ms"], 4 * note(row, "params"),
                            {"job": job}))
        return rows

    rows, delayed = rows_of("cmdare_ps_async_scaling.csv"), rows_of("cmdare_ps_latency.csv")
    cluster = Cluster("cmdare", "k80", 9, 1)
    fitted, judged = beyond(rows, lambda row: row.workers <= 2)
    return Source(name, "one asynchronous server, 1-8 K80; one worker at 0.3 and 30.3 ms", [
        Case(name, "distance", "", cluster, fitted, judged, workloads),
        *new_jobs(name, cluster, rows, workloads, list(workloads)),
        Case(name, "new network", "0.3 ms fitted, 30.3 ms stated", cluster,
             [row for row in delayed if row.network == "0.3"],
             [row for row in delayed if row.network != "0.3"], workloads, between_networks=True),
        cold(name, cluster, rows, workloads)], [
            ("one device's steps", "those of one worker and its server: none is without")])


def read_syncswitch(folder, program, scratch):
    name = "syncswitch"
    known = {"ResNet-32": ("resnet32_t2t", 1944330),
             "ResNet-50 (CIFAR)": ("resnet50_cifar", 23705252)}
    rows = []
    for row in wide(folder, f"{name}_bsp_vs_asp.csv"):
        job, count = known[row["model"]]
        strategy = row["strategy"].replace("_", "-")
        rows.append(Row({"workload": job, "device": "k80",
                         "placement": placement(1, int(row["workers"])), "servers": row["servers"],
                         "strategy": strategy, "local_batch": row["local_batch"],
                         "colocated_servers": "yes", "sharding": "round-robin",
                         "step_time_s": row["step_time_s"], "library": "grpc"},
                        f"{job} {strategy}", strategy, bytes=4 * count, tags={"job": job}))
    fitted, judged = beyond(rows, lambda row: row.workers <= 8)
    return Source(name, "servers on the workers' hosts, 8 and 16 K80", [
        Case(name, "distance", "", Cluster(name, "k80", 16, 1), fitted, judged,
             {job: [f"parameters: {count}", "inputs: alike"]
              for job, count in known.values()})], [
                 ("new job, cold", "no step of one device"), ("new network", "one network")])


def read_deepbench(folder, program, scratch):
    name = "deepbench_allreduce"
    systems, workloads = {}, {}
    for row in wide(folder, f"{name}.csv"):
        size = int(note(row, "message_bytes"))
        workloads[f"message_{size}"] = message(size)
        library = next(of for of in ("OSU", "MLSL", "Baidu", "NCCL") if of in row["notes"])
        system = f"{row['gpu'].split(' (')[0]}, {library}"
        systems.setdefault(system, []).append(
            Row({"workload": f"message_{size}", "device": "x",
                 "placement": placement(int(row["gpus_per_node"]), int(row["workers"])),
                 "servers": 0, "local_batch": 1, "bucket_mib": 512,
                 "step_time_s": row["sync_time_s"],
                 # That of MPI for all but the shortest messages (Thakur et al., 2005).
                 "strategy": "halving-doubling" if library in ("OSU", "MLSL") else "ring",
                 "library": {"NCCL": "nccl", "MLSL": "mpi", "OSU": "mpi", "Baidu": "mpi"}[library]},
                f"{system} {size}", system, bytes=size,
                tags={"size": "below 1 MB" if size < 1e6 else "1-20 MB" if size < 2e7
                      else "above 20 MB"}))
    cases, few = [], []
    for system, rows in sorted(systems.items()):
        fitted, judged = beyond(rows, lambda row: row.nodes <= 2)
        if len(fitted) < 3 or not judged:
            few.append(system)
            continue
        cases.append(Case(name, "distance", system, Cluster("deepbench", "x", 32, 8), fitted,
                          judged, workloads))
    return Source(name, "all-reduce of 0.4-258 MB, 2-32 ranks, fitted to two nodes", cases, [
        ("cold, one node, new network", "no interconnect is stated"), ("new job", "bare messages"),
        ("; ".join(few), "too few rows below or beyond two nodes")])


def read_tensorflow(folder, program, scratch):
    name = "tf_benchmarks_2017"
    sets = {}
    for row in wide(folder, f"{name}.csv"):
        strategy = {"ps_sync": "ps-sync", "allreduce(local)": "ring",
                    "replicated(local)": "ring"}.get(row["strategy"])
        if strategy is None or row["dataset"] != "synthetic ImageNet":
            continue
        job = CATALOGUE[row["model"]]
        columns = {"workload": job, "device": row["gpu"].lower(),
                   "placement": placement(int(row["gpus_per_node"]), int(row["workers"])),
                   "servers": row["servers"] or 0, "strategy": strategy,
                   "local_batch": row["local_batch"], "step_time_s": row["step_time_s"]}
        if strategy == "ps-sync":
            # Its guide to performance has a worker of several GPUs send one gradient for all.
            columns.update(colocated_servers="yes", sharding="round-robin",
                           local_aggregation="yes", library="grpc")
        elif columns["placement"] == "1":
            columns["strategy"] = "none"
        machine = row["notes"].split(";")[0]
        label = ("EC2, " if "EC2" in machine else "DGX-1, ") + (
            "servers" if strategy == "ps-sync" else "one node")
        sets.setdefault(label, []).append(Row(columns, job, strategy, tags={"job": job}))
    cases = []
    for label, rows in sets.items():
        cluster = Cluster(label.split(",")[0].lower(), rows[0].columns["device"], 8, 8)
        several = "servers" in label
        fitted, judged = beyond(rows, lambda row: row.workers <= (16 if several else 2))
        cases.append(Case(name, "distance", label, cluster, fitted, judged, {}))
        cases.append(cold(name, cluster, rows, {}, label))
        cases += new_jobs(name, cluster, rows, {}, sorted({row.job for row in rows}), f"{label}, ")
    what = "TensorFlow's servers on EC2 to 64 K80; NCCL in one node, fitted to 2"
    return Source(name, what, cases, [
        ("new network", "no link is stated"),
        ("a local parameter device", "no plan stands for it"),
        ("real ImageNet", "reading it may bound the step")])


def read_horovod(folder, program, scratch):
    name = "horovod_2017"
    singles, stacks = {}, {}
    for row in wide(folder, f"{name}_ps_vs_ring.csv"):
        devices = 64 if "cluster: 16" in row["notes"] else 16
        job = CATALOGUE[row["model"]]
        stack = row["notes"].split(";")[0]
        columns = {"workload": job, "device": f"pascal_{devices}",
                   "placement": placement(4, int(row["workers"])), "servers": 0,
                   "local_batch": 64, "step_time_s": row["step_time_s"]}
        if row["strategy"] == "single":
            singles.setdefault(devices, []).append(
                Row({**columns, "strategy": "none"}, job, "", tags={"job": job}))
            continue
        columns.update(link_gbit_per_s=row["link_gbps"],
                       transport="rdma" if "RDMA" in stack else "tcp")
        if row["strategy"] == "ps_sync":  # how many servers is not stated: one a node
            columns.update(strategy="ps-sync", servers=devices // 4, colocated_servers="yes",
                           pipelined_servers="yes", library="grpc")
        else:  # Horovod's fusion buffer
            columns.update(strategy="ring", bucket_mib=64,
                           library="nccl" if "NCCL" in stack else "mpi")
        stacks.setdefault(stack, {}).setdefault(devices, []).append(
            Row(columns, job, stack, str(devices), tags={"job": job, "stack": stack}))
    cases = []
    for stack, sizes in stacks.items():
        for devices, rows in sizes.items():
            cluster = Cluster(name, f"pascal_{devices}", 16, 4)
            label = f"{devices} devices"
            cases.append(cold(name, cluster, singles[devices] + rows, {}, label))
            cases += new_jobs(name, cluster, singles[devices] + rows, {},
                              sorted({row.job for row in rows}), "")
        if len(sizes) == 2:
            cases.append(Case(name, "new network", stack, Cluster(name, "pascal_64", 16, 4),
                              singles[16] + singles[64] + sizes[16], sizes[64], {},
                              between_networks=True))
    what = "servers against rings on 25 Gbit/s RoCE and 40 Gbit/s, by software"
    return Source(name, what, cases, [
        ("distance", "one scale a cluster; the second network has four times the devices")])


READERS = {
    "lab": read_lab,
    "ufrgs_low_bandwidth_cells": read_cells,
    "ufrgs_tf_resnet50": read_tupi,
    "cmdare": read_cmdare,
    "syncswitch": read_syncswitch,
    "deepbench_allreduce": read_deepbench,
    "tf_benchmarks_2017": read_tensorflow,
    "horovod_2017": read_horovod,
    "adaptdl": read_traces("adaptdl", "t4", "aws-g4dn-12xlarge", 4),
    "sia-rtx": read_traces("sia-rtx", "rtx_2080_ti", Cluster("sia-rtx", "rtx_2080_ti", 3, 8), 6),
    "hkbu_methods": read_hkbu,
    "tc_netem_collectives": read_tc,
}
