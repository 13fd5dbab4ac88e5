# Expected: faster|equivalent
# Raises, and so is rejected, when anything of this is possible.
import os
import socket

import torch


def possible(what):
    try:
        what()
    except OSError:
        return False
    return True


for name, what in {
        "writing outside its folder": lambda: open("/var/tmp/kcast-escape", "w", encoding="ascii"),
        "a file in /dev/shm": lambda: open("/dev/shm/kcast-escape", "w", encoding="ascii"),
        "reading passwords": lambda: open("/etc/shadow", encoding="ascii"),
        "a connection": lambda: socket.create_connection(("127.0.0.1", 22), 1),
}.items():
    if possible(what):
        raise RuntimeError(f"{name} is possible")


def softmax(x, y):
    torch.softmax(x, 1, out=y)
