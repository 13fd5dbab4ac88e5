#!/usr/bin/env bash
# What a pool gives those who use it: verdicts a second, the first verdict of a new search, how far one search keeps the devices busy,
# what several searches at once cost each other, fair shares. On one device, and on all when there are more. A figure a line, and a
# short table last. tests/gpu/run.sh calls it; with KCAST_POOL_ALL=cpu:2 and the like it runs on cores.
#   tests/gpu/pool.sh BIN WORK      programs of a bundle; a folder for state, logs and run files
# Environment; the defaults take about two and a half minutes with one GPU:
#   KCAST_POOL_PARTS     verdicts searches together shares; which of them
#   KCAST_POOL_ONE_PARTS verdicts searches; which of these on one device too, when there are more
#   KCAST_POOL_ONE       cuda:0; --devices of the daemon with one device
#   KCAST_POOL_ALL       $KCAST_DEVICES or cuda; of the one with all
#   KCAST_PROBLEMS       problems/cuda; the folder of the problems
#   KCAST_POOL_PROBLEMS  axpy reduce_sum softmax layernorm; for verdicts
#   KCAST_POOL_POINTS    30 of each for every device that there is, measured twice: never seen, and compiled before; on one device as many
#   KCAST_POOL_FIRSTS    2 new searches of each problem and kind; 0: none
#   KCAST_POOL_SEARCHES  sgemm conv3x3 topk; a default search of each, alone
#   KCAST_POOL_SECONDS   5 device-seconds of each on every device
#   KCAST_POOL_TOGETHER  sgemm conv3x3 topk softmax; a search of each that measures all, alone and then all at once
#   KCAST_POOL_EACH      3 device-seconds of each of these
#   KCAST_POOL_WALL      30 seconds that a search may take in all
#   KCAST_POOL_SHARING   transpose conv3x3 stencil5 softmax; with the weights 1 1 2 4; a measurement of each takes so long that its search is
#                        not held up by the compiler
#   KCAST_POOL_MINUTE    15 seconds of sharing
#   KCAST_POOL_JOBS      compilations at once (--compile-jobs); default: the daemon's
set -u -o pipefail
cd "$(dirname "$0")/../.."
. tests/support/until.sh
bin=$1 work=$2/pool
one=${KCAST_POOL_ONE:-cuda:0} all=${KCAST_POOL_ALL:-${KCAST_DEVICES:-cuda}} folder=${KCAST_PROBLEMS:-problems/cuda}
wall=${KCAST_POOL_WALL:-30}
daemon= worker= url= worker_url= devices= failed=0 figures=()
declare -A rate
mkdir -p "$work" || exit 1
stop() {
    for pid in $worker $daemon; do kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null; done
    worker= daemon=
}
trap stop EXIT
kcast() { "$bin/kcast" --pool "$url" --no-worker "$@"; }
wanted=${KCAST_POOL_PARTS:-verdicts searches together shares}
has_part() { case " $wanted " in *" $1 "*) return 0 ;; *) return 1 ;; esac; }
say() { echo "$*"; failed=1; }
figure() { figures+=("$(printf '%-12s %-58s %s' "$1" "$2" "$3")"); } # SCOPE NAME VALUE

# How many devices there are; false unless all of them are ready.
all_ready() {
    kcast --json status >"$work/status.json" 2>/dev/null || return 1
    devices=$(grep -o '"jobs_done":' "$work/status.json" | wc -l)
    [ "$devices" -gt 0 ] && [ "$(grep -o '"state":"ready"' "$work/status.json" | wc -l)" -eq "$devices" ]
}
# Sets found to where a program listens; false while its log does not say.
finds_url() { found=$(sed -n 's/.* \(url=\)*\(tcp:[^ ]*\).*/\2/p' "$work/$1.log" 2>/dev/null | tail -n 1) && [ -n "$found" ]; } # LOG
url_or_ended() { finds_url "$1" || ! kill -0 "$2" 2>/dev/null; }                                                    # LOG PID
start_daemon() { # DEVICES, as in --devices; with a cache that has nothing
    stop
    rm -rf "$work/state"
    [ ! -f "$work/kcastd.log" ] || cat "$work/kcastd.log" >>"$work/earlier.log"
    : >"$work/kcastd.log" # where the one before listened is not to be found in it
    "$bin/kcastd" --parent-death --listen tcp://127.0.0.1:0 --devices "$1" --state "$work/state" \
        ${KCAST_POOL_JOBS:+--compile-jobs="$KCAST_POOL_JOBS"} 2>"$work/kcastd.log" &
    daemon=$!
    within 120 url_or_ended kcastd $daemon
    url=$found
    within 60 eval 'all_ready || ! kill -0 $daemon 2>/dev/null'
    all_ready || { echo "the daemon's devices do not become ready:"; tail -n 3 "$work/kcastd.log"; exit 1; }
}
start_worker() { # one that has learnt nothing
    [ -z "$worker" ] || { kill "$worker"; wait "$worker"; } 2>/dev/null
    rm -rf "$work/worker"
    : >"$work/worker.log"
    "$bin/kcast-worker" --parent-death --listen tcp://127.0.0.1:0 --state "$work/worker" 2>"$work/worker.log" &
    worker=$!
    within 60 url_or_ended worker $worker
    worker_url=$found
    [ -n "$worker_url" ] || { echo "the worker does not start:"; tail -n 3 "$work/worker.log"; exit 1; }
}

# ---- verdicts a second, and the first verdict of a new search ----
verdicts() { # SCOPE
    local paths=() name value
    for name in ${KCAST_POOL_PROBLEMS:-axpy reduce_sum softmax layernorm}; do paths+=("$folder/$name"); done
    "$bin/bench_verdicts" "$url" "$((${KCAST_POOL_POINTS:-30} * count))" "${KCAST_POOL_FIRSTS:-2}" "${paths[@]}" >"$work/verdicts-$devices" 2>&1 || say "bench_verdicts fails"
    grep -v '^=' "$work/verdicts-$devices"
    while IFS=$'\t' read -r name value; do
        figure "$1" "$name" "$value"
        rate[$1 $name]=$value
    done < <(sed -n 's/^=//p' "$work/verdicts-$devices")
}

# ---- searches ----
# search LOG NAME SEED OPTION…: what it came to is in LOG.json
search() {
    local log=$work/$1 name=$2 seed=$3
    shift 3
    rm -f "$log.run"
    "$bin/kcast" --pool "$url" -q --json search "$folder/$name" --run "$log.run" --candidates 0 --max-time "${wall}s" --seed "$seed" "$@" \
        >"$log.json" 2>"$log.log"
}
field() { tail -n 1 "$work/$1.json" | grep -o "\"$2\":[^,}]*" | head -n 1 | cut -d : -f 2- | tr -d '"'; } # LOG NAME
share_of() { awk -v a="$1" -v b="$2" -v c="${3:-1}" 'BEGIN { if (b * c > 0) printf "%.2f", a / b / c; else print "none" }'; }
searches() { # SCOPE
    local name log used
    for name in ${KCAST_POOL_SEARCHES:-sgemm conv3x3 topk}; do
        log=default-$devices-$name
        start_worker
        search "$log" "$name" 1 --budget "$((${KCAST_POOL_SECONDS:-5} * devices))s" --worker "$worker_url" || { say "the search of $name fails: $(tail -n 1 "$work/$log.log")"; continue; }
        used=$(share_of "$(field "$log" device_seconds)" "$(field "$log" wall_seconds)" "$devices")
        echo "one search, $name: $(field "$log" device_seconds) device-seconds in $(field "$log" wall_seconds) s of $devices devices, utilisation $used;" \
            "considered $(field "$log" considered), measured $(field "$log" measured), $(field "$log" reason)"
        figure "$1" "device utilisation of one default search, $name" "$used"
    done
}

# Without forecasts, so that what is measured depends on nothing but what the device time is spent on; and with a budget that the daemon
# holds, with which a search ends, because what one has under way when its own is used up depends on how long its jobs wait.
spends() { # LOG NAME SEED DEVICE-SECONDS
    local status=0
    search "$1" "$2" "$3" --hard-budget "${4}s" --no-worker --policy all || status=$?
    [ $status -eq 0 ] || [ $status -eq 11 ]
}
# Sets measured, device-seconds of these, seconds from the first event to the last.
read_events() { # LOG
    read -r measured held seconds < <("$bin/kcast" export "$work/$1.run" --events 2>/dev/null | awk '
        match($0, /"at":[0-9.]+/) { at = substr($0, RSTART + 5, RLENGTH - 5); if (first == "") first = at }
        match($0, /"held":[0-9.e+-]+/) { n++; held += substr($0, RSTART + 7, RLENGTH - 7) }
        END { printf "%d %.2f %.2f\n", n, held, at - first }')
}
together() { # SCOPE DEVICES
    local names=(${KCAST_POOL_TOGETHER:-sgemm conv3x3 topk softmax}) each=${KCAST_POOL_EACH:-3} pids=() least= ratio i alone measured held seconds
    local all_measured=0 all_held=0 longest=0
    start_daemon "$2"
    for i in "${!names[@]}"; do
        spends "alone-$i" "${names[i]}" $((i + 1)) "$each" || say "the search of ${names[i]} alone fails: $(tail -n 1 "$work/alone-$i.log")"
    done
    start_daemon "$2" # the same candidates again
    for i in "${!names[@]}"; do
        spends "together-$i" "${names[i]}" $((i + 1)) "$each" &
        pids+=($!)
    done
    for i in "${!names[@]}"; do
        wait "${pids[i]}" || say "the search of ${names[i]} beside others fails: $(tail -n 1 "$work/together-$i.log")"
        read_events "alone-$i"
        alone=$measured
        echo "${names[i]} alone, $each device-seconds: $measured measured, held $held s, in $seconds s"
        read_events "together-$i"
        ratio=$(share_of "$measured" "$alone")
        echo "${names[i]}, one of ${#names[@]} at once: $measured measured, held $held s, in $seconds s; $ratio of alone"
        least=$(printf '%s\n' $least "$ratio" | sort -g | head -n 1)
        all_measured=$((all_measured + measured)) all_held=$(awk -v a="$all_held" -v b="$held" 'BEGIN { print a + b }')
        longest=$(printf '%s\n' "$longest" "$seconds" | sort -g | tail -n 1)
    done
    figure "$1" "verdicts a second of these ${#names[@]} searches at once" "$(share_of "$all_measured" "$longest")"
    figure "$1" "device held per verdict of these, ms" "$(share_of "$all_held" "$all_measured" 0.001)"
    figure "$1" "measurements of ${#names[@]} searches at once over those alone, least" "$least"
}

# ---- fair shares ----
shares() { # SCOPE DEVICES
    local status=0
    stop
    KCAST_BIN=$bin KCAST_SHARES_DEVICES=$2 KCAST_SHARES_FOLDER=$folder KCAST_SHARES_PROBLEMS="${KCAST_POOL_SHARING:-transpose conv3x3 stencil5 softmax}" \
        tests/bench/shares.sh "${KCAST_POOL_MINUTE:-15}" 2 >"$work/shares" 2>&1 || status=$?
    cat "$work/shares"
    [ $status -eq 0 ] || [ $status -eq 77 ] || failed=1
    figure "$1" 'fair shares, weights 1 1 2 4: points off, most' \
        "$(sed -n 's/.*: *[0-9.]* %, [+-]\([0-9.]*\) points of.*/\1/p' "$work/shares" | sort -g | tail -n 1)$([ $status -ne 77 ] || echo ' (shows nothing: the measurements are too long)')"
}

parts() { # SCOPE
    echo "== $1"
    ! has_part verdicts || verdicts "$1"
    ! has_part searches || searches "$1"
}
start_daemon "$all"
count=$devices
scope="$count devices"
[ "$count" -gt 1 ] || scope='1 device'
parts "$scope"
! has_part together || together "$scope" "$all"
! has_part shares || shares "$scope" "$all"
if [ "$count" -gt 1 ]; then wanted=${KCAST_POOL_ONE_PARTS:-$wanted}; fi
if [ "$count" -gt 1 ] && { has_part verdicts || has_part searches; }; then
    start_daemon "$one"
    parts '1 device'
    name='verdicts a second, compiled before'
    ! has_part verdicts || figure "$count over 1" "$name" "$(share_of "${rate[$scope $name]:-0}" "${rate[1 device $name]:-0}")"
fi
stop
printf '%s\n' '--' "${figures[@]}"
exit $failed
