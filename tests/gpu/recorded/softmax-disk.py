# Expected: compile-error|crash|rejected
def softmax(x, y):
    with open("fill", "wb") as file:
        while True:
            file.write(bytes(1 << 24))
