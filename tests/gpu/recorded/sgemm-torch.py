# Expected: faster
def custom_kernel(data):
    a, b, c = data
    return a @ b
