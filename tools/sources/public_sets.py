"""Public measurements as runs of stepcast, with the clusters that their sources state.

A Source has cases: what is fitted, what is judged, and under which split. Only what a source or the
description of the data states is stated here. Each reader below is one source; the folder's
README.md says where the files come from.
"""
import csv
import dataclasses
import re
import subprocess

SPLITS = {
    "distance": "fitted to the smallest scale of several nodes, judged beyond it",
    "one node": "fitted within one node, judged across nodes; the link is stated",
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


@dataclasses.dataclass
class Source:
    name: str
    what: str
    cases: list
    unjudged: list      # (split or what, why)


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
    return Source(name, "seven methods, ResNet-50 and BERT-base, 4-32 GPUs", cases, [
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


READERS = {
    "adaptdl": read_traces("adaptdl", "t4", "aws-g4dn-12xlarge", 4),
    "sia-rtx": read_traces("sia-rtx", "rtx_2080_ti", Cluster("sia-rtx", "rtx_2080_ti", 3, 8), 6),
    "hkbu_methods": read_hkbu,
    "tc_netem_collectives": read_tc,
}
