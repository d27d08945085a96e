#!/bin/bash
# package.find_package and package.add_subdirectory: run.sh WAY, with the environment that
# CMakeLists.txt gives. Builds the project in consumer/ against stepcast and runs it.
set -euo pipefail

way=$1
here=$(cd "$(dirname "$0")" && pwd)
fail() { echo "FAILED: $*"; exit 1; }

options=(-S "$here/consumer" -B "$WORK/build" -G Ninja -DCMAKE_BUILD_TYPE= "-DCONSUMER_WAY=$way")
case $way in
  find_package)
    # Into an empty prefix each time: a header that is no longer installed must be missed.
    prefix=$WORK/prefix
    rm -rf "$prefix"
    "$CMAKE" --install "$STEPCAST_BUILD" --prefix "$prefix" >"$WORK.install.log" ||
      { cat "$WORK.install.log"; fail "cmake --install"; }
    options+=("-DCMAKE_PREFIX_PATH=$prefix" "-DCONSUMER_HEADERS=$prefix/include"
      "-DCONSUMER_WITH_CALIBRATE=$STEPCAST_WITH_CALIBRATE")
    ;;
  add_subdirectory) options+=("-DCONSUMER_STEPCAST_SOURCE=$STEPCAST_SOURCE") ;;
  *) fail "unknown way $way" ;;
esac

"$CMAKE" "${options[@]}" || fail "configuring the consumer"
"$CMAKE" --build "$WORK/build" -j "${STEPCAST_JOBS:-2}" || fail "building the consumer"
"$WORK/build/consumer" || fail "running the consumer"
# Who only predicts links neither the solver nor CUDA.
if ldd "$WORK/build/consumer" | grep -iE 'ceres|cuda|cudart'; then
  fail "the consumer links libraries that prediction does not need"
fi
if [ "$way" = find_package ]; then
  [ -s "$prefix/share/stepcast/machines/gpus.yaml" ] || fail "the data files are not installed"
  if [ "$STEPCAST_WITH_CALIBRATE" = ON ]; then
    "$prefix/bin/stepcast" --help >/dev/null || fail "the installed program does not run"
  fi
  # No installed text points back into the source tree.
  if grep -rlF --include='*.cmake' --include='*.h' "$STEPCAST_SOURCE" "$prefix"; then
    fail "the files above name the source tree"
  fi
fi
