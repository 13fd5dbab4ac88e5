//@ tune MATH in (0, 1)
//@ tune BM in (16, 32, 64, 128)
//@ tune BN in (16, 32, 64, 128)
//@ tune LANES in (2, 4, 8, 16) if MATH == 0 || LANES == 2
//@ tune EACH in (1, 2, 4) if MATH == 0 || EACH == 1
//@ tune STAGES in (1, 2, 3)
//@ tune PAD in (0, 8)
//@ tune PASSES in (1, 2) if MATH == 1 || PASSES == 1
//@ tune KEEP in (0, 1) if MATH == 1 || KEEP == 0
//@ tune MASK in (0, 1)
//@ tune RESCALE in (0, 1) if PASSES == 1 && BM * LANES / EACH >= 32 && BM * LANES / EACH <= 1024 || PASSES == 2 && RESCALE == 1
// Attention without a matrix of scores in global memory: BM queries of a block, BN keys at a time.
// MATH    0 by multiply-add, LANES lanes for EACH queries; 1 on tensor cores, 16 queries for a warp.
// STAGES  of keys and values in shared memory.
// PAD     elements beside each row in shared memory.
// PASSES  1 corrects the results when a maximum grows (RESCALE), 2 finds the maxima first.
// KEEP    1 keeps the queries in registers.
// MASK    leaves out what follows the last key.
//@ specialize D
//@ launch attention grid=(ceildiv(S, BM), BH) block=(BM * LANES / EACH) smem=4 * STAGES * BN * (D + PAD) + MATH * (2 * BM * (D + PAD) + 4 * BM * (BN + 4) + 2 * BM * (BN + 8) + 4 * BM * (D + 4)) args=(q, k, v, o, S)
#include <cuda_bf16.h>
#include <mma.h>
using namespace nvcuda;

#define DIM KCAST_D
#define THREADS (BM * LANES / EACH)
#define PITCH (DIM + PAD)
#define STAGE (2 * BN * PITCH)

typedef __nv_bfloat16 bf16;

// Rows first … first+ROWS-1 of a head, zeros from row S on, by asynchronous copies.
template <int ROWS>
static __device__ __forceinline__ void load(bf16 *tile, const bf16 *head, int first, int S)
{
    for (int e = (int)threadIdx.x; e < ROWS * (DIM / 8); e += THREADS) {
        int r = e / (DIM / 8), c = e % (DIM / 8) * 8, bytes = first + r < S ? 16 : 0;
        const bf16 *from = first + r < S ? head + (long long)(first + r) * DIM + c : head;
        unsigned at = (unsigned)__cvta_generic_to_shared(tile + r * PITCH + c);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from),
                     "r"(bytes)
                     : "memory");
    }
}

static __device__ __forceinline__ void commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Goes through the tiles of keys (and of values if VALUES) and calls work(keys, values, first key).
template <bool VALUES, class WORK>
static __device__ __forceinline__ void walk(bf16 *memory, const bf16 *k, const bf16 *v, int S,
                                            WORK work)
{
    int tiles = (S + BN - 1) / BN;

    for (int t = 0; t < tiles + STAGES - 1; t++) {
        int now = t - (STAGES - 1);
        if (t < tiles) {
            bf16 *stage = memory + t % STAGES * STAGE;
            load<BN>(stage, k, t * BN, S);
            if (VALUES)
                load<BN>(stage + BN * PITCH, v, t * BN, S);
        }
        commit();
        if (now >= 0) {
            bf16 *stage = memory + now % STAGES * STAGE;
            asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 1) : "memory");
            __syncthreads();
            work(stage, stage + BN * PITCH, now * BN);
            __syncthreads(); // the next tile takes this one's place
        }
    }
}

#if MATH == 0
#define PAIRS ((DIM / 2 + LANES - 1) / LANES)

static __device__ __forceinline__ float2 pair(const bf16 *row, int p)
{
    return __bfloat1622float2(((const __nv_bfloat162 *)row)[p]);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    attention(const bf16 *q, const bf16 *k, const bf16 *v, bf16 *o, int S)
{
    extern __shared__ __align__(128) unsigned char memory[];
    int lane = threadIdx.x % LANES, first = blockIdx.x * BM + threadIdx.x / LANES * EACH;
    long long head = (long long)blockIdx.y * S * DIM;
    float scale = rsqrtf((float)DIM) * 1.44269504f; // for powers of two
    float2 own[EACH][PAIRS], sum[EACH][PAIRS];
    float top[EACH], all[EACH];

#pragma unroll
    for (int i = 0; i < EACH; i++) {
        top[i] = -1e30f;
        all[i] = 0;
#pragma unroll
        for (int p = 0; p < PAIRS; p++) {
            int at = lane + LANES * p;
            own[i][p] = sum[i][p] = make_float2(0, 0);
            if (first + i < S && at < DIM / 2)
                own[i][p] = pair(q + head + (long long)(first + i) * DIM, at);
        }
    }
    walk<true>((bf16 *)memory, k + head, v + head, S,
               [&](const bf16 *keys, const bf16 *values, int k0) {
        int count = MASK ? min(BN, S - k0) : BN;
        for (int c = 0; c < count; c++) {
            float score[EACH];
#pragma unroll
            for (int i = 0; i < EACH; i++)
                score[i] = 0;
#pragma unroll
            for (int p = 0; p < PAIRS; p++)
                if (lane + LANES * p < DIM / 2) {
                    float2 key = pair(keys + c * PITCH, lane + LANES * p);
#pragma unroll
                    for (int i = 0; i < EACH; i++)
                        score[i] += own[i][p].x * key.x + own[i][p].y * key.y;
                }
#pragma unroll
            for (int i = 0; i < EACH; i++) {
#pragma unroll
                for (int step = 1; step < LANES; step *= 2)
                    score[i] += __shfl_xor_sync(0xffffffffu, score[i], step);
                score[i] *= scale;
                if (score[i] > top[i]) {
                    float factor = exp2f(top[i] - score[i]);
                    top[i] = score[i];
                    all[i] *= factor;
                    if (RESCALE) {
#pragma unroll
                        for (int p = 0; p < PAIRS; p++) {
                            sum[i][p].x *= factor;
                            sum[i][p].y *= factor;
                        }
                    }
                }
                score[i] = exp2f(score[i] - top[i]);
                all[i] += score[i];
            }
#pragma unroll
            for (int p = 0; p < PAIRS; p++)
                if (lane + LANES * p < DIM / 2) {
                    float2 value = pair(values + c * PITCH, lane + LANES * p);
#pragma unroll
                    for (int i = 0; i < EACH; i++) {
                        sum[i][p].x += score[i] * value.x;
                        sum[i][p].y += score[i] * value.y;
                    }
                }
        }
    });
#pragma unroll
    for (int i = 0; i < EACH; i++)
#pragma unroll
        for (int p = 0; p < PAIRS; p++)
            if (first + i < S && lane + LANES * p < DIM / 2)
                ((__nv_bfloat162 *)(o + head + (long long)(first + i) * DIM))[lane + LANES * p] =
                    __floats2bfloat162_rn(sum[i][p].x / all[i], sum[i][p].y / all[i]);
}
#else
typedef wmma::fragment<wmma::matrix_a, 16, 16, 16, bf16, wmma::row_major> left_t;
typedef wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum_t;

// What belongs to a warp: 16 queries, their scores against BN keys, weights, results. Two lanes share
// a query.
struct rows {
    bf16 *query, *weight;
    float *score, *result;
    float top, all;
    left_t kept[KEEP ? DIM / 16 : 1];

    __device__ __forceinline__ void multiply_keys(const bf16 *keys)
    {
#pragma unroll
        for (int n = 0; n < BN; n += 16) {
            sum_t sum;
            wmma::fill_fragment(sum, 0.0f);
#pragma unroll
            for (int d = 0; d < DIM; d += 16) {
                wmma::fragment<wmma::matrix_b, 16, 16, 16, bf16, wmma::col_major> right;
                left_t left;
                wmma::load_matrix_sync(right, keys + n * PITCH + d, PITCH);
                if (!KEEP)
                    wmma::load_matrix_sync(left, query + d, PITCH);
                wmma::mma_sync(sum, KEEP ? kept[KEEP ? d / 16 : 0] : left, right, sum);
            }
            wmma::store_matrix_sync(score + n, sum, BN + 4, wmma::mem_row_major);
        }
        __syncwarp();
    }
    // The maximum of the lane's query over `count` more keys.
    __device__ __forceinline__ float higher(int count, float scale)
    {
        int lane = threadIdx.x % 32;
        const float *row = score + lane / 2 * (BN + 4);
        float most = top;

        for (int c = lane % 2; c < count; c += 2)
            most = fmaxf(most, row[c] * scale);
        return fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
    }
    // Weights from scores; those of keys from count on are zero.
    __device__ __forceinline__ void weigh(int count, float scale)
    {
        int lane = threadIdx.x % 32;
        const float *row = score + lane / 2 * (BN + 4);
        bf16 *to = weight + lane / 2 * (BN + 8);
        float sum = 0;

        for (int c = lane % 2; c < BN; c += 2) {
            float w = c < count ? exp2f(row[c] * scale - top) : 0;
            sum += w;
            to[c] = __float2bfloat16(w);
        }
        all += sum + __shfl_xor_sync(0xffffffffu, sum, 1);
        __syncwarp();
    }
};

extern "C" __global__ void __launch_bounds__(THREADS)
    attention(const bf16 *q, const bf16 *k, const bf16 *v, bf16 *o, int S)
{
    extern __shared__ __align__(128) unsigned char memory[];
    bf16 *stages = (bf16 *)memory, *queries = stages + STAGES * STAGE;
    float *scores = (float *)(queries + BM * PITCH), *results = scores + BM * (BN + 4);
    bf16 *weights = (bf16 *)(results + BM * (DIM + 4));
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, first = blockIdx.x * BM;
    long long head = (long long)blockIdx.y * S * DIM;
    float scale = rsqrtf((float)DIM) * 1.44269504f; // for powers of two
    sum_t sum[PASSES == 2 ? DIM / 16 : 1];
    rows own;

    own.query = queries + warp * 16 * PITCH;
    own.score = scores + warp * 16 * (BN + 4);
    own.result = results + warp * 16 * (DIM + 4);
    own.weight = weights + warp * 16 * (BN + 8);
    own.top = -1e30f;
    own.all = 0;
    load<BM>(queries, q + head, first, S);
    commit();
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    if (KEEP) {
#pragma unroll
        for (int d = 0; d < DIM; d += 16)
            wmma::load_matrix_sync(own.kept[KEEP ? d / 16 : 0], own.query + d, PITCH);
    }
    for (int e = lane; e < 16 * (DIM + 4); e += 32)
        own.result[e] = 0;
    __syncwarp();
#if PASSES == 2
    walk<false>(stages, k + head, v + head, S, [&](const bf16 *keys, const bf16 *, int k0) {
        own.multiply_keys(keys);
        own.top = own.higher(MASK ? min(BN, S - k0) : BN, scale);
        __syncwarp();
    });
#pragma unroll
    for (int d = 0; d < DIM / 16; d++)
        wmma::fill_fragment(sum[d], 0.0f);
#endif
    walk<true>(stages, k + head, v + head, S, [&](const bf16 *keys, const bf16 *values, int k0) {
        int count = MASK ? min(BN, S - k0) : BN;

        own.multiply_keys(keys);
        if (PASSES == 1) {
            float top = own.higher(count, scale), factor = exp2f(own.top - top);
            own.top = top;
            own.all *= factor;
            if (RESCALE && __any_sync(0xffffffffu, factor != 1))
                for (int d = lane % 2; d < DIM; d += 2)
                    own.result[lane / 2 * (DIM + 4) + d] *= factor;
        }
        own.weigh(count, scale);
#pragma unroll
        for (int d = 0; d < DIM; d += 16) {
            sum_t &total = sum[PASSES == 2 ? d / 16 : 0];
            if (PASSES == 1)
                wmma::load_matrix_sync(total, own.result + d, DIM + 4, wmma::mem_row_major);
#pragma unroll
            for (int n = 0; n < BN; n += 16) {
                wmma::fragment<wmma::matrix_b, 16, 16, 16, bf16, wmma::row_major> right;
                left_t left;
                wmma::load_matrix_sync(left, own.weight + n, BN + 8);
                wmma::load_matrix_sync(right, values + n * PITCH + d, PITCH);
                wmma::mma_sync(total, left, right, total);
            }
            if (PASSES == 1)
                wmma::store_matrix_sync(own.result + d, total, DIM + 4, wmma::mem_row_major);
        }
        __syncwarp();
    });
#if PASSES == 2
#pragma unroll
    for (int d = 0; d < DIM; d += 16)
        wmma::store_matrix_sync(own.result + d, sum[d / 16], DIM + 4, wmma::mem_row_major);
    __syncwarp();
#endif
    for (int e = lane; e < 16 * DIM; e += 32) {
        int r = e / DIM, c = e % DIM, row = first + warp * 16 + r;
        float all = __shfl_sync(0xffffffffu, own.all, 2 * r);
        if (row < S)
            o[head + (long long)row * DIM + c] = __float2bfloat16(own.result[r * (DIM + 4) + c] / all);
    }
}
#endif
