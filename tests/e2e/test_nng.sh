#!/usr/bin/env bash
# Clients of nng's, which know nothing of kernelcast but its documented messages, against the real daemon and worker: a candidate is
# forecast and measured, over tcp and over TLS with a certificate and a token; strangers are refused and logged.
set -eu
bin=${KCAST_BIN:-build/debug/bin} build=${KCAST_BUILD:-build/debug} root=${KCAST_ROOT:-.}
hill=$root/tests/data/client/hill
measure=$build/examples/nng_measure
python=$root/build/pynng/bin/python
dir=$(mktemp -d)
daemon= worker= tls_daemon= tls_worker=
cleanup() {
    for pid in $daemon $worker $tls_daemon $tls_worker; do kill -9 "$pid" 2>/dev/null || :; done
    rm -rf "$dir"
}
trap cleanup EXIT
die() { echo "FAILED: $*"; cat "$dir/out" "$dir/err" 2>/dev/null || :; tail -n 8 "$dir"/*.log 2>/dev/null || :; exit 1; }
. "$(dirname "$0")/programs.sh"
unset KCAST_TLS_CA KCAST_TLS_CERT KCAST_TLS_KEY KCAST_TOKEN_FILE XDG_CONFIG_HOME

# LOG PATTERN COUNT : until so many lines of this log match.
said() { [ "$(grep -cE "$2" "$dir/$1.log")" -ge "$3" ]; }
await() { within 60 said "$@" || die "the log $1 does not say $2 $3 times"; }

clients=()
[ ! -x "$measure" ] || clients+=(libnng)
! "$python" -c 'import msgpack, pynng' 2>/dev/null || clients+=(pynng)
# ask CLIENT WORKER DAEMON CANDIDATE [FOLDER TOKEN] : with credentials where they are given.
ask() {
    local client=$1 worker_url=$2 url=$3 candidate=$4 credentials=()
    if [ "$client" = libnng ]; then
        [ -z "${5:-}" ] || credentials=(-c "$5" -n localhost)
        [ -z "${6:-}" ] || credentials+=(-t "$6")
        timeout 120 "$measure" -w "$worker_url" "${credentials[@]}" "$url" "$hill" "$candidate"
    else
        [ -z "${5:-}" ] || credentials=(--credentials "$5" --name localhost)
        [ -z "${6:-}" ] || credentials+=(--token "$6")
        timeout 120 "$python" "$root/examples/pynng_measure.py" "$url" "$hill" "$candidate" --worker "$worker_url" "${credentials[@]}"
    fi
}
measures() { expect 0 '^forecast: correct with probability [01]\.[0-9][0-9]$' ask "$@"; grep -qE '^speedup [0-9.]+ \([0-9.]+ to [0-9.]+\)$' "$dir/out" || die "no speedup"; }

try_sandbox
# One of them is longer than what a stranger may send.
for client in libnng pynng; do
    { cat "$hill/baseline.c"; for i in {1..3000}; do echo "// $client: a comment that makes this source a long one, line $i of it."; done; } >"$dir/$client.c"
    { cat "$hill/baseline.c"; echo "int"; } >"$dir/$client-wrong.c"
done

# ---- on loopback, in the clear ----
start kcastd daemon --devices cpu:1 --listen tcp://127.0.0.1:0 --state "$dir/state" --sandbox "$sandbox"
daemon=$started_pid url=$started_url
start kcast-worker worker --listen tcp://127.0.0.1:0 --state "$dir/worker"
worker=$started_pid worker_url=$started_url
for client in "${clients[@]}"; do
    measures $client "$worker_url" "$url" "$dir/$client.c"
    expect 2 '^no speedup: .' ask $client "$worker_url" "$url" "$dir/$client-wrong.c"
done
[ ${#clients[@]} -eq 0 ] || await daemon 'job-done .* search=(py)?nng-measure' $((3 * ${#clients[@]}))

# ---- with certificates and tokens ----
"$bin/kcast" tls init "$dir/ca" --hosts 127.0.0.1,localhost --clients alice >"$dir/out"
"$bin/kcast" tls init "$dir/other" --hosts 127.0.0.1 --clients mallory >"$dir/out"
(umask 077 && "$bin/kcast" token add alice --role submit --tokens "$dir/tokens" -q >"$dir/token")
tls="--tls-ca $dir/ca/server/ca.pem --tls-cert $dir/ca/server/cert.pem --tls-key $dir/ca/server/key.pem --tokens $dir/tokens"
start kcastd tls_daemon --devices cpu:1 --listen tls://127.0.0.1:0 --state "$dir/tls-state" --sandbox "$sandbox" $tls
tls_daemon=$started_pid tls_url=tls+tcp${started_url#tls}
start kcast-worker tls_worker --listen tls://127.0.0.1:0 --state "$dir/tls-worker" $tls
tls_worker=$started_pid tls_worker_url=tls+tcp${started_url#tls}
cp -r "$dir/other/clients/mallory" "$dir/mallory"
cat "$dir/ca/ca.pem" >>"$dir/mallory/ca.pem" # so that it is the server that refuses
refusals=0
for client in "${clients[@]}"; do
    measures $client "$tls_worker_url" "$tls_url" "$dir/$client.c" "$dir/ca/clients/alice" "$dir/token"
    # A certificate of ours and no token, or a wrong one; no certificate of ours; no certificate; and no TLS.
    expect 1 'denied: .*no token was shown' ask $client "$tls_worker_url" "$tls_url" "$dir/$client.c" "$dir/ca/clients/alice"
    echo nonsense >"$dir/nonsense"
    expect 1 'denied: .*token' ask $client "$tls_worker_url" "$tls_url" "$dir/$client.c" "$dir/ca/clients/alice" "$dir/nonsense"
    expect 1 '' ask $client "$tls_worker_url" "$tls_url" "$dir/$client.c" "$dir/mallory" "$dir/token"
    expect 1 '' ask $client "$tls_worker_url" "$tls_url" "$dir/$client.c"
    expect 1 '' ask $client "$tls_worker_url" "tcp${tls_url#tls+tcp}" "$dir/$client.c"
    refusals=$((refusals + 5))
done
for client in "${clients[@]}"; do # the worker refuses strangers as well
    expect 1 '' ask $client "$tls_worker_url" "tcp${tls_worker_url#tls+tcp}" "$dir/$client.c"
done
if [ ${#clients[@]} -gt 0 ]; then
    # A refusal a second is a line of the log, and counts those before it.
    await tls_daemon 'connection-refused peer=127.0.0.1:[0-9]+ reason=' 1
    await tls_worker 'connection-refused peer=127.0.0.1:[0-9]+ reason="what came is no TLS"' 1
    mkdir -p "$dir/home/.config"
    cp -r "$dir/ca/clients/alice" "$dir/home/.config/kernelcast"
    cp "$dir/token" "$dir/home/.config/kernelcast/token"
    enough() {
        HOME=$dir/home "$bin/kcast" --no-worker --pool "tls${tls_url#tls+tcp}" status --json >"$dir/out" &&
            [ "$(sed -n 's/.*"refusals":\([0-9]*\).*/\1/p' "$dir/out")" -ge $refusals ]
    }
    within 60 enough || die "fewer than $refusals strangers were counted"
fi

# ---- contexts and requests that are sent again ----
if [[ " ${clients[*]} " == *' pynng '* ]]; then
    "$bin/kcast" --no-worker --pool "$url" drain cpu0 >"$dir/out"
    expect 0 'which counted once' timeout 120 "$python" "$root/tests/e2e/nng_contexts.py" "$url" "$hill" "$hill/baseline.c"
fi
kill "$daemon" "$worker" "$tls_daemon" "$tls_worker"
for pid in $daemon $worker $tls_daemon $tls_worker; do wait "$pid" || die "a program ended with $?"; done
case ${clients[*]} in
'libnng pynng') echo "measured by ${clients[*]}" ;;
*libnng*) echo "skipped because there is no pynng (scripts/install-pynng.sh fetches it)"; exit 77 ;;
*) echo "skipped because there is no libnng (scripts/install-deps.sh installs it)"; exit 77 ;;
esac
