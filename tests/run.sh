#!/usr/bin/env bash
# Runs the tests of one variant and prints "N passed, N failed" last. With arguments only those: daemon/state/test_job, e2e/test_demo.sh.
# A cmocka program counts as many tests as it reports (newer versions put the group's name before the number); a shell test and a check
# script count as one. A shell test that cannot test (all of) what it is for ends with exit code 77 and "skipped because …" as its last line: it counts as skipped, neither passed nor failed.
# Programs of another architecture run under $KCAST_TEST_UNDER, an emulator with its options.
# One more at once than there are processors, because many wait most of the time; or $KCAST_TEST_JOBS.
set -u
cd "$(dirname "$0")/.."
variant=${VARIANT:-debug}
bin=build/$variant
export KCAST_BIN="$PWD/$bin/bin" KCAST_BUILD="$PWD/$bin" KCAST_ROOT="$PWD" KCAST_VARIANT=$variant
export ASAN_OPTIONS=detect_leaks=${KCAST_LEAKS:-1}:abort_on_error=1 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export LSAN_OPTIONS=suppressions=$PWD/tests/lsan.supp:print_suppressions=0 TSAN_OPTIONS=suppressions=$PWD/tests/tsan.supp:halt_on_error=1
at_once=${KCAST_TEST_JOBS:-$(($(nproc) + 1))} # before the next line: nproc goes by OMP_NUM_THREADS
export OMP_NUM_THREADS=1
# One compilation of the executor's device code for all tests.
export KCAST_KERNELS=$PWD/$bin/kernels
mkdir -p "$KCAST_KERNELS"
# The compiler that scripts/install-toolkit.sh fetched, where the machine has none of its own.
if [ -z "${KCAST_CUDA_HOME:-}" ] && [ ! -e /usr/local/cuda ] && [ -d build/toolkit ]; then export KCAST_CUDA_HOME=$PWD/build/toolkit; fi
limit=${KCAST_TEST_LIMIT:-900}
logs=$(mktemp -d); trap 'rm -rf "$logs"' EXIT
: >"$logs/results"

# NAME COMMAND…: runs it, adds "passed failed skipped name" to the results, and prints its line in one piece.
one() {
    local name=$1 log=$logs/${1//\//-} status=0 start=$SECONDS
    shift
    timeout -k 10 "$limit" "$@" >"$log" 2>&1 </dev/null || status=$?
    local p f s
    p=$(sed -n 's/^\[  PASSED  \] \(tests: \)\{0,1\}\([0-9]*\) test.*/\2/p' "$log" | awk '{n += $1} END {print n + 0}')
    f=$(sed -n 's/^\[  FAILED  \] \(tests: \)\{0,1\}\([0-9]*\) test.*/\2/p' "$log" | awk '{n += $1} END {print n + 0}')
    s=$(sed -n 's/^\[  SKIPPED \] \(tests: \)\{0,1\}\([0-9]*\) test.*/\2/p' "$log" | awk '{n += $1} END {print n + 0}')
    if [ $((p + f)) -eq 0 ]; then
        case $status in
        0) [ "$s" -gt 0 ] || p=1 ;;
        77) if tail -1 "$log" | grep -q '^skipped because .'; then s=1; else f=1; fi ;; # a skip without a reason is a failure
        *) f=1 ;;
        esac
    elif [ $status -ne 0 ] && [ "$f" -eq 0 ]; then
        f=1 # ended badly after its tests
    fi
    echo "$p $f $s $name" >>"$logs/results"
    {
        if [ "$f" -gt 0 ]; then
            printf 'FAIL %-34s %d passed, %d failed (exit %d, %d s)\n' "$name" "$p" "$f" "$status" $((SECONDS - start))
            # Which assertions failed comes first: a sanitizer's report may be longer than what is shown.
            { grep -a -F -e '[  ERROR   ] ---' -e '[   LINE   ] ---' "$log"; tail -n "${KCAST_TEST_TAIL:-60}" "$log"; } | sed 's/^/     | /'
        else
            printf 'ok   %-34s %d passed%s (%d s)\n' "$name" "$p" "$([ "$s" -gt 0 ] && echo ", $s skipped: $(grep -o 'skipped because.*' "$log" | head -1)")" $((SECONDS - start))
        fi
    } >"$log.line"
    flock "$logs/results" cat "$log.line"
}

if [ $# -gt 0 ]; then
    list=("$@")
else
    list=($(cd tests && ls */test_*.c */*/test_*.c */*/*/test_*.c check-*.sh */test_*.sh */*/test_*.sh 2>/dev/null | sed 's/\.c$//' | sort))
fi
run() {
    case $1 in
    *.sh) one "$1" bash "tests/$1" ;;
    *) one "$1" ${KCAST_TEST_UNDER:-} "$bin/tests/$1" ;;
    esac
}
for t in "${list[@]}"; do
    case $variant:$t in # what knows no sanitizers is tested without them
    asan:e2e/* | tsan:e2e/*) echo "$t" ;;
    asan:*.sh | tsan:*.sh) [ $# -eq 0 ] || echo "$t" ;;
    *) echo "$t" ;;
    esac
done >"$logs/list"
export -f one run
export logs limit bin
xargs -P "$at_once" -I{} bash -c 'run "$1"' run {} <"$logs/list"
read -r passed failed skipped < <(awk '{p += $1; f += $2; s += $3} END {print p + 0, f + 0, s + 0}' "$logs/results")
bad=$(awk '$2 > 0 {print $4}' "$logs/results" | tr '\n' ' ')
[ -z "$bad" ] || echo "failed: ${bad% }"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ $((passed + skipped)) -gt 0 ]
