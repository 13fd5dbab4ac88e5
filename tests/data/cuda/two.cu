// Two kernels that take different amounts, in two.cubin: nvcc 13.0 -arch=sm_90 -cubin -Xptxas -v, which says
// of small 10 registers, of large 80 registers, 256 bytes of stack and 2048 bytes of shared memory.
extern "C" __global__ void small(float *x)
{
    x[threadIdx.x] = 1;
}

extern "C" __global__ void large(float *x, int n)
{
    __shared__ float s[512];
    float a[64], t = 0;

    for (int i = 0; i < 64; i++) {
        a[i] = x[i * n + threadIdx.x];
    }
    for (int k = 0; k < n; k++) {
        s[threadIdx.x] = a[k % 64];
        __syncthreads();
        for (int i = 0; i < 64; i++) {
            a[i] = a[i] * a[(i + k) & 63] + s[i];
        }
    }
    for (int i = 0; i < 64; i++) {
        t += a[i];
    }
    x[threadIdx.x] = t;
}
