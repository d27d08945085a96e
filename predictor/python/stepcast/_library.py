"""What is known by name: shipped machines and data sheets, the workload catalogue."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path

from . import _core
from ._core import Cluster, Device, InputError, Workload

_DEVICE_FILE = "gpus.yaml"


def data_folder() -> Path:
    """The folder with machines/.

    $STEPCAST_DATA where it is set, else the one in this package, the one of an installed stepcast
    (PREFIX/share/stepcast), or that of the source tree.
    """
    own = os.environ.get("STEPCAST_DATA")
    here = Path(__file__).resolve().parent
    candidates = (
        [Path(own)]
        if own
        else [
            here / "data",
            *(parent / "share" / "stepcast" for parent in here.parents),
            *(parent / "data" for parent in here.parents),
        ]
    )
    for folder in candidates:
        if (folder / "machines" / _DEVICE_FILE).exists():
            return folder
    raise input_error("STEPCAST_DATA", str(candidates[0]), "has no machines/" + _DEVICE_FILE,
                       "the folder with stepcast's data files")


def input_error(key: str, value: object, problem: str, allowed: str) -> InputError:
    error = InputError(f"{key}: '{value}' {problem}; allowed: {allowed}")
    error.key, error.value, error.problem, error.allowed = key, str(value), problem, allowed
    return error


@functools.lru_cache(maxsize=None)
def _shipped_devices(path: str) -> tuple[Device, ...]:
    return tuple(_core.read_devices(path))


def read_devices(path: str | os.PathLike[str] | None = None) -> list[Device]:
    """All devices of a device file; of the shipped one without a path."""
    if path is None:
        return list(_shipped_devices(str(data_folder() / "machines" / _DEVICE_FILE)))
    return _core.read_devices(os.fspath(path))


def find_device(name: str) -> Device | None:
    """The shipped data sheet that a name means, whatever its case and separators."""
    return _core.find_device(read_devices(), name)


def cluster_names() -> list[str]:
    """Names of the shipped clusters."""
    files = (data_folder() / "machines").glob("*.yaml")
    return sorted(file.stem for file in files if file.name != _DEVICE_FILE)


def read_cluster(path: str | os.PathLike[str]) -> Cluster:
    """The cluster of a cluster file.

    A path (a Path, or a text with a / or ending in .yaml, .yml or .json) is read; any other text is
    the name of a shipped cluster.
    """
    text = os.fspath(path)
    is_path = not isinstance(path, str) or "/" in text or Path(text).suffix in (".yaml", ".yml",
                                                                                ".json")
    if is_path:
        return _core.read_cluster(text)
    if text not in cluster_names():
        raise input_error("cluster", text, "is not a shipped cluster" +
                          _core.did_you_mean(text, cluster_names()),
                          "a path, or one of " + ", ".join(cluster_names()))
    return _core.read_cluster(str(data_folder() / "machines" / f"{text}.yaml"))


def cluster(device: str, *, nodes: int = 1, devices_per_node: int = 1, name: str | None = None,
            nics_per_node: int | None = None, bandwidth_bytes_per_s: float | None = None,
            rtt_s: float | None = None, loss_rate: float | None = None,
            device_bandwidth_bytes_per_s: float | None = None,
            server_bandwidth_bytes_per_s: float | None = None) -> Cluster:
    """A cluster without a file; what is not given is not known.

    Parameters
        device : name of its devices, like "t4"
        nodes, devices_per_node, nics_per_node : how many
        bandwidth_bytes_per_s, rtt_s, loss_rate : of the link of a node, each way
        device_bandwidth_bytes_per_s : between devices of one node
        server_bandwidth_bytes_per_s : of a parameter server's link
    """
    def link(bandwidth, rtt=None, loss=None):
        facts = {
            "bandwidth": None if bandwidth is None else f"{float(bandwidth)!r} B/s",
            "rtt": None if rtt is None else f"{float(rtt)!r} s",
            "loss": loss,
        }
        return {key: value for key, value in facts.items() if value is not None} or None

    fields = {
        "name": name or device,
        "device": device,
        "nodes": nodes,
        "devices_per_node": devices_per_node,
        "nics_per_node": nics_per_node,
        "link": link(bandwidth_bytes_per_s, rtt_s, loss_rate),
        "device_link": link(device_bandwidth_bytes_per_s),
        "server_link": link(server_bandwidth_bytes_per_s),
    }
    return _core.parse_cluster(_file_text(fields), "<cluster>")


def workload(name: str, *, parameters: int | None = None, gradient_bytes: int | None = None,
             precision: str | None = None, optimizer: str | None = None,
             attention: str | None = None, recompute: str | None = None) -> Workload:
    """A network of the catalogue by its name, or one of which only the size is known.

    Parameters
        name : like "resnet50", or "resnet50@160" for images of another size; see workload_names. A
            decoder by its numbers is "gpt:layers=24:hidden=2048:heads=16@2048"
        parameters : trainable parameters of a network that is not in the catalogue; gradients are
            four bytes each, unless
        gradient_bytes : says what one worker contributes to a synchronisation
        precision : what it computes in: "fp32" unless it is "tf32", "fp16", "bf16" or "fp8"
        optimizer : what updates its parameters: "momentum" unless it is "sgd" or "adam", as which
            "adamw" is read
        attention : how it is computed: "plain" or "fused"; of a network of the catalogue as it is
            usually trained, otherwise "plain"
        recompute : which activations are computed once more in the backward pass instead of being
            kept: "none" unless it is "selective", those between attention's scores and its product
            with the values, or "full", those of each block of layers
    """
    if parameters is None and gradient_bytes is None:
        known = _core.find_workload(name)
        if known is None:
            raise input_error(
                "workload", name, "is not a known workload" + _core.did_you_mean_workload(name),
                "its parameters or gradient_bytes, or one of stepcast.workload_names()")
    else:
        known = _core.parse_workload(_file_text(
            {"name": name, "parameters": parameters, "gradient_bytes": gradient_bytes}),
            "<workload>")
    return known.replace(precision=precision, optimizer=optimizer, attention=attention,
                         recompute=recompute)


def _file_text(fields: dict) -> str:
    """The fields that are known, as the file that one strict reader checks (JSON is YAML)."""
    def plain(value):
        if isinstance(value, float) and value.is_integer():
            return int(value)  # 25e6 parameters
        return value.item() if hasattr(value, "item") else value

    return json.dumps({key: plain(value) for key, value in fields.items() if value is not None})
