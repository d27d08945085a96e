"""Times real training steps in PyTorch: forward, loss, backward, optimizer.

    python3 time_pytorch_steps.py --workload resnet50 --batch 1,8,64 --device cuda \\
        --precision fp32,tf32,bf16 --output h200.csv

Every combination of workload, mode, memory format, precision and batch is a state. Each state that
was measured becomes a row of a runs file; one that was not (out of memory, unsupported) a row of
OUTPUT.failed.csv with the reason. Running again measures the states that are in neither file.

Inputs are random and stay on the device. In-place activations and sums are in place, as in
torchvision, except in the mode onednn. tests/device/README.md tells what else decides the times.
"""
from __future__ import annotations

import argparse
import csv
import ctypes
import gc
import itertools
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

import networks

PRECISIONS = ("fp32", "tf32", "bf16", "fp16")
MEMORY_FORMATS = ("channels_first", "channels_last")
MODES = ("eager", "compile", "onednn")
OPTIMIZERS = ("momentum", "sgd", "adam")

RELATIVE_ERROR = 0.01  # of the median: enough, if there are so many samples
ENOUGH_SAMPLES = 10
LEAST_SAMPLES = 3
LEAST_SHARE = 0.1  # of the seconds for a state, both for warming up and for timing
WARM_UP_STEPS = 3
CHUNK_SECONDS = 0.3  # steps between two looks at the error; a GPU runs them without a wait
LARGEST_CHUNK = 50
OWN_SHARE = 0.97  # CPU time by wall time of a step below which the CPU served others

COLUMNS = ("workload", "device", "placement", "servers", "strategy", "local_batch", "step_time_s",
           "precision", "memory_format", "mode", "optimizer", "threads", "allocator",
           "cudnn_benchmark", "forward_s", "backward_s", "update_s", "samples", "disturbed",
           "relative_error", "replaced", "torch", "source")
FAILED_COLUMNS = ("workload", "device", "local_batch", "precision", "memory_format", "mode",
                  "optimizer", "threads", "allocator", "cudnn_benchmark", "status", "reason",
                  "torch")
# What tells states apart.
KEY = ("workload", "device", "local_batch", "precision", "memory_format", "mode", "optimizer",
       "threads", "allocator", "cudnn_benchmark")


class Unsupported(Exception):
    """The state cannot be measured here; the text says why."""


@dataclass(frozen=True)
class State:
    """One training step to be timed."""

    workload: str
    local_batch: int
    precision: str = "fp32"
    memory_format: str = "channels_first"
    mode: str = "eager"
    optimizer: str = "momentum"


@dataclass(frozen=True)
class Setup:
    """What all states have in common."""

    device: str = "cpu"
    device_name: str = ""
    threads: int = 1
    keep_memory: bool = False
    cudnn_benchmark: bool = False
    seconds: float = 10.0

    def columns(self) -> dict[str, str]:
        on_gpu = self.device == "cuda"
        return {"device": self.device_name or find_device_name(self.device),
                "threads": str(self.threads),
                "allocator": "" if on_gpu else "kept" if self.keep_memory else "default",
                "cudnn_benchmark": str(int(self.cudnn_benchmark)) if on_gpu else ""}


class Sample(NamedTuple):
    """One step, in seconds."""

    step: float
    forward: float
    backward: float
    update: float
    disturbed: bool  # the CPU also served others


@dataclass
class Timing:
    """Samples of a state. Disturbed ones count only where there is hardly another."""

    all: list[Sample] = field(default_factory=list)
    replaced: str = ""  # layers that the mode cannot run, and what ran instead

    @property
    def used(self) -> list[Sample]:
        undisturbed = [sample for sample in self.all if not sample.disturbed]
        return undisturbed if len(undisturbed) >= LEAST_SAMPLES else self.all

    @property
    def disturbed(self) -> int:
        return sum(sample.disturbed for sample in self.all)

    @property
    def median(self) -> float:
        return statistics.median(sample.step for sample in self.used)

    @property
    def relative_error(self) -> float:
        """Standard error of the median by the median, from the order statistics around it.

        The true median is below the k-th of n samples as often as n tosses of a coin show fewer
        than k heads, whatever the distribution: the standard deviation of that count, sqrt(n) / 2,
        to either side is one standard error.
        """
        ordered = sorted(sample.step for sample in self.used)
        last = len(ordered) - 1

        def at(place: float) -> float:
            below, part = divmod(min(max(place, 0.0), last), 1)
            here = ordered[int(below)]
            return here + part * (ordered[min(int(below) + 1, last)] - here)

        half = math.sqrt(len(ordered)) / 2
        return (at(last / 2 + half) - at(last / 2 - half)) / 2 / self.median

    @property
    def is_enough(self) -> bool:
        return (len(self.all) - self.disturbed >= ENOUGH_SAMPLES
                and self.relative_error < RELATIVE_ERROR)

    def __str__(self) -> str:
        text = (f"{1e3 * self.median:.3f} ms +- {100 * self.relative_error:.2g} %, "
                f"{len(self.used)} steps")
        if self.disturbed:
            text += f"; the CPU served others in {self.disturbed} of {len(self.all)}"
        return f"{text}; {self.replaced}" if self.replaced else text


def find_device_name(device: str) -> str:
    """The name by the driver, or by the operating system."""
    if device == "cuda":
        return torch.cuda.get_device_name()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            names = [line.split(":", 1)[1] for line in info if line.startswith("model name")]
        return " ".join(names[0].split())
    except (OSError, IndexError):
        return "cpu"


def torch_version(device: str) -> str:
    """PyTorch and the libraries that decide times."""
    if device == "cuda":
        return (f"{torch.__version__}, CUDA {torch.version.cuda}, "
                f"cuDNN {torch.backends.cudnn.version()}")
    return torch.__version__


class CpuClock:
    """Wall time, and the time that the CPU worked for this process."""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def mark(self) -> tuple[float, float]:
        return time.perf_counter(), time.process_time()

    def wait(self) -> None:
        pass

    def between(self, start: tuple[float, float], end: tuple[float, float]) -> float:
        return end[0] - start[0]

    def is_disturbed(self, start: tuple[float, float], end: tuple[float, float]) -> bool:
        """Several threads wait for each other, which looks like others' work."""
        return self.threads == 1 and end[1] - start[1] < OWN_SHARE * (end[0] - start[0])


class CudaClock:
    """Events in the stream: the host may run ahead, as it does in training."""

    def mark(self) -> torch.cuda.Event:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def wait(self) -> None:
        torch.cuda.synchronize()

    def between(self, start: torch.cuda.Event, end: torch.cuda.Event) -> float:
        return start.elapsed_time(end) * 1e-3

    def is_disturbed(self, start: torch.cuda.Event, end: torch.cuda.Event) -> bool:
        del start, end
        return False


class DenseConcat(nn.Module):
    """Joins oneDNN's tensors as ordinary ones."""

    def forward(self, *images: Tensor) -> Tensor:
        return torch.cat([image.to_dense() for image in images], 1).to_mkldnn()


def replace_for_onednn(net: nn.Module) -> str:
    """Replaces layers that oneDNN's tensors lack; returns what was replaced by what."""
    impossible = (networks.Attention, networks.SqueezeExcite, nn.Embedding, nn.LayerNorm, nn.SiLU)
    replaced = set()
    for parent in list(net.modules()):
        if isinstance(parent, impossible):
            raise Unsupported(f"PyTorch's oneDNN tensors do not train {type(parent).__name__}")
        if hasattr(parent, "inplace"):
            parent.inplace = False
        for name, module in parent.named_children():
            if isinstance(module, nn.ReLU6):
                setattr(parent, name, nn.ReLU())
                replaced.add("relu6 by relu")
            elif isinstance(module, networks.Concat):
                setattr(parent, name, DenseConcat())
                replaced.add("concatenation by one of dense tensors")
    return "; ".join(sorted(replaced))


def make_optimizer(name: str, parameters: list[nn.Parameter], device: str) -> torch.optim.Optimizer:
    # The learning rate changes no time, but small steps keep random training from overflow.
    # On a CPU one tensor is updated after another; on a GPU PyTorch chooses.
    foreach = False if device == "cpu" else None
    if name == "adam":
        return torch.optim.Adam(parameters, lr=1e-5, foreach=foreach)
    momentum = 0.9 if name == "momentum" else 0.0
    return torch.optim.SGD(parameters, lr=1e-4, momentum=momentum, foreach=foreach)


def check_supported(state: State, device: str) -> None:
    network = networks.NETWORKS[state.workload]
    if state.memory_format == "channels_last" and (
            network.is_text or state.workload.startswith("mlp")):
        raise Unsupported("the network has no images inside")
    if state.mode == "compile" and not hasattr(torch, "compile"):
        raise Unsupported("this PyTorch has no compiler")
    if state.mode == "onednn":
        if device != "cpu" or not torch.backends.mkldnn.is_available():
            raise Unsupported("oneDNN is for CPUs, where PyTorch was built with it")
        if state.precision != "fp32":
            raise Unsupported("mode onednn is fp32 only")
        if state.memory_format != "channels_first":
            raise Unsupported("oneDNN chooses its own memory format")
    if device == "cpu" and state.precision in ("tf32", "fp16"):
        raise Unsupported(f"no {state.precision} on CPUs")
    if device == "cuda" and state.precision in ("tf32", "bf16"):
        if torch.cuda.get_device_capability() < (8, 0):
            raise Unsupported(f"the GPU has no {state.precision}")


class TrainingStep:
    """A network with data and optimizer, ready to train."""

    def __init__(self, state: State, setup: Setup) -> None:
        check_supported(state, setup.device)
        torch.manual_seed(0)
        net = networks.build(state.workload)
        self.replaced = replace_for_onednn(net) if state.mode == "onednn" else ""
        inputs, self.labels = networks.sample(state.workload, state.local_batch, setup.device)
        net = net.to(setup.device)
        if state.memory_format == "channels_last":
            net = net.to(memory_format=torch.channels_last)
            inputs = inputs.contiguous(memory_format=torch.channels_last)
        # A perceptron first flattens its image: a view of ordinary tensors, a copy of oneDNN's.
        if state.mode == "onednn":
            inputs = (inputs.flatten(1) if state.workload.startswith("mlp") else inputs).to_mkldnn()
        self.inputs = inputs
        self.optimizer = make_optimizer(
            state.optimizer, [p for p in net.parameters() if p.requires_grad], setup.device)
        self.net = torch.compile(net) if state.mode == "compile" else net
        self.to_dense = state.mode == "onednn"
        types = {"bf16": torch.bfloat16, "fp16": torch.float16}
        self.autocast = types.get(state.precision)
        self.device = setup.device
        # Without a scaled loss the small gradients of fp16 would vanish.
        self.scaler = None
        if state.precision == "fp16":
            scaler = getattr(torch.amp, "GradScaler", torch.cuda.amp.GradScaler)
            self.scaler = scaler(init_scale=1024.0)

    def forward(self) -> Tensor:
        context = (torch.autocast(self.device, dtype=self.autocast) if self.autocast
                   else nullcontext())
        with context:
            output = self.net(self.inputs)
            return networks.loss(output.to_dense() if self.to_dense else output, self.labels)

    def backward(self, loss: Tensor) -> None:
        (self.scaler.scale(loss) if self.scaler else loss).backward()

    def update(self) -> None:
        if self.scaler:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def run(self) -> None:
        self.backward(self.forward())
        self.update()


def keep_freed_memory() -> None:
    """Has the C library keep what is freed instead of giving it back to the operating system.

    It is for the rest of the process. Large tensors then cost no page faults in each step.
    """
    trim_threshold, mmap_max = -1, -4  # names of parameters in glibc's malloc.h
    library = ctypes.CDLL(None)
    if not (library.mallopt(trim_threshold, -1) and library.mallopt(mmap_max, 0)):
        raise Unsupported("the C library does not keep freed memory")


def set_up(setup: Setup, state: State) -> None:
    """Sets the process-wide switches that times depend on."""
    torch.set_num_threads(setup.threads)
    if setup.keep_memory:
        keep_freed_memory()
    tf32 = state.precision == "tf32"
    # PyTorch 2.9 has newer names for these two, but its compiler still reads the old ones.
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cudnn.benchmark = setup.cudnn_benchmark
    torch.backends.cudnn.deterministic = False


def warm_up(step: TrainingStep, clock: CpuClock | CudaClock, seconds: float) -> float:
    """Runs first steps; returns about how long one takes."""
    start = time.perf_counter()
    for count in itertools.count(1):
        last = time.perf_counter()
        step.run()
        clock.wait()
        now = time.perf_counter()
        if count >= WARM_UP_STEPS and now - start >= LEAST_SHARE * seconds:
            return now - last
    raise AssertionError


def run_chunk(step: TrainingStep, clock: CpuClock | CudaClock, count: int, timing: Timing) -> None:
    """Adds samples of steps that follow each other.

    A step ends where the next one starts. On a GPU one more step runs before the others: its start
    is marked while the GPU has nothing to do, so that it would count the host's time to begin.
    """
    marks = []
    for _ in range(count):
        start = clock.mark()
        loss = step.forward()
        forward = clock.mark()
        step.backward(loss)
        backward = clock.mark()
        step.update()
        marks.append((start, forward, backward))
    end = clock.mark()
    clock.wait()
    ends = [start for start, _, _ in marks[1:]] + [end]
    first = 1 if isinstance(clock, CudaClock) else 0
    for (start, forward, backward), stop in list(zip(marks, ends))[first:]:
        timing.all.append(Sample(clock.between(start, stop), clock.between(start, forward),
                                 clock.between(forward, backward), clock.between(backward, stop),
                                 clock.is_disturbed(start, stop)))


def export_trace(step: TrainingStep, state: State, device: str, directory: str) -> None:
    """Writes a Kineto trace of three steps, after one that only warms the profiler up."""
    if not torch.autograd.kineto_available():
        raise RuntimeError("this PyTorch was built without Kineto")
    activities = [torch.profiler.ProfilerActivity.CPU]
    if device == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, "-".join(str(value) for value in asdict(state).values()))
    with torch.profiler.profile(
            activities=activities, record_shapes=True,
            schedule=torch.profiler.schedule(wait=0, warmup=1, active=3),
            on_trace_ready=lambda trace: trace.export_chrome_trace(path + ".json")) as profile:
        for _ in range(4):
            step.run()
            if device == "cuda":
                torch.cuda.synchronize()
            profile.step()


def measure(state: State, setup: Setup, profile: str | None = None) -> Timing:
    """Times steps of a state until the median is known well enough or the seconds are over.

    Raises Unsupported, or what PyTorch raises where memory is too small (is_out_of_memory).
    """
    set_up(setup, state)
    clock = CudaClock() if setup.device == "cuda" else CpuClock(setup.threads)
    step = TrainingStep(state, setup)
    timing = Timing(replaced=step.replaced)
    about = warm_up(step, clock, setup.seconds)
    least = 4 if setup.device == "cuda" else 1
    chunk = min(LARGEST_CHUNK, max(least, round(CHUNK_SECONDS / about)))
    start = time.perf_counter()
    while True:
        run_chunk(step, clock, chunk, timing)
        spent = time.perf_counter() - start
        if timing.is_enough and spent >= LEAST_SHARE * setup.seconds:
            break
        if len(timing.all) >= LEAST_SAMPLES and spent >= setup.seconds:
            break
    if profile:
        try:
            export_trace(step, state, setup.device, profile)
        except (OSError, RuntimeError) as error:
            print(f"{describe(state)}: no trace: {error}", file=sys.stderr)
    return timing


def is_out_of_memory(error: BaseException) -> bool:
    text = str(error).lower()
    return any(words in text for words in ("out of memory", "can't allocate", "alloc_failed"))


def try_to_measure(state: State, setup: Setup, profile: str | None) -> Timing | tuple[str, str]:
    """A timing, or why there is none: a status and a sentence."""
    try:
        return measure(state, setup, profile)
    except Unsupported as error:
        return "unsupported", str(error)
    except Exception as error:  # pylint: disable=broad-except  # One state must not end the others.
        status = "out_of_memory" if is_out_of_memory(error) else "failed"
        return status, f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


def release_memory(device: str) -> None:
    """Gives back what the last state held; call where no traceback holds its tensors."""
    gc.collect()
    if "torch._dynamo" in sys.modules:
        torch._dynamo.reset()  # pylint: disable=protected-access
    if device == "cuda":
        torch.cuda.empty_cache()


class Table:
    """A CSV file that grows by a row at a time."""

    def __init__(self, path: str, columns: tuple[str, ...]) -> None:
        self.path = path
        self.columns = columns
        self.keys: set[tuple[str, ...]] = set()
        if not os.path.exists(path) or os.path.getsize(path) == 0:
            return
        with open(path, encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            if tuple(reader.fieldnames or ()) != columns:
                sys.exit(f"{path}: has other columns; give --output a new file")
            self.keys = {tuple(row[name] for name in KEY) for row in reader}

    def append(self, row: dict[str, Any]) -> None:
        is_new = not os.path.exists(self.path) or os.path.getsize(self.path) == 0
        with open(self.path, "a", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, self.columns, lineterminator="\n")
            if is_new:
                writer.writeheader()
            writer.writerow(row)


def make_row(state: State, setup: Setup, timing: Timing) -> dict[str, Any]:
    def median_of(part: str) -> str:
        return f"{statistics.median(getattr(sample, part) for sample in timing.used):.6g}"

    when = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    return {**asdict(state), **setup.columns(), "placement": 1, "servers": 0, "strategy": "none",
            "step_time_s": f"{timing.median:.6g}",
            "forward_s": median_of("forward"), "backward_s": median_of("backward"),
            "update_s": median_of("update"), "samples": len(timing.used),
            "disturbed": timing.disturbed, "relative_error": f"{timing.relative_error:.2g}",
            "replaced": timing.replaced, "torch": torch_version(setup.device),
            "source": f"tests/device/time_pytorch_steps.py, {when}"}


def describe(state: State) -> str:
    return " ".join(str(value) for value in asdict(state).values())


def make_states(options: argparse.Namespace) -> Iterator[State]:
    for workload, mode, memory_format, precision, batch in itertools.product(
            options.workload, options.mode, options.memory_format, options.precision,
            options.batch):
        yield State(workload, batch, precision, memory_format, mode, options.optimizer)


def words_of(allowed: tuple[str, ...]) -> Callable[[str], list[str]]:
    """A reader of lists like "fp32,bf16"."""

    def parse(text: str) -> list[str]:
        for word in text.split(","):
            if word not in allowed:
                raise argparse.ArgumentTypeError(f"{word!r} is none of {', '.join(allowed)}")
        return text.split(",")

    return parse


def batches(text: str) -> list[int]:
    """Reads a list like "1,8,64"."""
    numbers = [int(word) for word in text.split(",")]
    if min(numbers) < 1:
        raise argparse.ArgumentTypeError("a batch has at least one sample")
    return numbers


def parse_options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--workload", action="append", choices=networks.NETWORKS, metavar="NAME",
                        required=True, help=f"repeatable; {', '.join(networks.NETWORKS)}")
    parser.add_argument("--batch", type=batches, default=[8], metavar="N,N,...",
                        help="samples of a step (8)")
    parser.add_argument("--precision", type=words_of(PRECISIONS), metavar="P,P,...",
                        default=["fp32"],
                        help=f"{', '.join(PRECISIONS)} (fp32); the last two by autocast")
    parser.add_argument("--memory-format", type=words_of(MEMORY_FORMATS), metavar="F,F",
                        default=["channels_first"], help=f"{', '.join(MEMORY_FORMATS)}")
    parser.add_argument("--mode", type=words_of(MODES), default=["eager"], metavar="M,M,...",
                        help=f"{', '.join(MODES)} (eager); onednn: all tensors are oneDNN's")
    parser.add_argument("--device", choices=("cpu", "cuda"),
                        default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--device-name", default="", metavar="NAME",
                        help="in the column device; by default the driver's name")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="on the CPU (1)")
    parser.add_argument("--keep-memory", action="store_true",
                        help="on the CPU: do not give freed memory back after each tensor")
    parser.add_argument("--optimizer", choices=OPTIMIZERS, default="momentum")
    parser.add_argument("--cudnn-benchmark", action="store_true",
                        help="cuDNN tries its algorithms before the first step")
    parser.add_argument("--seconds", type=float, default=10.0, metavar="S",
                        help="at most so long for the timed steps of a state (10)")
    parser.add_argument("--output", required=True, metavar="F",
                        help="runs file; rows are appended, states in it are skipped")
    parser.add_argument("--retry", action="store_true", help="also states in F.failed.csv")
    parser.add_argument("--profile", metavar="DIR", help="write a Kineto trace of each state")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    options = parse_options(arguments)
    setup = Setup(options.device, options.device_name, options.threads, options.keep_memory,
                  options.cudnn_benchmark, options.seconds)
    if setup.device == "cuda" and not torch.cuda.is_available():
        sys.exit("PyTorch sees no GPU")
    measured = Table(options.output, COLUMNS)
    failed = Table(options.output + ".failed.csv", FAILED_COLUMNS)
    done = measured.keys if options.retry else measured.keys | failed.keys
    for state in make_states(options):
        columns = {**asdict(state), **setup.columns()}
        if tuple(str(columns[name]) for name in KEY) in done:
            print(f"{describe(state)}: done before", file=sys.stderr)
            continue
        outcome = try_to_measure(state, setup, options.profile)
        release_memory(setup.device)
        if isinstance(outcome, Timing):
            measured.append(make_row(state, setup, outcome))
            print(f"{describe(state)}: {outcome}", file=sys.stderr)
        else:
            status, reason = outcome
            failed.append({**columns, "status": status, "reason": reason,
                           "torch": torch_version(setup.device)})
            print(f"{describe(state)}: {status}: {reason}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
