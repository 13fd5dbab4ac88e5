#!/usr/bin/env bash
# deploy/slurm/kernelcast.sbatch under a real Slurm: controller, two slurmd with a node name each, munge, all of them private to
# this test and on loopback. Two daemons serve, a search measures, the allocation is vacated by the signal that comes before a
# time limit, and another one is cancelled while a search runs.
set -u
bin=${KCAST_BIN:?} root=${KCAST_ROOT:?}
for program in slurmctld slurmd sbatch munged mungekey; do
    PATH=$PATH:/usr/sbin command -v $program >/dev/null || { echo "skipped because there is no $program (packages slurmctld, slurmd, slurm-client, munge)"; exit 77; }
done
[ "$(id -u)" -eq 0 ] || { echo "skipped because slurmd needs root"; exit 77; }
PATH=$PATH:/usr/sbin
work=$(mktemp -d) pids=()
finish() {
    [ -z "${job:-}" ] || scancel "$job" 2>/dev/null
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null; done
    for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null; done
    rm -rf "$work"
}
trap finish EXIT
fail() { echo "$1"; tail -n 15 "$work"/*.log "$work"/slurm-*.out 2>/dev/null; exit 1; }
# until_true WHAT command…: until the command succeeds; WHAT is wrong when it does not
until_true() {
    local what=$1 end=$((SECONDS + 60))
    shift
    while ! "$@" >/dev/null 2>&1; do [ $SECONDS -lt $end ] || fail "$what"; sleep 0.1; done
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
if ! timeout 30 bash -c "until [ \"\$(sinfo -h -t idle -o %D)\" = 2 ]; do sleep 0.2; done" 2>/dev/null; then
    if grep -hq 'multiple-slurmd\|Duplicated NodeHostName' "$work"/*.log; then
        echo "skipped because this Slurm cannot have two nodes on one machine (it was built without --enable-multiple-slurmd)"
        exit 77
    fi
    fail 'the nodes do not become idle'
fi

export KCASTD=$bin/kcastd KCAST_STATE=$work/pools KCASTD_OPTIONS='--listen=tcp://127.0.0.1:0 --devices=cpu:1'
export KCAST_POOL_FILE=$work/pool HOME=$work
submit() {
    job=$(sbatch --parsable --nodes=2 --time=10 --chdir="$work" "$root/deploy/slurm/kernelcast.sbatch") || fail 'sbatch refuses'
    until_true 'no pool comes up' test -s "$work/pool"
}
one() { cut -d, -f"$1" "$work/pool"; }
pool_status() { "$bin/kcast" --no-worker --pool "$1" status; }

# A search through the pool.
submit
[ "$(tr ',' '\n' <"$work/pool" | sort -u | grep -c '^tcp://127.0.0.1:')" -eq 2 ] || fail "two addresses were expected: $(cat "$work/pool")"
for n in 1 2; do pool_status "$(one $n)" | grep -q 'cpu0 *ready' || fail "daemon $n is not ready"; done
"$bin/kcast" --no-worker --pool "$(cat "$work/pool")" search "$root/problems/cpu/scan" --run "$work/a.run" --candidates 3 --seed 1 \
    >"$work/search.log" 2>&1 || fail 'the search fails'
grep -q 'considered 3' "$work/search.log" || fail 'the search has not considered all'

# The signal that comes before the time limit: both daemons end in good order, and so does the job.
scancel --signal=USR1 --batch "$job" || fail 'scancel cannot signal'
gone() { [ -z "$(squeue -h -j "$job" 2>/dev/null)" ]; }
until_true 'the vacated job does not end' gone
grep -q 'vacating' "$work"/pools/n1.log && grep -q 'vacating' "$work"/pools/n2.log || fail 'a daemon was not told'
[ ! -e "$work/pool" ] || fail 'the address is still there'
until_true 'the nodes do not become idle again' idle

# Cancelled in the middle of a search: the search says so, nothing is left, and the next allocation goes on where it was.
submit
"$bin/kcast" --no-worker --pool "$(one 1)" search "$root/problems/cpu/scan" --run "$work/b.run" --candidates 60 --seed 2 \
    >"$work/search.log" 2>&1 &
search=$!
pids+=($search)
running() { pool_status "$(one 1)" | grep -q 'running [1-9]'; }
until_true 'nothing runs' running
scancel "$job" || fail 'scancel fails'
until_true 'the cancelled job does not end' gone
grep -q 'stopping' "$work/pools/n1.log" "$work/pools/n2.log" || fail 'the daemons did not stop in good order'
kill -INT $search 2>/dev/null
wait $search 2>/dev/null
until_true 'the nodes do not become idle again' idle
submit
grep -q 'jobs-reloaded unfinished=[1-9]' "$work"/pools/n1.log "$work"/pools/n2.log || fail 'the next daemon has forgotten the jobs'
scancel --signal=USR1 --batch "$job"
until_true 'the last job does not end' gone
job=
