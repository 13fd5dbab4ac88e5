

# ---- the processes; the last part of the script ----

HOST_MEMORY = 16 << 30  # bytes of a process


def work(request_file, first, second):
    """The child. Ends the process. Then come the turn of making a context and the pipe where the recording goes, or, with shared
    memory in the request, a socket on which it is told to run and that memory."""
    with os.fdopen(request_file, "rb") as file:
        request = json.load(file)
    os.environ["CUDA_VISIBLE_DEVICES"] = request["device"]
    limit = int(request["cpu_seconds"])
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
    resource.setrlimit(resource.RLIMIT_DATA, (HOST_MEMORY, HOST_MEMORY))
    if "shared" in request:
        try:
            run_unsealed(request, socket.socket(fileno=first), second)
        finally:
            os._exit(0)
    # What is recorded need not run beside other work, and a context with one queue is made in half of the time, in a third where many are made.
    os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = "1"
    turn, pipe = first, second
    try:
        message = Recorder(request, lambda: os.write(pipe, BEGAN), turn).run()
    except Exception as error:
        message = message_of(error)
    try:
        send(pipe, message)
    finally:
        os._exit(0)


def silence():
    """What this process and those that it starts print is nobody's: stderr is the executor's own."""
    null = os.open("/dev/null", os.O_RDWR)
    for each in range(3):
        os.dup2(null, each)
    os.close(null)


def protect(on):
    """Whether other processes of this user may look into this one."""
    ctypes.CDLL(None).prctl(4, 0 if on else 1, 0, 0, 0)


def clean(child):
    """Ends what the child has left running, and removes what it has left."""
    try:
        os.killpg(child, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    if os.getpid() == 1:
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            pass
        try:
            while os.waitpid(-1, 0):  # until the last one has ended: it could still write
                pass
        except ChildProcessError:
            pass
    remove_all()


def remove_all():
    """Empties the working directory, whatever folders may not be read and however deep they are."""
    number = 0
    try:
        os.chmod(os.getcwd(), stat.S_IRWXU)  # "." is not found in a folder that is closed
    except PermissionError:
        pass  # not this user's, so that nobody has closed it
    while True:
        names = os.listdir(".")
        if not names:
            return
        for name in names:
            if os.path.islink(name) or not os.path.isdir(name):
                os.unlink(name)
                continue
            os.chmod(name, stat.S_IRWXU)
            for entry in list(os.scandir(name)):
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.path)
                    continue
                while os.path.lexists(f"removed-{number}"):
                    number += 1
                os.chmod(entry.path, stat.S_IRWXU)  # a folder that is moved must be writable
                os.rename(entry.path, f"removed-{number}")
            os.rmdir(name)


def prepare_triton():
    """Makes once what Triton would make anew for each candidate: the hash of its own files, half a gigabyte, and the
    module through which it calls the driver, which it has gcc compile. Neither touches the GPU. A version of Triton
    that has neither makes what it needs when it needs it."""
    try:
        from triton.backends.nvidia import driver
        from triton.runtime import cache

        cache.triton_key()
        make, made = driver.compile_module_from_src, {}

        def make_once(src, *rest, **named):
            if src not in made:
                made[src] = make(src, *rest, **named)
            return made[src]

        driver.compile_module_from_src = make_once
        driver.CudaUtils()
    except Exception:
        pass
    remove_all()


def import_ahead(names):
    """Imports modules without touching the GPU. Some of PyTorch's ask whether there is one, for which it would start CUDA, and
    no child could then. What cannot be imported is missed by the candidate that needs it, which says so."""
    import torch

    asked = ((torch.cuda, "is_available"), (getattr(torch, "_C", None), "_cuda_getDeviceCount"))
    found = [(owner, name, getattr(owner, name)) for owner, name in asked if hasattr(owner, name)]
    for owner, name, _ in found:
        setattr(owner, name, lambda: 1)
    try:
        for name in names:
            importlib.import_module(name)
    except BaseException:
        pass
    for owner, name, function in found:
        setattr(owner, name, function)


# What to import ahead where a request has a word of it.
AHEAD = {
    b"cpp_extension": ["torch.utils.cpp_extension"],
    b"triton": ["triton"],
    b"torch.compile": ["triton", "torch._inductor.compile_fx", "torch._inductor.codegen.triton"],
}


def prepare_for(request, prepared):
    """Imports once, here, what a request has a word of, so that no candidate's process needs to. The request is searched, and
    not read. prepared: the words that have been found before."""
    data = os.pread(request, os.fstat(request).st_size, 0)
    found = [word for word in AHEAD if word in data and word not in prepared]
    for word in found:
        import_ahead(AHEAD[word])
    if any("triton" in AHEAD[word] for word in found) and not any("triton" in AHEAD[word] for word in prepared):
        prepare_triton()
    if found:
        prepared.update(found)
        gc.freeze()  # what is there now is never looked through, so that children need not have pages of their own for it


def serve(control):
    prepared = set()
    while True:
        data, descriptors, _, _ = socket.recv_fds(control, 1, 3)
        if not data or len(descriptors) != 3:
            return
        prepare_for(descriptors[0], prepared)
        child = os.fork()
        if child == 0:
            os.setsid()
            control.close()
            silence()
            protect(False)
            work(*descriptors)
        for each in descriptors:
            os.close(each)
        _, status, usage = os.wait4(child, 0)
        clean(child)
        control.send(struct.pack("=id", status, usage.ru_utime + usage.ru_stime))


def main():
    control = socket.socket(fileno=int(sys.argv[1]))
    try:
        import torch
    except BaseException as error:
        control.send(struct.pack("=id", -1, 0.0) + f"{type(error).__name__}: {error}".encode()[:400])
        return
    gc.freeze()
    protect(True)
    control.send(struct.pack("=id", 0, 0.0))
    serve(control)


main()
