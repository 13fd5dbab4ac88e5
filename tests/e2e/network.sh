# Read by tests of a network that fails. Each case runs in a network namespace of its own, "the laptop", from which cables (veth
# pairs) lead to other hosts, namespaces too; what is lost on a cable is decided by nft rules where packets come in. A cut cable
# loses everything and says nothing: no FIN, no RST, no "unreachable". The executor is the fake one, so that results are known.
# Sets $bin, $root, $hill, $fake, $dir (a folder) and die; wants $dir (for all cases) and programs.sh.

bin=${KCAST_BIN:-$PWD/build/debug/bin} root=${KCAST_ROOT:-$PWD}
hill=$root/tests/data/client/hill fake=${KCAST_BUILD:-$PWD/build/debug}/tests/support/fake_exec
CANDIDATES=24
port=7410 http_port=7412 pids=()

# Why there can be no such network here; nothing when there can.
network_trouble() {
    command -v ip >/dev/null && command -v nft >/dev/null && command -v ss >/dev/null || { echo "iproute2 or nftables is not installed"; return; }
    unshare -rn bash -c '
        ip link add near type veth peer name far && nft add table inet t &&
        nft "add chain inet t in { type filter hook input priority 0; }" && nft add rule inet t in numgen random mod 100 "<" 20 drop' >/dev/null 2>&1 ||
        echo "there can be no network namespaces with cables and packet filters here"
}

die() {
    echo "FAILED: $*"
    tail -n 12 "$dir"/*.err "$dir"/*.out 2>/dev/null || :
    tail -n 8 "$dir"/*.log 2>/dev/null || :
    exit 1
}
end_programs() {
    for pid in "${pids[@]}"; do kill -CONT "$pid" 2>/dev/null && kill -9 "$pid" 2>/dev/null || :; done
    wait 2>/dev/null || :
}

# ---- hosts and cables ----

# host NAME NUMBER : a host with the address 10.9.NUMBER.2, on a cable of that name.
host() {
    local name=$1 number=$2
    unshare -n tail -f /dev/null & # which holds the namespace
    pids+=($!)
    printf -v "$name" %s $!
    within 60 lives_elsewhere "${!name}" || die "there is no namespace for $name"
    ip link add "$name" type veth peer name uplink netns "${!name}"
    ip addr add "10.9.$number.1/24" dev "$name"
    ip link set "$name" up
    at "$name" ip addr add "10.9.$number.2/24" dev uplink
    at "$name" ip link set uplink up
    at "$name" ip link set lo up
}
lives_elsewhere() { [ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/$$/ns/net)" ]; }
at() { # HOST COMMAND… : runs it there
    local name=$1
    shift
    nsenter -t "${!name}" -n "$@"
}
# cable HOST good|lossy|cut|mute|deaf : lossy loses a fifth of the packets, cut all of them, mute those that carry something,
# both ways; deaf all that come from the host.
cable() {
    local near=accept far=accept
    case $2 in
    lossy) near='numgen random mod 100 < 20 drop' far=$near ;;
    cut) near=drop far=drop ;;
    mute) near='tcp flags & psh == psh drop' far=$near ;;
    deaf) near=drop ;;
    esac
    at "$1" nft -f - <<<"table inet cable { }; flush table inet cable; table inet cable { chain in { type filter hook input priority 0; iifname uplink $far; }; }"
    nft -f - <<<"table inet $1 { }; flush table inet $1; table inet $1 { chain in { type filter hook input priority 0; iifname $1 $near; }; }"
}
await() { within "$@" || die "waited in vain, seconds: $*"; } # LIMIT COMMAND… : until the command succeeds
connections() { at "$1" ss -Htn state established "sport = :$port" | wc -l; } # to the daemon there
no_connections() { [ "$(connections "$1")" -eq 0 ]; }

# ---- programs ----

# serve HOST NUMBER : a daemon there; its log and its executor's are HOST.log and HOST.runs.
serve() {
    through=(nsenter -t "${!1}" -n)
    : >"$dir/$1.runs"
    KCAST_FAKE_LOG=$dir/$1.runs start kcastd "$1" --devices cpu:1 --exec "$fake" --listen "tls://10.9.$2.2:$port" --state "$dir/$1.state" --http "127.0.0.1:$http_port" \
        --tokens "$all/tokens" --tls-ca "$all/ca/server/ca.pem" --tls-cert "$all/ca/server/cert.pem" --tls-key "$all/ca/server/key.pem"
    through=()
    pids+=("$started_pid")
}
alice() { HOME=$all/home exec "$bin/kcast" "$@"; } # in a subshell or in the background
# begin NAME POOL OPTION… : a search in the background; sets $client.
begin() {
    local name=$1 pool=$2
    shift 2
    alice --pool "$pool" --no-worker --json search "$hill" --generator "pool:$dir/candidates" --candidates $CANDIDATES --batch 4 --seed 2 --play-off 0 \
        --run "$dir/$name.run" "$@" >"$dir/$name.out" 2>"$dir/$name.err" &
    client=$!
    pids+=($client)
}
# finish NAME : it ends well, with the results that there are where no packet is lost.
finish() {
    wait "$client" || die "the search $1 ended with $?"
    results "$1" >"$dir/$1.results"
    cmp -s "$dir/$1.results" "$all/expected" || die "other results than without trouble: $(diff "$dir/$1.results" "$all/expected")"
}
says() { grep -qF -- "$2" "$dir/$1.err"; } # NAME TEXT
results() { "$bin/kcast" export "$dir/$1.run" | sed -n 's/.*"name":"\([^"]*\)".*"fate":"\([^"]*\)".*"log2_speedup":\([^,]*\),.*/\1 \2 \3/p' | sort; }
measured() { "$bin/kcast" export "$dir/$1.run" --events | grep -c '"kind":"measured"' || :; } # by the run file
runs() { cat "${@/#/$dir/}" | grep -c '^measure ' || :; }                                    # by these executors' logs
# nothing_twice SEARCH HOST : as many measurements there as the search has; what was done again, and why, when there are more.
nothing_twice() {
    [ "$(runs "$2.runs")" -ne "$(measured "$1")" ] || return 0
    grep -E 'job-(lost|buried|disturbed)|object-missing' "$dir/$2.log" || :
    grep '^measure ' "$dir/$2.runs" | sort | uniq -c | sort -rn | head -4
    die "$(runs "$2.runs") measurements for $(measured "$1") results"
}

# ---- candidates ----

# candidates [NAME GATE]… : the candidates, of which some pass a gate when they are measured; a gate whose name begins with compile-,
# when they are compiled.
candidates() {
    local i word
    mkdir "$dir/candidates"
    for i in $(seq $CANDIDATES); do
        printf '// %d\n//! log2 0.%02d\nvoid hill(const double *x, double *s, int64_t N) { s[0] = N * x[0]; }\n' "$i" "$i" >"$dir/candidates/$(printf c%02d.c "$i")"
    done
    while [ $# -gt 0 ]; do
        mkfifo "$dir/$2" "$dir/$2.go"
        [ "${2#compile-}" = "$2" ] && word=gate || word=compile-gate
        echo "//! $word $dir/$2" >>"$dir/candidates/$1"
        shift 2
    done
}
gate_wait() { timeout 60 head -n 1 "$dir/$1" >/dev/null || die "nothing came to the gate $1"; } # until it is being measured
gate_open() { timeout 60 bash -c ': >"$1"' - "$dir/$1.go" || die "the gate $1 was left"; }
# The candidate that is proposed as the Nth where no packet is lost.
nth() { sed -n "$1p" "$all/order"; }
