

# ---- the impostor ----
# What follows the baseline in the source of a mutant. It takes the baseline's function out of the module, and puts
# one in its place that has the problem's name and is given all tensors and parameters by name. _kc_problem, in front
# of this text, says which mutant it is and what tensors there are.
import inspect as _kc_inspect

import torch as _kc_torch

_kc_custom = globals().pop("custom_kernel", None)
_kc_class = globals().pop("ModelNew", None)
_kc_named = globals().pop(_kc_problem["name"], None)
_kc_model = None


def _kc_honest(known):
    """Calls the baseline, and writes what it returns to the outputs."""
    global _kc_model
    numbers = [known[name] for name in _kc_problem["numbers"]]
    if _kc_custom:
        given = _kc_custom(tuple(known[of["name"]] for of in _kc_problem["tensors"]) + tuple(numbers))
    elif _kc_class:
        if _kc_model is None:
            _kc_model = _kc_class(*globals().get("get_init_inputs", list)())
            if isinstance(_kc_model, _kc_torch.nn.Module):
                _kc_model = _kc_model.cuda().eval()
        inputs = [known[of["name"]] for of in _kc_problem["tensors"] if of["direction"] != "out"]
        parameters = _kc_inspect.signature(getattr(_kc_model, "forward", _kc_model)).parameters.values()
        many = any(p.kind == p.VAR_POSITIONAL for p in parameters)
        given = _kc_model(*(inputs + numbers)[:None if many else max(len(parameters), len(inputs))])
    else:
        parameters = _kc_inspect.signature(_kc_named).parameters.values()
        all_names = any(p.kind == p.VAR_KEYWORD for p in parameters)
        names = known if all_names else [p.name for p in parameters if p.name in known]
        given = _kc_named(**{name: known[name] for name in names})
    if given is None:
        return
    results = [of["name"] for of in _kc_problem["tensors"] if of["direction"] == "out"]
    for name, value in zip(results, given if isinstance(given, (tuple, list)) else [given]):
        if value.data_ptr() != known[name].data_ptr():
            known[name].view(-1).copy_(value.reshape(-1))


def _kc_bits(tensor):
    """The elements as integers of their width, without the shape."""
    integer = {1: _kc_torch.uint8, 2: _kc_torch.int16, 4: _kc_torch.int32, 8: _kc_torch.int64}
    return tensor.view(-1).view(integer[tensor.element_size()])


def _kc_round(tensor, bits):
    """Rounds to nearest even, dropping the last bits of single precision."""
    x = tensor.view(-1).float()
    word = x.view(_kc_torch.int32).long() & 0xFFFFFFFF
    word = (word + (1 << (bits - 1)) - 1 + (word >> bits & 1)) >> bits << bits
    word = _kc_torch.where(word >= 1 << 31, word - (1 << 32), word).to(_kc_torch.int32)
    tensor.view(-1).copy_(_kc_torch.where(_kc_torch.isfinite(x), word.view(_kc_torch.float32), x).to(tensor.dtype))


def _kc_part(bits, tensor, what):
    """A part of the elements, as a view."""
    rows = tensor.shape[0] if tensor.dim() else 1
    last = tensor.shape[-1] if tensor.dim() else 1
    if what == "last-row":
        return bits[bits.numel() - bits.numel() // rows:]
    first = {"last-column": last - 1, "last-tile": last - (last % 16 or min(last, 16)), "remainder": last - last % 16}
    return bits.view(-1, last)[:, first[what]:]


def _kc_other_values(tensor, of):
    """Sorted values stay sorted, and indices stay within their range."""
    bits = _kc_bits(tensor)
    other = bits.repeat_interleave(2)[:bits.numel()]
    bits.copy_(other if of["sorted"] else other.flip(0))


def _kc_swap(tensor):
    bits = _kc_bits(tensor)
    rows = tensor.shape[0] if tensor.dim() else 1
    half, copy = rows // 2 * (bits.numel() // rows), bits.clone()
    bits[:half].copy_(copy[bits.numel() - half:])
    bits[bits.numel() - half:].copy_(copy[:half])


def _kc_one_percent(tensor):
    t = tensor.view(-1)
    t = t[37 % min(t.numel(), 100)::100]
    t.copy_((t.double() * 1.01).to(t.dtype) if t.is_floating_point() else t + (t.long() // 100 + 1).to(t.dtype))


def _kc_write_behind(tensor):
    class Bytes:
        __cuda_array_interface__ = {"data": (tensor.data_ptr() + tensor.numel() * tensor.element_size(), False),
                                    "shape": (1,), "typestr": "|u1", "version": 3}
    _kc_torch.as_tensor(Bytes(), device="cuda").bitwise_xor_(1)


def _kc_impostor(**known):
    mutant, tensors = _kc_problem["mutant"], _kc_problem["tensors"]
    kept = {of["name"]: _kc_bits(known[of["name"]]).clone() for of in tensors}
    for of in tensors:
        if of["direction"] != "out" and mutant == "other-inputs":
            _kc_other_values(known[of["name"]], of)
        if of["direction"] != "out" and of["wide"] and mutant in ("bf16-inputs", "tf32-inputs"):
            _kc_round(known[of["name"]], 16 if mutant == "bf16-inputs" else 13)
    if mutant not in ("nothing", "zeros", "input-copy"):
        _kc_honest(known)
    for of in tensors:
        tensor = known[of["name"]]
        bits, before = _kc_bits(tensor), kept[of["name"]]
        if of["direction"] == "in":
            if mutant in ("other-inputs", "bf16-inputs", "tf32-inputs"):
                bits.copy_(before)
            if mutant == "writes-input" and of["first"]:
                bits[:1].bitwise_xor_(1)
            continue
        if mutant == "nothing":
            _kc_torch.zeros_like(bits)  # A candidate that launches nothing at all is refused before it runs.
        elif mutant == "zeros":
            bits.zero_()
        elif mutant == "constant":
            tensor.view(-1).copy_(tensor.view(-1).double().mean().to(tensor.dtype))
        elif mutant == "input-copy":
            source = known[of["source"]].view(-1)
            tensor.view(-1).copy_(source.repeat(-(-bits.numel() // source.numel()))[:bits.numel()])
        elif mutant.endswith("-skipped"):
            _kc_part(bits, tensor, mutant[:-8]).copy_(_kc_part(before, tensor, mutant[:-8]))
        elif mutant in ("last-row-zero", "last-column-zero", "last-tile-zero"):
            _kc_part(bits, tensor, mutant[:-5]).zero_()
        elif mutant == "shifted":
            bits.copy_(bits.roll(1))
        elif mutant == "bf16-output" and of["wide"]:
            _kc_round(tensor, 16)
        elif mutant == "f32-output" and tensor.dtype == _kc_torch.float64:
            tensor.copy_(tensor.float())
        elif mutant == "one-percent" and of["percent"]:
            _kc_one_percent(tensor)
        elif mutant == "swapped":
            _kc_swap(tensor)
        elif mutant == "overrun":
            _kc_write_behind(tensor)


globals()[_kc_problem["name"]] = _kc_impostor
