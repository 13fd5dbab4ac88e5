#!/usr/bin/env bash
# deploy/slurm/kernelcast.sbatch under a real Slurm: controller, two slurmd with a node name each, munge, all of them private to
# this test and on loopback. Two daemons of one allocation serve and a search measures; the allocation is vacated by the signal
# that comes before a time limit; of two allocations one is cancelled in the middle of a search, which ends on the other; the next
# allocation of that node goes on where the cancelled one was.
set -u
. "$(dirname "$0")/../support/until.sh"
bin=${KCAST_BIN:?} root=${KCAST_ROOT:?}
for program in slurmctld slurmd sbatch munged mungekey; do
    PATH=$PATH:/usr/sbin command -v $program >/dev/null || { echo "skipped because there is no $program (packages slurmctld, slurmd, slurm-client, munge)"; exit 77; }
done
[ "$(id -u)" -eq 0 ] || { echo "skipped because slurmd needs root"; exit 77; }
PATH=$PATH:/usr/sbin
work=$(mktemp -d) pids=() jobs=()
# Slurm ends the daemons, so it goes after them.
no_jobs() { [ -z "$(squeue -h 2>&1)" ]; }
finish() {
    if [ ${#jobs[@]} -gt 0 ]; then
        scancel "${jobs[@]}" 2>/dev/null
        within 30 no_jobs
    fi
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null; done
    for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null; done
    rm -rf "$work"
}
trap finish EXIT
fail() { tail -n 15 "$work"/*.log "$work"/slurm-*.out 2>/dev/null; echo "FAILED: $1"; exit 1; }
# until_true WHAT command…: until the command succeeds; WHAT is wrong when it does not
until_true() {
    local what=$1
    shift
    within 60 "$@" >/dev/null 2>&1 || fail "$what"
}

# Three ports that nobody has at the moment.
free_port() { local p; while p=$((20000 + RANDOM % 12000)); (exec 3<>/dev/tcp/127.0.0.1/$p) 2>/dev/null; do :; done; echo $p; }
chmod 755 "$work"
export SLURM_CONF=$work/slurm.conf
mkdir "$work/state" "$work/n1" "$work/n2" "$work/munge"
mungekey -c -k "$work/munge/key" || fail 'no munge key'
munged --foreground --force --socket="$work/munge/socket" --key-file="$work/munge/key" --pid-file="$work/munge/pid" \
    --log-file="$work/munge/log" --seed-file="$work/munge/seed" >"$work/munged.log" 2>&1 &
pids+=($!)
cat >"$SLURM_CONF" <<CONF
ClusterName=test
SlurmctldHost=$(hostname)(127.0.0.1)
SlurmctldPort=$(free_port)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$work/munge/socket
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/%n
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/linear
MpiDefault=none
ReturnToService=2
KillWait=5
NodeName=n1 NodeHostname=$(hostname) NodeAddr=127.0.0.1 Port=$(free_port) CPUs=1
NodeName=n2 NodeHostname=$(hostname) NodeAddr=127.0.0.1 Port=$(free_port) CPUs=1
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
CONF
until_true 'munged does not answer' munge --socket="$work/munge/socket" -n
slurmctld -D >"$work/slurmctld.log" 2>&1 &
pids+=($!)
for node in n1 n2; do
    slurmd -D -N $node >"$work/slurmd.$node.log" 2>&1 &
    pids+=($!)
done
idle() { [ "$(sinfo -h -t idle -o %D)" = 2 ]; }
if ! within 30 idle 2>/dev/null; then
    if grep -hq 'multiple-slurmd\|Duplicated NodeHostName' "$work"/*.log; then
        echo "skipped because this Slurm cannot have two nodes on one machine (it was built without --enable-multiple-slurmd)"
        exit 77
    fi
    fail 'the nodes do not become idle'
fi

export KCASTD=$bin/kcastd KCAST_STATE=$work/pools KCASTD_OPTIONS='--listen=tcp://127.0.0.1:0 --devices=cpu:1'
export HOME=$work
# submit NAME NODES OPTION…: an allocation; the addresses of all its NODES are in $work/NAME when this returns. Sets $job.
submit() {
    local name=$1 nodes=$2
    shift 2
    export KCAST_POOL_FILE=$work/$name
    job=$(sbatch --parsable --time=10 --chdir="$work" "$@" "$root/deploy/slurm/kernelcast.sbatch") || fail 'sbatch refuses'
    jobs+=("$job")
    complete() { [ "$(grep -c '^tcp://127.0.0.1:' "$work/$name" 2>/dev/null)" = "$nodes" ]; }
    until_true "no pool $name of $nodes comes up" complete
}
gone() { [ -z "$(squeue -h -j "$1" 2>/dev/null)" ]; }
kcast() { "$bin/kcast" --no-worker "$@"; }
# search NAME POOL OPTION…: the scan, in $work/NAME.run
search() {
    local name=$1 pool=$2
    shift 2
    kcast --pool "$pool" search "$root/problems/cpu/scan" --run "$work/$name.run" "$@" >"$work/search-$name.log" 2>&1
}
measured_at() { kcast export "$work/$1.run" --events | grep '"measured"' | grep -c "\"pool\":\"$2\""; }

# A search through the pool of one allocation with two hosts.
submit pool 2 --nodes=2
[ "$(sort -u "$work/pool" | grep -c '^tcp://127.0.0.1:')" -eq 2 ] || fail "two addresses were expected: $(cat "$work/pool")"
for n in 1 2; do kcast --pool "$(sed -n ${n}p "$work/pool")" status | grep -q 'cpu0 *ready' || fail "daemon $n is not ready"; done
search a "file:$work/pool" --candidates 3 --seed 1 || fail 'the search fails'
grep -q 'considered 3' "$work/search-a.log" || fail 'the search has not considered all'

# The signal that comes before the time limit: both daemons end in good order, and so does the job.
scancel --signal=USR1 --batch "$job" || fail 'scancel cannot signal'
until_true 'the vacated job does not end' gone "$job"
grep -q 'vacating' "$work"/pools/n1.log && grep -q 'vacating' "$work"/pools/n2.log || fail 'a daemon was not told'
[ ! -e "$work/pool" ] || fail 'the address is still there'
until_true 'the nodes do not become idle again' idle

[ "$(stat -c %a "$work/pools/n1")" = 700 ] || fail 'others may read the ledger'

# Two allocations, one search over both; one is cancelled while its device measures. The search says so and ends on the other.
submit pool1 1 --nodelist=n1
first=$(cat "$work/pool1")
submit pool2 1 --nodelist=n2
second=$(cat "$work/pool2") cancelled=$job
search b "$first,$second" --candidates 24 --seed 2 &
search=$!
pids+=($search)
# Something is measured there, and more waits.
at_work() { [ "$(kcast --pool "$second" --json jobs | grep -cE '"state":"(queued|compiling|ready|running)"')" -gt 1 ] && measured_at b "$second"; }
until_true 'the second allocation gets no jobs' at_work
scancel "$cancelled" || fail 'scancel fails'
until_true 'the cancelled job does not end' gone "$cancelled"
[ ! -e "$work/pool2" ] || fail 'the address of the cancelled allocation is still there'
grep -q 'stopping' "$work/pools/n2.log" || fail 'the daemon did not stop in good order'
kill -0 $search 2>/dev/null || fail 'the search has ended too early for this test'
wait $search || fail "the search did not survive: exit $?"
grep -q 'considered 24' "$work/search-b.log" || fail 'the search has not considered all'
grep -qE "$second.* [1-9][0-9]* of its [0-9]+ jobs go to others" "$work/search-b.log" || fail 'the search does not say that jobs have moved'
[ "$(measured_at b "$first")" -gt 0 ] || fail 'the first allocation has measured nothing'

# The next allocation of that node goes on with the jobs that were waiting, and the next search measures on both again.
submit pool2 1 --nodelist=n2
second=$(cat "$work/pool2")
grep -q 'jobs-reloaded unfinished=[1-9]' "$work/pools/n2.log" || fail 'the next daemon has forgotten the jobs'
done_there() { ! kcast --pool "$second" --json jobs | grep -qE '"state":"(queued|compiling|ready|running)"'; }
until_true 'the jobs of before do not end' done_there
search c "$first,$second" --candidates 8 --seed 3 || fail 'a search over both allocations fails'
for url in $first $second; do [ "$(measured_at c "$url")" -gt 0 ] || fail "nothing was measured at $url"; done
scancel --signal=USR1 --batch "${jobs[@]}" 2>/dev/null
for job in "${jobs[@]}"; do until_true 'the last jobs do not end' gone "$job"; done
jobs=()
