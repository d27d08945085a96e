#!/bin/bash
# package.without_files, with the environment that CMakeLists.txt gives: a build without readers of
# files (STEPCAST_BUILD_IO=OFF) asks for no parser of YAML or JSON, links none and includes none,
# and what it installs serves who predicts from records, in C++ and in C.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
fail() { echo "FAILED: $*"; exit 1; }
jobs=${STEPCAST_JOBS:-2}
build=$WORK/build prefix=$WORK/prefix

# Headers of parsers that nobody can include.
poison=$WORK/poison
mkdir -p "$poison/yaml-cpp" "$poison/nlohmann" "$poison/rapidjson"
for header in yaml-cpp/yaml.h nlohmann/json.hpp nlohmann/json_fwd.hpp rapidjson/reader.h; do
  echo '#error "a library that predicts includes a parser"' >"$poison/$header"
done
"$CMAKE" -S "$STEPCAST_SOURCE" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug \
  -DCMAKE_CXX_FLAGS_DEBUG= "-DCMAKE_CXX_FLAGS=-I$poison" -DCMAKE_UNITY_BUILD=ON \
  -DCMAKE_DISABLE_FIND_PACKAGE_yaml-cpp=ON -DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON \
  -DSTEPCAST_BUILD_IO=OFF -DSTEPCAST_BUILD_CALIBRATE=OFF -DSTEPCAST_BUILD_TESTS=OFF \
  >"$WORK/configure.log" || { cat "$WORK/configure.log"; fail "configuring without readers"; }
grep -q "readers of files" "$WORK/configure.log" || fail "nothing says what is left out"
if grep -nE 'yaml-cpp|libyaml|nlohmann_json' "$build/build.ninja"; then
  fail "the targets above link a parser"
fi
"$CMAKE" --build "$build" -j "$jobs" >"$WORK/build.log" || { tail -40 "$WORK/build.log"; fail "building"; }
for target in io json program serve python; do
  [ -z "$(find "$build" -name "libstepcast_$target.*")" ] || fail "stepcast_$target was built"
done
rm -rf "$prefix"
"$CMAKE" --install "$build" --prefix "$prefix" >"$WORK/install.log" || fail "cmake --install"

"$CMAKE" -S "$here/consumer" -B "$WORK/consumer" -G Ninja -DCMAKE_BUILD_TYPE= \
  "-DCMAKE_CXX_FLAGS=-I$poison" -DCONSUMER_WAY=find_package "-DCMAKE_PREFIX_PATH=$prefix" \
  "-DCONSUMER_HEADERS=$prefix/include" -DCONSUMER_WITH_IO=OFF -DCONSUMER_WITH_CALIBRATE=OFF \
  -DCONSUMER_WITH_CAPI=ON >"$WORK/consumer.log" || { cat "$WORK/consumer.log"; fail "the consumer"; }
"$CMAKE" --build "$WORK/consumer" -j "$jobs" || fail "building the consumer"
for program in consumer consumer_online consumer_capi; do
  "$WORK/consumer/$program" || fail "running $program"
  if ldd "$WORK/consumer/$program" | grep -iE 'ceres|yaml'; then
    fail "$program links the libraries above"
  fi
done
