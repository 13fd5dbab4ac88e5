# Expected: timeout
import signal


def softmax(x, y):
    signal.pause()
