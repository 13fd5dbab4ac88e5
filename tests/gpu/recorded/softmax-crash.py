# Expected: crash
import os
import signal


def softmax(x, y):
    os.kill(os.getpid(), signal.SIGKILL)
