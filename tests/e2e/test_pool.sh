#!/usr/bin/env bash
# The benchmarks of a shared pool run from beginning to end and print every figure, with GPUs that are not there and an executor that
# measures nothing (tests/support/fake_exec.c): GPUs are to be had for minutes only.
set -u
bin=${KCAST_BIN:?} build=${KCAST_BUILD:?} root=${KCAST_ROOT:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
say() { echo "$*"; bad=1; }
figure() { grep -qE "$1" "$work/out" || say "no line like: $1"; } # PATTERN

# ---- tests/gpu/pool.sh: kcastd takes the kcast-exec that lies beside it ----
mkdir "$work/bin"
cp "$bin"/{kcastd,kcast,kcast-worker,bench_verdicts} "$work/bin/"
cp "$build/tests/support/fake_exec" "$work/bin/kcast-exec"
KCAST_FAKE_GPUS=2 KCAST_PROBLEMS=$root/tests/data/cuda KCAST_POOL_PARTS='verdicts searches together' KCAST_POOL_PROBLEMS=rowsum \
    KCAST_POOL_POINTS=3 KCAST_POOL_FIRSTS=2 KCAST_POOL_SEARCHES=rowsum KCAST_POOL_TOGETHER='rowsum rowsum' \
    "$root/tests/gpu/pool.sh" "$work/bin" "$work" >"$work/out" 2>&1 || say "tests/gpu/pool.sh ends with $?"
for scope in '2 devices' '1 device'; do
    figure "^$scope +verdicts a second, compiled before +[0-9.]+$"
    figure "^$scope +verdicts a second, source to verdict +[0-9.]+$"
    figure "^$scope +device held per verdict, ms +[0-9.]+$"
    figure "^$scope +first verdict of a new search, compiled before, s +[0-9.]+$"
    figure "^$scope +first verdict of a new search, not compiled, s +[0-9.]+$"
    figure "^$scope +device utilisation of one default search, rowsum +[0-9.]+$"
done
figure '^never seen before, source to verdict: 6 verdicts in [0-9.]+ s by 2 devices'
figure '^compiled before: 6 verdicts in [0-9.]+ s by 1 devices'
figure '^2 devices +measurements of 2 searches at once over those alone, least (0\.9[0-9]|1\.[01][0-9])$' # all candidates and some again
figure '^2 over 1 +verdicts a second, compiled before +[0-9.]+$'
[ $bad -eq 0 ] || cat "$work/out"

# ---- tests/bench/shares.sh: four problems, each of whose measurements takes a tenth of a second ----
for name in pa pb pc pd; do
    mkdir -p "$work/four"
    cp -R "$root/tests/data/cuda/rowsum" "$work/four/$name"
    sed -i "s/\"name\": \"rowsum\"/\"name\": \"$name\"/" "$work/four/$name/problem.json"
    sed -i '1i //@ tune MORE in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)' "$work/four/$name/template.cu" # than can be measured meanwhile
    echo '//! takes 100' >>"$work/four/$name/template.cu"
done
(cd "$root" && KCAST_BIN=$work/bin KCAST_FAKE_GPUS=2 KCAST_SHARES_DEVICES=cuda KCAST_SHARES_FOLDER=$work/four KCAST_SHARES_PROBLEMS='pa pb pc pd' \
    tests/bench/shares.sh 3 101 >"$work/out" 2>&1) || say "tests/bench/shares.sh ends with $?"
for row in 'pa +weight 1' 'pb +weight 1' 'pc +weight 2' 'pd +weight 4'; do figure "^$row: +[0-9.]+ %, [+-][0-9.]+ points of at most"; done
[ $bad -eq 0 ] || cat "$work/out"

# ---- tests/bench/bench_pool.c ----
for candidates in seen unseen; do
    "$bin/bench_pool" 1 4 8 2 $candidates >"$work/out" 2>&1 || say "bench_pool ends with $?"
    figure "^4 devices, 8 searches, candidates $candidates: [0-9]+ verdicts a second"
    figure '^loop and scheduler: [0-9.]+ % of a core'
    figure '^all threads: [0-9.]+ % of a core'
    figure '^device-seconds of a search are off its share by at most [0-9.]+ points'
    [ $bad -eq 0 ] || cat "$work/out"
done
"$bin/bench_pool" 1 4 8 2 known >"$work/out" 2>&1 && say "bench_pool takes candidates that it does not know"
figure 'CANDIDATES is known; it has to be seen or unseen'
exit $bad
