#!/usr/bin/env bash
# What the headers that stand in for PyTorch's (executor/recorder/inline) are for: a real compiler of CUDA takes the candidates with
# load_inline and load of tests/gpu/recorded and tests/data/inline/device.py with them, for a GPU; and g++ has nothing to say against them.
set -eu
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
[ -x "$nvcc" ] || { echo "skipped because there is no nvcc"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -R "$KCAST_ROOT/tests/support/fake_torch/torch" "$work/"
cp "$KCAST_BUILD/tests/fake/capture/libcuda.so.1" "$work/torch/"
sed '/^main()$/d' "$KCAST_BUILD/executor/recorder/record.py" >"$work/recorder_parts.py"
cd "$work"
PATH=$(dirname "$nvcc"):$PATH PYTHONPATH=$work python3 - "$KCAST_ROOT"/tests/gpu/recorded/*-{inline,load}.py "$KCAST_ROOT/tests/data/inline/device.py" <<'P'
import os
import sys
import torch
import torch.utils.cpp_extension
import recorder_parts

inline = recorder_parts.Inline(torch, "sm_90")
inline.install()
for path in sys.argv[1:]:
    exec(compile(open(path, encoding="utf-8").read(), path, "exec"), {"__name__": "candidate"})
    print(inline.notes[-1])
os.environ["TORCH_CUDA_ARCH_LIST"] = "8.0;9.0a"  # as candidates say that they want what only this architecture has
torch.utils.cpp_extension.load_inline("tensor_cores", "void f();", """__global__ void k() { asm volatile("wgmma.fence.sync.aligned;"); }
void f() { k<<<1, 128>>>(); }""", ["f"])
assert len(inline.notes) == len(sys.argv) > 4, inline.notes
assert all("compiled without PyTorch's headers" in note for note in inline.notes), inline.notes
P
for header in torch/extension.h c10/util/Half.h torch/types.h pybind11/pybind11.h; do echo "#include <$header>"; done >"$work/all.cpp"
for bound in 'int64_t f(torch::Tensor x, int y) { return x.size(y); }' '#include "kcast/bind.hpp"' 'KCAST_OPEN' 'KCAST_FUNCTION(0, f)'; do echo "$bound"; done >>"$work/all.cpp"
for standard in c++17 c++20; do
    g++ -std=$standard -Wall -Wextra -Wshadow -Werror -DKCAST_PYBIND -I"$work/load_inline/include" -fsyntax-only "$work/all.cpp"
done
