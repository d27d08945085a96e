"""Judges a compute profile: are steps predicted from it as long as real ones?

    python3 judge_profile.py --stepcast build/release/bin/stepcast --workload resnet18 --batch 2,8

1. times real training steps in PyTorch,
2. has `stepcast microbench` measure the operations of the same networks on the same device,
3. times the steps again, as the machine may have become slower or faster meanwhile,
4. has `stepcast predict` foretell each step from the profile,

and compares predictions with the median of both timings. Exit code 0: the largest error is within
the tolerance; 1: it is not; 2: a step could not be measured or predicted; 77: skipped, there is no
PyTorch or no GPU.
"""
from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from time_pytorch_steps import Setup, State

SKIPPED = 77
BACKENDS = {"cpu": "onednn", "cuda": "cuda"}
MODES = {"cpu": "onednn", "cuda": "eager"}
UNSTEADY = 0.05  # difference between the two timings that is worth a warning


class Failure(Exception):
    """What kept the judge from judging."""


@dataclass
class Verdict:
    """One state: what was predicted and what came."""

    workload: str
    batch: int
    predicted: float
    low: float
    high: float
    before: float
    after: float

    @property
    def measured(self) -> float:
        return statistics.median((self.before, self.after))

    @property
    def error(self) -> float:
        return self.predicted / self.measured - 1

    @property
    def is_inside(self) -> bool:
        return self.low <= self.measured <= self.high


def run_stepcast(*command: str) -> str:
    """Runs the program; its words on stderr go through."""
    try:
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    except OSError as error:
        raise Failure(f"{command[0]}: {error.strerror}") from error
    if done.returncode != 0:
        raise Failure(f"exit code {done.returncode} of: {' '.join(command)}")
    return done.stdout


def take_profile(options: argparse.Namespace, path: str) -> None:
    command = [options.stepcast, "microbench", "--backend", BACKENDS[options.device],
               "--batch", ",".join(map(str, options.batch)), "--precision", options.precision,
               "--output", path, "--budget", options.budget]
    if options.device == "cpu":
        command += ["--threads", str(options.threads)]
    for workload in options.workload:
        command += ["--workload", workload]
    run_stepcast(*command)


def predict(options: argparse.Namespace, path: str, state: State) -> tuple[float, float, float]:
    """Step time and the ends of its interval, in seconds."""
    answer = run_stepcast(options.stepcast, "predict", "--profile", path, "--workload",
                          state.workload, "--local-batch", str(state.local_batch), "--workers", "1",
                          "--json", *options.predict_option)
    try:
        values = json.loads(answer)
        return values["step_time_s"], values["low_s"], values["high_s"]
    except (ValueError, KeyError, TypeError) as error:
        raise Failure(f"stepcast predict: no step_time_s, low_s, high_s in: {answer}") from error


def time_steps(states: list[State], setup: Setup, when: str) -> dict[State, float]:
    import time_pytorch_steps as steps  # pylint: disable=import-outside-toplevel

    medians = {}
    for state in states:
        timing = steps.try_to_measure(state, setup, None)
        steps.release_memory(setup.device)
        if not isinstance(timing, steps.Timing):
            raise Failure(f"{steps.describe(state)}: {': '.join(timing)}")
        medians[state] = timing.median
        print(f"{when}: {steps.describe(state)}: {timing}", file=sys.stderr)
    return medians


def judge(options: argparse.Namespace, path: str) -> list[Verdict]:
    from networks import NETWORKS  # pylint: disable=import-outside-toplevel
    from time_pytorch_steps import Setup, State  # pylint: disable=import-outside-toplevel

    for workload in options.workload:
        if workload not in NETWORKS:
            raise Failure(f"no network {workload}; there are: {', '.join(NETWORKS)}")
    setup = Setup(options.device, threads=options.threads, keep_memory=options.keep_memory,
                  seconds=options.seconds)
    states = [State(workload, batch, options.precision,
                    mode=options.mode or MODES[options.device], optimizer=options.optimizer)
              for workload in options.workload for batch in options.batch]
    before = time_steps(states, setup, "before")
    take_profile(options, path)
    after = time_steps(states, setup, "after")
    return [Verdict(state.workload, state.local_batch, *predict(options, path, state),
                    before[state], after[state]) for state in states]


def print_table(verdicts: list[Verdict]) -> None:
    print(f"{'workload':16} {'batch':>5} {'predicted':>10} {'measured':>10} {'before':>10} "
          f"{'after':>10} {'error':>8}  inside interval?\n"
          f"{'':22} {'[ms]':>10} {'[ms]':>10} {'[ms]':>10} {'[ms]':>10} {'[%]':>8}")
    for v in verdicts:
        print(f"{v.workload:16} {v.batch:5} {1e3 * v.predicted:10.3f} {1e3 * v.measured:10.3f} "
              f"{1e3 * v.before:10.3f} {1e3 * v.after:10.3f} {100 * v.error:+8.1f}  "
              f"{'yes' if v.is_inside else 'no'} [{1e3 * v.low:.3f}, {1e3 * v.high:.3f}]")
    for v in verdicts:
        drift = v.after / v.before - 1
        if abs(drift) > UNSTEADY:
            print(f"note: {v.workload} at {v.batch} took {100 * abs(drift):.0f} % "
                  f"{'more' if drift > 0 else 'less'} in the second timing: the machine was not "
                  "steady")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--stepcast", required=True, metavar="BINARY", help="the program")
    parser.add_argument("--workload", action="append", required=True, metavar="NAME",
                        help="repeatable; those of networks.py")
    parser.add_argument("--batch", type=lambda text: [int(word) for word in text.split(",")],
                        default=[2, 8], metavar="N,N,...", help="samples of a step (2,8)")
    parser.add_argument("--device", choices=BACKENDS, default="cpu")
    parser.add_argument("--mode", choices=("eager", "compile", "onednn"),
                        help="of PyTorch (onednn on a CPU, eager on a GPU)")
    parser.add_argument("--precision", default="fp32", choices=("fp32", "tf32", "bf16", "fp16"))
    parser.add_argument("--optimizer", default="momentum", choices=("momentum", "sgd", "adam"))
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="on the CPU (1)")
    parser.add_argument("--keep-memory", action="store_true",
                        help="no page faults in PyTorch's steps (README.md)")
    parser.add_argument("--seconds", type=float, default=10.0, metavar="S",
                        help="at most so long for each of two timings of a state (10)")
    parser.add_argument("--budget", default="2 min", metavar="TIME", help="for the microbenchmark")
    parser.add_argument("--tolerance", type=float, default=0.15, metavar="X",
                        help="largest relative error that passes (0.15)")
    parser.add_argument("--keep-profile", metavar="FILE", help="where the profile stays")
    parser.add_argument("--predict-option", action="append", default=[], metavar="WORD",
                        help="one more word for stepcast predict, like --device=h200; repeatable")
    return parser.parse_args()


def main() -> int:
    options = parse_options()
    try:
        import torch  # pylint: disable=import-outside-toplevel
    except ImportError:
        print(f"skipped: {sys.executable} has no PyTorch (module torch)")
        return SKIPPED
    if options.device == "cuda" and not torch.cuda.is_available():
        print("skipped: PyTorch sees no GPU")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        path = options.keep_profile or os.path.join(folder, "profile.json")
        try:
            verdicts = judge(options, path)
        except Failure as failure:
            print(f"judge_profile: {failure}", file=sys.stderr)
            return 2
    print_table(verdicts)
    worst = max(verdicts, key=lambda verdict: abs(verdict.error))
    passed = abs(worst.error) <= options.tolerance
    print(f"{'passed' if passed else 'failed'}: the largest error, of {worst.workload} at "
          f"{worst.batch}, is {100 * abs(worst.error):.1f} % (tolerance "
          f"{100 * options.tolerance:.1f} %)")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
