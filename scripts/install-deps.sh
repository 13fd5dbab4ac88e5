#!/bin/sh
# Installs the Debian packages that kernelcast needs and that are missing; does nothing when all are there.
#   install-deps.sh          what building and testing need
#   install-deps.sh --run    what building and running need
#   install-deps.sh --pip    Python's installer, for scripts/install-toolkit.sh
#   install-deps.sh --model  what scripts/install-model.sh builds a language model's server with
#   install-deps.sh --ci     what .ci/run needs besides: clang, clang-format, sanitizers' runtimes, services that tests start privately (Slurm, systemd)
#   install-deps.sh --cross  what tests/cross.sh builds for aarch64 with
# Debian 12 and 13, and Ubuntu where it has the same packages. A|B is the first of both that there is; ?A is left out where there is none.
set -eu
run='gcc libc6-dev make binutils libuv1-dev libmsgpack-dev|libmsgpack-c-dev libjansson-dev libsqlite3-dev
     libinih-dev uthash-dev libmbedtls-dev libseccomp-dev libxgboost-dev libcurl4-openssl-dev zlib1g-dev libzstd-dev liblz4-dev
     libncurses-dev'
test='g++ libcmocka-dev libnng-dev procps python3 python3-venv xz-utils nghttp2-proxy iproute2 nftables'
ci='clang ?clang-format-14 slurmctld slurmd slurm-client munge systemd dpkg-dev lintian'
sanitizers=0
case "${1:-}" in
--run) want=$run ;;
--pip) want='python3 python3-pip' ;;
--cross) want='make gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user' ;;
--model) want='python3 python3-pip g++ cmake ninja-build binutils' ;;
--ci) want="$run $test $ci" sanitizers=1 ;;
'') want="$run $test" ;;
*) echo "install-deps.sh: unknown argument $1; use --run, --pip, --model, --cross or --ci" >&2; exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null 2>&1; then
    echo "install-deps.sh: this machine has no dpkg; install by hand what these Debian packages hold: $(echo $want)" >&2
    exit 9
fi
status() { dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null || :; }
known() { [ -n "$(apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: *//p' | grep -v '^(none)$')" ]; }
# The runtimes of the sanitizers are a package for each version of clang.
clang_major() {
    { clang -dumpversion || apt-cache policy clang | sed -n 's/^ *Candidate: *[0-9]*:\([0-9]*\).*/\1/p'; } 2>/dev/null | cut -d . -f 1
}
# The names of packages that are missing. Of several names the first is taken that is known, or the first.
find_missing() {
    missing=
    for wanted in $want $([ $sanitizers -eq 0 ] || echo "libclang-rt-$(clang_major)-dev"); do
        names=$(echo "${wanted#\?}" | tr '|' ' ') chosen=
        for name in $names; do
            [ "$(status "$name")" != installed ] || continue 2
        done
        for name in $names; do
            if [ -z "$chosen" ] && known "$name"; then chosen=$name; fi
        done
        case $wanted in
        \?*) missing="$missing${chosen:+ $chosen}" ;;
        *) missing="$missing ${chosen:-${names%% *}}" ;;
        esac
    done
}
find_missing
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
    echo "install-deps.sh: this machine has no apt-get; install these Debian packages by hand:$missing" >&2
    exit 9
fi
sudo=
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null 2>&1 || {
        echo "install-deps.sh: neither root nor sudo; ask an administrator to run: apt-get install$missing" >&2
        exit 9
    }
    sudo=sudo
fi
echo "installing:$missing" >&2
log=$(mktemp)
export DEBIAN_FRONTEND=noninteractive
install() { $sudo apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends $missing >"$log" 2>&1 </dev/null; }
if ! install; then
    # The package lists may be missing or old: fetch them once and try again.
    $sudo apt-get update -qq >>"$log" 2>&1 </dev/null || :
    find_missing
    install || {
        tail -5 "$log" >&2
        echo "install-deps.sh: apt-get could not install:$missing (whole output: $log)" >&2
        exit 9
    }
fi
rm -f "$log"
