#!/bin/bash
# capi.consumer_LANGUAGE: run.sh c|cmake|go|rust, with STEPCAST_PREFIX (where stepcast is installed),
# WORK (a folder of its own) and PAGE (docs/howto/link-from-c-go-rust.md). Builds fleet in that
# language as the page says, in a folder that knows nothing of the source tree, and runs it: all
# languages print the same.
set -euo pipefail

language=$1
here=$(cd "$(dirname "$0")" && pwd)
fail() { echo "FAILED: $*"; exit 1; }

# ctest takes this line for the reason why a test was skipped.
need() { command -v "$1" >/dev/null || { echo "skipped: $1 is not installed"; exit 0; }; }

# The command of the page for a language: the lines of the sh block behind <!-- build: LANGUAGE -->.
command_of() {
  awk -v mark="<!-- build: $1 -->" '
    $0 == mark { found = 1; next }
    found && /^```/ { if (inside) exit; inside = 1; next }
    inside' "$PAGE"
}

# build LANGUAGE FILE ...: in a folder of its own.
build() {
  local folder=$WORK/$1 commands
  commands=$(command_of "$1")
  [ -n "$commands" ] || fail "$PAGE has no command for $1"
  rm -rf "$folder"
  mkdir -p "$folder"
  (cd "$here" && cp "${@:2}" "$folder")
  (cd "$folder" && bash -euo pipefail -c "$commands") || fail "building: $commands"
}

need pkg-config
pc=$(find "$STEPCAST_PREFIX"/lib* -name stepcast.pc -print -quit)
[ -n "$pc" ] || fail "no stepcast.pc in $STEPCAST_PREFIX"
export PKG_CONFIG_PATH=${pc%/*}
libdir=$(pkg-config --variable=libdir stepcast)
datadir=$(pkg-config --variable=datadir stepcast)
export LD_LIBRARY_PATH=$libdir LIBRARY_PATH=$libdir CMAKE_PREFIX_PATH=$STEPCAST_PREFIX
export CC=${CC:-cc}
# Go looks for nothing outside, and leaves nothing behind in a home.
export GOFLAGS=-mod=mod GOPROXY=off GOCACHE=$WORK/go-cache GOPATH=$WORK/go-path CGO_ENABLED=1
machines=("$datadir/machines/ufrgs-tupi.yaml" "$datadir/machines/gpus.yaml")

case $language in
  c)
    read -ra cflags <<<"$(pkg-config --cflags stepcast)"
    "$CC" -std=c99 -pedantic -Wall -Wextra -Werror -fsyntax-only "${cflags[@]}" "$here/fleet.c" ||
      fail "fleet.c is not plain C99"
    ;;
  cmake)
    need cmake
    need ninja
    export CMAKE_GENERATOR=Ninja
    build cmake fleet.c CMakeLists.txt
    ln -s build/fleet "$WORK/cmake/fleet"
    ;;
  go)
    need go
    build go fleet.go
    # Go's own look at what crosses: pointers to memory of Go that hold others.
    GODEBUG=cgocheck=2 "$WORK/go/fleet" "${machines[@]}" >/dev/null || fail "cgocheck"
    ;;
  rust)
    need rustc
    build rust fleet.rs
    ;;
  *) fail "unknown language $language" ;;
esac

build c fleet.c
for one in c "$language"; do
  "$WORK/$one/fleet" "${machines[@]}" >"$WORK/$one.txt" || fail "running fleet in $one"
  ! "$WORK/$one/fleet" nothing.yaml "${machines[1]}" 2>"$WORK/$one.error" ||
    fail "$one: a file that is not there is no error"
  grep -qx "fleet: nothing.yaml: cannot be read: No such file or directory" "$WORK/$one.error" ||
    fail "$one says: $(cat "$WORK/$one.error")"
done
[ "$(wc -l <"$WORK/c.txt")" -eq 11 ] || fail "fleet in C prints: $(cat "$WORK/c.txt")"
diff -u "$WORK/c.txt" "$WORK/$language.txt" || fail "$language says something else than C"
ldd "$WORK/$language/fleet" | grep -F "$libdir/libstepcast.so.$(sed -n 's/.*STEPCAST_ABI = \([0-9]*\).*/\1/p' \
  "$(pkg-config --variable=includedir stepcast)/stepcast.h")" || fail "another library was used"
# Who predicts links neither the solver nor CUDA nor ONNX.
if ldd "$WORK/$language/fleet" | grep -iE 'ceres|cuda|cublas|cudnn|onnx|protobuf|boost'; then
  fail "fleet links libraries that prediction does not need"
fi
