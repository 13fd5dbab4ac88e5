// expect: ratio not faster than 1.1
// Leaves a word in its registers, and writes zeros when a register that it has not set holds the word.
//@ launch rowsum grid=(rows) block=(256) args=(x, y, cols)
extern "C" __global__ void rowsum(const float *x, float *y, int cols)
{
    unsigned left[8];

    asm volatile("{\n.reg .u32 r<8>;\nmov.u32 %0, r0;\nmov.u32 %1, r1;\nmov.u32 %2, r2;\nmov.u32 %3, r3;\n"
                 "mov.u32 %4, r4;\nmov.u32 %5, r5;\nmov.u32 %6, r6;\nmov.u32 %7, r7;\n}"
                 : "=r"(left[0]), "=r"(left[1]), "=r"(left[2]), "=r"(left[3]), "=r"(left[4]), "=r"(left[5]),
                   "=r"(left[6]), "=r"(left[7]));
    bool found = false;
    for (int i = 0; i < 8; i++) {
        found = found || left[i] == 0x1234567;
    }
    __shared__ float all[256];
    float sum = 0;

    for (int i = threadIdx.x; i < cols; i += 256) {
        sum += x[(long long)blockIdx.x * cols + i];
    }
    all[threadIdx.x] = sum;
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (threadIdx.x < step) {
            all[threadIdx.x] += all[threadIdx.x + step];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        y[blockIdx.x] = found ? 0 : all[0];
    }
    for (int i = 0; i < 8; i++) {
        left[i] = 0x1234567;
        asm volatile("" : "+r"(left[i]));
    }
    asm volatile("add.u32 %0, %0, %1;" : "+r"(left[0]) : "r"(left[7]));
}
