#!/usr/bin/env bash
# Runs the benchmarks of a release build: tests/bench.sh build/release [NAME…]
set -eu
cd "$(dirname "$0")/.."
build=$1
shift
[ $# -gt 0 ] || set -- requests frames pool flood measure renew endpoint static recalibration pipeline
echo "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) cores, $(uname -sr), $(gcc -dumpfullversion), $(date -u +%F)"
for name in "$@"; do
    echo "-- $name"
    "$build/bin/bench_$name"
done
