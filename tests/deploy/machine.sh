# Read by tests that need systemd as process 1. They have $work, an empty folder.
# A machine is systemd in namespaces of its own (mounts, processes, network with loopback alone, control groups) whose root is this
# machine's under an overlay in memory: what happens in there leaves nothing behind. None of this machine's own services start.

. "$(dirname "${BASH_SOURCE[0]}")/../support/until.sh"
systemd=/lib/systemd/systemd
machine=        # process id of its process 1

# machine_missing: prints why there can be none; nothing when there can.
machine_missing() {
    [ "$(id -u)" -eq 0 ] || { echo 'namespaces and mounts need root'; return; }
    [ -x $systemd ] || { echo 'there is no systemd (package systemd)'; return; }
    command -v nsenter >/dev/null && command -v useradd >/dev/null || { echo 'there is no nsenter or no useradd'; return; }
    mkdir "$work/try"
    unshare --mount --pid --net --fork --cgroup bash -c "
        mount -t tmpfs none $work/try && mkdir $work/try/{up,tmp,all} &&
        mount -t overlay -o lowerdir=/,upperdir=$work/try/up,workdir=$work/try/tmp none $work/try/all &&
        mount -t cgroup2 none $work/try/all/sys && mkdir $work/try/all/sys/kcast-try && rmdir $work/try/all/sys/kcast-try" >/dev/null 2>&1 ||
        echo 'this kernel or container does not allow overlays and control groups of version 2'
    rmdir "$work/try"
}

# Runs as process 1 of the new namespaces until systemd takes its place.
machine_inside() {
    local root=$1/all kept
    mount --make-rprivate /
    mount -t tmpfs none "$1"
    mkdir "$1/up" "$1/tmp" "$root"
    mount -t overlay -o "lowerdir=/,upperdir=$1/up,workdir=$1/tmp" none "$root"
    cd "$root"
    rm -rf etc/systemd/system etc/init.d etc/rc?.d etc/fstab usr/sbin/policy-rc.d etc/kernelcast var/lib/kernelcast var/log/journal
    mkdir -p etc/systemd/system proc sys dev run tmp .old
    printf '[Unit]\nRequires=basic.target\nAfter=basic.target\n' >etc/systemd/system/machine.target
    mount -t proc none proc
    mount --bind proc/sys proc/sys
    mount -o remount,bind,ro proc/sys
    mount -t sysfs -o ro none sys
    mount -t cgroup2 none sys/fs/cgroup
    mount -t tmpfs -o mode=755 none run
    mount -t tmpfs -o mode=1777 none tmp
    mount -t tmpfs -o mode=755 none dev
    for kept in null zero full random urandom tty; do touch dev/$kept && mount --bind /dev/$kept dev/$kept; done
    mkdir dev/shm dev/pts
    mount -t tmpfs -o mode=1777 none dev/shm
    mount -t devpts -o newinstance,ptmxmode=0666,mode=620 none dev/pts
    ln -s pts/ptmx dev/ptmx
    pivot_root . .old
    umount -l /.old
    exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin $systemd --system --unit=machine.target --log-target=journal --show-status=no
}

# machine_boot: sets $machine, when systemd has reached its target; else 1.
machine_boot() {
    local i
    mkdir "$work/groups" "$work/root"
    mount -t cgroup2 none "$work/groups" || return 1
    machine_group=$work/groups/kcast-test.$$
    mkdir "$machine_group" || return 1
    export -f machine_inside
    export systemd
    (
        echo $BASHPID >"$machine_group/cgroup.procs"
        exec unshare --mount --pid --fork --kill-child --cgroup --ipc --uts --net bash -euc 'machine_inside "$1"' inside "$work/root"
    ) >"$work/machine.log" 2>&1 &
    machine_started=$!
    within 60 machine_booted_or_ended
    kill -0 $machine_started 2>/dev/null && machine_booted
}
machine_booted() { machine=$(pgrep -P $machine_started) && inside systemctl is-active machine.target >/dev/null 2>&1; }
machine_booted_or_ended() { machine_booted || ! kill -0 $machine_started 2>/dev/null; }

# inside COMMAND…: there, as root, in /root. inside_shell TEXT: by a shell. inside_put FOLDER: what it holds goes to /.
inside() {
    nsenter -t "$machine" -a env -i -C /root HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 TERM=dumb "$@" </dev/null
}
inside_put() { tar -C "$1" -c . | nsenter -t "$machine" -a tar -x -C / --no-same-owner; }
inside_shell() { inside bash -c "$1"; }

# machine_end: ends everything in there and takes away its control groups.
machine_end() {
    # Whose end is its process 1's, too, also where that was never found.
    [ -z "${machine_started:-}" ] || kill -KILL ${machine:+"$machine"} "$machine_started" 2>/dev/null
    wait 2>/dev/null
    [ -z "${machine_group:-}" ] || find "$machine_group" -depth -type d -exec rmdir {} + 2>/dev/null
    umount -l "$work/groups" 2>/dev/null
}
