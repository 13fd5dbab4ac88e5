// A thread for each output, in double precision; the error scale is |a| |b|.
//@ launch reference grid=(ceildiv(B * M * N, 128)) block=(128) args=(a, b, c, c_scale, B, M, N, K)

extern "C" __global__ void reference(const float *a, const float *b, double *c, double *c_scale,
                                     int B, int M, int N, int K)
{
    long long at = blockIdx.x * 128LL + threadIdx.x;
    long long row = at / N, matrix = row / M, col = at % N;
    double sum = 0, scale = 0;

    if (matrix >= B)
        return;
    for (int k = 0; k < K; k++) {
        double product = (double)a[row * K + k] * b[(matrix * K + k) * N + col];
        sum += product;
        scale += fabs(product);
    }
    c[at] = sum;
    c_scale[at] = scale;
}
