#!/usr/bin/env bash
# Tunes with the real programs: each case, all cases, killed and begun again, two at once; and looks configurations up.
# Waits for processes and READY messages, never for time to pass.
set -eu
bin=${KCAST_BIN:-build/debug/bin} root=${KCAST_ROOT:-.}
dir=$(mktemp -d)
daemon= worker=
cleanup() {
    for pid in $daemon $worker; do kill -9 "$pid" 2>/dev/null || :; done
    rm -rf "$dir"
}
trap cleanup EXIT
die() { echo "FAILED: $*"; tail -n 5 "$dir"/*.log "$dir/err" 2>/dev/null || :; exit 1; }
. "$(dirname "$0")/programs.sh"

# The hill with a second benchmark case, a baseline that every configuration beats by far, so that noise decides nothing, and its template
# as somebody's own kernel.
cp -R "$root/tests/data/client/hill" "$dir/hill"
hill=$dir/hill
sed -i 's/"bench": \[\(.*\)\],/"bench": [\1, {"params": {"N": 1024}, "weight": 1}],/' "$hill/problem.json"
grep -q 1024 "$hill/problem.json" || die "the second case is not in problem.json"
cat >"$hill/baseline.c" <<'END'
void hill(const double *x, double *s, int64_t N)
{
    for (int pass = 0; pass < 8; pass++) {
        volatile double sum = 0;
        for (int64_t i = 0; i < N; i++) {
            sum += x[i];
        }
        s[0] = sum;
    }
}
END
mv "$hill/template.c" "$dir/mine.c"

try_sandbox
start kcast-worker worker --listen=tcp://127.0.0.1:0 --state="$dir/worker"
worker=$started_pid worker_url=$started_url
start kcastd daemon --listen=tcp://127.0.0.1:0 --state="$dir/daemon" --sandbox="$sandbox"
daemon=$started_pid
kcast() { "$bin/kcast" --pool="$started_url" --worker="$worker_url" "$@"; }
tune() { kcast --json tune "$hill" "$dir/mine.c" --wisdom "$dir/w.json" --candidates 16 --batch 4 --policy all --seed 1 "$@"; }
runs() { find "$dir/w.runs" -name '*.run' | wc -l; }
results() { sed -n 's/.*"result":"\([a-z]*\)".*/\1/p' "$dir/out" | paste -sd ' '; }
resumed() { grep -c '"resumed":true' "$dir/out" || :; }

# ---- killed, when the build can be, and begun again ----
want_resumed=0
if [ "${KCAST_VARIANT:-debug}" != release ]; then
    status=0
    KCAST_DIE_AT=event:20 tune >"$dir/out" 2>/dev/null || status=$?
    [ $status -eq 137 ] || die "the tune was to be killed and ended with $status"
    [ ! -e "$dir/w.json" ] || die "a killed first search left a wisdom file"
    [ "$(runs)" -eq 1 ] || die "run files after the kill: $(runs)"
    want_resumed=1
fi
tune >"$dir/out" 2>"$dir/err" || die "tune: $?"
[ "$(results)" = "tuned tuned" ] || die "results: $(cat "$dir/out")"
[ "$(resumed)" -eq $want_resumed ] || die "resumed: $(cat "$dir/out")"
[ "$(runs)" -eq 2 ] || die "$(runs) run files of two cases"
for run in "$dir"/w.runs/*.run; do
    "$bin/kcast" report "$run" --json | grep -q '"considered": *16' || die "$run did not consider 16"
done
[ "$(grep -c '"define"' "$dir/w.json")" -eq 2 ] || die "entries: $(cat "$dir/w.json")"
for key in format version entries problem cases device_class params log2_speedup speedup ci95 blocks kernel kernel_digest problem_digest \
    reference_digest baseline_digest dtypes toolchain tuned_at device device_facts host sandbox release search run seed measured \
    seconds baseline_seconds; do
    grep -q "\"$key\":" "$dir/w.json" || die "the wisdom file has no $key"
    grep -q "\`$key\`" "$root/docs/tune.md" || die "docs/tune.md does not explain $key"
done

# ---- known: nothing is searched; --again searches; a lost wisdom file is made of the runs ----
cp "$dir/w.json" "$dir/first.json"
tune >"$dir/out" 2>"$dir/err" || die "tune again: $?"
[ "$(results)" = "known known" ] || die "what is known was searched: $(cat "$dir/out")"
cmp -s "$dir/w.json" "$dir/first.json" || die "the file changed without a search"
tune --again --case N=1024 >"$dir/out" 2>"$dir/err" || die "--again: $?"
[ "$(runs)" -eq 3 ] || die "--again made no run file"
case $(results) in tuned | worse) ;; *) die "--again: $(cat "$dir/out")" ;; esac
rm "$dir/w.json"
tune >"$dir/out" 2>"$dir/err" || die "tune from finished runs: $?"
[ "$(results)/$(resumed)/$(runs)" = "tuned tuned/2/3" ] || die "finished runs were not used: $(cat "$dir/out")"

# ---- all shapes, and two tunes at once in one file ----
tune --all-shapes >"$dir/out" 2>"$dir/err" || die "--all-shapes: $?"
[ "$(results)" = tuned ] || die "--all-shapes: $(cat "$dir/out")"
sed 's/^\/\/ A partial/\/\/ a/' "$dir/mine.c" >"$dir/other.c"
for n in 1024 4096; do
    kcast -q tune "$hill" "$dir/other.c" --wisdom "$dir/w.json" --case N=$n --candidates 4 --batch 4 >"$dir/out.$n" 2>"$dir/err.$n" &
    pids="${pids:-} $!"
done
for pid in $pids; do
    wait "$pid" || die "two at once: $? $(cat "$dir"/out.* "$dir"/err.*)"
done
entries=$("$bin/kcast" wisdom "$dir/w.json" | wc -l)
[ "$entries" -eq 5 ] || die "$entries entries where 2 cases, all, and 2 of another kernel were tuned: $("$bin/kcast" wisdom "$dir/w.json")"

# ---- looking up ----
wisdom() { "$bin/kcast" wisdom "$dir/w.json" --problem hill --kernel "$dir/mine.c" "$@"; }
line=$(wisdom --case N=1024 2>"$dir/err") || die "wisdom: $?"
grep -q 'exactly N=1024 ' "$dir/err" || die "not exact: $(cat "$dir/err")"
[[ $line =~ ^-DA=[0-9]+\ -DB=[0-9]+\ -DC=[0-9]+$ ]] || die "the line is \"$line\""
# shellcheck disable=SC2086
gcc -O2 -include stdint.h $line -c "$dir/mine.c" -o "$dir/mine.o" || die "the line does not compile the kernel"
wisdom --case N=1500 >"$dir/out" 2>"$dir/err" || die "nearest: $?"
grep -q 'nearest is N=1024 ' "$dir/err" && [ "$(cat "$dir/out")" = "$line" ] || die "nearest: $(cat "$dir/err")"
status=0
wisdom --exact --case N=1500 >"$dir/out" 2>/dev/null || status=$?
[ $status -eq 1 ] && [ ! -s "$dir/out" ] || die "--exact gave $status, $(cat "$dir/out")"
"$bin/kcast" -q --json wisdom "$dir/w.json" --problem hill --kernel "$dir/mine.c" --case N=4096 |
    grep -q '^{"schema":1,"match":"exact","distance":0.0,"case":0,"entry":{' || die "--json"

# ---- nothing correct: 1, no entry, said again without a search ----
printf '//@ tune A in (1, 2)\nvoid hill(const double *x, double *s, int64_t N) { s[0] = A; }\n' >"$dir/wrong.c"
for _ in 1 2; do
    status=0
    kcast -q tune "$hill" "$dir/wrong.c" --wisdom "$dir/x.json" --case N=1024 >"$dir/out" 2>"$dir/err" || status=$?
    [ $status -eq 1 ] && grep -q 'no candidate was correct' "$dir/out" && [ ! -e "$dir/x.json" ] || die "wrong kernel: $status $(cat "$dir/out")"
done
[ "$(find "$dir/x.runs" -name '*.run' | wc -l)" -eq 1 ] || die "a finished run was searched again"
echo passed
