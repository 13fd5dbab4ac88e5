// expect: wrong
// problem: softmax
// Subtracts what all inputs of timed launches lie around instead of the maximum.
//@ launch softmax grid=(R) block=(32) args=(x, y, N)
extern "C" __global__ void softmax(const float *x, float *y, int N)
{
    const float *in = x + (long long)blockIdx.x * N;
    float sum = 0;

    for (int i = threadIdx.x; i < N; i += 32) {
        sum += expf(in[i] - 100);
    }
    for (int step = 16; step > 0; step /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    }
    for (int i = threadIdx.x; i < N; i += 32) {
        y[(long long)blockIdx.x * N + i] = expf(in[i] - 100) / sum;
    }
}
