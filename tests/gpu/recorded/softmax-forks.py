# Expected: compile-error|crash|rejected
# Fills the machine with processes that stay.
import os
import signal


def softmax(x, y):
    while True:
        if os.fork() == 0:
            signal.pause()
