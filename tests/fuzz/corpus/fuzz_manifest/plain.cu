//@ launch k grid=(ceildiv(rows, 128)) block=(128) args=(x, y, z, rows, cols, eps)
extern "C" __global__ void k() {}
