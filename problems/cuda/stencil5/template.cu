//@ tune BX in (32, 64, 128, 256)
//@ tune BY in (1, 2, 4, 8, 16) if BX * BY <= 1024
//@ tune ROWS in (1, 2, 4, 8, 16, 32)
//@ tune VEC in (1, 2, 4)
//@ tune WHERE in (0, 1, 2) if WHERE == 0 || ROWS > 1
//@ tune UNROLL in (1, 2, 4) if UNROLL <= ROWS
//@ tune STREAM in (0, 1)
//@ tune BORDER in (0, 1)
// Five-point stencil: a block has BX threads beside each other and BY below each other, each of them
// ROWS rows of VEC points.
// WHERE  the neighbours come from: 0 global memory (the caches), 1 rows carried along in registers with
//        the left and right neighbours from the lanes beside, 2 a tile in shared memory.
// STREAM stores past the caches.
// BORDER 1 copies all four borders, 0 only the upper and lower one.
//@ launch stencil5 grid=(ceildiv(W, BX * VEC), ceildiv(H, BY * ROWS)) block=(BX, BY) smem=4 * max(0, WHERE - 1) * (BY * ROWS + 2) * (BX * VEC + 8) args=(x, y, H, W, alpha)

constexpr int unroll = UNROLL;

struct __align__(4 * VEC) pack {
    float at[VEC];
};

// VEC points from column j on; whole says that they may be read at once.
static __device__ __forceinline__ pack read(const float *row, int j, int W, bool whole)
{
    pack p;

    if (whole)
        return *(const pack *)(row + j);
#pragma unroll
    for (int e = 0; e < VEC; e++)
        p.at[e] = j + e < W ? row[j + e] : 0;
    return p;
}

static __device__ __forceinline__ void write(float *row, int j, int W, bool whole, pack p)
{
    if (whole) {
#if STREAM && VEC == 4
        __stcs((float4 *)(row + j), make_float4(p.at[0], p.at[1], p.at[2], p.at[3]));
#elif STREAM && VEC == 2
        __stcs((float2 *)(row + j), make_float2(p.at[0], p.at[1]));
#elif STREAM
        __stcs(row + j, p.at[0]);
#else
        *(pack *)(row + j) = p;
#endif
        return;
    }
#pragma unroll
    for (int e = 0; e < VEC; e++)
        if (j + e < W)
            row[j + e] = p.at[e];
}

static __device__ __forceinline__ bool inner(int i, int j, int H, int W)
{
    if (i == 0 || i == H - 1)
        return false;
    return !BORDER || (j > 0 && j < W - 1);
}

// The new values of VEC points; left and right are the points beside them.
static __device__ __forceinline__ pack step(pack up, pack here, pack down, float left, float right,
                                            float alpha, int i, int j, int H, int W)
{
    pack p;

#pragma unroll
    for (int e = 0; e < VEC; e++) {
        float before = e > 0 ? here.at[e > 0 ? e - 1 : 0] : left;
        float after = e < VEC - 1 ? here.at[e < VEC - 1 ? e + 1 : e] : right;
        float sum = up.at[e] + down.at[e] + before + after;

        p.at[e] = here.at[e];
        if (inner(i, j + e, H, W))
            p.at[e] += alpha * (sum - 4 * here.at[e]);
    }
    return p;
}

extern "C" __global__ void __launch_bounds__(BX * BY)
    stencil5(const float *__restrict__ x, float *y, int H, int W, float alpha)
{
    int j = (blockIdx.x * BX + threadIdx.x) * VEC;
    int top = (blockIdx.y * BY + threadIdx.y) * ROWS;
    bool whole = W % VEC == 0 && j + VEC <= W;

#if WHERE == 0
    if (j >= W)
        return;
#pragma unroll unroll
    for (int r = 0; r < ROWS; r++) {
        int i = top + r;
        const float *row = x + (long long)i * W;
        if (i < H) {
            pack here = read(row, j, W, whole);
            pack up = i > 0 ? read(row - W, j, W, whole) : here;
            pack down = i < H - 1 ? read(row + W, j, W, whole) : here;
            float left = j > 0 ? row[j - 1] : 0, right = j + VEC < W ? row[j + VEC] : 0;
            write(y + (long long)i * W, j, W, whole,
                  step(up, here, down, left, right, alpha, i, j, H, W));
        }
    }
#elif WHERE == 1
    int lane = threadIdx.x % 32;
    pack up = {}, here = {}, down = {};

    // Threads beyond the right border stay, because the lanes exchange points. All lanes of a warp
    // have the same rows.
    if (top > 0 && top - 1 < H)
        up = read(x + (long long)(top - 1) * W, j, W, whole);
    if (top < H)
        here = read(x + (long long)top * W, j, W, whole);
#pragma unroll unroll
    for (int r = 0; r < ROWS; r++) {
        int i = top + r;
        const float *row = x + (long long)i * W;
        if (i < H) {
            float left = __shfl_up_sync(0xffffffffu, here.at[VEC - 1], 1);
            float right = __shfl_down_sync(0xffffffffu, here.at[0], 1);
            if (i < H - 1)
                down = read(row + W, j, W, whole);
            if (lane == 0)
                left = j > 0 && j <= W ? row[j - 1] : 0;
            if (lane == 31)
                right = j + VEC < W ? row[j + VEC] : 0;
            if (j < W)
                write(y + (long long)i * W, j, W, whole,
                      step(up, here, down, left, right, alpha, i, j, H, W));
            up = here;
            here = down;
        }
    }
#else
    // Column c of the tile is column c - 4 of the block's points: vectors stay aligned.
    constexpr int PITCH = BX * VEC + 8;
    extern __shared__ __align__(16) float tile[];
    int i0 = blockIdx.y * BY * ROWS, j0 = blockIdx.x * BX * VEC;
    int local = threadIdx.x * VEC + 4;

    for (int r = threadIdx.y; r < BY * ROWS + 2; r += BY) {
        int i = i0 + r - 1;
        if (i >= 0 && i < H) {
            const float *row = x + (long long)i * W;
            *(pack *)&tile[r * PITCH + local] = read(row, j, W, whole);
            if (threadIdx.x == 0 && j0 > 0)
                tile[r * PITCH + 3] = row[j0 - 1];
            if (threadIdx.x == BX - 1 && j + VEC < W)
                tile[r * PITCH + local + VEC] = row[j + VEC];
        }
    }
    __syncthreads();
    if (j >= W)
        return;
#pragma unroll unroll
    for (int r = 0; r < ROWS; r++) {
        int i = top + r;
        const float *at = &tile[(i - i0 + 1) * PITCH + local];
        if (i < H)
            write(y + (long long)i * W, j, W, whole,
                  step(*(const pack *)(at - PITCH), *(const pack *)at, *(const pack *)(at + PITCH),
                       at[-1], at[VEC], alpha, i, j, H, W));
    }
#endif
}
