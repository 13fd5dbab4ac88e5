// expect: crash
// 1024 threads with more than 64 registers each: no multiprocessor has so many.
//@ launch rowsum grid=(rows) block=(1024) args=(x, y, cols)
extern "C" __global__ void rowsum(const float *x, float *y, int cols)
{
    float part[160];

#pragma unroll
    for (int k = 0; k < 160; k++) {
        part[k] = x[(threadIdx.x + k) % cols];
    }
#pragma unroll 1
    for (int round = 0; round < cols; round++) {
#pragma unroll
        for (int k = 0; k < 160; k++) {
            part[k] = fmaf(part[k], part[(k + 7) % 160], 0.5f);
        }
    }
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 160; k++) {
        sum += part[k];
    }
    y[blockIdx.x] = sum;
}
