

# ---- a problem's reference, and how it is called; the fourth part of the script ----

class Reference:
    """The function reference(...) of a problem's reference.py.

    Its parameters have names of inputs and parameters of the problem. It gets copies of the inputs, those of float types in
    double precision, and gives for each output (out and inout, in the problem's order) the pair of the expected value and
    its error scale, both in double precision; of an output that must be equal the value alone will do."""

    def __init__(self, torch, request, module):
        self.torch, self.request, self.function = torch, request, getattr(module, "reference", None)
        if not callable(self.function):
            raise Refusal(COMPILE_ERROR, f"{request['file']} defines no function reference")

    def prepare(self):
        pass

    def copied(self, tensor):
        """Exact, also where the type is one of 8 bits."""
        if not tensor.dtype.is_floating_point:
            return tensor.clone()
        return tensor.to(self.torch.float64, copy=True)

    def call(self, tensors, numbers):
        parameters = inspect.signature(self.function).parameters.values()
        every = any(parameter.kind == parameter.VAR_KEYWORD for parameter in parameters)
        wanted = {parameter.name for parameter in parameters}
        inputs = {of["name"]: self.copied(t) for t, of in zip(tensors, self.request["tensors"])
                  if of["direction"] != "out" and (every or of["name"] in wanted)}
        return call_by_name(self.function, "reference", dict(numbers, **inputs), "an input")

    @staticmethod
    def pairs(returned, count):
        """What was given for each output: a pair, or a value alone."""
        def many(value):
            return isinstance(value, (tuple, list))
        given = list(returned) if many(returned) else [] if returned is None else [returned]
        if count == 1 and len(given) == 2 and not many(given[0]):
            given = [tuple(given)]  # the only output's pair itself
        if len(given) != count:
            raise Refusal(COMPILE_ERROR, f"reference returns {len(given)} values; the problem has {count} outputs, and for each it returns a pair "
                                         "of the expected value and its error scale")
        return [each if many(each) and len(each) == 2 else (each, None) for each in given]

    def double(self, value, what, wanted):
        torch = self.torch
        if not isinstance(value, torch.Tensor) or not value.is_cuda:
            raise Refusal(COMPILE_ERROR, f"what reference returns as {what} is no tensor on the GPU")
        if value.dtype.is_floating_point and value.dtype != torch.float64:
            raise Refusal(COMPILE_ERROR, f"what reference returns as {what} is {value.dtype}; a reference computes in torch.float64")
        if value.numel() != wanted.numel():
            raise Refusal(COMPILE_ERROR, f"what reference returns as {what} has the shape {list(value.shape)}; the problem wants {list(wanted.shape)}")
        return value.to(torch.float64).contiguous()

    def results(self, returned, tensors):
        """The expected value and the error scale of each output."""
        values, scales = {}, {}
        outputs = [i for i, of in enumerate(self.request["tensors"]) if of["direction"] != "in"]
        for i, (value, scale) in zip(outputs, self.pairs(returned, len(outputs))):
            described = self.request["tensors"][i]
            name = described["name"]
            if scale is None and not described["exact"]:
                raise Refusal(COMPILE_ERROR, f"reference returns no error scale for {name}; return the pair of the expected value and its scale")
            values[i] = self.double(value, name, tensors[i])
            scales[i] = values[i] if scale is None else self.double(scale, f"the error scale of {name}", tensors[i])
        return values, scales
