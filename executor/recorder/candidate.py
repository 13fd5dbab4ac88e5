

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
    made = tensor if tensor.element_size() > 1 else torch.empty(tensor.shape, dtype=torch.float32, device="cuda")
    if kind == "normal":
        made.normal_(a, b)
    elif kind in ("uniform", "wide"):
        made.uniform_(*((a, b) if kind == "uniform" else (-1.0, 1.0)))
    elif kind == "integers":
        made.random_(int(a), int(b) + 1)
    elif kind == "zipf":
        made.random_(0, max(1, int(a)))
    elif kind == "sorted":
        made.copy_(torch.sort(torch.rand(tensor.shape, device="cuda"), dim=-1)[0])
    else:  # one-hot
        made.zero_()
        made.view(-1, tensor.shape[-1])[:, 0] = 1
    if made is not tensor:  # PyTorch draws no values of this type
        tensor.copy_(made.to(tensor.dtype))


def positional(function):
    """How many positional arguments a function takes, and the names of its parameters."""
    names, many = [], False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
        many = many or parameter.kind == parameter.VAR_POSITIONAL
    return (1 << 16) if many else len(names), names


class Launcher:
    """A candidate in CUDA C++ with host code: nvcc makes a library of it, with a function that launches.

    Its name is the problem's, or kcast_run; its arguments are the addresses of all tensors, the problem's
    parameters (integers, and numbers as double), and the stream, in the problem's order."""

    def __init__(self, request, began):
        with open("candidate.cu", "w", encoding="utf-8") as file:
            file.write(request["source"])
        command = ["nvcc", "-O3", "-std=c++17", "-shared", "-Xcompiler", "-fPIC", "-cudart", "shared",
                   f"-arch={request['target']}", "-o", "./candidate.so", "candidate.cu"]
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        except FileNotFoundError as error:
            raise Failure("this host has no nvcc, which candidates with a host launcher need") from error
        if done.returncode != 0:
            errors = [line for line in done.stdout.splitlines() if "error" in line]
            raise Refusal(COMPILE_ERROR, (errors or ["nvcc does not compile it"])[0][:900], done.stdout)
        began()
        library = ctypes.CDLL("./candidate.so")
        names = [request["problem"], "kcast_run"]
        found = [getattr(library, name) for name in names if hasattr(library, name)]
        if not found:
            raise Refusal(COMPILE_ERROR, f'it defines no function {names[0]} or {names[1]} that is extern "C"')
        self.function, self.params = found[0], request["params"]
        self.function.restype = None

    def __call__(self, tensors, numbers, stream):
        arguments = [ctypes.c_void_p(t.data_ptr()) for t in tensors]
        for param in self.params:
            value = numbers[param["name"]]
            arguments.append(ctypes.c_int64(value) if param["type"] == "int" else ctypes.c_double(value))
        self.function(*arguments, ctypes.c_void_p(stream.cuda_stream))


class Candidate:
    """The candidate's function, and how it is called."""

    def __init__(self, torch, request, module):
        self.torch, self.request, self.module, self.model = torch, request, module, None
        self.name = request["problem"]
        if isinstance(module, Launcher):
            self.form = "launcher"
        elif callable(getattr(module, "custom_kernel", None)):
            self.form = "custom_kernel"
        elif inspect.isclass(getattr(module, "ModelNew", None)):
            self.form = "ModelNew"
        elif callable(getattr(module, self.name, None)):
            self.form = "function"
        else:
            raise Refusal(COMPILE_ERROR, f"{request['file']} defines neither custom_kernel(data) nor a class ModelNew nor a function {self.name}")

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
        if self.form == "launcher":
            return self.module(tensors, numbers, self.torch.cuda.current_stream())
        if self.form == "custom_kernel":
            return self.module.custom_kernel(tuple(tensors) + tuple(scalars))
        if self.form == "ModelNew":
            forward = self.model.forward if hasattr(self.model, "forward") else self.model.__call__
            count, _ = positional(forward)
            return self.model(*(inputs + scalars)[:max(count, len(inputs))])
        known = dict(numbers, **{of["name"]: t for t, of in zip(tensors, problem)})
        return call_by_name(getattr(self.module, self.name), self.name, known, "a tensor")

    def results(self, returned, tensors):
        """What it gave for each output, None where it has written the tensor itself; and no error scales."""
        outputs = [i for i, of in enumerate(self.request["tensors"]) if of["direction"] == "out"]
        if returned is None:
            return {i: None for i in outputs}, {}
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
            if value.data_ptr() % max(4, value.element_size()) != 0:
                value = value.clone()  # a part of a tensor; the executor compares words
            found[i] = None if value.data_ptr() == wanted.data_ptr() else value
        return found, {}


def call_by_name(function, name, known, tensor):
    """Calls a function whose parameters have names of what is known; `tensor` says in words which tensors are."""
    arguments = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind == parameter.VAR_KEYWORD:
            arguments = known
        elif parameter.name in known:
            arguments[parameter.name] = known[parameter.name]
        elif parameter.default is inspect.Parameter.empty and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise Refusal(COMPILE_ERROR, f"{name} has a parameter {parameter.name}, which is neither {tensor} nor a parameter of the problem")
    return function(**arguments)


def frames_of_candidate(error, file):
    return [frame for frame in traceback.extract_tb(error.__traceback__) if os.path.basename(frame.filename) == file]


def cause(error, file):
    """The exception that the candidate has raised, where ending the recording has raised another one after it."""
    found = error
    while found is not None and not isinstance(found, Refusal) and not frames_of_candidate(found, file):
        found = found.__context__
    return found or error


def lines_of_candidate(error, file):
    """Where in the candidate's file an exception was raised, as a clause."""
    lines = [frame.lineno for frame in frames_of_candidate(error, file)]
    return f"{file}:{lines[-1]}: " if lines else ""


FAULTS = ("ILLEGAL_ADDRESS", "ILLEGAL_INSTRUCTION", "MISALIGNED_ADDRESS", "INVALID_PC", "INVALID_ADDRESS_SPACE", "LAUNCH_FAILED",
          "LAUNCH_TIMEOUT", "ASSERT", "HARDWARE_STACK_ERROR")


def log_of(error, file):
    """The traceback, as far as the candidate's file has a part in it."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [i for i, frame in enumerate(frames) if os.path.basename(frame.filename) == file]
    lines = traceback.format_list(frames[own[0]:]) if own else []
    return "".join(lines + traceback.format_exception_only(type(error), error))[:60000]


def explain(error, file, recording):
    """Makes a refusal of an exception that the candidate, whose file has this name, has raised."""
    error = cause(error, file)
    if isinstance(error, Refusal):
        return error
    where, name, text = lines_of_candidate(error, file), type(error).__name__, " ".join(str(error).split())
    if isinstance(error, Failure) and not any(fault in text for fault in FAULTS):
        return error
    log = log_of(error, file)
    if isinstance(error, SyntaxError) and error.filename and os.path.basename(error.filename) == file:
        return Refusal(COMPILE_ERROR, f"{file}:{error.lineno}: SyntaxError: {error.msg}", log)
    if recording and "unjoined" in text:
        return Refusal(REJECTED, f"{where}it returns while work on another stream goes on that nothing waits for; "
                                 "have the stream on which it was called wait for it", log)
    captured = "captur" in text.lower() or "cudaErrorStreamCapture" in text
    if recording and captured:
        return Refusal(REJECTED, f"{where}it reads a result on the host, waits for the GPU or does something else that cannot be recorded; "
                                 "what is recorded only launches, whatever the values are", log, True)
    if "out of memory" in text.lower():
        return Refusal(CRASH, f"{where}{TOO_MUCH}", log)
    faulty = isinstance(error, Failure) or "CUDA error" in text or "illegal" in text.lower()
    return Refusal(CRASH if faulty else COMPILE_ERROR, f"{where}{name}: {text}"[:900], log)
