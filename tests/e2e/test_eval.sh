#!/usr/bin/env bash
# kcast eval on files good and bad, and its measures against SciPy and scikit-learn where there is a Python that has them
# (KCAST_PYTHON, or python3).
set -u
bin=${KCAST_BIN:?} root=${KCAST_ROOT:?}
work=$(mktemp -d)
bad=0
trap 'rm -rf "$work"' EXIT
cd "$work"

complain() {
    echo "$*"
    bad=1
}
run() { # CODE command… : exit code as expected; stdout in out, stderr in err
    local code=$1 status=0
    shift
    "$@" >out 2>err </dev/null || status=$?
    [ $status -eq "$code" ] || { complain "$*: exit code $status where $code was expected"; tail -n 20 out err; }
}
says() { # FILE 'text'
    grep -qF -- "$2" "$1" || { complain "$1 does not say \"$2\""; tail -n 20 "$1"; }
}

# ---- good and bad files ----
cat >good.jsonl <<'J'
{"engine": "a<b>", "cluster": 1, "p_correct": 0.9, "mean_log2": 1.0, "p_improves": 0.8, "verdict": "faster", "log2": 1.5}

{"engine": "a<b>", "cluster": "x", "p_correct": 0.4, "mean_log2": -1.0, "p_improves": 0.1, "verdict": "wrong"}
{"engine": "c", "p_correct": 0.5}
J
run 0 "$bin/kcast" eval good.jsonl
says out 'engine a<b>: 2 forecasts with an outcome'
says out 'coverage_at_risk'
run 0 "$bin/kcast" eval --json good.jsonl -o page.html
[ "$(wc -l <out)" -eq 2 ] || complain 'not one line of JSON per engine'
says err 'page.html'
says page.html 'Engine a&lt;b&gt;'
says page.html 'Risk over coverage'
cp out first
run 0 "$bin/kcast" eval --json good.jsonl
cmp -s out first || complain 'the same file and seed give other numbers'
run 0 "$bin/kcast" eval good.jsonl -o -
[ "$(head -c 15 out)" = '<!doctype html>' ] || complain '-o - prints more than a page'
: >empty.jsonl
run 3 "$bin/kcast" eval empty.jsonl
says err 'empty.jsonl holds no forecasts'
echo '{"verdict": "faster"}' >bad.jsonl
run 3 "$bin/kcast" eval bad.jsonl
says err 'bad.jsonl:1: "log2" is missing'
run 3 "$bin/kcast" eval missing.jsonl
says err 'missing.jsonl'
run 2 "$bin/kcast" eval
run 2 "$bin/kcast" eval good.jsonl --risk 2
[ $bad -eq 0 ] || exit 1

# ---- the measures, computed by others ----
python=${KCAST_PYTHON:-python3}
if ! why=$("$python" -c 'import numpy, scipy, sklearn' 2>&1); then
    echo "skipped because $python cannot compare the measures: ${why##*$'\n'}"
    exit 77
fi
for seed in 1 2 3 4 5 6; do
    "$python" "$root/tests/e2e/eval_reference.py" make $seed $seed.jsonl || complain 'no forecasts were made'
    run 0 "$bin/kcast" eval --json $seed.jsonl
    "$python" "$root/tests/e2e/eval_reference.py" check $seed.jsonl <out || bad=1
done
exit $bad
