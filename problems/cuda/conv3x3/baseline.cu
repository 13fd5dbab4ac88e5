// A block has 16 x 16 pixels of 8 output channels; one input channel at a time in shared memory.
#define TILE 16
#define CHANNELS 8
//@ launch conv3x3 grid=(ceildiv(W, TILE) * ceildiv(H, TILE), ceildiv(O, CHANNELS), B) block=(TILE, TILE) args=(x, f, y, C, O, H, W)

extern "C" __global__ void __launch_bounds__(256)
    conv3x3(const float *x, const float *f, float *y, int C, int O, int H, int W)
{
    __shared__ float tile[TILE + 2][TILE + 2], weight[CHANNELS][9];
    int tiles = (W + TILE - 1) / TILE, tx = threadIdx.x, ty = threadIdx.y;
    int j0 = blockIdx.x % tiles * TILE, i0 = blockIdx.x / tiles * TILE;
    int o0 = blockIdx.y * CHANNELS, image = blockIdx.z, t = ty * TILE + tx;
    float sum[CHANNELS] = {};

    for (int c = 0; c < C; c++) {
        const float *plane = x + ((long long)image * C + c) * H * W;
        for (int e = t; e < (TILE + 2) * (TILE + 2); e += 256) {
            int i = i0 + e / (TILE + 2) - 1, j = j0 + e % (TILE + 2) - 1;
            bool inside = i >= 0 && i < H && j >= 0 && j < W;
            tile[e / (TILE + 2)][e % (TILE + 2)] = inside ? plane[i * W + j] : 0;
        }
        if (t < CHANNELS * 9) {
            int o = o0 + t / 9;
            weight[t / 9][t % 9] = o < O ? f[((long long)o * C + c) * 9 + t % 9] : 0;
        }
        __syncthreads();
#pragma unroll
        for (int tap = 0; tap < 9; tap++) {
            float value = tile[ty + tap / 3][tx + tap % 3];
#pragma unroll
            for (int o = 0; o < CHANNELS; o++)
                sum[o] += value * weight[o][tap];
        }
        __syncthreads();
    }
    if (i0 + ty >= H || j0 + tx >= W)
        return;
#pragma unroll
    for (int o = 0; o < CHANNELS; o++)
        if (o0 + o < O)
            y[(((long long)image * O + o0 + o) * H + i0 + ty) * W + j0 + tx] = sum[o];
}
