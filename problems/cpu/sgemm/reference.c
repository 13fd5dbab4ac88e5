// C = A B in double precision; the error scale is |A| |B|.
#include <math.h>

void reference(const float *A, const float *B, double *C, double *C_scale, int64_t M, int64_t N,
               int64_t K)
{
    for (int64_t i = 0; i < M; i++) {
        double *restrict c = C + i * N;
        double *restrict s = C_scale + i * N;
        for (int64_t j = 0; j < N; j++)
            c[j] = s[j] = 0;
        for (int64_t k = 0; k < K; k++) {
            double a = A[i * K + k];
            const float *b = B + k * N;
            for (int64_t j = 0; j < N; j++) {
                c[j] += a * b[j];
                s[j] += fabs(a * b[j]);
            }
        }
    }
}
