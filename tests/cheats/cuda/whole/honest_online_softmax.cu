// expect: ratio
// problem: softmax
// One pass for maximum and sum together, one warp for each row, specialised.
//@ specialize N
//@ launch softmax grid=(ceildiv(R, 4)) block=(32, 4) args=(x, y, R)
extern "C" __global__ void softmax(const float *x, float *y, int R)
{
    int row = blockIdx.x * 4 + threadIdx.y;
    float most = -INFINITY, sum = 0;

    if (row >= R) {
        return;
    }
    const float *in = x + (long long)row * KCAST_N;
    for (int i = threadIdx.x; i < KCAST_N; i += 32) {
        float value = in[i], larger = fmaxf(most, value);
        sum = sum * expf(most - larger) + expf(value - larger);
        most = larger;
    }
    for (int step = 16; step > 0; step /= 2) {
        float other = __shfl_xor_sync(0xffffffffu, most, step);
        float others = __shfl_xor_sync(0xffffffffu, sum, step), larger = fmaxf(most, other);
        sum = larger == -INFINITY ? 0 : sum * expf(most - larger) + others * expf(other - larger);
        most = larger;
    }
    for (int i = threadIdx.x; i < KCAST_N; i += 32) {
        y[(long long)row * KCAST_N + i] = expf(in[i] - most) / sum;
    }
}
