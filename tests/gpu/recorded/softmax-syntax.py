# Expected: compile-error
def softmax(x, y)
    pass
