#!/bin/sh
# Makes candidates of this folder that are code of a compiler, with that of CUDA 13.0: softmax-assembled.ptx from a point of the problem's
# template, axpy-machine.cubin from the problem's baseline, and axpy-other.cubin from the same for another device.
set -eu
cd "$(dirname "$0")"
problems=../../../problems/cuda
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for define in KEEP=2 THREADS=256 ROWS=1 VEC=4 ITEMS=8 EXP=1 LONG=1; do echo "#define ${define%=*} ${define#*=}"; done >"$scratch/softmax.cu"
sed 's/^\(#pragma unroll\) ITEMS/\1 8/' $problems/softmax/template.cu >>"$scratch/softmax.cu" # nvcc expands no macro there
{
    echo '//@ launch softmax grid=(R) block=(256) args=(x, y, R, N)'
    echo '// Expected: faster|equivalent|slower'
    nvcc -std=c++17 -ptx -arch=compute_90 -o - "$scratch/softmax.cu"
} >softmax-assembled.ptx
cubin() { # NAME ARCHITECTURE EXPECTED
    nvcc -std=c++17 -cubin -arch="$2" -o "$scratch/axpy.cubin" $problems/axpy/baseline.cu
    { grep '^//@' $problems/axpy/baseline.cu; echo "// Expected: $3"; base64 "$scratch/axpy.cubin"; } >"$1"
}
cubin axpy-machine.cubin sm_90 'equivalent|inconclusive'
cubin axpy-other.cubin sm_80 'compile-error.*it is for sm_80'
