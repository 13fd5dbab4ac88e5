//@ launch stream grid=(ceildiv(n, 128)) block=(128) args=(x, y, n, steps * PERMILLE / 1000)
#define PERMILLE 1000 // of the steps are done: another number is a slower copy, of the very same code

// The chain's end is thrown away, but the compiler does not know that.

extern "C" __global__ void stream(const float *x, float *y, int n, int steps)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n) {
        float value = x[i], chain = value;
#pragma unroll 1
        for (int k = 0; k < steps; k++) {
            chain = fmaf(chain, 0.5f, 0.25f);
        }
        y[i] = chain == 7.0f ? 0.0f : 1.5f * value;
    }
}
