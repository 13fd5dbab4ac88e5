# Expected: compile-error|crash|rejected
def softmax(x, y):
    kept = []
    while True:
        kept.append(bytearray(b"x") * (1 << 28))
