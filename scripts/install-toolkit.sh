#!/bin/sh
# Puts NVIDIA's run-time compiler, its headers and its disassembler into build/toolkit, from PyPI, unless there is a CUDA
# toolkit already. Only tests without a GPU host's own toolkit need it.
set -eu
cd "$(dirname "$0")/.."
for root in "${KCAST_CUDA_HOME:-}" "${CUDA_HOME:-}" /usr/local/cuda /usr/local/cuda-* build/toolkit; do
    [ -n "$root" ] && [ -f "$root/include/cuda_fp16.h" ] && ls "$root"/lib*/libnvrtc.so.1[2-9] >/dev/null 2>&1 && exit 0
done
# NVIDIA's compiler is x86-64 or sbsa; a machine without pip gets it from Debian.
if ! python3 -m pip --version >/dev/null 2>&1; then
    scripts/install-deps.sh --pip || {
        echo "install-toolkit.sh: no pip, so no CUDA compiler: the tests that need one will be skipped" >&2
        exit 0
    }
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "fetching NVRTC and its headers from PyPI into build/toolkit" >&2
if ! python3 -m pip download -q --no-deps --disable-pip-version-check -d "$work" 'nvidia-cuda-nvrtc==13.0.*' \
    'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-crt==13.0.*' 'nvidia-cuda-cccl==13.0.*' >"$work/log" 2>&1; then
    tail -2 "$work/log" >&2
    echo "install-toolkit.sh: PyPI does not give the CUDA compiler: the tests that need one will be skipped" >&2
    exit 0
fi
# The assembler of PTX; without it candidates in PTX are not measured.
python3 -m pip download -q --no-deps --disable-pip-version-check -d "$work" 'nvidia-nvjitlink==13.0.*' >"$work/log" 2>&1 ||
    echo "install-toolkit.sh: PyPI does not give nvJitLink: candidates in PTX will not be measured" >&2
# The disassembler, for a few more features, has numbers of its own; what is there without it works.
python3 -m pip download -q --no-deps --disable-pip-version-check -d "$work" 'nvidia-cuda-nvdisasm==13.*' >"$work/log" 2>&1 ||
    echo "install-toolkit.sh: PyPI does not give nvdisasm: candidates will have no sass_ features" >&2
for wheel in "$work"/*.whl; do
    python3 -c 'import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extractall(sys.argv[2])' "$wheel" "$work/out"
done
[ ! -f "$work/out/nvidia/cu13/bin/nvdisasm" ] || chmod +x "$work/out/nvidia/cu13/bin/nvdisasm"
mkdir -p build
rm -rf build/toolkit
mv "$work"/out/nvidia/cu13 build/toolkit
