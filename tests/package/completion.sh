#!/bin/bash
# package.completion_SHELL: completion.sh PROGRAM bash|zsh|fish. Completes command lines in that shell
# by the script that the program writes for it.
# shellcheck disable=SC2016  # what stands in quotes is for that shell
set -euo pipefail

program=$1 shell=$2
fail() { echo "FAILED: $*"; exit 1; }
# ctest takes this line for the reason why a test was skipped.
command -v "$shell" >/dev/null || { echo "skipped: $shell is not installed"; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
script=$work/_stepcast
"$program" completion "$shell" >"$script"
"$shell" -n "$script" || fail "$shell does not take its script"
cd "$work"
touch here.yaml

# complete WORD ...: what the last word may become, a line each.
case $shell in
  bash)
    complete_line() {
      bash --norc -c '
        source "$1"; shift
        [ "$(complete -p stepcast)" = "complete -F _stepcast stepcast" ] || exit 1
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _stepcast stepcast "${!#}"
        printf "%s\n" "${COMPREPLY[@]}"' bash "$script" "$@"
    }
    ;;
  fish)
    complete_line() {
      HOME=$work fish --no-config -c 'source $argv[1]; complete -C (string join -- " " $argv[2..-1])' \
        "$script" "$@" | cut -f 1
    }
    ;;
  zsh)
    # In a terminal of its own, where TAB lists what matches.
    complete_line() {
      zsh -f -c '
        zmodload zsh/zpty
        zpty terminal zsh -f -i
        zpty -w terminal "PS1=; stty -echo columns 200
          autoload -Uz compinit; compinit -D; source $1
          bindkey \"^I\" list-choices; LISTMAX=10000
          zle-line-init() { print re\"\"ady; }; zle -N zle-line-init"
        zpty -r terminal out "*ready*"
        shift
        zpty -n -w terminal "${(j: :)@}"$'"'\\t'"'
        zpty -w terminal $'"'\\x15echo do\"\"ne'"'
        zpty -r terminal out "*done*"
        print -rn -- "$out"' zsh "$script" "$@" |
        tr -d '\r' | sed 's/\x1b\[[0-9;?]*[a-zA-Z]/\n/g' | tr -s ' ' '\n'
    }
    ;;
esac
# expect "WORD ..." "MATCH ..." "OTHER ...": what is among the matches, and what is not.
expect() {
  local line matches word
  read -ra line <<<"$1"
  [ "${1% }" = "$1" ] || line+=("")
  matches=$(complete_line "${line[@]}") || true
  for word in $2; do
    grep -qxF -- "$word" <<<"$matches" || fail "'$1' does not offer $word but:"$'\n'"$matches"
  done
  for word in ${3-}; do
    ! grep -qxF -- "$word" <<<"$matches" || fail "'$1' offers $word"
  done
}

commands=$("$program" --help | sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p')
expect "stepcast " "$commands man completion" "ring"
expect "stepcast pre" "" "sweep"
expect "stepcast predict --strategy ri" "ring" "tree sweep"
expect "stepcast predict --workers 4 --sharding " "tensor even round-robin" "ring"
expect "stepcast evaluate --cluster ufrgs-" "ufrgs-tupi ufrgs-poti" "gce-t4"
expect "stepcast evaluate --cluster h" "here.yaml" "gce-t4"
expect "stepcast import " "steps adaptdl onnx kineto" "ring"
expect "stepcast import kineto he" "here.yaml"
expect "stepcast completion " "bash zsh fish"
if [ "$shell" = bash ]; then
  expect "stepcast predict --strategy = ri" "ring" "tree"
  expect "stepcast predict --multicast = " "yes no" "--rtt"
  expect "stepcast predict --multicast " "--rtt" "yes"
  expect "stepcast evaluate --runs here.yaml he" "here.yaml"
fi
for command in predict serve man; do
  options=$("$program" "$command" --help | sed -n 's/^  \(--[a-z-]*\).*/\1/p')
  expect "stepcast $command --" "$options"
done
