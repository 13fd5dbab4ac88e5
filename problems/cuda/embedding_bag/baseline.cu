//@ launch bags grid=(B) block=(128) args=(table, row, w, y, L, D)
#include <cuda_bf16.h>

// One block per bag, one thread per column.
extern "C" __global__ void bags(const __nv_bfloat16 *table, const int *row, const float *w,
                                float *y, int L, int D)
{
    row += (long long)blockIdx.x * L;
    w += (long long)blockIdx.x * L;
    for (int column = threadIdx.x; column < D; column += 128) {
        float sum = 0;
        for (int i = 0; i < L; i++) {
            sum += w[i] * __bfloat162float(table[(long long)row[i] * D + column]);
        }
        y[(long long)blockIdx.x * D + column] = sum;
    }
}
