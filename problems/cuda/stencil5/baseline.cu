// A thread for each point; the neighbours come from the caches.
//@ launch stencil5 grid=(ceildiv(W, 64), ceildiv(H, 4)) block=(64, 4) args=(x, y, H, W, alpha)

extern "C" __global__ void stencil5(const float *__restrict__ x, float *y, int H, int W,
                                    float alpha)
{
    int i = blockIdx.y * 4 + threadIdx.y, j = blockIdx.x * 64 + threadIdx.x;
    const float *at = x + (long long)i * W + j;
    float value;

    if (i >= H || j >= W)
        return;
    value = at[0];
    if (i > 0 && i < H - 1 && j > 0 && j < W - 1)
        value += alpha * (at[-W] + at[W] + at[-1] + at[1] - 4 * value);
    y[(long long)i * W + j] = value;
}
