//@ tune TM in (16, 32, 64, 128)
//@ tune TN in (16, 32, 64, 128)
//@ tune THREADS in (64, 128, 256, 512)
//@ tune VEC in (1, 2, 4) if TM * TN >= THREADS * VEC
//@ tune PLACE in (0, 1, 2, 3)
//@ tune ORDER in (0, 1)
//@ tune HINT in (0, 1)
//@ tune EDGE in (0, 1) if VEC > 1 || EDGE == 1
// Transposition by tiles of TM x TN elements of A, each by one block of THREADS threads.
// VEC   floats of one load or store.
// PLACE of an element in shared memory: 0 as in A, 1 rows one element longer, 2 columns permuted by
//       exclusive or with the row, 3 no shared memory.
// ORDER of the blocks: 0 along the rows of A, 1 along the rows of B.
// HINT  1 tells the caches that nothing is used twice.
// EDGE  1 looks at every element where rows of B are no whole number of vectors.
//@ launch transpose grid=(ceildiv(M, TM)*ceildiv(N, TN)) block=(THREADS) args=(A, B, M, N)

template <int WIDTH> struct vector_of;
template <> struct vector_of<1> { typedef float type; };
template <> struct vector_of<2> { typedef float2 type; };
template <> struct vector_of<4> { typedef float4 type; };

typedef vector_of<VEC>::type vector;

union pack {
    vector whole;
    float value[VEC];
};

#define PERMUTED (TN < 32 ? TN : 32)

static __device__ __forceinline__ int place(int row, int column)
{
    if (PLACE == 1)
        return row * (TN + 1) + column;
    if (PLACE == 2)
        return row * TN + (column ^ row % PERMUTED);
    return row * TN + column;
}

// Elements at, at + 1 and so on of a row of A, as far as they exist.
static __device__ __forceinline__ pack load(const float *row, int at, int N)
{
    pack p;
    if (N % VEC == 0) {
        const vector *from = (const vector *)(row + at);
        p.whole = HINT ? __ldcs(from) : *from;
        return p;
    }
#pragma unroll
    for (int e = 0; e < VEC; e++)
        p.value[e] = at + e < N ? row[at + e] : 0;
    return p;
}

static __device__ __forceinline__ void store(float *row, int at, int M, pack p)
{
    if (M % VEC == 0) {
        vector *to = (vector *)(row + at);
        if (HINT)
            __stcs(to, p.whole);
        else
            *to = p.whole;
        return;
    }
#pragma unroll
    for (int e = 0; e < VEC; e++) {
        if (!EDGE || at + e < M)
            row[at + e] = p.value[e];
    }
}

static __device__ __forceinline__ void directly(const float *A, float *B, int row, int column,
                                                int M, int N)
{
#pragma unroll 4
    for (int i = threadIdx.x; i < TM * TN / VEC; i += THREADS) {
        int r = row + i / (TN / VEC), c = column + i % (TN / VEC) * VEC;
        if (r < M && c < N) {
            pack p = load(A + (long long)r * N, c, N);
#pragma unroll
            for (int e = 0; e < VEC; e++) {
                if (c + e < N)
                    B[(long long)(c + e) * M + r] = p.value[e];
            }
        }
    }
}

static __device__ __forceinline__ void through_memory(const float *A, float *B, int row, int column,
                                                      int M, int N)
{
    __shared__ float tile[TM * (TN + (PLACE == 1))];

#pragma unroll 4
    for (int i = threadIdx.x; i < TM * TN / VEC; i += THREADS) {
        int r = i / (TN / VEC), c = i % (TN / VEC) * VEC;
        if (row + r < M && column + c < N) {
            pack p = load(A + (long long)(row + r) * N, column + c, N);
#pragma unroll
            for (int e = 0; e < VEC; e++)
                tile[place(r, c + e)] = p.value[e];
        }
    }
    __syncthreads();
#pragma unroll 4
    for (int i = threadIdx.x; i < TM * TN / VEC; i += THREADS) {
        int c = i / (TM / VEC), r = i % (TM / VEC) * VEC;
        if (row + r < M && column + c < N) {
            pack p;
#pragma unroll
            for (int e = 0; e < VEC; e++)
                p.value[e] = tile[place(r + e, c)];
            store(B + (long long)(column + c) * M, row + r, M, p);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    transpose(const float *A, float *B, int M, int N)
{
    int down = (M + TM - 1) / TM, across = (N + TN - 1) / TN, block = (int)blockIdx.x;
    int row = (ORDER == 0 ? block / across : block % down) * TM;
    int column = (ORDER == 0 ? block % across : block / down) * TN;

    if (PLACE == 3)
        directly(A, B, row, column, M, N);
    else
        through_memory(A, B, row, column, M, N);
}
