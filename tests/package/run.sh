#!/bin/bash
# package.find_package, package.add_subdirectory and package.shared: run.sh WAY, with the environment
# that CMakeLists.txt gives. Builds the project in consumer/ against stepcast and runs it.
#
# As a folder of the consumer's build the libraries are shared ones, and package.shared goes on in
# that tree: it builds the rest of them, looks at what they show, and uses them installed.
set -euo pipefail

way=$1
here=$(cd "$(dirname "$0")" && pwd)
fail() { echo "FAILED: $*"; exit 1; }
jobs=${STEPCAST_JOBS:-2}

# consumer BUILD OPTION ...: builds and runs it.
consumer() {
  local build=$1
  "$CMAKE" -S "$here/consumer" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE= "${@:2}" ||
    fail "configuring the consumer"
  "$CMAKE" --build "$build" -j "$jobs" || fail "building the consumer"
  "$build/consumer" || fail "running the consumer"
  # Who only predicts links neither the solver nor CUDA nor a parser of files.
  if ldd "$build/consumer" | grep -iE 'ceres|cuda|cudart|yaml'; then
    fail "the consumer links libraries that prediction does not need"
  fi
}

case $way in
  find_package)
    # Into an empty prefix each time: a header that is no longer installed must be missed.
    prefix=$WORK/prefix
    rm -rf "$prefix"
    "$CMAKE" --install "$STEPCAST_BUILD" --prefix "$prefix" >"$WORK.install.log" ||
      { cat "$WORK.install.log"; fail "cmake --install"; }
    consumer "$WORK/build" -DCONSUMER_WAY=find_package "-DCMAKE_PREFIX_PATH=$prefix" \
      "-DCONSUMER_HEADERS=$prefix/include" "-DCONSUMER_DATA=$prefix/share/stepcast" -DCONSUMER_WITH_IO=ON \
      "-DCONSUMER_WITH_CALIBRATE=$STEPCAST_WITH_CALIBRATE" \
      "-DCONSUMER_WITH_CAPI=$WITH_CAPI"
    for program in "$WORK"/build/consumer_{online,io,calibrate,capi}; do
      [ ! -x "$program" ] || "$program" || fail "running $program"
    done
    [ -s "$prefix/share/stepcast/machines/gpus.yaml" ] || fail "the data files are not installed"
    if [ "$STEPCAST_WITH_CALIBRATE" = ON ]; then
      "$prefix/bin/stepcast" --help >/dev/null || fail "the installed program does not run"
    fi
    # No installed text points back into the source tree.
    if grep -rlF --include='*.cmake' --include='*.h' --include='*.pc' "$STEPCAST_SOURCE" "$prefix"; then
      fail "the files above name the source tree"
    fi
    ;;
  add_subdirectory | shared)
    tree=$(dirname "$WORK")/add_subdirectory/build
    consumer "$tree" "-DCONSUMER_WAY=$way" "-DCONSUMER_STEPCAST_SOURCE=$STEPCAST_SOURCE" \
      -DBUILD_SHARED_LIBS=ON -DCMAKE_UNITY_BUILD=ON "-DCONSUMER_WITH_CALIBRATE=$STEPCAST_WITH_CALIBRATE"
    [ "$way" = shared ] || exit 0
    rooms=(data model online predictor io)
    [ "$STEPCAST_WITH_CALIBRATE" != ON ] || rooms+=(calibrate)
    targets=("${rooms[@]/#/stepcast_}")
    [ "$WITH_CAPI" = 0 ] || targets+=(stepcast_capi)
    "$CMAKE" --build "$tree" -j "$jobs" -t "${targets[@]}" || fail "building the libraries"
    prefix=$WORK/prefix
    rm -rf "$prefix"
    for component in runtime development; do
      "$CMAKE" --install "$tree/stepcast" --prefix "$prefix" --component $component >"$WORK.log" ||
        { cat "$WORK.log"; fail "cmake --install"; }
    done
    for room in "${rooms[@]}"; do
      library=$(find "$prefix" -name "libstepcast_$room.so")
      readelf -d "$library" | grep -q "SONAME.*\[libstepcast_$room.so.${VERSION%.*}\]" ||
        fail "$library has another soname"
      nm -D --defined-only "$library" | awk '{print $NF}' >"$WORK.names"
      [ "$(wc -l <"$WORK.names")" -gt 20 ] || fail "$library shows too little"
      ! grep -vE '^_Z(T[VIS])?NK?8stepcast' "$WORK.names" ||
        fail "$library shows the names above, which are not of stepcast"
      ! grep -E '^_Z(T[VIS])?NK?8stepcast8internal|N4YAML' "$WORK.names" ||
        fail "$library shows the names above, which are for itself"
    done
    consumer "$WORK/build" -DCONSUMER_WAY=find_package "-DCMAKE_PREFIX_PATH=$prefix"
    readelf -d "$WORK/build/consumer" | grep -q "libstepcast_predictor.so.${VERSION%.*}" ||
      fail "the consumer does not use the shared library"
    ;;
  *) fail "unknown way $way" ;;
esac
