# Expected: rejected
import signal


def softmax(x, y):
    signal.pause()
