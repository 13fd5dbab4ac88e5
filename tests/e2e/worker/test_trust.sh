#!/usr/bin/env bash
# tests/bench/bench_trust.c runs from beginning to end with every engine, on a recorded space: a constant and a model that is exchanged for
# an adversary between two searches cost nothing but their answers, and a static model is trusted.
set -u
bin=${KCAST_BIN:?} root=${KCAST_ROOT:?}
out=$(mktemp)
trap 'rm -f "$out"' EXIT
bad=0
BENCH_TRUST_ONLY=' 6 19 24 29 ' BENCH_TRUST_RULE=skill "$bin/bench_trust" 1 100 threshold "$root/docs/h200/spaces/rope.space" >"$out" 2>&1 || bad=1
figure() { grep -qE "$1" "$out" || { echo "no line like: $1"; bad=1; }; } # PATTERN
figure '^llm +constant +skill lost +0 of +[1-9][0-9]* .* measured 100\.0 %, device 1\.000$'
figure '^llm +good \| adversary +skill lost +0 of +[1-9][0-9]* .* measured 100\.0 %, device 1\.000$'
figure '^static +skill .* 0 empty, measured +[1-9][0-9]\.[0-9] %'
figure '^both +good \| adversary +skill .* 0 empty, '
[ $bad -eq 0 ] || cat "$out"
exit $bad
