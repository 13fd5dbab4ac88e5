#!/bin/sh
# Makes environments for the recorder's interpreter in a folder: `env` with stand-ins for PyTorch, nvcc and CUDA's runtime, and `bare` without.
# Headers of half precision are those of the toolkit that tests compile with, where there is one: cuda_bf16.h and what it includes.
#   recorder_environment.sh FOLDER FAKES      FAKES: where the fake drivers have been built
set -e
umask 022
folder=$1 fakes=$2 include=$1/env/include
/usr/bin/python3 -m venv --without-pip "$folder/env"
/usr/bin/python3 -m venv --without-pip "$folder/bare"
cp -R tests/support/fake_torch/* "$folder"/env/lib/python3*/site-packages/
cp "$fakes/capture/libcuda.so.1" "$folder"/env/lib/python3*/site-packages/torch/
cp tests/support/fake_nvcc.sh "$folder/env/bin/nvcc"
chmod 755 "$folder/env/bin/nvcc"
cp tests/support/fake_cuda/*.h "$include/"
for name in cuda cuda_runtime; do echo '#include "cuda_runtime_api.h"' >"$include/$name.h"; done
for cuda in "$KCAST_CUDA_HOME" /usr/local/cuda; do
    from=$cuda/include
    [ -n "$cuda" ] && [ -f "$from/cuda_bf16.h" ] || continue
    mkdir "$include/real"
    cp -RL "$from/crt" "$from"/cuda_bf16.h* "$from"/cuda_fp16.h* "$from"/vector_* "$from"/*_types.h "$from"/cuda_*runtime_api.h "$include/real/"
    cp -RL "$(ls -d "$from/nv" "$from/cccl/nv" 2>/dev/null | head -1)" "$include/"
    for name in cuda_bf16 cuda_fp16; do echo "#include \"real/$name.h\"" >"$include/$name.h"; done
    break
done
gcc -shared -fPIC -o "$folder/env/lib/libcudart.so" tests/support/fake_cuda/runtime.c
