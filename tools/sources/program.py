"""The program as tools ask it, and where they find it and the data sets."""
from __future__ import annotations

import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def ask(program, *arguments):
    answer = subprocess.run([program, *map(str, arguments), "--json"], capture_output=True,
                            text=True, check=False, cwd=ROOT)
    if answer.returncode == 2 or not answer.stdout:
        raise RuntimeError(answer.stderr.strip() or f"exit code {answer.returncode}")
    return json.loads(answer.stdout)


def add_options(parser):
    parser.add_argument("--datasets", type=pathlib.Path,
                        default=pathlib.Path(os.environ.get("STEPCAST_DATASETS") or
                                             ROOT.parent / "shared" / "datasets"))
    parser.add_argument("--program", type=pathlib.Path,
                        default=ROOT / "build" / "release" / "bin" / "stepcast")
    parser.add_argument("--jobs", type=int, default=2, help="cases at a time (2)")


def program_of(parser, arguments):
    program = arguments.program.resolve()
    if not program.exists():
        parser.error(f"--program: there is no {program}; build it with ./run")
    return program
