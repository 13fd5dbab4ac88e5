// Nothing is computed, so nothing may differ: neighbouring floats are at least u |y| apart, and a
// quarter of that is the whole tolerance.
#include <math.h>

void reference(const float *A, double *B, double *B_scale, int64_t M, int64_t N)
{
    for (int64_t j0 = 0; j0 < N; j0 += 16) {
        for (int64_t i = 0; i < M; i++) {
            for (int64_t j = j0; j < j0 + 16 && j < N; j++) {
                B[j * M + i] = A[i * N + j];
                B_scale[j * M + i] = fabs(A[i * N + j]);
            }
        }
    }
}
