#!/usr/bin/env bash
# Four real searches share one core, or other devices, as their weights say: a kcastd, a kcast-worker, and four `kcast search` that begin
# together, with real compilations, measurements and forecasts, and the weights 1, 1, 2 and 4; of problems whose measurements are short.
# What counts is device-seconds, from the moment when all four have work in the queue until SECONDS later. Prints each share, how far it
# is from its weight's, and how often the search had nothing in the queue; fails when one is POINTS or more off. Nothing that runs is
# stopped, so that two searches f and g may be apart by their longest measurements: |W_f/w_f - W_g/w_g| <= L_f/w_f + L_g/w_g (Goyal, Vin
# and Cheng 1996), on D > 1 devices by D + 1 times as much (Jin, Chase and Kaur 2004). Where that is POINTS or more, because other
# programs stretch the measurements, and no share is off by more than that, the script says so and ends with 77: it has shown nothing.
#
# usage: tests/bench/shares.sh [SECONDS [POINTS]]      default: 60 seconds, 3 points
# KCAST_SHARES_DEVICES: of the daemon, default cpu:1. KCAST_SHARES_PROBLEMS: four names in the folder KCAST_SHARES_FOLDER, default
# problems/cpu.
set -eu
cd "$(dirname "$0")/../.."
bin=${KCAST_BIN:-build/release/bin} seconds=${1:-60} points=${2:-3}
devices=${KCAST_SHARES_DEVICES:-cpu:1} folder=${KCAST_SHARES_FOLDER:-problems/cpu}
problems=(${KCAST_SHARES_PROBLEMS:-softmax scan conv2d histogram}) weights=(1 1 2 4) total=8
hill=tests/data/client/hill
. tests/bench/programs.sh

[ ${#problems[@]} -eq ${#weights[@]} ] || die "KCAST_SHARES_PROBLEMS has to name ${#weights[@]} problems"
case $devices in cpu*) try_sandbox ;; *) sandbox=on ;; esac # kernels need none
[ "$sandbox" = on ] || { echo "skipped because there can be no sandbox"; exit 77; }
start_services --devices="$devices"
# So many candidates of each under way that their compilations keep even the search with half of all devices waiting for more.
count=$("$bin/kcast" --pool="$pool" --no-worker --json status | grep -o '"jobs_done":' | wc -l)
width=()
[ "$count" -le 1 ] || width=(--batch $((4 * count)) --lag 16)
for i in "${!problems[@]}"; do
    "$bin/kcast" --pool="$pool" --worker="$worker" -q search "$folder/${problems[i]}" --run "$dir/${problems[i]}.run" --policy all \
        "${width[@]}" --candidates 0 --weight "${weights[i]}" --seed $((i + 1)) >"$dir/${problems[i]}.log" 2>&1 &
    pids+=($!)
done

# Device-seconds used and jobs waiting of each search; false unless all four have rows.
declare -A used waiting first idle
sample() {
    local name seconds_used jobs rows=0
    while read -r name seconds_used jobs; do
        used[$name]=$seconds_used waiting[$name]=$jobs rows=$((rows + 1))
    done < <("$bin/kcast" --pool="$pool" --no-worker --json status | tr '{' '\n' | awk '
        function value(key) {
            return match($0, "\"" key "\":\"?[^,\"}]*") ? substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) : ""
        }
        /"used_seconds":/ {
            name = value("search")
            gsub(/"|-.*/, "", name)
            print name, value("used_seconds"), value("waiting")
        }')
    [ $rows -eq ${#problems[@]} ]
}
all_wait() {
    sample || return 1
    for name in "${problems[@]}"; do [ "${waiting[$name]}" -gt 0 ] || return 1; done
}
within 120 all_wait || die "the four searches never wait at the same time"
for name in "${problems[@]}"; do first[$name]=${used[$name]} idle[$name]=0; done
samples=0
look() { # and again
    waiting=()
    sample || :
    samples=$((samples + 1))
    for name in "${problems[@]}"; do [ "${waiting[$name]:-0}" -gt 0 ] || idle[$name]=$((idle[$name] + 1)); done
    return 1
}
within "$seconds" look || :
for i in "${!problems[@]}"; do
    name=${problems[i]}
    longest=$("$bin/kcast" export "$dir/$name.run" --events | sed -n 's/.*"held":\([0-9.e+-]*\).*/\1/p' | sort -g | tail -1)
    echo "$name ${weights[i]} ${used[$name]} ${first[$name]} ${idle[$name]} ${longest:-0}"
done | awk -v total=$total -v samples=$samples -v seconds="$seconds" -v points="$points" -v devices="$count" '
    { name[NR] = $1; weight[NR] = $2; got[NR] = $3 - $4; idle[NR] = $5; longest[NR] = $6; all += got[NR]; lengths += $6 }
    END {
        printf "%.1f device-seconds in %d s of %d devices\n", all, seconds, devices
        many = devices > 1 ? devices + 1 : 1
        for (i = 1; i <= NR; i++) {
            share = 100 * got[i] / all; off = share - 100 * weight[i] / total
            bound = many * 100 * (longest[i] * (total - weight[i]) + weight[i] * (lengths - longest[i])) / total / all
            printf "%-8s weight %d: %5.1f %%, %+.1f points of at most %.1f; longest measurement %.2f s; nothing in the queue in %.0f %% of %d looks\n",
                   name[i], weight[i], share, off, bound, longest[i], 100 * idle[i] / samples, samples
            off = off < 0 ? -off : off
            bad = off >= bound && off >= points ? 1 : bad == 0 && off >= points ? 77 : bad
        }
        exit bad
    }' || {
    [ $? -eq 77 ] || die "a share is $points points or more from its weight's"
    echo "skipped because the measurements are too long for $seconds seconds: give it more, or a machine that does nothing else"
    exit 77
}
