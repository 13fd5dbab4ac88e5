#!/usr/bin/env bash
# One search over two real daemons: shared, one killed, one silent, resumed, drained; what the other commands show of both.
# Waits for processes and READY messages, never for time to pass.
set -eu
bin=${KCAST_BIN:-build/debug/bin} root=${KCAST_ROOT:-.}
hill=$root/tests/data/client/hill
dir=$(mktemp -d)
a= b=
cleanup() {
    for pid in $a $b ${client:-}; do kill -9 "$pid" 2>/dev/null || :; done
    rm -rf "$dir"
}
trap cleanup EXIT
die() { echo "FAILED: $*"; tail -n 5 "$dir"/*.log 2>/dev/null || :; exit 1; }
. "$(dirname "$0")/programs.sh"

field() { tail -n 1 | sed -n "s/.*\"$1\":\([^,}]*\).*/\1/p"; }
measured_at() { "$bin/kcast" export "$dir/$1.run" --events | grep '"measured"' | grep -c "\"pool\":\"$2\"" || :; }

try_sandbox
serve() { start kcastd "$1" --state="$dir/$1" --sandbox="$sandbox" --listen="$2"; } # NAME URL: a daemon
serve a tcp://127.0.0.1:0
a=$started_pid a_url=$started_url
serve b "tcp://$own_host:0" # it will come again, there
b=$started_pid b_url=$started_url
kcast() { "$bin/kcast" --no-worker --pool="$a_url,$b_url" "$@"; }
search() { # NAME OPTION… : 24 candidates
    local name=$1
    shift
    kcast --json search "$hill" --candidates 24 --batch 8 --seed 2 --run "$dir/$name.run" "$@" >"$dir/$name.json" 2>"$dir/err" ||
        die "search $name: $(cat "$dir/err")"
    [ "$(field considered <"$dir/$name.json")" -eq 24 ] || die "search $name considered: $(cat "$dir/$name.json")"
}

# ---- both measure ----
search both
for url in $a_url $b_url; do [ "$(measured_at both "$url")" -gt 0 ] || die "nothing was measured at $url"; done
grep -q "^.*\"pool\":\"$a_url,$b_url\"" <("$bin/kcast" export "$dir/both.run" --events) || die "the session does not name both daemons"
kcast -q measure "$hill" "$hill/baseline.c" "$hill/baseline.c" >"$dir/measured" || die "measure with two daemons"
[ "$(wc -l <"$dir/measured")" -eq 2 ] || die "measure printed $(cat "$dir/measured")"

# ---- a name that stands for daemons ----
"$bin/kcast" -q --pool="dns://localhost:${a_url##*:}" measure "$hill" "$hill/baseline.c" >/dev/null || die "measure by a name"

# ---- a file of addresses: a daemon that joins while the only one is drained does what waits ----
echo "$a_url" >"$dir/pool"
"$bin/kcast" --pool="$a_url" --json status | sed -n 's/.*"devices":\[{[^}]*"name":"\([^"]*\)".*/\1/p' >"$dir/device"
kcast drain "$a_url/$(cat "$dir/device")" --reason 'new fan' || die "drain of a"
"$bin/kcast" --no-worker --pool="file:$dir/pool" measure "$hill" "$hill/baseline.c" --fresh >"$dir/measured" 2>"$dir/file.err" &
client=$!
says() { grep -q -- "$1" "$dir/file.err"; }
within 60 says 'is draining (new fan)' || die "measure by a file does not wait: $(cat "$dir/file.err")"
mv "$dir/pool" "$dir/away"
within 60 says 'pool: cannot be opened.*; going on with the addresses that it had' || die "nobody said that the file is missing: $(cat "$dir/file.err")"
printf '%s\n%s\n' "$a_url" "$b_url" >"$dir/away"
mv "$dir/away" "$dir/pool"
wait $client || die "measure by a file ended with $?: $(cat "$dir/file.err")"
client=
says "the devices of $a_url rest; 1 of its jobs go to others" && [ "$(grep -c 'cannot be opened' "$dir/file.err")" -eq 1 ] || die "measure by a file says: $(cat "$dir/file.err")"
kcast undrain "$a_url/$(cat "$dir/device")" || die "undrain of a"
"$bin/kcast" --pool="file:$dir/pool" status >"$dir/status" || die "status by a file"
grep -q '^total 2 of 2 daemons answer, ' "$dir/status" || die "status by a file: $(cat "$dir/status")"

# ---- one status of both ----
kcast status >"$dir/status"
[ "$(grep -c '^daemon tcp' "$dir/status")" -eq 2 ] || die "status: $(cat "$dir/status")"
grep -q '^total 2 of 2 daemons answer, ' "$dir/status" || die "no totals: $(cat "$dir/status")"
[ "$(kcast --json status | grep -c '"devices":\[{')" -eq 2 ] || die "status --json of two daemons"
"$bin/kcast" --no-worker --pool="$a_url" status >"$dir/status"
! grep -q '^total' "$dir/status" || die "one daemon has totals: $(cat "$dir/status")"

# ---- devices and jobs of one of them ----
device=$("$bin/kcast" --no-worker --pool="$b_url" --json status | sed -n 's/.*"devices":\[{[^}]*"name":"\([^"]*\)".*/\1/p')
status=0
kcast drain "$device" 2>"$dir/err" || status=$?
[ $status -eq 2 ] && grep -q "HOST:PORT/$device" "$dir/err" || die "an ambiguous drain ended with $status: $(cat "$dir/err")"
kcast drain "${b_url#tcp://}/$device" || die "drain of ${b_url#tcp://}/$device"
"$bin/kcast" --no-worker --pool="$b_url" status | grep -q "$device *draining" || die "$device of b does not drain"
! "$bin/kcast" --no-worker --pool="$a_url" status | grep -q draining || die "a drains, too"
kcast undrain "$b_url/$device" || die "undrain of $b_url/$device"
status=0
kcast jobs 1 2>"$dir/err" || status=$?
[ $status -eq 2 ] || die "an ambiguous job ended with $status: $(cat "$dir/err")"
kcast --json cancel --search nobody >/dev/null || die "cancel --search at both"
status=0
kcast job 1 2>"$dir/err" || status=$?
[ $status -eq 2 ] || die "an ambiguous job in full ended with $status: $(cat "$dir/err")"
status=0
kcast job "$b_url/1000000" 2>"$dir/err" || status=$?
grep -q "no job 1000000 at $b_url" "$dir/err" || die "a job that is not there: $(cat "$dir/err")"
kcast quarantine "$b_url/$device" --reason 'wrong results' || die "quarantine of $b_url/$device"
"$bin/kcast" --no-worker --pool="$b_url" status | grep -q "$device *quarantined" || die "$device of b is not in quarantine"
! "$bin/kcast" --no-worker --pool="$a_url" status | grep -q quarantined || die "a is in quarantine, too"
kcast probe "$b_url/$device" >"$dir/probed" || die "probe of $b_url/$device: $(cat "$dir/probed")"
grep -q "^$device works" "$dir/probed" || die "the probe says: $(cat "$dir/probed")"
grep -qE '^  memory_bytes +[0-9]+$' "$dir/probed" || die "the probe does not say the memory in bytes: $(cat "$dir/probed")"
kcast top >"$dir/top"
for url in $a_url $b_url; do grep -q "^kcast top  $url" "$dir/top" || die "no page of $url: $(cat "$dir/top")"; done
[ "$(kcast --json top | grep -c '"devices":\[{')" -eq 2 ] || die "top --json of two daemons"
kcast budget set local --weight 2 >"$dir/budgets"
[ "$(grep -c '^local .*weight 2' "$dir/budgets")" -eq 2 ] || die "the weight is not at both daemons: $(cat "$dir/budgets")"
"$bin/kcast" --no-worker --pool="$b_url" budget | grep -q '^local .*weight 2' || die "b does not know the weight"

if [ "${KCAST_VARIANT:-debug}" != release ]; then
    # ---- killed when the first results are there: resume takes what the daemons have from where it is ----
    first=$("$bin/kcast" export "$dir/both.run" --events | grep -n '"measured"' | head -1 | cut -d: -f1)
    found=0
    for at in $first $((first + 2)); do
        rm -f "$dir/k.run"
        status=0
        KCAST_DIE_AT=event:$at "$bin/kcast" --no-worker --pool="$a_url,$b_url" -q search "$hill" --candidates 24 --batch 8 --seed 2 \
            --run "$dir/k.run" >/dev/null 2>&1 || status=$?
        [ $status -eq 137 ] || die "the search was to be killed at event $at and ended with $status"
        name=$("$bin/kcast" export "$dir/k.run" --events | sed -n '1s/.*"search":"\([^"]*\)".*/\1/p')
        kcast --json jobs --search "$name" | grep '"key":"m' >"$dir/known" || :
        kcast -q resume "$dir/k.run" >/dev/null || die "resume after a kill at event $at"
        "$bin/kcast" export "$dir/k.run" --events | grep '"measured"' >"$dir/measured"
        # What had compiled before an earlier one with the same object was measured in vain.
        "$bin/kcast" export "$dir/k.run" --events | grep '"decided"' | grep -E '"decision":4[,}]' >"$dir/reused"
        while read -r line; do
            job=$(field job <<<"$line") candidate=$(field key <<<"$line" | tr -d '"m') url=$(field pool <<<"$line" | tr -d '"')
            grep -qE "\"candidate\":$candidate[,}]" "$dir/reused" && continue
            grep -E "\"candidate\":$candidate[,}]" "$dir/measured" | grep -E "\"job\":$job[,}]" | grep -q "\"pool\":\"$url\"" ||
                die "m$candidate was job $job at $url, and is: $(grep -E "\"candidate\":$candidate[,}]" "$dir/measured")"
            found=$((found + 1))
        done <"$dir/known"
    done
    [ $found -gt 0 ] || die "no job was under way at any kill"

    # ---- one is killed, or falls silent, in the middle: the other one measures the rest ----
    for signal in KILL STOP; do
        KCAST_DIE_AT=pause:34 "$bin/kcast" --no-worker --pool="$a_url,$b_url" --json search "$hill" --candidates 24 --batch 8 --seed 2 \
            --run "$dir/$signal.run" >"$dir/$signal.json" 2>"$dir/err" &
        client=$!
        within 60 is_stopped $client || die "the client did not come as far as to stop itself"
        kill -"$signal" "$b"
        kill -CONT $client
        wait $client || die "the search did not survive SIG$signal of a daemon: $(cat "$dir/err")"
        [ "$(field considered <"$dir/$signal.json")" -eq 24 ] || die "SIG$signal, considered: $(cat "$dir/$signal.json")"
        "$bin/kcast" report "$dir/$signal.run" --json >/dev/null || die "SIG$signal: the run is not valid"
        [ "$("$bin/kcast" export "$dir/$signal.run" --events | grep -c '"proposed"')" -eq 24 ] || die "SIG$signal: not 24 candidates"
        if [ $signal = KILL ]; then
            grep -q "$b_url" "$dir/err" || die "nobody said that $b_url is gone: $(cat "$dir/err")"
            serve b "$b_url"
            b=$started_pid
        else
            kill -CONT "$b"
        fi
        rm -f "$dir/again.run"
        search again
        [ "$(measured_at again "$b_url")" -gt 0 ] || die "after SIG$signal nothing was measured at $b_url again"
    done
fi
echo passed
