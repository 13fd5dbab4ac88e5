#!/usr/bin/env bash
# The package's units under a real systemd (tests/deploy/machine.sh), and docs/operations.md's commands from the installed package to
# a pool for three people, as they stand there. Three people search at the same time; daemon-reload, reload, a crash, a hung loop,
# vacating and stopping do what the documents say.
set -u
bin=${KCAST_BIN:?} root=${KCAST_ROOT:?}
work=$(mktemp -d) pids=()
. "$root/tests/deploy/machine.sh"
finish() { machine_end; rm -rf --one-file-system "$work"; }
trap finish EXIT
why=$(machine_missing)
[ -z "$why" ] || { echo "skipped because $why"; exit 77; }
machine_boot || { cat "$work/machine.log"; echo 'FAILED: systemd does not start'; exit 1; }
journal() { inside journalctl --no-pager -q -u kcastd -u kcast-worker "$@"; }
fail() { journal -n 40; tail -n 20 "$work"/*.log; echo "FAILED: $1"; exit 1; }
until_true() { # WHAT COMMAND…: until the command succeeds; WHAT is wrong when it does not
    local what=$1
    shift
    within 60 "$@" >/dev/null 2>&1 || fail "$what"
}
property() { inside systemctl show -P "$1" kcastd; }

# ---- what the package holds, and its script ----
tree=$work/tree
mkdir -p "$tree"/usr/{bin,libexec/kernelcast,lib/systemd/system,lib/sysusers.d,lib/tmpfiles.d} "$tree"/etc/kernelcast "$tree"/tmp/deploy
cp "$bin"/{kcastd,kcast,kcast-worker} "$tree/usr/bin"
cp "$bin"/{kcast-exec,kcast-replay} "$tree/usr/libexec/kernelcast"
cp "$root"/deploy/systemd/*.service "$tree/usr/lib/systemd/system"
cp "$root/deploy/systemd/sysusers.conf" "$tree/usr/lib/sysusers.d/kernelcast.conf"
cp "$root/deploy/systemd/tmpfiles.conf" "$tree/usr/lib/tmpfiles.d/kernelcast.conf"
cp "$root"/deploy/etc/*.ini "$tree/etc/kernelcast"
cp "$root"/deploy/debian/p* "$tree/tmp/deploy"
cp -r "$root/problems/cpu/scan" "$tree/tmp"
# A problem of each person's own, so that nobody's results are another's.
people=(ann ben eva)
for name in "${people[@]}"; do
    mkdir "$tree/tmp/$name"
    cp -r "$root/tests/data/client/hill" "$tree/tmp/$name"
    echo "// $name's" >>"$tree/tmp/$name/hill/baseline.c"
done
inside_put "$tree"
inside_shell 'echo 127.0.0.1 gpu1.example.org >>/etc/hosts; chmod -R a+rX /tmp/{ann,ben,eva,scan}'
# script NAME ARGUMENT…: as dpkg runs it
script() { inside env DPKG_MAINTSCRIPT_PACKAGE=kernelcast DPKG_MAINTSCRIPT_NAME="$1" sh "/tmp/deploy/$1" "${@:2}"; }
script postinst configure >"$work/postinst.log" 2>&1 || fail 'postinst fails'
for unit in kcastd kcast-worker; do inside systemctl is-active $unit >/dev/null && inside systemctl is-enabled $unit >/dev/null || fail "$unit does not run"; done
inside kcast status >"$work/status.log" 2>&1 && grep -q 'sandbox on' "$work/status.log" && grep -q 'cpu0 *ready' "$work/status.log" || fail 'no device'
[ "$(property User)" = kernelcast ] && [ "$(inside stat -c %a:%U /var/lib/kernelcast/kcastd)" = 700:kernelcast ] || fail 'not its own account'
[[ "$(property StatusText)" == listening\ on\ tcp://127.0.0.1:7410* ]] || fail "systemctl status says: $(property StatusText)"

# ---- the documented commands, from the one behind the installation on ----
awk '/^## From an empty host/ {here = 1} here && /^```/ {if (n++) exit; next} here && n' "$root/docs/operations.md" >"$work/commands"
[ "$(wc -l <"$work/commands")" -le 10 ] || fail 'these are more than ten commands'
sed '1,/apt-get install.*kernelcast_/d' "$work/commands" >"$work/rest"
[ "$(wc -l <"$work/rest")" -ge 6 ] || fail "of the commands are left: $(cat "$work/rest")"
while read -r command; do
    inside_shell "$command" >>"$work/commands.log" 2>&1 || fail "this does not work: $command"
done <"$work/rest"
pool=tls://gpu1.example.org:7410
for i in 0 1 2; do
    name=${people[i]}
    token=$(grep -o "kc1\.$name\.[0-9a-f]*" "$work/commands.log")
    inside_shell "useradd -m $name && install -d -m 700 -o $name /home/$name/.config && cp -r /root/pool/clients/$name /home/$name/.config/kernelcast &&
        (umask 077; echo $token >/home/$name/.config/kernelcast/token) && chown -R $name: /home/$name" || fail "no account $name"
done
# Whoever operates it, by the documents' next commands.
awk '/^## From an empty host/ {here = 1} here && /^```/ {if (++n == 6) exit; next} here && n == 5' "$root/docs/operations.md" >"$work/operator"
grep -q 'role admin' "$work/operator" || fail "the operator's commands are: $(cat "$work/operator")"
while read -r command; do
    inside_shell "$command" >>"$work/commands.log" 2>&1 || fail "this does not work: $command"
done <"$work/operator"
operator() { inside kcast --no-worker --pool $pool "$@"; }
# An operator's token that counts shows that the reload has happened.
until_true 'the token does not count after a reload' operator jobs

# ---- three people search at the same time ----
search() { # NAME PROBLEM RUN OPTION…
    local name=$1 problem=$2 run=$3
    shift 3
    inside runuser -l "$name" -c "kcast --no-worker --pool $pool search /tmp/$problem --run $run.run $*" >"$work/$name-$run.log" 2>&1
}
for i in 0 1 2; do
    search "${people[i]}" "${people[i]}/hill" first --candidates 16 --seed $((i + 1)) &
    pids+=($!)
done
for i in 0 1 2; do
    wait "${pids[i]}" || fail "the search of ${people[i]} fails"
    grep -q 'considered 16' "$work/${people[i]}-first.log" || fail "the search of ${people[i]} has not considered all"
done
operator --json top >"$work/top.log" || fail 'no kcast top'
for name in "${people[@]}"; do grep -qE "\"$name\", *\"search\": *\"hill-" "$work/top.log" || fail "top does not show the search of $name: $(cat "$work/top.log")"; done
operator top | grep -q '^3 searches have ended' || fail 'top does not say that all searches have ended'
inside runuser -l ann -c "kcast --no-worker --pool $pool --json top" >"$work/own.log" || fail 'no kcast top for ann'
grep -q '"ann"' "$work/own.log" && ! grep -qE '"(ben|eva)"' "$work/own.log" || fail "ann sees: $(cat "$work/own.log")"
inside runuser -l ann -c "kcast --no-worker --pool $pool drain cpu0" >/dev/null 2>"$work/drain.log" && fail 'ann may drain a device'

# ---- while a search runs ----
# under_load NAME COMMAND…: the command while jobs of a search of ann's run, of candidates that no other search has; the search
# considers all, whatever happens.
seed=0
busy() { operator --json jobs | grep -q '"state":"running"'; }
under_load() {
    local name=$1
    shift
    seed=$((seed + 1))
    search ann scan "$name" --candidates 10 --seed $seed &
    pids=($!)
    until_true 'nothing runs' busy
    "$@" || fail "$name: $* failed"
    wait "${pids[0]}" || fail "$name: the search did not survive"
    grep -q 'considered 10' "$work/ann-$name.log" || fail "$name: the search has not considered all"
}
pid=$(property MainPID)
under_load daemon-reload inside systemctl daemon-reload
[ "$(property MainPID)" = "$pid" ] && [ "$(property NRestarts)" = 0 ] || fail 'daemon-reload restarts the daemon'
! journal | grep -qE 'job-lost|attempt=[1-9]' || fail 'daemon-reload disturbs jobs'

inside_shell "echo 'queue-max = 12345' >>/etc/kernelcast/kcastd.ini"
under_load reload inside systemctl reload kcastd
until_true 'the reload is not told' eval 'journal | grep -q "reloaded changed=\"[^\"]*queue-max"'
inside_shell "echo 'queue-max = much' >>/etc/kernelcast/kcastd.ini; systemctl reload kcastd"
until_true 'a mistake is not told' eval 'journal | grep -q "reload.*much"'
inside sed -i '/queue-max/d' /etc/kernelcast/kcastd.ini
[ "$(property MainPID)" = "$pid" ] && [ "$(property NRestarts)" = 0 ] || fail 'a reload restarts the daemon'

# A crash: systemd starts it again, and the search goes on.
under_load crash inside systemctl kill -s KILL --kill-whom=main kcastd
[ "$(property NRestarts)" = 1 ] && [ "$(property MainPID)" != "$pid" ] || fail 'the crashed daemon was not started again'
journal | grep -q 'jobs-reloaded unfinished=[1-9]' || fail 'the new daemon has forgotten the jobs'

# A loop that stands still: the watchdog ends it. Its minute is too long for a test.
inside_shell 'mkdir -p /etc/systemd/system/kcastd.service.d && printf "[Service]\nWatchdogSec=2\nTimeoutAbortSec=2\n" >/etc/systemd/system/kcastd.service.d/soon.conf &&
    systemctl daemon-reload && systemctl restart kcastd' || fail 'no restart with a shorter watchdog'
restarts=$(property NRestarts)
under_load watchdog inside systemctl kill -s STOP --kill-whom=main kcastd
[ "$(property NRestarts)" -gt "$restarts" ] || fail 'the watchdog did not start the daemon again'
inside journalctl --no-pager -q | grep -q 'kcastd.service: Watchdog timeout' || fail 'it was not the watchdog'
inside_shell 'rm -r /etc/systemd/system/kcastd.service.d && systemctl daemon-reload && systemctl restart kcastd'

# Vacated: what runs may end, and nobody starts it again. Then stopped while it works: in good order, and nothing is left of it.
inactive() { [ "$(property ActiveState)" = inactive ]; }
ended() {
    until_true "$1: it does not end" inactive
    [ "$(property Result)" = success ] || fail "$1: it ended with $(property Result)"
    ! inside pgrep -u kernelcast -f 'kcastd|kcast-exec' >/dev/null || fail "$1: processes are left"
}
vacate() { inside systemctl kill -s USR1 --kill-whom=main kcastd && ended vacate && inside systemctl start kcastd; }
under_load vacate vacate
journal | grep -q vacating || fail 'the daemon was not told to vacate'
stop() { inside systemctl stop kcastd && ended stop && inside systemctl start kcastd; }
under_load stop stop

# ---- the package goes ----
script prerm remove >"$work/prerm.log" 2>&1 || fail 'prerm fails'
ended prerm
inside_shell 'rm /usr/lib/systemd/system/kcast*.service'
script postrm remove >"$work/postrm.log" 2>&1 && script postrm purge >>"$work/postrm.log" 2>&1 || fail 'postrm fails'
inside_shell '! ls -d /var/lib/kernelcast /etc/kernelcast' >/dev/null 2>&1 || fail 'purge leaves files'
