#!/usr/bin/env bash
# A pool for a team, with the real programs: certificates and tokens are made, callers get as far as their role, strangers nowhere,
# tokens are revoked while it runs, and no secret is in a log, in a command line or in a core file.
set -eu
bin=${KCAST_BIN:-build/debug/bin} root=${KCAST_ROOT:-.}
hill=$root/tests/data/client/hill
dir=$(mktemp -d)
daemon= worker= client=
cleanup() {
    for pid in $daemon $worker $client; do kill -9 "$pid" 2>/dev/null || :; done
    rm -rf "$dir"
}
trap cleanup EXIT
die() { echo "FAILED: $*"; cat "$dir/out" "$dir/err" 2>/dev/null || :; tail -n 8 "$dir"/*.log 2>/dev/null || :; exit 1; }
. "$(dirname "$0")/programs.sh"
unset KCAST_TLS_CA KCAST_TLS_CERT KCAST_TLS_KEY KCAST_TOKEN_FILE XDG_CONFIG_HOME

# Until a line of this log matches.
await() { timeout 60 grep -q -m 1 -E "$2" <(tail -n +1 --pid="$daemon" -f "$dir/$1.log") || die "the log $1 does not say $2"; }
# as NAME OPTION… : kcast with the folder of that person.
as() {
    local who=$1
    shift
    HOME=$dir/home/$who "$bin/kcast" --pool "$url" "$@"
}

try_sandbox

# ---- certificates and tokens ----
"$bin/kcast" tls init "$dir/ca" --hosts 127.0.0.1 --clients alice,bob,olga,root >"$dir/out"
"$bin/kcast" tls init "$dir/other" --hosts 127.0.0.1 --clients mallory >"$dir/out"
before=$(cat "$dir"/ca/*.pem "$dir"/ca/*/*.pem "$dir"/ca/clients/*/*.pem | sha256sum)
expect 0 'was there' "$bin/kcast" tls init "$dir/ca" --clients alice
expect 3 'does not name "gpu1.example"' "$bin/kcast" tls init "$dir/ca" --hosts gpu1.example
expect 3 'cannot be a name' "$bin/kcast" tls init "$dir/ca" --clients carol,../carol
[ ! -e "$dir/ca/clients/carol" ] || die "half of the clients were made"
[ "$before" = "$(cat "$dir"/ca/*.pem "$dir"/ca/*/*.pem "$dir"/ca/clients/*/*.pem | sha256sum)" ] || die "something was overwritten"
[ -z "$(find "$dir/ca" -type f ! -perm 600)" ] || die "a file is not 0600"
tokens=$dir/tokens
for who in alice:submit bob:submit olga:observe root:admin; do
    name=${who%:*}
    mkdir -p "$dir/home/$name/.config"
    cp -r "$dir/ca/clients/$name" "$dir/home/$name/.config/kernelcast"
    (umask 077 && "$bin/kcast" token add "$name" --role "${who#*:}" --tokens "$tokens" -q >"$dir/home/$name/.config/kernelcast/token")
done
expect 3 'alice has a token already' "$bin/kcast" token add alice --tokens "$tokens"
[ "$(stat -c %a "$tokens")" = 600 ] || die "the tokens file is not 0600"
mkdir -p "$dir/home/mallory/.config"
cp -r "$dir/other/clients/mallory" "$dir/home/mallory/.config/kernelcast"
cp "$dir/home/alice/.config/kernelcast/token" "$dir/home/mallory/.config/kernelcast/token"

# ---- where it may listen ----
tls="--tls-ca $dir/ca/server/ca.pem --tls-cert $dir/ca/server/cert.pem --tls-key $dir/ca/server/key.pem"
expect 13 'not on loopback' "$bin/kcastd" --listen tcp://0.0.0.0:0 --state "$dir/s"
expect 13 'needs --tls-ca' "$bin/kcastd" --listen tls://0.0.0.0:0 --state "$dir/s"
expect 13 'needs --tls-ca' "$bin/kcast-worker" --listen tls://0.0.0.0:0 --state "$dir/s" $tls
chmod 644 "$tokens"
expect 13 'chmod 600' "$bin/kcastd" --listen tls://0.0.0.0:0 --state "$dir/s" $tls --tokens "$tokens"
chmod 600 "$tokens"
printf '[kcastd]\nlisten = tls+tcp://127.0.0.1:0\n' >"$dir/kcastd.ini" # nng's word for tls://
start kcastd daemon --config "$dir/kcastd.ini" --devices cpu:1 --state "$dir/state" --sandbox "$sandbox" $tls --tokens "$tokens"
daemon=$started_pid url=$started_url
start kcast-worker worker --listen tls+tcp://127.0.0.1:0 --state "$dir/worker" $tls --tokens "$tokens"
worker=$started_pid worker_url=$started_url

expect 6 'its address begins with tls://' "$bin/kcast" --no-worker --pool "tcp${url#tls}" status

# ---- each as far as the role goes ----
expect 0 'devices' as olga --worker "$worker_url" status --json
grep -q '"engine"' "$dir/out" || die "the worker did not answer over TLS"
# Whoever writes the addresses as nng does means the same, in every place where they may stand.
expect 0 '"engine"' as olga --pool "tls+tcp${url#tls}" --worker "tls+tcp${worker_url#tls}" status --json
expect 0 '"engine"' env HOME="$dir/home/olga" KCAST_POOL="tls+tcp${url#tls}" KCAST_WORKER="tls+tcp${worker_url#tls}" "$bin/kcast" status --json
printf '[kcast]\npool = tls+tcp%s\nworker = tls+tcp%s\n' "${url#tls}" "${worker_url#tls}" >"$dir/home/olga/.config/kernelcast/config"
expect 0 '"engine"' env HOME="$dir/home/olga" "$bin/kcast" status --json
rm "$dir/home/olga/.config/kernelcast/config"
expect 13 'olga has the role observe, and BLOB_' as olga -q measure "$hill" "$hill/baseline.c"
expect 13 'bob has the role submit, and DRAIN takes admin' as bob drain cpu0
expect 13 'bob has the role submit, and QUARANTINE takes admin' as bob quarantine cpu0
expect 13 'bob has the role submit, and PROBE takes admin' as bob probe cpu0
expect 0 '"verdict"' as alice -q --json measure "$hill" "$hill/baseline.c"
expect 0 '' as root drain cpu0
HOME=$dir/home/alice "$bin/kcast" --pool "$url" -q measure --fresh "$hill" "$hill/baseline.c" >"$dir/measure" 2>&1 &
client=$!
waits_for_the_device() { as alice jobs --json >"$dir/out" && grep -q '"state":"ready"' "$dir/out"; }
within 60 waits_for_the_device || die "the job does not come to wait for the device: $(cat "$dir/out")"
job=$(sed -n 's/.*"job":\([0-9]*\).*/\1/p' "$dir/out")
grep -q '"tenant":"alice"' "$dir/out" || die "alice does not see her job"
expect 0 'no jobs' as bob jobs
expect 3 "no job $job at " as bob jobs "$job"
expect 3 "no job $job at " as bob cancel "$job"
expect 0 'no jobs' as olga jobs
expect 0 'alice/' as root jobs "$job"
grep -q 'ready\|queued\|compiling' "$dir/out" || die "it was stopped by somebody else"
as bob status --json | grep -q '"shares":\[\]' || die "bob sees who else waits"
as alice status --json | grep -q '"shares":\[.*"tenant":"alice"' || die "alice does not see her share"
as root status --json | grep -q '"shares":\[.*"tenant":"alice"' || die "an administrator does not see alice's share"
as alice top --json | grep -q '"searches":\[.*"tenant":"alice"' || die "alice does not see her search on top"
! as bob top --json | grep -q '"tenant":"alice"' || die "bob sees the search of alice on top"
expect 0 'cancelled' as root cancel "$job"
wait "$client" || :
client=
expect 0 '' as root undrain cpu0

# ---- budgets: an administrator sets them, everybody sees his own ----
expect 13 'only an administrator may change budgets' as bob budget set bob 1000
expect 0 '' as root budget set alice 1000 --weight 3
expect 0 'of 1000 device-seconds' as alice budget
expect 0 'alice .*weight 3' as root budget
expect 0 '' as bob budget
! grep -q alice "$dir/out" || die "bob sees the budget of alice"
expect 0 '' as root budget set alice 0.000001
expect 11 'BUDGET: tenant alice' as alice -q measure --fresh "$hill" "$hill/baseline.c"
expect 0 '"verdict"' as root -q --json measure --fresh "$hill" "$hill/baseline.c"
expect 0 '' as root budget set alice none

# ---- strangers ----
expect 13 'not signed by our authority' as mallory status
cat "$dir/ca/ca.pem" >>"$dir/home/mallory/.config/kernelcast/ca.pem"
expect 13 'our certificate is of another authority' as mallory status
rm "$dir/home/bob/.config/kernelcast/token"
expect 13 'no token was shown' as bob status
cp "$dir/home/alice/.config/kernelcast/token" "$dir/home/bob/.config/kernelcast/token"
sed -i 's/.$/g/' "$dir/home/bob/.config/kernelcast/token"
expect 13 'its token is not known here' as bob status
chmod 644 "$dir/home/bob/.config/kernelcast/token"
expect 13 'chmod 600' as bob status
expect 3 'nowhere' "$bin/kcast" --pool "$url" --tls-ca nowhere --tls-cert nowhere --tls-key nowhere status
await daemon 'connection-refused peer=127.0.0.1:[0-9]+ reason="'
expect 0 '"refusals":[1-9]' as olga status --json

# ---- revoking, while it runs ----
"$bin/kcast" token revoke alice --tokens "$tokens" -q
expect 0 'devices' as alice status --json # not before it is told
kill -HUP "$daemon" "$worker"
await daemon 'reloaded what=certificates,tokens'
await worker 'reloaded what=certificates,tokens'
expect 13 'its token is not known here' as alice status
expect 0 'devices' as olga status --json
cp "$tokens" "$dir/good" && echo 'nonsense' >>"$tokens"
kill -HUP "$daemon"
await daemon 'reload-failed reason=.*not the 6 fields'
expect 0 'devices' as olga status --json
cp "$dir/good" "$tokens"

# ---- secrets ----
for name in alice olga root; do
    secret=$(sed 's/.*\.//' "$dir/home/$name/.config/kernelcast/token")
    ! grep -q "$secret" "$tokens" "$dir"/*.log "/proc/$daemon/cmdline" "/proc/$daemon/environ" || die "the token of $name is to be seen"
done
for pid in $daemon $worker; do
    grep -q 'Max core file size  *0  *0 ' "/proc/$pid/limits" || die "a core file could be written"
done
kill "$daemon" "$worker"
wait "$daemon" || die "kcastd ended with $?"
echo "a pool for a team: everybody as far as the role goes"
