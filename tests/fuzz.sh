#!/usr/bin/env bash
# Runs every fuzz target for FUZZ_SECONDS (default 10) from its corpus. New inputs go to a scratch folder, not into the tree.
set -u
cd "$(dirname "$0")/.."
seconds=${FUZZ_SECONDS:-10} folder=${1:-build/fuzz/tests/fuzz} passed=0 failed=0
for fuzzer in "$folder"/fuzz_*; do
    case $fuzzer in *.o | *.d | *'*') continue ;; esac
    name=$(basename "$fuzzer") scratch=$(mktemp -d)
    corpus=tests/fuzz/corpus/$name
    [ -d "$corpus" ] || corpus=
    if "$fuzzer" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -artifact_prefix="$scratch/" \
        $([ -f "tests/fuzz/$name.dict" ] && echo "-dict=tests/fuzz/$name.dict") "$scratch" $corpus >"$scratch.log" 2>&1; then
        passed=$((passed + 1))
        printf 'ok   %-24s %s\n' "$name" "$(grep -o 'Done [0-9]* runs.*' "$scratch.log")"
        rm -rf "$scratch"
    else
        failed=$((failed + 1))
        printf 'FAIL %-24s inputs in %s\n' "$name" "$scratch"
        tail -40 "$scratch.log" | sed 's/^/     | /'
    fi
    rm -f "$scratch.log"
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
