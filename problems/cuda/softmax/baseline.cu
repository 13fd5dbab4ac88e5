//@ launch softmax grid=(R) block=(256) args=(x, y, N)

// One block per row and three passes: maximum, sum of exponentials, results.
static __device__ float reduce(float *part, float value, bool largest)
{
    for (int step = 16; step > 0; step /= 2) {
        float other = __shfl_xor_sync(0xffffffffu, value, step);
        value = largest ? fmaxf(value, other) : value + other;
    }
    if (threadIdx.x % 32 == 0) {
        part[threadIdx.x / 32] = value;
    }
    __syncthreads();
    value = part[0];
    for (int i = 1; i < 8; i++) {
        value = largest ? fmaxf(value, part[i]) : value + part[i];
    }
    __syncthreads();
    return value;
}

extern "C" __global__ void softmax(const float *x, float *y, int N)
{
    __shared__ float part[8];
    long long row = (long long)blockIdx.x * N;
    float most = x[row], sum = 0, inverse;

    for (int i = threadIdx.x; i < N; i += 256) {
        most = fmaxf(most, x[row + i]);
    }
    most = reduce(part, most, true);
    for (int i = threadIdx.x; i < N; i += 256) {
        sum += expf(x[row + i] - most);
    }
    inverse = 1 / reduce(part, sum, false);
    for (int i = threadIdx.x; i < N; i += 256) {
        y[row + i] = expf(x[row + i] - most) * inverse;
    }
}
