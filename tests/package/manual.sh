#!/bin/bash
# package.man: manual.sh PROGRAM FOLDER, where FOLDER has the manual pages that the build wrote. Every
# command has a page, every option of --help is in it, and groff and man find no fault with it.
set -euo pipefail

program=$1 folder=$2
fail() { echo "FAILED: $*"; exit 1; }
# ctest takes this line for the reason why a test was skipped.
command -v groff >/dev/null || { echo "skipped: groff is not installed"; exit 0; }

commands=$("$program" --help | sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p')
[ "$(wc -w <<<"$commands")" -gt 10 ] || fail "--help lists hardly any commands"
options=0
for command in $commands man completion; do
  page=$folder/stepcast-$command.1
  [ -s "$page" ] || fail "$command has no page"
  grep -qF "stepcast\\-$command" "$folder/stepcast.1" || fail "stepcast.1 does not name $command"
  rendered=$(groff -man -Tascii -P-cbou "$page")
  for option in $("$program" "$command" --help | sed -n 's/^  --\([a-z-]*\).*/\1/p'); do
    grep -qE "^ +--$option( |\[|$)" <<<"$rendered" || fail "$page lacks --$option"
    options=$((options + 1))
  done
done
[ "$options" -gt 100 ] || fail "the pages have $options options"

for page in "$folder"/*.1; do
  faults=$(groff -man -ww -z "$page" 2>&1)
  [ -z "$faults" ] || fail "$page: $faults"
  if command -v man >/dev/null; then
    faults=$(LC_ALL=C.UTF-8 man --warnings -l "$page" 2>&1 >/dev/null)
    [ -z "$faults" ] || fail "$page: $faults"
  fi
done
