#!/usr/bin/env bash
# Builds all programs for another architecture and runs under qemu those unit tests that need neither the sandbox nor other programs:
# qemu makes no namespaces and filters no system calls. Prints "N passed, N failed" last.
#   tests/cross.sh      for aarch64; installs the cross compiler and qemu where they are missing
set -u
cd "$(dirname "$0")/.."
root=$PWD/build/arm64
build=build/aarch64
scripts/install-deps.sh --cross || exit 9
[ -e "$root/usr/include/uv.h" ] || scripts/cross-root.sh arm64 "$root" || exit 9
tests=$(cd tests && ls common/test_*.c common/*/test_*.c proto/test_*.c problem/test_*.c client/propose/test_*.c client/policy/test_*.c 2>/dev/null | sed 's/\.c$//')
# What the machine's speed or kernel decides under emulation is not for here.
tests=$(grep -vE '^common/(test_library|test_ready)$' <<<"$tests")
cc="aarch64-linux-gnu-gcc --sysroot=$root"
command -v ccache >/dev/null && cc="ccache $cc"
make -s -j"$(nproc)" CC="$cc" B=$build all $(sed "s|^|$build/tests/|" <<<"$tests") || exit 1
file -b "$build/bin/kcast" 2>/dev/null | cut -d , -f 1,2
VARIANT=aarch64 KCAST_TEST_UNDER="qemu-aarch64 -L $root" KCAST_TEST_LIMIT=300 tests/run.sh $tests
