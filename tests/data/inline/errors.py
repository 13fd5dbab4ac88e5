# What fails in C++ is an exception of Python's with its text, and tensors live as long as C++ has them.
import gc
import weakref
import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
int64_t fails(torch::Tensor x, int64_t how)
{
    switch (how) {
    case 0: TORCH_CHECK(x.dim() == 9, "expected 9 dimensions, got ", x.dim(), " of ", x.sizes()); break;
    case 1: TORCH_CHECK_INDEX(false, "index"); break;
    case 2: TORCH_CHECK_VALUE(false, "value"); break;
    case 3: TORCH_CHECK_TYPE(false, "type"); break;
    case 4: TORCH_CHECK_NOT_IMPLEMENTED(false, "not yet"); break;
    case 5: throw std::invalid_argument("standard");
    case 6: throw 5;
    case 7: return x.size(5);
    case 8: return *x.data_ptr<int>();
    case 9: return x.view({7, 7}).numel();
    case 10: return torch::Tensor().numel() + torch::Tensor().dim();
    case 11: AT_DISPATCH_FLOATING_TYPES(at::kInt, "eleven", [&] { (void)sizeof(scalar_t); }); break;
    case 12: AT_ERROR("number ", 12, " of ", x.dtype());
    case 13: TORCH_CHECK(false); break;
    case 14: throw std::out_of_range("out of range");
    }
    try {
        x.view({7, 7});
    } catch (const c10::Error &error) {
        return how;
    }
    return -1;
}
static torch::Tensor kept;
void keep(torch::Tensor x) { kept = x; }
void drop() { kept = torch::Tensor(); }
torch::Tensor back() { return kept; }
void touch(const torch::Tensor &x) { auto other = x.view({-1}); x.zero_(); x.sum(); }
// Half and bfloat16 of the bits of a float, and the float of a half's bits.
int64_t narrowed(double value, bool brain)
{
    return brain ? at::BFloat16(static_cast<float>(value)).x : at::Half(static_cast<float>(value)).x;
}
double widened(int64_t bits) { return at::Half(static_cast<uint16_t>(bits), at::Half::from_bits()); }
double computed(double a, double b)
{
    at::Half x = static_cast<float>(a), y = static_cast<float>(b);
    x += y;
    return (x * y - 1) / 2 + std::numeric_limits<at::Half>::max() * at::Half(0.0f);
}
"""
ours = load_inline(name="errors", cpp_sources=SOURCE, functions=["fails", "keep", "drop", "back", "touch", "narrowed", "widened", "computed"])
x = torch.tensor([1.0, 2.0])
EXPECTED = {0: (RuntimeError, "expected 9 dimensions, got 1 of [2]"), 1: (IndexError, "index"), 2: (ValueError, "value"), 3: (TypeError, "type"),
            4: (NotImplementedError, "not yet"), 5: (RuntimeError, "standard"), 6: (RuntimeError, "Caught an unknown exception!"),
            7: (IndexError, "Dimension out of range (expected to be in range of [-1, 0], but got 5)"),
            8: (RuntimeError, "expected scalar type Int but found Float"), 9: (RuntimeError, "shape '[7, 7]' is invalid for input of size 2"),
            10: (RuntimeError, "Expected a proper Tensor but got None (or an undefined Tensor in C++)"), 14: (IndexError, "out of range"),
            11: (NotImplementedError, "\"eleven\" not implemented for 'Int'"), 12: (RuntimeError, "number 12 of float"),
            13: (RuntimeError, "Expected false to be true, but got false.")}
for how, (kind, text) in EXPECTED.items():
    try:
        ours.fails(x, how)
    except Exception as error:
        assert type(error) is kind and str(error) == text, (how, type(error), str(error))
    else:
        raise AssertionError(f"{how} does not fail")
assert ours.fails(x, 15) == 15  # which C++ has caught


def lives(of):
    gc.collect()
    return of() is not None


y = torch.tensor([1.0])
seen = weakref.ref(y)
ours.touch(y)
del y
assert not lives(seen)
y = torch.tensor([3.0])
seen = weakref.ref(y)
ours.keep(y)
assert ours.back() is y
del y
assert lives(seen) and ours.back().item() == 3.0
ours.drop()
assert not lives(seen) and ours.back() is None

import struct  # noqa: E402
for value in [0.0, -0.0, 1.0, 1.0 + 2**-11, 1.0 + 3 * 2**-11, 65504.0, 65519.996, 65520.0, -1e9, 6e-8, 2.0**-25, 2.0**-25 * 1.0001, 3e-5, 0.1, float("inf")]:
    value = struct.unpack("f", struct.pack("f", value))[0]
    try:
        half = struct.unpack("H", struct.pack("e", value))[0]
    except OverflowError:  # where Python has no infinity
        half = 0x7C00 if value > 0 else 0xFC00
    assert ours.narrowed(value, False) == half, (value, ours.narrowed(value, False), half)
for bits in range(0, 0x7C01):
    assert ours.widened(bits) == struct.unpack("e", struct.pack("H", bits))[0], bits
    assert ours.narrowed(ours.widened(bits), False) == bits, bits
assert ours.narrowed(float("nan"), False) == 0x7E00 and ours.narrowed(float("nan"), True) == 0x7FC0
assert [ours.narrowed(v, True) for v in (1.0, 1.0 + 2**-8, 1.0 + 3 * 2**-8, -2.0)] == [0x3F80, 0x3F80, 0x3F82, 0xC000]
assert ours.computed(1.5, 2.0) == 3.0


def custom_kernel(data):
    x, y, a = data
    torch.launch("fk_scale", x, y, x.numel(), a)
