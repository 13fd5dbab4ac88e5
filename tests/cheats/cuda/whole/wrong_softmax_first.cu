// expect: wrong
// problem: softmax
// Subtracts the first element of a row instead of the maximum.
//@ launch softmax grid=(R) block=(32) args=(x, y, N)
extern "C" __global__ void softmax(const float *x, float *y, int N)
{
    const float *in = x + (long long)blockIdx.x * N;
    float first = in[0], sum = 0;

    for (int i = threadIdx.x; i < N; i += 32) {
        sum += expf(in[i] - first);
    }
    for (int step = 16; step > 0; step /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    }
    for (int i = threadIdx.x; i < N; i += 32) {
        y[(long long)blockIdx.x * N + i] = expf(in[i] - first) / sum;
    }
}
