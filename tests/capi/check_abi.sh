#!/bin/bash
# capi.abi: check_abi.sh HEADER LIBRARY ABI_TXT WORK. Holds the binary interface of libstepcast.so
# against abi.txt: the soname, the prototypes of stepcast.h, the values of its enumerators, the place
# and size of each field of its structs, as a C99 program sees them, and the symbols that the library
# shows. STEPCAST_UPDATE_ABI=1 writes the file anew.
#
# A line that is new may be added. A line that changes or goes breaks programs that are in use: the
# library then needs another soname (STEPCAST_ABI, stepcast.map). A struct may grow behind its last
# field; kFirstSize (predictor/capi/struct_size.h) then has its size of before.
set -euo pipefail
header=$1 library=$2 known=$3 work=$4
mkdir -p "$work"

# A program that prints enumerators and structs, made of the header so that it forgets none.
{
  printf '#include <stddef.h>\n#include <stdio.h>\n#include "%s"\nint main(void) {\n' "$header"
  sed 's,//.*,,' "$header" | awk '
    /^typedef struct [a-z_]+ \{/ {
      s = $3
      printf "printf(\"struct %s size %%u\\n\", (unsigned)sizeof(%s));\n", s, s
      next
    }
    /^}/ { s = "" }
    s != "" && match($0, /[a-z_0-9]+;/) {
      f = substr($0, RSTART, RLENGTH - 1)
      type = substr($0, 3, RSTART - 3)
      printf "printf(\"  %s%s at %%u size %%u\\n\", (unsigned)offsetof(%s, %s), ", type, f, s, f
      printf "(unsigned)sizeof(((%s*)0)->%s));\n", s, f
    }
    match($0, /STEPCAST_[A-Z_]+ =/) {
      e = substr($0, RSTART, RLENGTH - 2)
      printf "printf(\"enumerator %s %%d\\n\", (int)%s);\n", e, e
    }'
  printf 'return 0;\n}\n'
} >"$work/abi.c"
"${CC:-cc}" -std=c99 -pedantic-errors -Wall -Wextra -Werror -o "$work/abi" "$work/abi.c"

{
  echo "# The binary interface of libstepcast.so where pointers have 64 bits: see check_abi.sh."
  echo "soname $(readelf -dW "$library" | sed -n 's/.*soname: \[\(.*\)\]/\1/p')"
  sed 's,//.*,,; /^#/d; /^extern/d' "$header" | tr '\n' ' ' | sed 's/;/;\n/g' |
    sed -n 's/  */ /g; s/^.*\(typedef int32_t\)/\1/; s/^[ }]*//; /^[^{]*(.*;$/p; /^typedef int32_t/p' |
    sort
  "$work/abi"
  nm -DW --defined-only "$library" | awk '$2 != "A" { print "symbol", $3 }' | LC_ALL=C sort
} >"$work/abi.txt"

if [ -n "${STEPCAST_UPDATE_ABI:-}" ]; then
  cp "$work/abi.txt" "$known"
fi
diff -u "$known" "$work/abi.txt" || {
  echo "FAILED: the binary interface is not the one of $known (read check_abi.sh)"
  exit 1
}
# Nothing of C++ shows, neither the library's own names nor what it instantiates.
if grep '^symbol' "$work/abi.txt" | grep -vE '^symbol stepcast_[a-z_]+@@STEPCAST_[0-9]+$'; then
  echo "FAILED: the symbols above are not for programs"
  exit 1
fi
# What is declared is there.
missing=$(comm -23 <(grep -oE '\bstepcast_[a-z_]+\(' "$work/abi.txt" | tr -d '(' | sort -u) \
  <(sed -n 's/^symbol \(.*\)@@.*/\1/p' "$work/abi.txt" | sort -u))
[ -z "$missing" ] || { echo "FAILED: declared, but not in the library: $missing"; exit 1; }
# Who predicts links neither the solver nor CUDA nor ONNX.
if readelf -dW "$library" | grep NEEDED | grep -iE 'ceres|cuda|cudnn|cublas|onnx|protobuf|boost'; then
  echo "FAILED: the library needs the libraries above"
  exit 1
fi
