

# ---- the candidate, and how it is called; the third part of the script ----

def torch_dtype(torch, name):
    return {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16, "i8": torch.int8,
            "u8": torch.uint8, "i32": torch.int32, "i64": torch.int64, "bool": torch.bool,
            "e4m3": getattr(torch, "float8_e4m3fn", None), "e5m2": getattr(torch, "float8_e5m2", None)}[name]


def make_tensor(torch, driver, dtype, shape, address):
    """A tensor at the address where the executor will have it."""
    driver.ours.kr_place(address)
    made = torch.empty(shape, dtype=dtype, device="cuda")
    driver.ours.kr_place(0)
    if made.data_ptr() != address:
        raise RuntimeError("PyTorch does not take its memory from where it is told")
    return made


def fill_tensor(torch, tensor, values):
    """Values that are possible for the tensor. Which ones they are does not matter."""
    kind, a, b = values["distribution"], values["value"][0], values["value"][1]
    shape = tensor.shape
    if kind == "normal":
        made = torch.randn(shape, device="cpu") * b + a
    elif kind in ("uniform", "wide"):
        low, high = (a, b) if kind == "uniform" else (-1.0, 1.0)
        made = torch.rand(shape, device="cpu") * (high - low) + low
    elif kind == "integers":
        made = torch.randint(int(a), int(b) + 1, shape, device="cpu")
    elif kind == "zipf":
        made = torch.randint(0, max(1, int(a)), shape, device="cpu")
    elif kind == "sorted":
        made = torch.sort(torch.rand(shape, device="cpu"), dim=-1)[0]
    else:  # one-hot
        made = torch.zeros(shape, device="cpu")
        made.reshape(-1, shape[-1])[:, 0] = 1
    tensor.copy_(made.to(tensor.dtype))


def positional(function):
    """How many positional arguments a function takes, and the names of its parameters."""
    names, many = [], False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
        many = many or parameter.kind == parameter.VAR_POSITIONAL
    return (1 << 16) if many else len(names), names


class Candidate:
    """The candidate's function, and how it is called."""

    def __init__(self, torch, request, module):
        self.torch, self.request, self.module, self.model = torch, request, module, None
        self.name = request["problem"]
        if callable(getattr(module, "custom_kernel", None)):
            self.form = "custom_kernel"
        elif inspect.isclass(getattr(module, "ModelNew", None)):
            self.form = "ModelNew"
        elif callable(getattr(module, self.name, None)):
            self.form = "function"
        else:
            raise Refusal(COMPILE_ERROR, f"{SOURCE} defines neither custom_kernel(data) nor a class ModelNew nor a function {self.name}")

    def prepare(self):
        if self.form != "ModelNew" or self.model is not None:
            return
        inputs = getattr(self.module, "get_init_inputs", None)
        arguments = inputs() if callable(inputs) else []
        self.model = self.module.ModelNew(*arguments)
        if isinstance(self.model, self.torch.nn.Module):
            self.model = self.model.cuda().eval()

    def call(self, tensors, numbers):
        problem = self.request["tensors"]
        inputs = [t for t, of in zip(tensors, problem) if of["direction"] != "out"]
        scalars = [numbers[p["name"]] for p in self.request["params"] if p["type"] == "f64"]
        if self.form == "custom_kernel":
            return self.module.custom_kernel(tuple(tensors) + tuple(scalars))
        if self.form == "ModelNew":
            forward = self.model.forward if hasattr(self.model, "forward") else self.model.__call__
            count, _ = positional(forward)
            return self.model(*(inputs + scalars)[:max(count, len(inputs))])
        function = getattr(self.module, self.name)
        known = dict(numbers, **{of["name"]: t for t, of in zip(tensors, problem)})
        arguments = {}
        for parameter in inspect.signature(function).parameters.values():
            if parameter.name in known:
                arguments[parameter.name] = known[parameter.name]
            elif parameter.default is inspect.Parameter.empty and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise Refusal(COMPILE_ERROR, f"{self.name} has a parameter {parameter.name}, which is neither a tensor nor a parameter of the problem")
        return function(**arguments)

    def results(self, returned, tensors):
        """What it gave for each output: None where it has written the tensor itself."""
        outputs = [i for i, of in enumerate(self.request["tensors"]) if of["direction"] == "out"]
        if returned is None:
            return {i: None for i in outputs}
        given = list(returned) if isinstance(returned, (tuple, list)) else [returned]
        if len(given) != len(outputs):
            raise Refusal(COMPILE_ERROR, f"it returns {len(given)} values; the problem has {len(outputs)} outputs")
        found = {}
        for i, value in zip(outputs, given):
            name, wanted = self.request["tensors"][i]["name"], tensors[i]
            if not isinstance(value, self.torch.Tensor) or not value.is_cuda:
                raise Refusal(COMPILE_ERROR, f"what it returns for {name} is no tensor on the GPU")
            if value.dtype != wanted.dtype or value.numel() != wanted.numel():
                raise Refusal(COMPILE_ERROR, f"what it returns for {name} is {value.dtype} of {list(value.shape)}; the problem wants {wanted.dtype} of {list(wanted.shape)}")
            value = value.contiguous()
            found[i] = None if value.data_ptr() == wanted.data_ptr() else value
        return found


def lines_of_candidate(error):
    """Where in the candidate an exception was raised, as a clause."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if os.path.basename(frame.filename) == SOURCE]
    return f"{SOURCE}:{lines[-1]}: " if lines else ""


def explain(error, recording):
    """Makes a refusal of an exception that the candidate has raised."""
    if isinstance(error, Refusal):
        return error
    where, name, text = lines_of_candidate(error), type(error).__name__, " ".join(str(error).split())
    if isinstance(error, SyntaxError) and error.filename and os.path.basename(error.filename) == SOURCE:
        return Refusal(COMPILE_ERROR, f"{SOURCE}:{error.lineno}: SyntaxError: {error.msg}")
    captured = "captur" in text.lower() or "cudaErrorStreamCapture" in text
    if recording and captured:
        return Refusal(REJECTED, f"{where}it reads a result on the host, waits for the GPU or does something else that cannot be recorded; "
                                 "a recorded candidate only launches, whatever the values are")
    if "out of memory" in text.lower():
        return Refusal(CRASH, f"{where}it needs more memory of the GPU than it may have")
    verdict = CRASH if "CUDA error" in text or "illegal" in text.lower() else COMPILE_ERROR
    return Refusal(verdict, f"{where}{name}: {text}"[:900])
