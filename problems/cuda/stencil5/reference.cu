// A thread for each point, in double precision; the error scale is the sum of absolute values.
//@ launch reference grid=(ceildiv(W, 128), min(H, 65535)) block=(128) args=(x, y, y_scale, H, W, alpha)

extern "C" __global__ void reference(const float *x, double *y, double *y_scale, int H, int W,
                                     double alpha)
{
    int j = blockIdx.x * 128 + threadIdx.x;

    if (j >= W)
        return;
    for (int i = blockIdx.y; i < H; i += gridDim.y) {
        const float *at = x + (long long)i * W + j;
        double centre = at[0], value = centre, scale = fabs(centre);

        if (i > 0 && i < H - 1 && j > 0 && j < W - 1) {
            double up = at[-W], down = at[W], left = at[-1], right = at[1];
            value += alpha * (up + down + left + right - 4 * centre);
            scale += fabs(alpha) *
                     (fabs(up) + fabs(down) + fabs(left) + fabs(right) + 4 * fabs(centre));
        }
        y[(long long)i * W + j] = value;
        y_scale[(long long)i * W + j] = scale;
    }
}
