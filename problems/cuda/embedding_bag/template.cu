//@ tune LANES in (8, 16, 32, 64, 128)
//@ tune BAGS in (1, 2, 4, 8, 16)
//@ tune SPLIT in (1, 2, 4, 8) if LANES * BAGS * SPLIT >= 32 && LANES * BAGS * SPLIT <= 512
//@ tune VEC in (1, 2, 4, 8)
//@ tune UNROLL in (1, 2, 4, 8)
//@ tune PLACE in (0, 1, 2)
// Weighted sums of rows of the table. LANES threads do the columns of a bag by vectors of VEC,
// SPLIT such groups share its rows; a block does BAGS bags.
// UNROLL how far the loop over a bag's rows is unrolled.
// PLACE  of a bag's row numbers and weights: 0 in memory, 1 in shared memory, 2 in shared memory
//        with room for ROOM of them.
#define ROOM 128
//@ launch bags grid=(ceildiv(B, BAGS)) block=(LANES, SPLIT, BAGS) args=(table, row, w, y, B, L, D) if=(PLACE == 0)
//@ launch bags grid=(ceildiv(B, BAGS)) block=(LANES, SPLIT, BAGS) args=(table, row, w, y, B, L, D) smem=(8*BAGS*L) if=(PLACE == 1)
//@ launch bags grid=(ceildiv(B, BAGS)) block=(LANES, SPLIT, BAGS) args=(table, row, w, y, B, L, D) smem=(8*BAGS*ROOM) if=(PLACE == 2)
#include <cuda_bf16.h>

template <int WIDTH> struct vector_of;
template <> struct vector_of<1> { typedef unsigned short type; };
template <> struct vector_of<2> { typedef unsigned type; };
template <> struct vector_of<4> { typedef uint2 type; };
template <> struct vector_of<8> { typedef uint4 type; };

typedef vector_of<VEC>::type vector;

union raw {
    vector whole;
    unsigned short part[VEC];
};

// sum += weight times columns at, at + 1 and so on of a row, as far as they exist.
static __device__ __forceinline__ void add_row(float sum[VEC], const __nv_bfloat16 *from,
                                               float weight, int at, int D)
{
    raw r;

    if (D % VEC == 0) {
        r.whole = __ldg((const vector *)(from + at));
    } else {
#pragma unroll
        for (int e = 0; e < VEC; e++)
            r.part[e] = at + e < D ? __bfloat16_as_ushort(from[at + e]) : 0;
    }
#pragma unroll
    for (int e = 0; e < VEC; e++)
        sum[e] = fmaf(weight, __bfloat162float(__ushort_as_bfloat16(r.part[e])), sum[e]);
}

// The sum over the SPLIT groups of a bag, in the first of them; all threads of the block take part.
static __device__ __forceinline__ void add_groups(float sum[VEC])
{
    __shared__ float part[BAGS][SPLIT][VEC][LANES];

    __syncthreads();
#pragma unroll
    for (int e = 0; e < VEC; e++)
        part[threadIdx.z][threadIdx.y][e][threadIdx.x] = sum[e];
    __syncthreads();
    if (threadIdx.y == 0) {
#pragma unroll
        for (int i = 1; i < SPLIT; i++) {
#pragma unroll
            for (int e = 0; e < VEC; e++)
                sum[e] += part[threadIdx.z][i][e][threadIdx.x];
        }
    }
}

extern "C" __global__ void __launch_bounds__(LANES *SPLIT *BAGS)
    bags(const __nv_bfloat16 *table, const int *row, const float *w, float *y, int B, int L, int D)
{
    extern __shared__ int memory[];
    int bag = (int)blockIdx.x * BAGS + (int)threadIdx.z;
    int count = bag < B ? L : 0, room = PLACE == 1 ? L : ROOM;

    row += (long long)bag * L;
    w += (long long)bag * L;
    if (PLACE > 0) {
        int *row_kept = memory + (int)threadIdx.z * room;
        float *w_kept = (float *)(memory + BAGS * room) + (int)threadIdx.z * room;
        if (PLACE == 2)
            count = min(count, ROOM);
        for (int i = (int)threadIdx.y * LANES + (int)threadIdx.x; i < count; i += LANES * SPLIT) {
            row_kept[i] = row[i];
            w_kept[i] = w[i];
        }
        __syncthreads();
        row = row_kept;
        w = w_kept;
    }
    for (int base = 0; base < D; base += LANES * VEC) {
        int at = base + (int)threadIdx.x * VEC;
        float sum[VEC];
#pragma unroll
        for (int e = 0; e < VEC; e++)
            sum[e] = 0;
        if (at < D) {
#pragma unroll UNROLL
            for (int i = threadIdx.y; i < count; i += SPLIT)
                add_row(sum, table + (long long)row[i] * D, w[i], at, D);
        }
        if (SPLIT > 1)
            add_groups(sum);
        if (threadIdx.y == 0 && bag < B) {
#pragma unroll
            for (int e = 0; e < VEC; e++) {
                if (at + e < D)
                    y[(long long)bag * D + at + e] = sum[e];
            }
        }
    }
}
