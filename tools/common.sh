# shellcheck shell=bash
# What ./run, ./test and the programs in tools/ share: packages, configuring, building, a log.
# Sourced after `set -euo pipefail`.

build_packages=(g++ cmake ninja-build libceres-dev libeigen3-dev libboost-program-options-dev
  libyaml-cpp-dev nlohmann-json3-dev rapidjson-dev libfmt-dev libdnnl-dev libonnx-dev
  libprotobuf-dev libpcap-dev libre2-dev libgloo-dev libopenmpi-dev)
# shellcheck disable=SC2034  # for those who source this file
test_packages=("${build_packages[@]}" libgtest-dev librapidcheck-dev libbenchmark-dev
  python3-torch python3-dev python3-numpy pybind11-dev libgrpc++-dev protobuf-compiler
  protobuf-compiler-grpc dpkg-dev file pkg-config groff clang-format)
# The page for browsers and its tests, for ./test alone: they are large. Node of another source brings
# npm along, and cannot bear Debian's.
web_packages=(emscripten chromium)
command -v npm >/dev/null || web_packages+=(npm)
# shellcheck disable=SC2034
fuzz_packages=(clang libclang-rt-dev llvm)

root=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
log_name=build/$(basename "$0").log
log=$root/$log_name

say() { printf 'stepcast: %s\n' "$*" >&2; }
fail() { say "$*"; exit 2; }
fail_with_log() {
  tail -n 20 "$log" | cut -c -240 >&2
  fail "$1; the lines above end the full output in $log_name"
}

# One at a time in this checkout: call before anything is installed or built, and let_others after.
take_turn() {
  mkdir -p "$root/build" 2>/dev/null || true
  [ -w "$root/build" ] || fail "cannot write to $root/build"
  exec 9>>"$root/build/.lock"
  flock -n 9 || { say "waiting for another build in this checkout"; flock 9; }
  : >"$log"
}
let_others() { exec 9>&-; }

# Appends its input to the log. The first line of real work prints the title ($1), if there is one;
# on a terminal the newest line is shown and overwritten by the next.
follow() {
  local title=${1:-} line
  while IFS= read -r line; do
    printf '%s\n' "$line" >>"$log"
    case $line in "ninja: "* | *"Re-checking globbed directories"*) continue ;; esac
    [ -z "$title" ] || { say "$title"; title=; }
    [ ! -t 2 ] || printf '\r\033[K%.78s' "$line" >&2
  done
  [ ! -t 2 ] || printf '\r\033[K' >&2
}

# need_packages PACKAGE ... installs those that are missing.
need_packages() {
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    fail "this needs Debian 12 or a relative with apt; elsewhere see \"Other systems\" in CONTRIBUTING.md"
  fi
  local missing as_root=()
  mapfile -t missing < <(comm -23 <(printf '%s\n' "$@" | sort) \
    <(dpkg-query -W -f '${db:Status-Abbrev}${Package}\n' "$@" 2>/dev/null | sed -n 's/^.i *//p' | sort))
  [ ${#missing[@]} -gt 0 ] || return 0

  if [ "$(id -u)" -ne 0 ]; then
    as_root=(sudo)
    [ -t 0 ] || as_root=(sudo -n)
    if ! command -v sudo >/dev/null || ! "${as_root[@]}" true 2>/dev/null; then
      fail "neither root nor sudo; ask an administrator for: apt-get install ${missing[*]}"
    fi
  fi
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300)
  say "installing ${missing[*]}"
  # An update that fails in one source may still serve the rest: the install decides.
  "${apt[@]}" update </dev/null 2>&1 | follow || true
  "${apt[@]}" install -y --no-install-recommends "${missing[@]}" </dev/null 2>&1 | follow && return
  if grep -qE 'Could not (resolve|connect)|Failed to fetch|Temporary failure|Unable to locate' "$log"; then
    fail "cannot fetch ${missing[*]}: no network, or apt's sources lack them (see $log_name)"
  fi
  fail_with_log "apt-get could not install ${missing[*]}"
}

# How many compilers may run: one a core, and about 2 GB of memory each. STEPCAST_JOBS overrides.
job_count() {
  local cores memory limit
  cores=$(nproc)
  memory=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo)
  if read -r limit 2>/dev/null </sys/fs/cgroup/memory.max && [ "$limit" != max ]; then
    [ $((limit / 1024)) -ge "$memory" ] || memory=$((limit / 1024))
  fi
  local jobs=$((memory / 2000000))
  [ "$jobs" -le "$cores" ] || jobs=$cores
  [ "$jobs" -ge 1 ] || jobs=1
  echo "${STEPCAST_JOBS:-$jobs}"
}

# configure PRESET TESTS makes build/PRESET ready for ninja; nothing to do when it is. With TESTS=ON
# the tests are part of it; with OFF they are left as they are, and out of a new one.
configure() {
  local preset=$1 tests=$2 tree=$root/build/$1 fresh=() version
  local cache=$tree/CMakeCache.txt
  if [ -e "$cache" ] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$cache"; then
    fresh=(--fresh)  # the checkout was moved or copied
  elif [ -e "$tree/build.ninja" ] &&
    { [ "$tests" = OFF ] || grep -qx 'STEPCAST_BUILD_TESTS:BOOL=ON' "$cache"; }; then
    return
  fi
  version=$(cmake --version | sed -n '1s/[^0-9]*//p')
  printf '%s\n' 3.25 "$version" | sort -V -C ||
    fail "$(command -v cmake) is version $version, and 3.25 is needed (Debian 12 has it in /usr/bin)"
  say "configuring build/$preset"
  local nvcc
  if nvcc=$(command -v nvcc || command -v /usr/local/cuda/bin/nvcc); then
    say "CUDA found ($nvcc): the GPU programs are built too"
    export CUDACXX=${CUDACXX:-$nvcc}
  fi
  if ! (cd "$root" && cmake "${fresh[@]}" --preset "$preset" "-DSTEPCAST_BUILD_TESTS=$tests" 2>&1) |
    follow; then
    rm -f "$tree/build.ninja"
    fail_with_log "configuring failed"
  fi
}

# build PRESET [TARGET ...] with ninja; says nothing when all is up to date.
build() {
  local preset=$1 jobs title
  shift
  jobs=$(job_count)
  title="building build/$preset, $jobs at a time"
  [ -e "$root/build/$preset/.ninja_log" ] || title+=" (this first time takes minutes)"
  SECONDS=0
  ninja -C "$root/build/$preset" -j "$jobs" "$@" 2>&1 |
    follow "$title" || fail_with_log "building failed"
  [ "$SECONDS" -lt 5 ] || say "built in $SECONDS s"
}
