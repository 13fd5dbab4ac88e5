#!/usr/bin/env bash
# Names that stand for daemons, over TLS: the name that the user gave is the one that certificates must have, at each of its
# addresses. Runs in a mount namespace with a hosts file of its own; the executor is the fake one, so that results are known.
set -eu
bin=${KCAST_BIN:-build/debug/bin} root=${KCAST_ROOT:-.}
if [ -z "${KCAST_OWN_HOSTS:-}" ]; then
    unshare -rm true 2>/dev/null || { echo "skipped because there can be no user and mount namespaces here"; exit 77; }
    KCAST_OWN_HOSTS=yes exec unshare -rm bash "$0"
fi
hill=$root/tests/data/client/hill fake=${KCAST_BUILD:-$PWD/build/debug}/tests/support/fake_exec
dir=$(mktemp -d)
daemons=() moving=
cleanup() {
    for pid in "${daemons[@]}" $moving; do kill -9 "$pid" 2>/dev/null || :; done
    rm -rf "$dir"
}
trap cleanup EXIT
die() { echo "FAILED: $*"; cat "$dir/out" "$dir/err" 2>/dev/null || :; tail -n 8 "$dir"/*.log 2>/dev/null || :; exit 1; }
. "$(dirname "$0")/programs.sh"
unset KCAST_TLS_CA KCAST_TLS_CERT KCAST_TLS_KEY KCAST_TOKEN_FILE XDG_CONFIG_HOME

alice() { HOME=$dir/home "$bin/kcast" --no-worker "$@"; }
# server FOLDER HOSTS : a server's certificate of the same authority, for these names only.
server() { "$bin/kcast" tls init "$dir/ca" --hosts "$2" --clients alice >/dev/null && mv "$dir/ca/server" "$dir/$1"; }
# serve NAME URL FOLDER : a daemon that shows the certificate in there.
serve() {
    start kcastd "$1" --devices cpu:1 --exec "$fake" --listen "$2" --state "$dir/$1" --tokens "$dir/tokens" \
        --tls-ca "$dir/$3/ca.pem" --tls-cert "$dir/$3/cert.pem" --tls-key "$dir/$3/key.pem"
    daemons+=("$started_pid")
}
# search NAME POOL CODE TEXT : 24 candidates of a search over these daemons.
search() { expect "$3" "$4" alice --pool "$2" --json search "$hill" --candidates 24 --batch 8 --seed 2 --run "$dir/$1.run"; }
measured_at() { "$bin/kcast" export "$dir/$1.run" --events | grep '"measured"' | grep -c "\"pool\":\"$2\"" || :; }

# ---- names of our own ----
cat >"$dir/hosts" <<END
127.0.0.1 localhost
127.0.0.2 pool.test
127.0.0.3 pool.test
127.0.0.2 alias.test
127.0.0.5 moving.test
END
echo 'hosts: files' >"$dir/nsswitch.conf"
: >"$dir/resolv.conf"
for file in hosts nsswitch.conf resolv.conf; do
    [ ! -e /etc/$file ] || mount --bind "$dir/$file" /etc/$file 2>/dev/null || { echo "skipped because /etc/$file cannot be replaced"; exit 77; }
done

# ---- daemons behind one name: their certificates have the name alone, no address ----
server ours pool.test,moving.test
server other other.test
mkdir -p "$dir/home/.config"
cp -r "$dir/ca/clients/alice" "$dir/home/.config/kernelcast"
(umask 077 && "$bin/kcast" token add alice --role admin --tokens "$dir/tokens" -q >"$dir/home/.config/kernelcast/token")
export KCAST_FAKE_LOG=$dir/runs
serve a tls://127.0.0.2:0 ours
a=$started_url port=${started_url##*:}
serve b "tls://127.0.0.3:$port" ours
b=$started_url
KCAST_FAKE_LOG=$dir/runs-of-c
serve c "tls://127.0.0.4:$port" other
c=$started_url

# ---- a host is replaced while a search runs: the other one is found when the name is looked up again ----
if [ "${KCAST_VARIANT:-debug}" != release ]; then # which has no KCAST_DIE_AT
    KCAST_FAKE_LOG=$dir/runs
    serve d "tls://127.0.0.5:$port" ours
    old=$started_pid
    unset 'daemons[-1]' # it ends sooner
    serve e "tls://127.0.0.6:$port" ours
    new=$started_url
    HOME=$dir/home KCAST_DIE_AT=pause:34 "$bin/kcast" --no-worker --pool "dns+tls://moving.test:$port" --json search "$hill" --candidates 24 --batch 8 \
        --seed 2 --run "$dir/moving.run" >"$dir/moving.out" 2>"$dir/moving.err" &
    moving=$!
    within 60 is_stopped $moving || die "the client did not come as far as to stop itself: $(cat "$dir/moving.err")"
    kill -9 "$old"
    wait "$old" || :
    sed 's/127.0.0.5 moving.test/127.0.0.6 moving.test/' "$dir/hosts" >"$dir/changed"
    cat "$dir/changed" >"$dir/hosts" # the same file, as it is mounted
    kill -CONT $moving
fi

# ---- the name that was given counts, not the address ----
expect 0 'total 2 of 2 daemons answer' alice --pool "dns+tls://pool.test:$port" status
expect 0 '' alice --pool "tls://pool.test:$port" status
expect 13 "$a: its certificate is for another host" alice --pool "$a" status
expect 13 "$a (alias.test): its certificate is for another host" alice --pool "dns+tls://alias.test:$port" status
search both "dns+tls://pool.test:$port" 0 '"measured":24'
for url in "$a" "$b"; do [ "$(measured_at both "$url")" -gt 0 ] || die "nothing was measured at $url"; done
expect 0 '' alice --pool "dns+tls://pool.test:$port" drain "127.0.0.3:$port/cpu0"
expect 0 '' alice --pool "dns+tls://pool.test:$port" undrain "127.0.0.3:$port/cpu0"

# ---- one behind the name has another's certificate: it is left out, the others go on ----
sed 's/127.0.0.3 pool.test/127.0.0.4 pool.test/' "$dir/hosts" >"$dir/changed"
cat "$dir/changed" >"$dir/hosts"
search mixed "dns+tls://pool.test:$port" 0 "$c (pool.test): its certificate is for another host; it is left out"
[ "$(measured_at mixed "$a")" -ge 24 ] && [ "$(measured_at mixed "$c")" -eq 0 ] || die "not everything was measured at $a"
[ ! -e "$dir/runs-of-c" ] || die "something was measured by a daemon with another's certificate"

# ---- what is no name ----
expect 6 'dns+tls://nobody.test:7410: host "nobody.test" is not known' alice --pool dns+tls://nobody.test:7410 status
search nobody dns+tls://nobody.test:7410 6 'host "nobody.test" is not known'
grep -q 'connection-refused .*it does not accept our certificate' "$dir/c.log" || die "that daemon does not say why it was left"
search some "dns+tls://nobody.test:7410,dns+tls://pool.test:$port" 0 'host "nobody.test" is not known'
expect 3 'write dns+tls://NAME:PORT' alice --pool dns+tls://pool.test status
if [ -n "$moving" ]; then
    wait "$moving" || die "the search over a replaced host ended with $?: $(cat "$dir/moving.err")"
    moving=
    [ "$(measured_at moving "$new")" -gt 0 ] || die "nothing was measured at the new host"
    [ "$("$bin/kcast" export "$dir/moving.run" | grep -c '"fate":"faster"')" -eq 24 ] || die "not every candidate has its result"
fi
for pid in "${daemons[@]}"; do kill "$pid" && wait "$pid" || die "a daemon ended with $?"; done
daemons=()
echo "a name stands for those daemons that have a certificate for it"
