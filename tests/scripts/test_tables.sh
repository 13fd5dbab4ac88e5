#!/usr/bin/env bash
# The tables of docs/evaluation.md: their statistics on numbers whose results are known, what scripts/held-out.py makes of a clone,
# what scripts/replay-tables.py makes of its searches, and scripts/compare-table.py of searches on GPUs.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=${KCAST_ROOT:?}
export KCAST_BIN=${KCAST_BIN:?} PYTHONDONTWRITEBYTECODE=1
command -v python3 >/dev/null || { echo 'python3 is not there'; exit 77; }
bad=0
complain() { echo "$1"; bad=1; }

python3 "$root/tests/scripts/tables.py" "$root/scripts" "$work" || complain 'the statistics or the import are wrong'

tables() { python3 "$root/scripts/replay-tables.py" "$@"; }
# Searches of two families, one of which has two spaces; ours is twice as fast on the first and as fast on the second.
python3 - >"$work/searches" <<'EOF_PYTHON'
import json
speeds = {"all/greedy": {"gemm-a": 1, "gemm-b": 1, "pnpoly-a": 1}, "all/best-of-n": {"gemm-a": 0, "gemm-b": 0, "pnpoly-a": 0.5},
          "rank/greedy": {"gemm-a": 3, "gemm-b": 1, "pnpoly-a": 1}, "other": {"gemm-a": 1, "gemm-b": 1, "pnpoly-a": 2}}
for arm, spaces in speeds.items():
    policy, _, strategy = arm.partition("/")
    for space, log2 in spaces.items():
        for seed in (1, 2):
            print(json.dumps(dict(
                space=space, policy=policy, strategy=strategy, forecaster="none", seed=seed, best_log2=log2, fraction_of_best=2.0 ** (log2 - 3),
                considered=20, measured=10, compile_seconds=4, simulated_seconds=8, device_seconds=1.5, given_seconds=2, left=5,
                incumbents=[[0.5, log2 / 2], [1.0, log2]], improvers_looked_at=8, passed_over=4, passed_over_better=2, passed_over_better_share=0.25,
                **(dict(audit_population=50, audit_among=100, audit_measured=4, audit_found=0, audit_share=0, audit_improvers=20 * seed, audit_upper=0.3)
                   if policy == "rank" else {}))))
EOF_PYTHON
tables "$work/searches" >"$work/tables" || complain "replay-tables.py ended with $?"
has() { grep -qF -- "$1" "$work/tables" || { complain "there is no: $1"; cat "$work/tables"; }; }
has '3 spaces of 2 families, 2 seeds'
has '| `rank/greedy` | 1.414 [0.017, 115.608] | 1.587 [1.000, 4.000] |' # of the log2 ratios 1 and 0; 2, 0 and 0
has '| `rank/greedy` | 20 | 10 | × 1.00 | × 1.00 | 0.50 | 100 % | 25.0 %, 25 % |'
has '| `other` | 20 | 10 | – | – | 0.50 | 100 % | – |'
has '| `rank/greedy` | 48 | 24 | 12 | 25.0 % | 25.0 % | 25 % |'
has '| `rank/greedy` | 6 of 6 | 4.0 | 30.00 % | 0.00 % | -36.67 to -23.33 | 30 % | 3 (50.0 %) |' # 20 of 100 with one seed, 40 with the other; all draws 40 has 1 in 64
has '| `rank/greedy` | 2.000 | 1.000 |' # by family
has 'on 0 of 3 spaces'
cat "$work/searches" "$work/searches" >"$work/twice"
tables "$work/twice" >"$work/said" 2>&1 && complain 'searches that are there twice are taken'
grep -q 'is there twice' "$work/said" || cat "$work/said"
tables --ours hope "$work/searches" >"$work/said" 2>&1 && complain 'an arm that is not there is taken'
grep -q 'there are no searches of hope, only of all/best-of-n' "$work/said" || { complain 'it is not said which arms there are'; cat "$work/said"; }

# The searches of an H200: what the file has, and what it does not say.
compare() { python3 "$root/scripts/compare-table.py" "$@" >"$work/tables" 2>&1; }
compare "$root/docs/h200/compare.jsonl.gz" all/best-of-n threshold/greedy || complain "compare-table.py ended with $?"
has '| attention | `all/best-of-n` | 3.340× (2.574, 4.324), 5 searches | 72 | 64 | 10.0 s | 29 s | 1 of 5 | never | never |'
has '| conv3x3 | `budget/greedy` | 1.507× (1.294, 1.516), 5 searches | 192 | 60 | 10.1 s | 21 s | 3 of 5 | 10.1 s | not recorded |'
compare "$root/docs/h200/compare.jsonl.gz" && complain 'an arm that is not there is taken'
has 'has no searches of rank/greedy, only of all/best-of-n, all/greedy, budget/greedy, threshold/greedy'
python3 - >"$work/live" <<'EOF_PYTHON'
import json
for arm, ends in (("all/best-of-n", (0.9, 0.5, 0.5)), ("rank/greedy", (1.0, 0.98, 0.5))): # only 0.98 and 1 are within 2 % of 2^1
    for seed, end in enumerate(ends, 1):
        steps = [dict(device_seconds=0, wall_seconds=0, log2_speedup=0), dict(device_seconds=seed, wall_seconds=3 * seed, log2_speedup=end)]
        print(json.dumps(dict(arm=arm, problem="p", seed=seed, report=dict(
            best=dict(log2_speedup=end), steps=steps, considered=1, measured=1, device_seconds=4, compile_seconds=1, wall_seconds=5))))
EOF_PYTHON
compare "$work/live" || complain "compare-table.py ended with $?"
has '| 4.0 s | 5 s | 2 of 3 | 2.0 s | 6.0 s |'
has '| 4.0 s | 5 s | 0 of 3 | never | never |'
has 'device time until within 2 %, over `all/best-of-n` |'
has '| `rank/greedy` | 0.500 [' # the third root of 1/4 · 2/4 · 4/4
has '| `rank/greedy` | 0.896 [' # and of 3/5 · 6/5 · 5/5
exit $bad
