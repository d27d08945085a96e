#!/bin/bash
# package.debian, with the environment that CMakeLists.txt gives: makes the Debian packages of the
# build tree, looks into them, unpacks them into an empty root, and uses what lies there.
set -euo pipefail

fail() { echo "FAILED: $*"; exit 1; }
# ctest takes this line for the reason why a test was skipped.
skip() { echo "skipped: $*"; exit 0; }
for tool in dpkg-deb dpkg-shlibdeps file pkg-config; do
  command -v $tool >/dev/null || skip "$tool is not installed"
done

rm -rf "$WORK"
mkdir -p "$WORK/root"
"$CPACK" -G DEB --config "$STEPCAST_BUILD/CPackConfig.cmake" -B "$WORK" >"$WORK/cpack.log" 2>&1 ||
  { cat "$WORK/cpack.log"; fail "cpack"; }
architecture=$(dpkg --print-architecture)

# has NAME FILE; depends NAME WHAT
has() { grep -qE " \./usr/$2( |$)" "$WORK/$1.contents" || fail "$1 has no $2"; }
depends() {
  local on
  on=$(dpkg-deb -f "$WORK/$1_${VERSION}_$architecture.deb" Depends)
  [[ ", $on," == *", $2"[\ ,]* ]] || fail "$1 depends on $on, not on $2"
}

packages=(stepcast-data_"$VERSION"_all libstepcast-dev_"$VERSION"_"$architecture")
[ "$WITH_CAPI" = 0 ] || packages+=(libstepcast0_"$VERSION"_"$architecture")
[ "$WITH_PROGRAM" = 0 ] || packages+=(stepcast_"$VERSION"_"$architecture")
[ "$WITH_PYTHON" = 0 ] || packages+=(python3-stepcast_"$VERSION"_"$architecture")
made=("$WORK"/*.deb)
[ ${#made[@]} = ${#packages[@]} ] || fail "cpack made ${made[*]##*/}"
for name in "${packages[@]}"; do
  file=$WORK/$name.deb
  [ -s "$file" ] || fail "$name.deb is missing"
  for key in Package Version Architecture Maintainer Section Description; do
    [ -n "$(dpkg-deb -f "$file" "$key")" ] || fail "$name has no $key"
  done
  contents=$WORK/${name%%_*}.contents
  dpkg-deb -c "$file" >"$contents"
  for document in copyright changelog.gz; do
    has "${name%%_*}" "share/doc/${name%%_*}/$document"
  done
  ! grep -vE '^(d|-rw-r--r-- |-rwxr-xr-x |l)[^ ]* *root/root ' "$contents" ||
    fail "$name: the files above have another owner or mode"
  dpkg-deb -x "$file" "$WORK/root"
done
usr=$WORK/root/usr
! grep -rlF "$STEPCAST_SOURCE" "$usr/include" "$usr/$LIBDIR/cmake" "$usr/share" ||
  fail "the files above name the source tree"

has stepcast-data share/stepcast/machines/gpus.yaml
has libstepcast-dev include/stepcast/predictor/predictor.h
has libstepcast-dev "$LIBDIR/libstepcast_predictor.a"
has libstepcast-dev "$LIBDIR/cmake/stepcast/stepcast-config.cmake"

if [ "$WITH_CAPI" = 1 ]; then
  has libstepcast0 "$LIBDIR/libstepcast.so.0"
  has libstepcast-dev "$LIBDIR/libstepcast.so"
  depends libstepcast-dev "libstepcast0 (= $VERSION)"
  depends libstepcast0 libc6  # which dpkg-shlibdeps has found
  export PKG_CONFIG_PATH=$usr/$LIBDIR/pkgconfig
  cat >"$WORK/use.c" <<'END'
#include <stdio.h>
#include <stepcast.h>
int main(void) {
  stepcast_workload* workload = NULL;
  stepcast_workload_info info = {.struct_size = sizeof info};
  if (stepcast_workload_find("resnet50", &workload, NULL) != STEPCAST_OK) return 1;
  stepcast_workload_get_info(workload, &info);
  printf("%s %s\n", stepcast_version(), info.name);
  stepcast_workload_free(workload);
  return 0;
}
END
  # shellcheck disable=SC2046  # words
  ${CC:-cc} "$WORK/use.c" -o "$WORK/use" $(pkg-config --cflags --libs stepcast) || fail "the C program"
  [ "$(LD_LIBRARY_PATH=$usr/$LIBDIR "$WORK/use")" = "$VERSION resnet50" ] || fail "what C prints"
fi
if [ "$WITH_PROGRAM" = 1 ]; then
  has stepcast bin/stepcast
  has stepcast share/man/man1/stepcast-predict.1.gz
  has stepcast share/bash-completion/completions/stepcast
  has stepcast share/zsh/vendor-completions/_stepcast
  has stepcast share/fish/vendor_completions.d/stepcast.fish
  depends stepcast "stepcast-data (= $VERSION)"
  depends stepcast libc6
  # By its own data: without them the source tree's would do.
  mv "$usr/share/stepcast/machines/gce-t4.yaml" "$usr/share/stepcast/machines/unpacked.yaml"
  "$usr/bin/stepcast" predict --cluster unpacked --workload resnet50 --local-batch 32 --workers 4 |
    grep -q samples/s || fail "the unpacked program"
  mv "$usr/share/stepcast/machines/unpacked.yaml" "$usr/share/stepcast/machines/gce-t4.yaml"
fi
if [ "$WITH_PYTHON" = 1 ]; then
  depends python3-stepcast "stepcast-data (= $VERSION)"
  depends python3-stepcast python3-numpy
  PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$usr/lib/python3/dist-packages "$PYTHON" -c '
import stepcast, sys
assert str(stepcast.data_folder()) == sys.argv[1], stepcast.data_folder()
predictor = stepcast.Predictor(stepcast.read_cluster("gce-t4"), stepcast.workload("resnet50"))
assert predictor.predict(stepcast.Plan(workers=4, devices_per_node=4, local_batch=32)).step_time_s > 0
' "$usr/share/stepcast" || fail "the unpacked package for Python"
fi
echo "made ${packages[*]}"
