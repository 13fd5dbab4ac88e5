#!/usr/bin/python3
"""Stands in for an interpreter with PyTorch, for tests of executor/gpu/record.

It speaks the recorder's protocol (executor/recorder/serve.py) and does what the first words of a candidate's source say:

    # reply HEX          writes these bytes
    # refuse VERDICT REASON…
    # fail WORDS…        says that the recorder itself has failed
    # turn               refuses with "taken" or "free", as somebody else makes a context on the device or nobody does
    # begins             a child ends when the candidate's code could have begun
    # claims WORDS…      says then that the recorder itself has failed
    # spends             refuses, and has used 1000 s of processor time
    # dies               a child is killed while it records
    # silent             a child ends without a word
    # waits              a child never ends
    # large              a child writes more than anybody wants
    # leaves             a child leaves a process behind, and refuses with its number
    # alive PID          refuses with "alive" or "gone"
    # escapes            refuses with what is possible that should not be, or "nothing"

With FAKE_PYTHON_LACKS as its own name it says that it has no PyTorch.
"""
import array
import fcntl
import json
import os
import signal
import socket
import struct
import sys


def pack(message):
    out = b"\xdf" + struct.pack(">I", len(message))
    for key, text in sorted(message.items()):
        data = text.encode()
        out += bytes([key]) + b"\xdb" + struct.pack(">I", len(data)) + data
    return out


def fails(what):
    try:
        what()
    except OSError:
        return True
    return False


def escapes():
    tries = {
        "writing /usr": lambda: open("/usr/kcast-escape", "w", encoding="ascii"),
        "writing /": lambda: open("/kcast-escape", "w", encoding="ascii"),
        "writing beside the interpreter": lambda: open(os.path.join(os.path.dirname(__file__), "kcast-escape"), "w", encoding="ascii"),
        "/etc/passwd": lambda: open("/etc/passwd", encoding="ascii"),
        "/home": lambda: os.listdir("/home"),
        "/var": lambda: os.listdir("/var"),
        "/sys": lambda: os.listdir("/sys"),
        "/dev/mem": lambda: open("/dev/mem", "rb"),
        "a connection": lambda: socket.create_connection(("127.0.0.1", 1), 1),
        "a way out": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(("192.0.2.1", 9)),
        "a user": lambda: os.setuid(0),
        "another namespace": lambda: os.chroot("/"),
    }
    possible = [name for name, what in tries.items() if not fails(what)]
    others = [pid for pid in os.listdir("/proc") if pid.isdigit() and int(pid) > 64]
    if others:
        possible.append(f"processes {others[:3]}")
    return possible


def child(words, turn, pipe):
    word, rest = words[0], " ".join(words[1:])
    if word == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    elif word == "waits":
        signal.pause()
    elif word == "turn":
        taken = fails(lambda: fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB))
        os.write(pipe, pack({1: "rejected", 2: "taken" if taken else "free"}))
    elif word == "reply":
        os.write(pipe, bytes.fromhex(rest))
    elif word == "refuse":
        os.write(pipe, pack({1: words[1], 2: " ".join(words[2:]).replace("\\e", "\x1b")}))
    elif word == "spends":
        os.write(pipe, pack({1: "compile-error", 2: "ptxas was ended", 5: "how it was compiled"}))
    elif word == "fail":
        os.write(pipe, pack({4: rest.replace("\\e", "\x1b")}))
    elif word == "begins":
        os.write(pipe, b"\xc0")
    elif word == "claims":
        os.write(pipe, b"\xc0" + pack({4: rest}))
    elif word == "large":
        for _ in range(49):
            os.write(pipe, bytes(1 << 20))
    elif word == "leaves":
        left = os.fork()
        if left == 0:
            os.setsid()
            signal.pause()
        os.write(pipe, pack({1: "rejected", 2: str(left)}))
    elif word == "alive":
        os.write(pipe, pack({1: "rejected", 2: "gone" if fails(lambda: os.kill(int(rest), 0)) else "alive"}))
    elif word == "escapes":
        os.write(pipe, pack({1: "rejected", 2: ", ".join(escapes()) or "nothing"}))
    os._exit(0)


def clean():
    if os.getpid() != 1:
        return
    if not fails(lambda: os.kill(-1, signal.SIGKILL)):
        try:
            while os.waitpid(-1, 0)[0] > 0:
                pass
        except ChildProcessError:
            pass


def serve(control):
    while True:
        descriptors = array.array("i")
        data, ancillary, _, _ = control.recvmsg(1, socket.CMSG_SPACE(3 * descriptors.itemsize))
        if not data:
            return
        for _, _, given in ancillary:
            descriptors.frombytes(given)
        with os.fdopen(descriptors[0], "rb") as file:
            source = json.load(file)["source"]
        pid = os.fork()
        words = source.split("\n", 1)[0].split()[1:]
        if pid == 0:
            child(words, *descriptors[1:])
        for each in descriptors[1:]:
            os.close(each)
        _, status = os.waitpid(pid, 0)
        clean()
        control.send(struct.pack("=id", status, 1000.0 if words[0] == "spends" else 0.01))


def main():
    if "-c" in sys.argv:
        print(os.path.realpath(__file__), __file__, os.path.dirname(os.path.realpath(__file__)), sep="\n")
        return
    control = socket.socket(fileno=int(sys.argv[-1]))
    if "FAKE_PYTHON_LACKS" in __file__:
        control.send(struct.pack("=id", -1, 0.0) + b"ModuleNotFoundError: No module named 'torch'")
        return
    control.send(struct.pack("=id", 0, 0.0) + b"python 3, torch 0")
    serve(control)


main()
