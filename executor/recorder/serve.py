

# ---- the processes; the last part of the script ----

HOST_MEMORY = 16 << 30  # bytes of a process


def work(request_file, pipe):
    """The child. Ends the process."""
    with os.fdopen(request_file, "rb") as file:
        request = json.load(file)
    os.environ["CUDA_VISIBLE_DEVICES"] = request["device"]
    limit = int(request["cpu_seconds"])
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
    resource.setrlimit(resource.RLIMIT_DATA, (HOST_MEMORY, HOST_MEMORY))
    try:
        message = {3: Recorder(request).run()}
    except Refusal as refusal:
        message = {1: refusal.verdict, 2: refusal.reason, 5: (refusal.log or None)}
    except Exception as error:
        message = {4: f"{type(error).__name__}: {error}"[:900]}
    try:
        send(pipe, message)
    finally:
        os._exit(0)


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
        while True:
            try:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    break
            except ChildProcessError:
                break
    for name in os.listdir("."):
        if os.path.isdir(name) and not os.path.islink(name):
            shutil.rmtree(name, onerror=open_and_retry)
        else:
            os.unlink(name)


def open_and_retry(function, path, _):
    """A folder that may not be read or written is its owner's all the same."""
    for each in (os.path.dirname(path), path):
        if not os.path.islink(each):
            os.chmod(each, stat.S_IRWXU)
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)


def serve(control):
    while True:
        data, descriptors, _, _ = socket.recv_fds(control, 1, 2)
        if not data or len(descriptors) != 2:
            return
        child = os.fork()
        if child == 0:
            os.setsid()
            control.close()
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
    try:
        import triton  # noqa: F401  it takes as long as PyTorch, and is optional
    except BaseException:
        pass
    protect(True)
    control.send(struct.pack("=id", 0, 0.0) + f"python {sys.version.split()[0]}, torch {torch.__version__}".encode())
    serve(control)


main()
