#!/usr/bin/env bash
# A real language model, small, on this machine (scripts/install-model.sh): every rung of the ladder against llama.cpp's server, then a
# search whose forecasts it makes. Checks what passes between the programs, not how good the forecasts are.
set -eu
. "$(dirname "$0")/../support/until.sh"
bin=${KCAST_BIN:-build/debug/bin} build=${KCAST_BUILD:-build/debug} root=${KCAST_ROOT:-.}
hill=$root/tests/data/client/hill model=$root/build/model
if [ ! -x "$model/llama-server" ] || [ ! -s "$model/smollm2.gguf" ]; then
    echo "skipped because there is no language model here; scripts/install-model.sh installs one"
    exit 77
fi
dir=$(mktemp -d)
daemon= worker= server=
cleanup() {
    for pid in $daemon $worker $server; do kill -9 "$pid" 2>/dev/null || :; done
    rm -rf "$dir"
}
trap cleanup EXIT
die() { echo "FAILED: $*"; tail -n 8 "$dir"/*.log 2>/dev/null || :; exit 1; }

# start NAME WORD COMMAND…: until its output has a url on a line with WORD; sets $started and $url.
start() {
    local name=$1 word=$2
    shift 2
    : >"$dir/$name.log" # of one that had the name before
    "$@" >>"$dir/$name.log" 2>&1 &
    started=$!
    within 120 ready "$name" "$word" || die "$name did not start"
}
ready() {
    url=$(grep -E "$2" "$dir/$1.log" | grep -oE '(tcp|http)://127\.0\.0\.1:[0-9]+' | tail -1) || :
    [ -n "$url" ] || kill -0 $started 2>/dev/null || die "$1 ended"
    [ -n "$url" ]
}
stop() {
    for pid in "$@"; do kill "$pid"; done
    for pid in "$@"; do wait "$pid" 2>/dev/null || :; done
}
# What the server itself has counted: metric NAME.
metric() {
    exec 3<>"/dev/tcp/127.0.0.1/${server_url##*:}"
    printf 'GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n' >&3
    tr -d '\r' <&3 | awk -v name="llamacpp:$1" '$1 == name {printf "%d\n", $2}'
    exec 3>&-
}
field() { tail -n 1 "$dir/search.json" | sed -n "s/.*\"$1\":\([^,}]*\).*/\1/p"; }

start_server() { # one thread: several wait for each other by spinning, and on a busy machine hardly get on
    start server 'listening' "$model/llama-server" -m "$model/smollm2.gguf" --host 127.0.0.1 --port 0 -c 8192 -np 1 -t 1 --metrics --offline
    server=$started server_url=$url
}

# ---- the output formats ----
start_server
KCAST_MODEL_URL=$server_url/v1 "$build/tests/worker/llm/test_output_formats" >"$dir/formats.out" 2>&1 || { cat "$dir/formats.out"; die "an output format fails"; }
cat "$dir/formats.out" | grep -E '^(json|forced|required|text)' || die "no output format was tried"
stop $server

# ---- a search; a fresh server, so that it has counted nothing else ----
start_server
sandbox=on
"$bin/kcast" --local -q measure "$hill" "$hill/baseline.c" >/dev/null 2>&1 || sandbox=off
start kcastd 'ready|listening' "$bin/kcastd" --devices cpu:1 --state "$dir/state" --listen tcp://127.0.0.1:0 --sandbox $sandbox
daemon=$started pool=$url
start worker 'ready|listening' "$bin/kcast-worker" --state "$dir/worker" --listen tcp://127.0.0.1:0 --engine llm --endpoint "$server_url/v1" \
    --model smollm2 --max-tokens 700 --llm-at-once 1 --llm-deadline 10m --price-input 2 --price-cached 2 --price-output 8
worker=$started worker_url=$url
timeout 600 "$bin/kcast" --pool "$pool" --worker "$worker_url" --json search "$hill" --run "$dir/hill.run" --candidates 6 --batch 3 --seed 3 \
    >"$dir/search.json" 2>"$dir/search.err" || die "search: $(cat "$dir/search.err")"
cat "$dir/search.json"
[ "$(field considered)" -eq 6 ] || die "considered $(field considered)"
# The first of this name is the search's, the last what was forecast at its end.
forecasts=$(tail -n 1 "$dir/search.json" | grep -o '"forecast":[0-9]*' | head -n 1 | cut -d : -f 2)
[ "$forecasts" -ge 5 ] || die "forecasts: $forecasts"

# Tokens are the server's own, money is tokens times prices.
in=$(field input_tokens) out=$(field output_tokens)
fresh=$(metric prompt_tokens_total) kept=$(metric prompt_tokens_cached_total) said=$(metric tokens_predicted_total)
[ "$in" -gt 3000 ] && [ "$in" -eq $((fresh + kept)) ] || die "$in tokens in; the server counted $fresh and $kept that it had kept"
[ "$out" -gt 100 ] && [ "$out" -eq "$said" ] || die "$out tokens out; the server counted $said"
awk -v cost="$(field cost)" -v in_="$in" -v out="$out" 'BEGIN {off = cost - (2 * in_ + 8 * out) / 1e6; exit !(off < 1e-9 && off > -1e-9)}' ||
    die "cost $(field cost) of $in tokens in and $out out"

"$bin/kcast" --pool "$pool" --worker "$worker_url" status >"$dir/status" || die "status"
grep -q "$server_url/v1 model smollm2, rung json_schema" "$dir/status" || die "status: $(cat "$dir/status")"
"$bin/kcast" report "$dir/hill.run" -o "$dir/hill.html" >/dev/null 2>&1 || die "report"
grep -qE '<dd>[0-9]+ by json_schema' "$dir/hill.html" || die "the report does not say how the model answered"
"$bin/kcast" eval "$dir/hill.run" | grep -q 'engine llm' || die "eval knows no engine llm"

stop $worker $server

# ---- candidates that it writes: hardly any will do, but each has its verdict, and every token is counted ----
start_server
start writer 'ready|listening' "$bin/kcast-worker" --state "$dir/writer" --listen tcp://127.0.0.1:0 --engine llm --endpoint "$server_url/v1" \
    --model smollm2 --max-tokens 200 --llm-at-once 1
worker=$started worker_url=$url status=0
timeout 250 "$bin/kcast" --pool "$pool" --worker "$worker_url" --json search "$hill" -g llm --run "$dir/written.run" --candidates 1 --batch 1 --seed 3 \
    >"$dir/search.json" 2>"$dir/search.err" || status=$?
case $status in
0 | 1) [ "$(field considered)" -eq 1 ] && [ "$(tail -n 1 "$dir/search.json" | grep -o "\"llm\":{\"proposals\":[0-9]*" | grep -o "[0-9]*$")" -ge 1 ] || die "written: $(cat "$dir/search.json")" ;; # 1: it is wrong
*) grep -q "got no candidate: the answer holds no program" "$dir/search.err" || die "search -g llm: status $status, $(cat "$dir/search.err")" ;;
esac
asked=$("$bin/kcast" export "$dir/written.run" --events | sed -n 's/.*"kind":"\(asked\|forecast\)".*"input_tokens":\([0-9]*\),"output_tokens":\([0-9]*\).*/\2 \3/p' |
    awk '{i += $1; o += $2} END {print i + 0, o + 0}')
counted="$(($(metric prompt_tokens_total) + $(metric prompt_tokens_cached_total))) $(metric tokens_predicted_total)"
[ "$asked" = "$counted" ] || die "the run has $asked tokens in and out, the server counted $counted"

stop $worker $daemon $server
worker= daemon= server=
echo "ok"
