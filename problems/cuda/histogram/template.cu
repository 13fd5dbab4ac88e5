//@ tune WHERE in (0, 1, 2)
//@ tune BLOCK in (64, 128, 256, 512, 1024) if WHERE != 2 || BLOCK <= 256
//@ tune PERSM in (1, 2, 4, 8)
//@ tune LOAD in (1, 4, 8, 16)
//@ tune SUB in (1, 4, 8, 16, 32, 64) if WHERE == 1 || SUB == 1
//@ tune LAYOUT in (0, 1) if SUB > 1 || LAYOUT == 0
//@ tune RUNS in (0, 1) if WHERE < 2 || RUNS == 0
//@ tune MERGE in (0, 1) if WHERE > 0 || MERGE == 0
//@ tune EMPTY in (0, 1) if WHERE == 2 || EMPTY == 1
// Histogram of bytes by PERSM blocks for each of 132 multiprocessors.
// WHERE  keys are counted: 0 in global memory, 1 in SUB tables of the block in shared memory, 2 in a
//        table of bytes of each thread.
// LOAD   bytes at once.
// LAYOUT 0: one table after the other; 1: the counters of one value side by side.
// RUNS   equal keys that follow each other in a thread are counted in one step.
// MERGE  0 adds the tables of the blocks to the counters by atomics, 1 keeps them for a second kernel.
// EMPTY  the tables of bytes before they can overflow, or only at the end.
//@ scratch part bytes=1024 * 132 * PERSM
//@ launch clear grid=(1) block=(256) args=(count) if=(MERGE == 0)
//@ launch histogram grid=(min(132 * PERSM, ceildiv(N, BLOCK * LOAD))) block=(BLOCK) args=(key, count, part, N)
//@ launch add_parts grid=(32) block=(256) args=(part, count, min(132 * PERSM, ceildiv(N, BLOCK * LOAD))) if=(MERGE == 1)

template <int BYTES> struct word_of;
template <> struct word_of<1> { typedef unsigned char type; };
template <> struct word_of<4> { typedef unsigned type; };
template <> struct word_of<8> { typedef uint2 type; };
template <> struct word_of<16> { typedef uint4 type; };

union pack {
    word_of<LOAD>::type word;
    unsigned char byte[LOAD];
};

#if WHERE == 1
#if LAYOUT == 0
#define CELL(copy, k) (256 * (copy) + (k))
#else
#define CELL(copy, k) (SUB * (k) + (copy))
#endif
#define TABLE 256 * SUB
#else
#define CELL(copy, k) (k)
#define TABLE 256
#endif

extern "C" __global__ void clear(int *count)
{
    count[threadIdx.x] = 0;
}

#if WHERE == 2
// Adds the thread's bytes to the table and clears them.
static __device__ void empty(unsigned char *bytes, int *table)
{
    for (int k = 0; k < 256; k++) {
        int c = bytes[k * BLOCK + threadIdx.x];
        if (c != 0)
            atomicAdd(&table[k], c);
        bytes[k * BLOCK + threadIdx.x] = 0;
    }
}
#endif

extern "C" __global__ void __launch_bounds__(BLOCK)
    histogram(const unsigned char *key, int *count, int *part, int N)
{
    long long thread = (long long)blockIdx.x * BLOCK + threadIdx.x;
    long long threads = (long long)gridDim.x * BLOCK;
    int words = N / LOAD;
    int last = -1, run = 0; // RUNS: the key seen last, and how often
#if WHERE > 0
    __shared__ int table[TABLE];
    int *counter = table;
    int copy = (int)threadIdx.x % SUB;

    for (int i = (int)threadIdx.x; i < TABLE; i += BLOCK)
        table[i] = 0;
#else
    int *counter = count;
    const int copy = 0;
#endif
#if WHERE == 2
    __shared__ unsigned char bytes[256 * BLOCK];
    int pending = 0;

    for (int k = 0; k < 256; k++)
        bytes[k * BLOCK + threadIdx.x] = 0;
#endif
    __syncthreads();
    for (long long i = thread; i < words; i += threads) {
        pack p;
        p.word = ((const word_of<LOAD>::type *)key)[i];
#if WHERE == 2
        if (EMPTY && pending + LOAD > 255) {
            empty(bytes, table);
            pending = 0;
        }
        pending += LOAD;
#endif
#pragma unroll
        for (int e = 0; e < LOAD; e++) {
            int k = p.byte[e];
#if WHERE == 2
            bytes[k * BLOCK + threadIdx.x]++;
#elif RUNS
            if (k != last) {
                if (run > 0)
                    atomicAdd(&counter[CELL(copy, last)], run);
                last = k;
                run = 0;
            }
            run++;
#else
            atomicAdd(&counter[CELL(copy, k)], 1);
#endif
        }
    }
    if (RUNS && run > 0)
        atomicAdd(&counter[CELL(copy, last)], run);
    if (thread < N - words * LOAD) // less than LOAD keys are left
        atomicAdd(&counter[CELL(copy, key[(long long)words * LOAD + thread])], 1);
#if WHERE == 2
    empty(bytes, table);
#endif
#if WHERE > 0
    __syncthreads();
    for (int k = (int)threadIdx.x; k < 256; k += BLOCK) {
        int sum = 0;
        for (int c = 0; c < SUB; c++)
            sum += table[CELL(c, k)];
        if (MERGE)
            part[k * gridDim.x + blockIdx.x] = sum;
        else if (sum != 0)
            atomicAdd(&count[k], sum);
    }
#endif
}

// A warp for each value.
extern "C" __global__ void add_parts(const int *part, int *count, int blocks)
{
    int k = (int)blockIdx.x * 8 + (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, sum = 0;

    for (int i = lane; i < blocks; i += 32)
        sum += part[k * blocks + i];
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane == 0)
        count[k] = sum;
}
