#!/usr/bin/env bash
# make demo-llm: the demo's search with forecasts by a small language model that runs on this machine, and one whose candidates it
# writes, all on loopback.
#   demo-llm.sh BIN     results go to demo/
set -eu
candidates=6 written=1
bin=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
mkdir -p demo
name=demo/llm-sgemm-$(date +%Y%m%d-%H%M%S)
file=$name.run
state=$(mktemp -d)
started=()
cleanup() {
    for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || :; done
    kill -9 "${started[0]:-}" 2>/dev/null || : # the server waits for answers that nobody wants any more
    for pid in "${started[@]}"; do wait "$pid" 2>/dev/null || :; done
    rm -rf "$state"
}
trap cleanup EXIT
trap 'exit 130' HUP INT TERM
show() { printf '\n$ %s\n' "$*"; }
# A signal ends the script at once, not after the command.
run() {
    "$@" &
    started+=($!)
    wait $!
}

# start NAME WORD COMMAND…: in the background until its log has a url on a line with WORD; sets $url.
start() {
    local log=$state/$1.log what=$1 word=$2
    shift 2
    "$@" >"$log" 2>&1 &
    started+=($!)
    for _ in $(seq 600); do
        url=$(grep -E "$word" "$log" | grep -oE '(tcp|http)://127\.0\.0\.1:[0-9]+' | tail -1) || :
        [ -z "$url" ] || return 0
        kill -0 "${started[-1]}" 2>/dev/null || break
        sleep 0.1
    done
    tail -n 5 "$log" >&2
    echo "demo-llm.sh: $what did not start" >&2
    exit 1
}

# One thread: several wait for each other by spinning, and on a busy machine hardly get on.
start llama-server listening build/model/llama-server -m build/model/smollm2.gguf --host 127.0.0.1 --port 0 -c 8192 -np 1 -t 1 --offline
endpoint=$url/v1
start kcastd 'ready|listening' "$bin/kcastd" --devices cpu:1 --state "$state/daemon" --listen tcp://127.0.0.1:0
pool=$url
show "kcast-worker --engine llm --endpoint $endpoint --model smollm2 --max-tokens 700 &"
start kcast-worker 'ready|listening' "$bin/kcast-worker" --state "$state/worker" --listen tcp://127.0.0.1:0 --engine llm \
    --endpoint "$endpoint" --model smollm2 --max-tokens 700 --llm-at-once 1 --llm-deadline 10m
worker=$url

show "kcast search problems/cpu/sgemm --run $file --candidates $candidates --batch 2 --seed 1"
run "$bin/kcast" --pool "$pool" --worker "$worker" search problems/cpu/sgemm --run "$file" --candidates "$candidates" --batch 2 --seed 1
# So small a model writes hardly a program that compiles: that its candidates are all wrong is a result, too.
show "kcast search problems/cpu/sgemm --run $name-written.run --generator llm --candidates $written --batch $written --seed 1"
run "$bin/kcast" --pool "$pool" --worker "$worker" search problems/cpu/sgemm --run "$name-written.run" --generator llm \
    --candidates "$written" --batch "$written" --seed 1 || :
show "kcast status"
"$bin/kcast" --pool "$pool" --worker "$worker" status
show "kcast eval $file"
"$bin/kcast" eval "$file"
show "kcast report $file -o $name.html"
"$bin/kcast" report "$file" -o "$name.html"
printf '\nThe model ran here, so its tokens cost no money. Open the report in a browser: %s\n' "$PWD/$name.html"
