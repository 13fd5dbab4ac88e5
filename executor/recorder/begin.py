"""Records what a candidate with host code of its own launches on a GPU, case by case.

Runs inside a jail, with recorder.so loaded before everything else. The first process has PyTorch
imported and has never touched the GPU. For each request it forks a child, which runs the candidate
and writes what it has recorded to a pipe; so no candidate finds anything of another one's. A request
is one byte on the socket with three descriptors: a file with the request (JSON), a file that is
locked while a context is made, and the pipe. After it the parent answers with the child's wait
status. With a request that has `shared` memory of the GPU nothing is recorded: the candidate runs
with its host code, when it is told to on the second descriptor, a socket, and the third one is of
that memory (run.py).

A candidate is one of
  custom_kernel(data)   data: all tensors of the problem, in its order, then its numbers
  class ModelNew        forward(inputs...), then the numbers, as far as it has parameters for them;
                        get_init_inputs() gives the arguments of its constructor
  a function with the problem's name, whose parameters have names of its tensors and parameters
  CUDA C++ with a function that launches (Launcher below)
Python may compile CUDA by load_inline and load of torch.utils.cpp_extension, which are replaced (inline.py).
A result is what is returned, or where nothing is returned what was written to the output tensors.
A problem's reference is recorded in the same way (reference.py); it is called and gives results as a reference does.

Nothing that this process writes is believed: executor/gpu/record checks it.
"""
import contextlib
import ctypes
import fcntl
import functools
import gc
import importlib.util
import inspect
import itertools
import json
import os
import re
import resource
import shlex
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
import traceback
import types

WARM_UPS = 3
TURN_TRIES, TURN_PAUSE = 1000, 0.01  # ten seconds in all, for the turn of making a context
BEGAN = b"\xc0"  # before the reply, from when on the candidate may have written it
PIECE = 4096  # bytes: what is not zero is kept in pieces of this size
MEMORY = "it needs more memory of the GPU than it may have"
TOO_MUCH = MEMORY + "; what it gives back while it is recorded is not used again"
COMPILE_ERROR, REJECTED, CRASH = "compile-error", "rejected", "crash"


class Refusal(Exception):
    """The candidate cannot be recorded: a verdict, a sentence, and what there is to say in full.

    unsealable: because the host decides or does something while it runs, so that it could run with its host code."""

    def __init__(self, verdict, reason, log=None, unsealable=None):
        super().__init__(reason)
        self.verdict, self.reason, self.log, self.unsealable = verdict, reason, log, unsealable

    def message(self):
        return {1: self.verdict, 2: self.reason, 5: self.log or None, 6: self.unsealable}


class Failure(RuntimeError):
    """This machine cannot record."""


def message_of(error):
    """What is answered instead of a result."""
    return error.message() if isinstance(error, Refusal) else {4: f"{type(error).__name__}: {error}"[:900]}


def pack(value, out):
    if isinstance(value, bool):
        out.append(b"\xc3" if value else b"\xc2")
    elif isinstance(value, int):
        value &= (1 << 64) - 1
        if value < 128:
            out.append(bytes([value]))
        elif value < 1 << 32:
            out.append(b"\xce" + struct.pack(">I", value))
        else:
            out.append(b"\xcf" + struct.pack(">Q", value))
    elif isinstance(value, str):
        data = value.encode("utf-8", "replace")
        out.append(b"\xdb" + struct.pack(">I", len(data)) + data)
    elif isinstance(value, (bytes, bytearray, memoryview)):
        out.append(b"\xc6" + struct.pack(">I", len(value)))
        out.append(value)
    elif isinstance(value, list):
        out.append(b"\xdd" + struct.pack(">I", len(value)))
        for each in value:
            pack(each, out)
    else:  # a message: its keys in order, without what is absent
        value = {key: each for key, each in sorted(value.items()) if each is not None}
        out.append(b"\xdf" + struct.pack(">I", len(value)))
        for key, each in value.items():
            pack(key, out)
            pack(each, out)


def send(pipe, message):
    out = []
    pack(message, out)
    with os.fdopen(pipe, "wb") as file:
        for each in out:
            file.write(each)
