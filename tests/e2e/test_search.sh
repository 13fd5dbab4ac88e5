#!/usr/bin/env bash
# Searches with the real programs: alone, killed and resumed, with a daemon that is killed and started again, with --local killed.
# Waits for processes and READY messages, never for time to pass.
set -eu
bin=${KCAST_BIN:-build/debug/bin} root=${KCAST_ROOT:-.}
hill=$root/tests/data/client/hill
dir=$(mktemp -d)
daemon= worker=
cleanup() {
    for pid in $daemon $worker ${client:-}; do kill -9 "$pid" 2>/dev/null || :; done
    rm -rf "$dir"
}
trap cleanup EXIT
die() { echo "FAILED: $*"; tail -n 5 "$dir"/*.log 2>/dev/null || :; exit 1; }
. "$(dirname "$0")/programs.sh"

gone() { timeout 30 tail --pid="$1" -f /dev/null || die "process $1 is still there"; }
count() { "$bin/kcast" export "$1" --events | grep -c "\"$2\"" || :; }
field() { tail -n 1 | sed -n "s/.*\"$1\":\([^,}]*\).*/\1/p"; }

# The wall time of a search, as the JSON in this file has it, is divided without a rest, and it did something in each of these parts.
divided() {
    local sum wall
    sum=$(sed -n 's/.*"wall":{"recorded":true,\([^}]*\)}.*/\1/p' "$1" | tr , '\n' | awk -F: '{sum += $2} END {print sum}')
    wall=$(field wall_seconds <"$1")
    awk "BEGIN {d = ${sum:-0} - $wall; exit !($wall > 0 && d < 1e-3 && d > -1e-3)}" || die "the parts of $wall s are ${sum:-not there}: $(cat "$1")"
    for part in start_up measuring compiling proposing; do
        awk "BEGIN {exit !($(field $part <"$1") > 0)}" || die "no time was spent on $part: $(cat "$1")"
    done
    grep -q '"not_recorded":0' "$1" || die "the times of a session are not recorded: $(cat "$1")"
}

try_sandbox

# ---- measure: one object per line, exit 1 when nothing is correct ----
cat >"$dir/wrong.c" <<'END'
void hill(const double *x, double *s, int64_t N) { s[0] = (double)N; }
END
"$bin/kcast" --local --sandbox="$sandbox" --json measure "$hill" "$hill/baseline.c" "$dir/wrong.c" >"$dir/lines.json"
[ "$(wc -l <"$dir/lines.json")" -eq 2 ] || die "measure --json printed $(cat "$dir/lines.json")"
for key in candidate digest problem device class verdict reason speedup ci95 log2_speedup baseline_ns candidate_ns cases \
    launches max_error error_bound seconds trust cached seed; do
    grep -q "\"$key\":" "$dir/lines.json" || die "measure --json has no $key"
done
grep -q '"verdict":"wrong"' "$dir/lines.json" || die "wrong.c is not wrong"
status=0
"$bin/kcast" --local --sandbox="$sandbox" measure "$hill" "$dir/wrong.c" >/dev/null || status=$?
[ $status -eq 1 ] || die "measuring a wrong candidate ended with $status"

# ---- a whole search with private programs, which are gone afterwards ----
"$bin/kcast" --local --sandbox="$sandbox" --json search "$hill" --run "$dir/local.run" --candidates 20 --batch 4 --seed 1 \
    >"$dir/local.json" 2>"$dir/err" || die "search --local: $(cat "$dir/err")"
[ "$(field considered <"$dir/local.json")" -eq 20 ] || die "considered: $(cat "$dir/local.json")"
[ "$(wc -l <"$dir/err")" -eq 1 ] || die "more than one line on stderr: $(cat "$dir/err")"

divided "$dir/local.json"
grep -q '"devices":\[{"pool":null,"device":"cpu0","runs":' "$dir/local.json" || die "no device was held: $(cat "$dir/local.json")"
grep -qE '"width":\{"batch":4,"wide":4,"widest":[0-9]+,"lag":[0-9]+,"devices":[1-9]' "$dir/local.json" || die "width: $(cat "$dir/local.json")"
grep -q '"guarantee":null' "$dir/local.json" || die "the default policy guarantees: $(cat "$dir/local.json")"

# ---- policy risk: nothing is trusted before a certificate, and everything says so ----
"$bin/kcast" --local --sandbox="$sandbox" search "$hill" --run "$dir/risk.run" --candidates 20 --batch 4 --seed 1 --policy risk \
    >"$dir/risk.txt" 2>"$dir/err" || die "search --policy risk: $(cat "$dir/err")"
grep -q '^guarantee   nothing is discarded: ' "$dir/risk.txt" || die "risk: $(cat "$dir/risk.txt")"
grep -qE '^time        start-up [0-9.]+ %, measuring [0-9.]+ %' "$dir/risk.txt" || die "no time: $(cat "$dir/risk.txt")"
grep -qE '^devices     cpu[0-9]+ held [0-9.]+ %.* of that time$' "$dir/risk.txt" || die "no devices: $(cat "$dir/risk.txt")"
grep -q '^trusted     0 ' "$dir/risk.txt" || die "risk trusted: $(cat "$dir/risk.txt")"
grep -q '^under way   batches of 4, later 8, decided from outcomes at most [0-9]* batches behind; there w' "$dir/risk.txt" ||
    die "how much was under way: $(cat "$dir/risk.txt")"
"$bin/kcast" report "$dir/risk.run" --json >"$dir/risk.json" 2>/dev/null || die "no report of risk.run"
grep -qE '"guarantee":\{"kind":"online","alpha":0\.1[0-9]*,"delta":0\.1[0-9]*,"threshold":null,"alarms":0,' "$dir/risk.json" ||
    die "report of risk.run: $(cat "$dir/risk.json")"
"$bin/kcast" report "$dir/risk.run" -o "$dir/risk.html" 2>/dev/null && grep -q 'Guaranteed: nothing is discarded' "$dir/risk.html" ||
    die "the report of risk.run does not say what is guaranteed"
status=0
"$bin/kcast" --local --sandbox="$sandbox" search "$hill" --policy risk --audit 0 >/dev/null 2>"$dir/err" || status=$?
[ $status -eq 2 ] && grep -q 'give --audit above 0' "$dir/err" || die "risk without audits ended with $status: $(cat "$dir/err")"

# ---- the same with a daemon and a worker of our own ----
start kcast-worker worker --listen=tcp://127.0.0.1:0 --state="$dir/worker"
worker=$started_pid worker_url=$started_url
start kcastd daemon --listen="tcp://$own_host:0" --state="$dir/daemon" --sandbox="$sandbox"
daemon=$started_pid daemon_url=$started_url
kcast() { "$bin/kcast" --pool="$daemon_url" --worker="$worker_url" "$@"; }
search() { kcast -q search "$hill" --candidates 20 --batch 4 --seed 2 "$@"; }

# two clients at once
search --run "$dir/a.run" >/dev/null &
other=$!
search --run "$dir/b.run" >/dev/null || die "the second of two clients"
wait $other || die "the first of two clients"
kcast status >"$dir/status.txt" 2>"$dir/err"
grep -qE '^  cpu0 .* held [0-9]+ % of the last minute and [0-9]+ % since the start, class ' "$dir/status.txt" ||
    die "kcast status does not say how much a device is held: $(cat "$dir/status.txt")"
kcast --json status 2>"$dir/err" | grep -qE '"utilisation":[0-9.e-]+,"utilisation_minute":[0-9.e-]+' || die "nor does its JSON: $(cat "$dir/err")"
kcast --json top >"$dir/top.json" 2>"$dir/err"
grep -qE '"utilisation_minute":[0-9.e-]+' "$dir/top.json" && awk "BEGIN {exit !($(field measuring_seconds <"$dir/top.json") > 0)}" ||
    die "kcast top does not say where time went: $(cat "$dir/top.json" "$dir/err")"

if [ "${KCAST_VARIANT:-debug}" != release ]; then
    # killed at some events: goes on, and no job has been submitted twice
    for at in 5 20 40 60; do
        rm -f "$dir/k.run"
        status=0
        KCAST_DIE_AT=event:$at search --run "$dir/k.run" >/dev/null 2>&1 || status=$?
        [ $status -eq 137 ] || die "the search was to be killed at event $at and ended with $status"
        kcast -q --json resume "$dir/k.run" >"$dir/k.json" || die "resume after a kill at event $at"
        divided "$dir/k.json"
        name=$("$bin/kcast" export "$dir/k.run" --events | sed -n '1s/.*"search":"\([^"]*\)".*/\1/p')
        twice=$(kcast --json jobs --search "$name" | sed -n 's/.*"key":"\([^"]*\)".*/\1/p' | sort | uniq -d)
        [ -z "$twice" ] || die "submitted twice: $twice"
    done

    # the daemon is killed in the middle and comes back on the same port with the same state
    KCAST_DIE_AT=pause:30 "$bin/kcast" --pool="$daemon_url" --worker="$worker_url" -q search "$hill" --candidates 20 --batch 4 \
        --seed 3 --run "$dir/d.run" >/dev/null &
    client=$!
    within 60 is_stopped $client || die "the client did not come as far as to stop itself"
    kill -9 "$daemon"
    gone "$daemon"
    start kcastd daemon --listen="$daemon_url" --state="$dir/daemon" --sandbox="$sandbox"
    daemon=$started_pid
    kill -CONT $client
    wait $client || die "the search did not survive the daemon's restart"

    # kcast --local is killed: its programs end, too
    KCAST_DIE_AT=pause:20 "$bin/kcast" --local --sandbox="$sandbox" -q search "$hill" --candidates 20 --run "$dir/l.run" \
        >/dev/null 2>&1 &
    client=$!
    within 60 is_stopped $client || die "the client did not come as far as to stop itself"
    children=$(pgrep -P $client)
    [ "$(wc -w <<<"$children")" -eq 2 ] || die "--local has these children: $children"
    kill -9 $client
    for pid in $children; do gone "$pid"; done
fi

# SIGINT: everything is kept, 130, and the way on is named
"$bin/kcast" --pool="$daemon_url" --worker="$worker_url" search "$hill" --candidates 60 --seed 5 --run "$dir/i.run" \
    >/dev/null 2>"$dir/err" &
client=$!
is_under_way() { [ -s "$dir/i.run" ] && [ "$("$bin/kcast" export "$dir/i.run" --events 2>/dev/null | wc -l)" -gt 10 ]; }
within 60 is_under_way || die "the search does not get on: $(cat "$dir/err")"
kill -INT $client
status=0
wait $client || status=$?
if [ $status -ne 0 ]; then # it may have been at its end already
    [ $status -eq 130 ] || die "SIGINT gave $status"
    grep -q "kcast resume $dir/i.run" "$dir/err" || die "no hint: $(cat "$dir/err")"
fi
kcast -q resume "$dir/i.run" >/dev/null || die "resume after SIGINT"
echo passed
