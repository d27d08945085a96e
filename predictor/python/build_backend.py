"""Builds the wheel of stepcast with CMake: a PEP 517 back end of the standard library alone.

`pip install .` needs a C++20 compiler, CMake and the libraries of CONTRIBUTING.md; a missing CMake,
Ninja or pybind11 is asked of pip. Settings (pip install --config-settings NAME=VALUE .)

    build-dir=DIR           keeps the build tree there, so that the next build is short
    cmake.define.NAME=VALUE a cache variable, like cmake.define.STEPCAST_BUILD_CALIBRATE=ON, which
                            adds stepcast.calibrate and needs Ceres, Boost.Program_options and RE2
"""

import base64
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile
from pathlib import Path

try:
    import tomllib
except ImportError:  # before Python 3.11
    from pip._vendor import tomli as tomllib

_ROOT = Path(__file__).resolve().parents[2]


def get_requires_for_build_wheel(config_settings=None):
    missing = [name for name in ("cmake", "ninja") if shutil.which(name) is None]
    return missing + ([] if _pybind11_dir() or _has_pybind11_config() else ["pybind11>=2.10"])


def get_requires_for_build_sdist(config_settings=None):
    return []


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    info = Path(metadata_directory) / _info()
    info.mkdir()
    (info / "METADATA").write_text(_metadata(), "utf-8")
    return info.name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    settings = dict(config_settings or {})
    unknown = [name for name in settings
               if name != "build-dir" and not name.startswith("cmake.define.")]
    if unknown:
        raise ValueError(f"no such setting: {unknown[0]}; allowed: build-dir, cmake.define.NAME")
    with tempfile.TemporaryDirectory() as temporary:
        staging = Path(temporary) / "wheel"
        _run_cmake(Path(settings.pop("build-dir", Path(temporary) / "build")), staging, settings)
        machines = _ROOT / "data" / "machines"
        shutil.copytree(machines, staging / "stepcast" / "data" / "machines")
        python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
        platform = re.sub("[-.]", "_", sysconfig.get_platform())
        tag = f"{python}-{python}-{platform}"
        name = f"stepcast-{_version()}-{tag}.whl"
        _write_wheel(Path(wheel_directory) / name, staging, tag)
    return name


def build_sdist(sdist_directory, config_settings=None):
    base = f"stepcast-{_version()}"
    with tarfile.open(Path(sdist_directory) / f"{base}.tar.gz", "w:gz") as tar:
        for name in ("CMakeLists.txt", "LICENSE", "README.md", "pyproject.toml", "cmake", "data",
                     "model", "calibrate", "microbench", "predictor"):
            tar.add(_ROOT / name, f"{base}/{name}",
                    filter=lambda info: None if "__pycache__" in info.name else info)
        metadata = _metadata().encode()
        info = tarfile.TarInfo(f"{base}/PKG-INFO")
        info.size = len(metadata)
        tar.addfile(info, io.BytesIO(metadata))
    return f"{base}.tar.gz"


def _run_cmake(build, staging, settings):
    defines = {
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_UNITY_BUILD": "ON",
        "Python_EXECUTABLE": sys.executable,
        "STEPCAST_PYTHON": "ON",
        "STEPCAST_PYTHON_DIR": ".",
        "STEPCAST_BUILD_CALIBRATE": "OFF",
        "STEPCAST_BUILD_TESTS": "OFF",
        "STEPCAST_WERROR": "OFF",
        "STEPCAST_CUDA": "OFF",
        "STEPCAST_ONEDNN": "OFF",
        "STEPCAST_ONNX": "OFF",
        "STEPCAST_PCAP": "OFF",
    }
    if _pybind11_dir():
        defines["pybind11_DIR"] = _pybind11_dir()
    for name, value in settings.items():
        defines[name[len("cmake.define."):]] = value
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL") or str(os.cpu_count() or 1)
    for command in (
        ["cmake", "-S", _ROOT, "-B", build, *generator,
         *(f"-D{name}={value}" for name, value in defines.items())],
        ["cmake", "--build", build, "--parallel", jobs, "--target", "stepcast_python"],
        ["cmake", "--install", build, "--component", "python", "--prefix", staging, "--strip"],
    ):
        subprocess.run([str(part) for part in command], check=True)


def _pybind11_dir():
    """The CMake files of a pybind11 from PyPI; none where there is none."""
    try:
        import pybind11
    except ImportError:
        return None
    return pybind11.get_cmake_dir()


def _has_pybind11_config():
    """Whether a distribution's package has it, where CMake looks."""
    patterns = ("share/cmake/pybind11", "lib/cmake/pybind11", "lib/*/cmake/pybind11")
    return any(any(Path(prefix).glob(pattern)) for prefix in ("/usr", "/usr/local")
               for pattern in patterns)


def _project():
    return tomllib.loads((_ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def _version():
    text = (_ROOT / "CMakeLists.txt").read_text("utf-8")
    return re.search(r"project\(stepcast VERSION ([0-9.]+)", text).group(1)


def _info():
    return f"stepcast-{_version()}.dist-info"


def _metadata():
    project = _project()
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {_version()}",
             f"Summary: {project['description']}", f"License: {project['license']['text']}",
             f"Requires-Python: {project['requires-python']}"]
    lines += [f"Requires-Dist: {requirement}" for requirement in project["dependencies"]]
    lines += ["License-File: LICENSE", "Description-Content-Type: text/markdown", ""]
    return "\n".join(lines) + "\n" + (_ROOT / project["readme"]).read_text("utf-8")


def _write_wheel(path, staging, tag):
    info = _info()
    files = {str(file.relative_to(staging)): file.read_bytes()
             for file in sorted(staging.rglob("*")) if file.is_file()}
    files[f"{info}/METADATA"] = _metadata().encode()
    files[f"{info}/LICENSE"] = (_ROOT / "LICENSE").read_bytes()
    files[f"{info}/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: stepcast\n"
                              f"Root-Is-Purelib: false\nTag: {tag}\n").encode()
    record = "".join(f"{name},sha256={_digest(data)},{len(data)}\n"
                     for name, data in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in files.items():
            wheel.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)


def _digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
