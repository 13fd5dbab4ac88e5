#!/usr/bin/env bash
# A search over a network that fails, over TLS: packets get lost, cables are cut for a while or for good, replies do not arrive,
# callers and workers vanish. What is to happen is waited for, a minute at most; where the documents promise a time, twice that. The cases run at the same time, each in a network of its own (network.sh).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/programs.sh"
. "$here/network.sh"
unset KCAST_TLS_CA KCAST_TLS_CERT KCAST_TLS_KEY KCAST_TOKEN_FILE XDG_CONFIG_HOME
one=tls://10.9.1.2:$port two=tls://10.9.2.2:$port

# ---- the cases ----

# A fifth of all packets is lost, both ways, from the first to the last; and a thousand strangers connect and say nothing, or half
# of something. The same results, and nothing was measured twice.
case_loss() {
    host host1 1
    host stranger 3
    at stranger ip link add host1 type veth peer name visitors netns "$host1"
    at host1 ip addr add 10.9.9.2/24 dev visitors
    at host1 ip link set visitors up
    at stranger ip addr add 10.9.9.1/24 dev host1
    at stranger ip link set host1 up
    at stranger ip route add 10.9.1.0/24 via 10.9.9.2
    at host1 ip route add 10.9.3.0/24 via 10.9.9.1
    candidates "$(nth 9)" middle
    serve host1 1
    cable host1 lossy
    begin loss "$one"
    gate_wait middle
    nsenter -t "$stranger" -n bash -c 'ulimit -n 4096; n=0; while [ $n -lt 1000 ]; do
        exec {fd}<>/dev/tcp/10.9.1.2/'$port' || exit 1
        [ $((n % 2)) = 0 ] || printf "\x16\x03\x01\x02\x00\x01" >&$fd
        n=$((n + 1)); done; echo there; exec tail -f /dev/null' >"$dir/strangers.out" 2>"$dir/strangers.err" &
    pids+=($!)
    await 60 grep -q there "$dir/strangers.out"
    gate_open middle
    finish loss
    nothing_twice loss host1
    await 60 grep -q 'connection-refused peer=10.9.[39].* reason="no greeting and no valid token within' "$dir/host1.log"
    await 60 refused 1000
}
# Connections are made, and for longer than a greeting is waited for nothing else arrives: so many packets get lost while a search
# begins. The host is there, so the search begins all the same. The daemon gives up the second of these connections after 13 s.
case_mute() {
    host host1 1
    candidates
    serve host1 1
    cable host1 mute
    begin mute "$one"
    await 60 refused 2
    cable host1 good
    finish mute
    nothing_twice mute host1
}
refused() { # COUNT : by the daemon's metrics
    at host1 bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$1" && printf "GET /metrics HTTP/1.0\r\n\r\n" >&3 && cat <&3' - "$http_port" >"$dir/metrics" || return
    [ "$(sed -n 's/^kcastd_refusals_total \([0-9]*\).*/\1/p' "$dir/metrics")" -ge "$1" ]
}

# The cable is cut for thirty seconds in the middle of a search: the client says so, the daemon frees the connection and measures
# what it has; then the search goes on where it was.
case_cut() {
    local began silent
    host host1 1
    candidates "$(nth 13)" middle
    serve host1 1
    begin cut "$one"
    gate_wait middle
    [ "$(connections host1)" -gt 0 ] || die "there is no connection to lose"
    before=$(runs host1.runs)
    cable host1 cut
    began=$SECONDS
    gate_open middle
    await 20 says cut 'waiting for it to come back'
    silent=$((SECONDS - began))
    await 20 no_connections host1
    await 60 more_runs "$before"
    await 60 has_been 30 "$began"
    [ "$(grep -c 'waiting for it' "$dir/cut.err")" -eq 1 ] || die "it was said more than once"
    cable host1 good
    await 60 says cut 'the daemon answers again'
    finish cut
    nothing_twice cut host1
    echo "cut: said after $silent s"
}
has_been() { [ $((SECONDS - $2)) -ge "$1" ]; } # SECONDS SINCE
more_runs() { [ "$(runs host1.runs)" -gt "$1" ]; }

# The cable is cut for good. Who begins is told within seconds; a search under way waits, can be ended, and goes on with another daemon,
# which measures what is left and nothing else.
case_gone() {
    local began status=0 done
    host host1 1
    host host2 2
    candidates "$(nth 13)" middle
    serve host1 1
    serve host2 2
    begin gone "$one"
    gate_wait middle
    cable host1 cut
    gate_open middle
    began=$SECONDS
    (alice --pool "$one" --no-worker status >"$dir/status.out" 2>"$dir/status.err") || status=$?
    [ $status -eq 6 ] && says status "no kcastd answers on $one; " || die "status ended with $status"
    [ $((SECONDS - began)) -le 20 ] || die "status took $((SECONDS - began)) s"
    await 60 says gone 'waiting for it to come back'
    kill -TERM "$client"
    status=0
    wait "$client" || status=$?
    [ $status -eq 130 ] || die "the search ended with $status"
    done=$(measured gone)
    (gate_wait middle && gate_open middle) & # it was under way when the cable was cut
    HOME=$all/home "$bin/kcast" --pool "$two" --no-worker -q resume "$dir/gone.run" >"$dir/gone.out" 2>>"$dir/gone.err" || die "resume ended with $?"
    results gone | cmp -s - "$all/expected" || die "other results than without trouble"
    [ "$(runs host2.runs)" -eq $(($(measured gone) - done)) ] || die "$(runs host2.runs) measurements for $(measured gone) - $done results"
}

# Two daemons, one of which is cut off and comes back: the other one does its jobs, and what comes twice counts once.
case_two() {
    local name=host1 other=host2 url=$one began
    host host1 1
    host host2 2
    candidates "$(nth 9)" middle "$(nth $CANDIDATES)" last
    serve host1 1
    serve host2 2
    begin two "$one,$two"
    gate_wait middle
    [ "$(runs host1.runs)" -gt "$(grep -c '^measure-end ' "$dir/host1.runs" || :)" ] || name=host2 other=host1 url=$two
    began=$SECONDS
    cable $name cut
    gate_open middle
    gate_wait middle # it has moved
    echo "two: moved after $((SECONDS - began)) s"
    [ $((SECONDS - began)) -le 30 ] || die "the jobs moved after $((SECONDS - began)) s"
    gate_open middle
    says two "jobs go to others" || die "nobody said that jobs move"
    gate_wait last
    cable $name good
    await 60 says two "$url answers and takes jobs"
    gate_open last
    finish two
    [ "$(measured two)" -le "$(runs host1.runs host2.runs)" ] || die "there are more results than measurements"
    await 60 nothing_left "$one,$two"
}
nothing_left() { [ -z "$(alice --pool "$1" --no-worker -q jobs --json 2>"$dir/jobs.err")" ]; }

# What the daemon says to SUBMIT is lost: the client says it again by the same keys, and nothing runs twice. The client stops itself
# when it has decided to measure candidate 10, whose blobs the daemon has: the next thing that it sends is SUBMIT. All that came before
# is waited for at a gate, so that a first search tells which event that is.
case_deaf() {
    local at before
    host host1 1
    host host2 2
    candidates "$(nth 12)" compile-12
    serve host1 1
    serve host2 2
    begin first "$two"
    gate_wait compile-12
    await 60 has_measured first 10
    gate_open compile-12
    finish first
    # Its forecast, not the decision: compilations of later candidates are recorded between them, as many as have come by then.
    at=$("$bin/kcast" export "$dir/first.run" --events | grep -n '"kind":"forecast","body":{"candidate":12,' | cut -d: -f1)
    KCAST_DIE_AT=pause:$at begin deaf "$one"
    gate_wait compile-12
    await 60 has_measured deaf 10
    gate_open compile-12
    await 60 is_stopped "$client"
    before=$(runs host1.runs)
    cable host1 deaf
    kill -CONT "$client"
    await 60 more_runs "$before" # it was heard, and nobody hears that
    await 60 says deaf 'waiting for it to come back'
    cable host1 good
    finish deaf
    nothing_twice deaf host1
}
has_measured() { [ "$(measured "$1")" -eq "$2" ]; } # all of the first two batches, and the two best of them once more

# A caller vanishes behind a cut cable: its connection is freed, its jobs run on, and their results are there when it resumes.
case_vanished() {
    local before
    host host1 1
    candidates "$(nth 13)" middle
    serve host1 1
    begin vanished "$one"
    gate_wait middle
    before=$(runs host1.runs)
    cable host1 cut
    kill -KILL "$client"
    wait "$client" 2>/dev/null || :
    gate_open middle
    await 20 no_connections host1
    await 60 more_runs "$before"
    await 60 grep -q 'm16 .*verdict' "$dir/host1.log" # the last one that it has
    cable host1 good
    HOME=$all/home "$bin/kcast" --pool "$one" --no-worker -q resume "$dir/vanished.run" >"$dir/vanished.out" 2>>"$dir/vanished.err" || die "resume ended with $?"
    results vanished | cmp -s - "$all/expected" || die "other results than without trouble"
    nothing_twice vanished host1
}

# The worker cannot be reached any more in the middle: everything is measured, and a forecast that nobody answers does not cost its
# whole deadline again and again.
case_worker() {
    local began
    host host1 1
    host host2 2
    candidates "$(nth 9)" middle
    serve host1 1
    through=(nsenter -t "$host2" -n)
    start kcast-worker worker --listen "tls://10.9.2.2:$port" --state "$dir/worker" --tokens "$all/tokens" \
        --tls-ca "$all/ca/server/ca.pem" --tls-cert "$all/ca/server/cert.pem" --tls-key "$all/ca/server/key.pem"
    through=()
    pids+=("$started_pid")
    alice --pool "$one" --worker "$two" --json search "$hill" --generator "pool:$dir/candidates" --candidates $CANDIDATES --batch 4 --seed 2 \
        --policy all --run "$dir/worker.run" >"$dir/worker.out" 2>"$dir/worker.err" &
    client=$!
    pids+=($client)
    gate_wait middle
    cable host2 cut
    began=$SECONDS
    gate_open middle
    finish worker
    echo "worker: ended after $((SECONDS - began)) s"
    [ $((SECONDS - began)) -le 60 ] || die "the search waited for the worker, $((SECONDS - began)) s"
    says worker 'no forecasts, so everything is measured: ' || die "nobody said that the worker is away"
    "$bin/kcast" export "$dir/worker.run" | grep -q '"engine"' || die "the worker forecast nothing before it was cut off"
}

# ---- one case ----

if [ -n "${KCAST_NETWORK_CASE:-}" ]; then
    dir=$all/$KCAST_NETWORK_CASE
    trap end_programs EXIT
    "case_$KCAST_NETWORK_CASE"
    exit
fi

# ---- all of them ----

why=$(network_trouble)
[ -z "$why" ] || { echo "skipped because $why"; exit 77; }
if [ -z "${KCAST_OWN_NETWORK:-}" ]; then KCAST_OWN_NETWORK=yes exec unshare -rn bash "$0"; fi
all=$(mktemp -d)
export all
dir=$all/good
mkdir "$dir"
trap 'end_programs; rm -rf "$all"' EXIT

"$bin/kcast" tls init "$all/ca" --hosts 10.9.1.2,10.9.2.2 --clients alice >"$dir/tls.out"
mkdir -p "$all/home/.config"
cp -r "$all/ca/clients/alice" "$all/home/.config/kernelcast"
(umask 077 && "$bin/kcast" token add alice --role admin --tokens "$all/tokens" -q >"$all/home/.config/kernelcast/token")

host host1 1
candidates
serve host1 1
begin good "$one"
wait "$client" || die "the search without trouble ended with $?"
results good >"$all/expected"
[ "$(wc -l <"$all/expected")" -eq $CANDIDATES ] || die "not $CANDIDATES results: $(cat "$all/expected")"
"$bin/kcast" export "$dir/good.run" | grep -o 'c[0-9]*\.c","parent' | cut -d'"' -f1 >"$all/order"

cases=(loss mute cut gone two vanished worker)
[ "${KCAST_VARIANT:-debug}" = release ] || cases+=(deaf) # release builds have no KCAST_DIE_AT
running=()
for name in ${KCAST_NETWORK_CASES:-"${cases[@]}"}; do
    mkdir "$all/$name"
    KCAST_NETWORK_CASE=$name unshare -n bash "$0" >"$all/$name.all" 2>&1 &
    running+=("$name:$!")
done
bad=0
for one in "${running[@]}"; do
    wait "${one#*:}" || { echo "---- ${one%:*}"; cat "$all/${one%:*}.all"; bad=1; }
done
[ $bad -eq 0 ] || exit 1
grep -h ': ' "$all"/*.all || :
echo "searches get through"
