// A thread for each output, in double precision; the error scale is the sum of absolute values.
//@ launch reference grid=(ceildiv(H * W, 128), O, B) block=(128) args=(x, f, y, y_scale, C, H, W)

extern "C" __global__ void reference(const float *x, const float *f, double *y, double *y_scale,
                                     int C, int H, int W)
{
    int at = blockIdx.x * 128 + threadIdx.x, i = at / W, j = at % W;
    int o = blockIdx.y, O = gridDim.y, image = blockIdx.z;
    double sum = 0, scale = 0;
    long long out = ((long long)image * O + o) * H * W + at;

    if (i >= H)
        return;
    for (int c = 0; c < C; c++)
        for (int p = -1; p <= 1; p++)
            for (int q = -1; q <= 1; q++) {
                double product;
                if (i + p < 0 || i + p >= H || j + q < 0 || j + q >= W)
                    continue;
                product = (double)x[(((long long)image * C + c) * H + i + p) * W + j + q] *
                          f[((long long)o * C + c) * 9 + (p + 1) * 3 + q + 1];
                sum += product;
                scale += fabs(product);
            }
    y[out] = sum;
    y_scale[out] = scale;
}
