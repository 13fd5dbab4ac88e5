#!/bin/sh
# Installs the Debian packages that kernelcast needs and that are missing; does nothing when all are there.
#   install-deps.sh          what building and testing need
#   install-deps.sh --run    what building and running need
#   install-deps.sh --pip    Python's installer, for scripts/install-toolkit.sh
#   install-deps.sh --model  what scripts/install-model.sh builds a language model's server with
#   install-deps.sh --ci     what .ci/run needs besides: clang, clang-format, sanitizers' runtimes, services that tests start privately (Slurm, systemd)
set -eu
run='gcc libc6-dev make binutils pkg-config libuv1-dev libmsgpack-dev libjansson-dev libsqlite3-dev
     libinih-dev uthash-dev libmbedtls-dev libseccomp-dev libxgboost-dev libcurl4-openssl-dev zlib1g-dev libncurses-dev'
test='libcmocka-dev procps python3 xz-utils nghttp2-proxy iproute2 nftables'
ci='clang libclang-rt-14-dev clang-format-14 slurmctld slurmd slurm-client munge systemd dpkg-dev lintian'
case "${1:-}" in
--run) want=$run ;;
--pip) want='python3 python3-pip' ;;
--model) want='python3 python3-pip g++ cmake ninja-build binutils' ;;
--ci) want="$run $test $ci" ;;
'') want="$run $test" ;;
*) echo "install-deps.sh: unknown argument $1; use --run, --pip, --model or --ci" >&2; exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null 2>&1; then
    echo "install-deps.sh: this machine has no dpkg; install by hand what these Debian packages hold: $(echo $want)" >&2
    exit 9
fi
missing=
for package in $want; do
    case $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || :) in
    installed) ;;
    *) missing="$missing $package" ;;
    esac
done
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
    install || {
        tail -5 "$log" >&2
        echo "install-deps.sh: apt-get could not install:$missing (whole output: $log)" >&2
        exit 9
    }
fi
rm -f "$log"
