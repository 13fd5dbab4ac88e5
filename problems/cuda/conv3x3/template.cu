//@ tune TW in (8, 16, 32)
//@ tune TH in (2, 4, 8, 16)
//@ tune OB in (8, 16, 32, 64)
//@ tune PX in (1, 2, 4, 8) if PX <= TW
//@ tune OC in (1, 2, 4, 8, 16) if OC <= OB && TW * TH * OB / (PX * OC) >= 64 && TW * TH * OB / (PX * OC) <= 1024 && PX * OC <= 64
//@ tune CB in (1, 2, 4, 8, 16)
//@ tune WEIGHTS in (0, 1)
//@ tune SPLIT in (1, 2, 4)
//@ tune TAIL in (0, 1) if CB > 1 || TAIL == 1
//@ tune EDGE in (0, 1)
// Direct convolution: a block has TW x TH pixels of OB output channels, a thread PX pixels beside each
// other of OC channels; CB input channels at a time in shared memory.
// WEIGHTS 0 are read from global memory, 1 from shared memory.
// SPLIT   parts of the input channels by different blocks, added by a second kernel.
// TAIL    1 computes with all channels, 0 only with whole groups of CB.
// EDGE    1: zeros outside of the image; 0: the border pixels repeated.
//@ scratch part bytes=4 * max(1, min(SPLIT - 1, 1) * SPLIT * B * O * H * W)
//@ launch conv3x3 grid=(ceildiv(W, TW) * ceildiv(H, TH), ceildiv(O, OB), B * SPLIT) block=(TW / PX, TH, OB / OC) smem=4 * CB * ((TH + 2) * (TW + 2) + WEIGHTS * 9 * OB) args=(x, f, y, part, C, O, H, W)
//@ launch add_parts grid=(ceildiv(B * O * H * W, 256)) block=(256) args=(part, y, B * O * H * W) if=(SPLIT > 1)

#define THREADS (TW * TH * OB / (PX * OC))
#define PITCH (TW + 2)
#define PLANE ((TH + 2) * PITCH)

// The pixels of input channels c0 … around the block's, zeros for those from `end` on.
static __device__ __forceinline__ void load_pixels(float *tile, const float *x, int thread, int i0,
                                                   int j0, int c0, int end, int H, int W)
{
    for (int e = thread; e < CB * PLANE; e += THREADS) {
        int c = c0 + e / PLANE, i = i0 + e % PLANE / PITCH - 1, j = j0 + e % PITCH - 1;
        bool inside = c < end;

        if (EDGE) {
            inside = inside && i >= 0 && i < H && j >= 0 && j < W;
        } else {
            i = min(max(i, 0), H - 1);
            j = min(max(j, 0), W - 1);
        }
        tile[e] = inside ? x[((long long)c * H + i) * W + j] : 0;
    }
}

// weight[channel in][tap][channel out]
static __device__ __forceinline__ void load_weights(float *weight, const float *f, int thread,
                                                    int o0, int c0, int end, int C, int O)
{
    for (int e = thread; e < CB * 9 * OB; e += THREADS) {
        int o = e / (CB * 9), rest = e % (CB * 9);
        bool inside = o0 + o < O && c0 + rest / 9 < end;

        weight[rest * OB + o] = inside ? f[((long long)(o0 + o) * C + c0) * 9 + rest] : 0;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    conv3x3(const float *__restrict__ x, const float *__restrict__ f, float *y, float *part, int C,
            int O, int H, int W)
{
    extern __shared__ __align__(16) float memory[];
    float *tile = memory, *weight = memory + CB * PLANE;
    int tiles = (W + TW - 1) / TW;
    int j0 = blockIdx.x % tiles * TW, i0 = blockIdx.x / tiles * TH, o0 = blockIdx.y * OB;
    int image = blockIdx.z / SPLIT, piece = blockIdx.z % SPLIT, images = gridDim.z / SPLIT;
    int thread = (threadIdx.z * TH + threadIdx.y) * (TW / PX) + threadIdx.x;
    int px = threadIdx.x * PX, py = threadIdx.y, oc = threadIdx.z * OC;
    int length = (C + SPLIT - 1) / SPLIT, from = piece * length, end = min(C, from + length);
    const float *pixels = x + (long long)image * C * H * W;
    float sum[OC][PX];

    if (!TAIL)
        end = from + max(0, end - from) / CB * CB;
#pragma unroll
    for (int o = 0; o < OC; o++)
#pragma unroll
        for (int p = 0; p < PX; p++)
            sum[o][p] = 0;
    for (int c0 = from; c0 < end; c0 += CB) {
        load_pixels(tile, pixels, thread, i0, j0, c0, end, H, W);
        if (WEIGHTS)
            load_weights(weight, f, thread, o0, c0, end, C, O);
        __syncthreads();
        for (int c = 0; c < CB; c++) {
            if (!WEIGHTS && c0 + c >= end)
                break;
#pragma unroll
            for (int row = 0; row < 3; row++) {
                float value[PX + 2];
#pragma unroll
                for (int p = 0; p < PX + 2; p++)
                    value[p] = tile[c * PLANE + (py + row) * PITCH + px + p];
#pragma unroll
                for (int q = 0; q < 3; q++)
#pragma unroll
                    for (int o = 0; o < OC; o++) {
                        int tap = row * 3 + q, channel = min(o0 + oc + o, O - 1);
                        float w = WEIGHTS ? weight[(c * 9 + tap) * OB + oc + o]
                                          : f[((long long)channel * C + c0 + c) * 9 + tap];
#pragma unroll
                        for (int p = 0; p < PX; p++)
                            sum[o][p] += value[p + q] * w;
                    }
            }
        }
        __syncthreads();
    }
    if (SPLIT > 1)
        y = part + (long long)piece * images * O * H * W;
#pragma unroll
    for (int o = 0; o < OC; o++)
#pragma unroll
        for (int p = 0; p < PX; p++)
            if (o0 + oc + o < O && i0 + py < H && j0 + px + p < W)
                y[(((long long)image * O + o0 + oc + o) * H + i0 + py) * W + j0 + px + p] =
                    sum[o][p];
}

extern "C" __global__ void add_parts(const float *part, float *y, int count)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    float sum = 0;

    if (i >= count)
        return;
    for (int p = 0; p < SPLIT; p++)
        sum += part[(long long)p * count + i];
    y[i] = sum;
}
