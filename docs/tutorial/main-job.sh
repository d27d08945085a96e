#!/usr/bin/env bash
# The main job, as ./run shows it: from measured runs of a slow cluster to a calibrated model, a
# forecast of a run that it has not seen, what-if answers and a recommendation. Each step prints the
# command that it runs, so that it can be repeated by hand.
#
# STEPCAST is the program; results go to the folder stepcast-tour in the current one.
set -euo pipefail

stepcast=${STEPCAST:?set STEPCAST to the stepcast program}
data=$(cd "$(dirname "$0")/../.." && pwd)/data
out=stepcast-tour
mkdir -p "$out"

step() { printf '\n\033[1m%s\033[0m\n' "$1" | if [ -t 1 ]; then cat; else sed 's/\x1b\[[0-9;]*m//g'; fi; }
run() {
  printf '$ stepcast'
  for word in "$@"; do
    case ${word/#"$data"/data} in
      *[!A-Za-z0-9_./+=,:-]*) printf " '%s'" "${word/#"$data"/data}" ;;
      *) printf ' %s' "${word/#"$data"/data}" ;;
    esac
  done
  printf '\n'
  "$stepcast" "$@"
}

step "1. Learn the cluster from runs on one and two nodes (ResNet-50, RTX 4090, UFRGS)"
run calibrate --cluster ufrgs-tupi --runs "$data/measurements/ufrgs-tupi-fit.csv" \
  --output "$out/ufrgs-tupi.yaml"

step "2. Forecast the three-node run that it was not fitted to"
run evaluate --cluster "$out/ufrgs-tupi.yaml" --runs "$data/measurements/ufrgs-tupi-holdout.csv"

step "3. What would a better network give?"
run sweep --cluster "$out/ufrgs-tupi.yaml" --workload resnet50 --local-batch 128 \
  --over workers=2,3 --over 'bandwidth=100 Mbit/s,1 Gbit/s,10 Gbit/s'

step "4. Where does scaling end, on the links as they are and on 10 Gbit/s?"
run limits --cluster "$out/ufrgs-tupi.yaml" --workload resnet50 --local-batch 128 \
  --hosts tupi1+tupi2 --most-workers 64
run limits --cluster "$out/ufrgs-tupi.yaml" --workload resnet50 --local-batch 128 \
  --bandwidth '10 Gbit/s' --most-workers 64
run sweep --cluster "$out/ufrgs-tupi.yaml" --workload resnet50 --local-batch 128 \
  --over workers=1..16 --over 'bandwidth=100 Mbit/s,1 Gbit/s,10 Gbit/s' \
  --plot "$out/scaling.svg" >/dev/null
printf 'The plot is in %s.\n' "$out/scaling.svg"

step "5. Which batch and accumulation interval, on two and on three nodes?"
run recommend --cluster "$out/ufrgs-tupi.yaml" --workload resnet50 --local-batch 128 \
  --hosts tupi1+tupi2
run recommend --cluster "$out/ufrgs-tupi.yaml" --workload resnet50 --local-batch 128 \
  --hosts tupi2+tupi5+tupi6

step "Try next"
cat <<NEXT
  ./run predict --cluster $out/ufrgs-tupi.yaml --workload resnet50 --local-batch 128 --hosts tupi1+tupi5
  ./run predict --device t4 --workload bert_base --local-batch 8 --workers 4 --bandwidth '10 Gbit/s'
  ./run sweep --cluster gce-t4 --workload vgg19 --local-batch 32 --over workers=1..16 --over strategy=ring,hierarchical,tree
  ./run workloads
  ./run machines
  ./run --help
NEXT
