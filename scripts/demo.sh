#!/usr/bin/env bash
# make demo: a real search on the CPU sgemm problem with a private daemon and worker on loopback.
#   demo.sh BIN     results go to demo/
set -eu
bin=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
mkdir -p demo
run=demo/sgemm-$(date +%Y%m%d-%H%M%S).run
show() { printf '\n$ %s\n' "$*"; }

show "kcast --local search problems/cpu/sgemm --run $run --measurements 80 --seed 1"
"$bin/kcast" --local search problems/cpu/sgemm --run "$run" --measurements 80 --seed 1
show "kcast report $run -o ${run%.run}.html"
"$bin/kcast" report "$run" -o "${run%.run}.html"
printf '\nOpen the report in a browser: %s\n' "$PWD/${run%.run}.html"
