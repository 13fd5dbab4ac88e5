#!/bin/sh
# Makes the fat binaries of this folder, with the compiler of CUDA 13.0.
set -eu
cd "$(dirname "$0")"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for arch in 75 80 90; do
    nvcc -std=c++17 -cubin -arch=sm_$arch -o "$scratch/$arch.cubin" variables.cu
done
nvcc -std=c++17 -ptx -arch=compute_90 -o "$scratch/90.ptx" variables.cu
for mode in none speed size; do
    fatbinary --create=fat_$mode.fatbin -64 --compress-all --compress-mode=$mode --image3=kind=elf,sm=75,file="$scratch/75.cubin" \
        --image3=kind=elf,sm=80,file="$scratch/80.cubin" --image3=kind=elf,sm=90,file="$scratch/90.cubin" \
        --image3=kind=ptx,sm=90,file="$scratch/90.ptx"
done
