#!/usr/bin/env bash
# How many candidates a second one search gets through: a kcastd with DEVICES GPUs that are not there and 13 compile slots for each, an
# executor that waits for COMPILE milliseconds where it would compile and for MEASURE where it would measure, the real worker, and a default
# search of a copy of problems/cuda/topk, whose speedups are a hill over its parameters. Prints how many it measured a second and which part
# of the devices' time it used, second by second at first, then what its client and the worker used of a processor, per candidate. Client,
# worker and daemon share this machine's processors.
#
# usage: tests/bench/pace.sh [DEVICES [COMPILE [MEASURE [CANDIDATES [OPTION…]]]]]      default: 4 300 20 2000; options are kcast search's
set -eu
cd "$(dirname "$0")/../.."
bin=build/release/bin fake=build/release/tests/support/fake_exec devices=${1:-4} compile=${2:-300} ms=${3:-20} candidates=${4:-2000}
shift $(($# < 4 ? $# : 4))
. tests/bench/programs.sh

[ -x "$fake" ] || die "there is no $fake: make VARIANT=release $fake"
cp -r problems/cuda/topk "$dir/topk"
printf '//! hill\n//! takes %s\n//! compile-takes %s\n' "$ms" "$compile" >>"$dir/topk/template.cu"
KCAST_FAKE_GPUS=$devices start_services --devices=cuda --exec="$PWD/$fake" --compile-jobs $((13 * devices > 64 ? 64 : 13 * devices))
all_ready() { [ "$("$bin/kcast" --pool="$pool" --no-worker --json status | grep -o '"state":"ready"' | wc -l)" -eq "$devices" ]; }
within 60 all_ready || die "the devices do not become ready"
ticks() { awk '{ print $14 + $15 }' "/proc/$1/stat"; } # PID; processor time in hundredths of a second
before=$(ticks "${pids[1]}")
times >"$dir/before"
"$bin/kcast" --pool="$pool" --worker="$worker" -q search "$dir/topk" --run "$dir/topk.run" --candidates "$candidates" --play-off 0 --seed 1 "$@" \
    >"$dir/search.log" 2>&1 || die "the search fails"
times >"$dir/after"
used=$(($(ticks "${pids[1]}") - before))
"$bin/kcast" export "$dir/topk.run" --events | awk -v devices="$devices" '
    match($0, /"running":[0-9.]+/) { running = substr($0, RSTART + 10, RLENGTH - 10) + 0 }
    match($0, /"held":[0-9.e+-]+/) {
        length_of = substr($0, RSTART + 7, RLENGTH - 7)
        if (!first || running < first) first = running
        start[++n] = running; held[n] = length_of
        if (running + length_of > last) last = running + length_of
    }
    END {
        for (i = 1; i <= n; i++) {
            s = int(start[i] - first); s = s > 4 ? 4 : s
            count[s]++; sum[s] += held[i]
        }
        for (s = 0; s <= 4; s++) {
            wall = s < 4 ? 1 : last - first - 4
            if (wall > 0) printf "%s: %.1f measurements a second, devices held %.2f of the time\n", s < 4 ? "second " s + 1 : "later", count[s] / wall, sum[s] / wall / devices
        }
        for (i = 1; i <= n; i++) all += held[i]
        printf "in all: %d measurements in %.1f s, %.1f a second, devices held %.2f of the time\n", n, last - first, n / (last - first), all / (last - first) / devices
    }'
seconds() { sed -n 2p "$1" | tr ms ' ' | awk '{ print $1 * 60 + $2 + $3 * 60 + $4 }'; } # of the children that have ended
awk -v a="$(seconds "$dir/before")" -v b="$(seconds "$dir/after")" -v w="$used" -v n="$candidates" \
    'BEGIN { printf "processor time for a candidate: client %.2f ms, worker %.2f ms\n", (b - a) / n * 1e3, w / n * 10 }'
