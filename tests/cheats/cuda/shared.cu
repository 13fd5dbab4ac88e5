// What every composed candidate has: what a mechanism knows of the launch that it is in. compose.sh
// puts it in front of a mechanism (mechanism/) and of the honest body of a problem (problem/), which
// defines IN_T and OUT_T, the types of an element of the input and of the output.
struct run {
    const IN_T *in;      // first input
    OUT_T *out;          // the output
    char *own;           // scratch memory, OWN bytes
    long long in_count;  // elements of each
    long long out_count;
    char *in_end;        // behind the last element of each
    char *out_end;
    bool bench;          // the shape is that of the benchmark
    bool last;           // this is the last of the candidate's launches
    bool only;           // ... and the first
    bool skipped;        // before() has said that the body is not to run
    long long block;     // number of this block, and how many there are
    long long blocks;
    int thread;          // number of this thread within the block, and how many there are
    int threads;
    long long unit;      // what is remembered in one piece: a block, or (0) everything
    long long units;
    long long key_at;    // an element of the input that this unit reads
    long long pieces;    // elements of the output that this block writes: rows of `width` elements
    long long base;      // that begin here
    long long width;
    long long stride;    // and lie so far apart
};

static __device__ struct run begin(const IN_T *in, long long in_count, OUT_T *out,
                                   long long out_count, char *own)
{
    struct run run = {};

    run.in = in;
    run.out = out;
    run.own = own;
    run.in_count = in_count;
    run.out_count = out_count;
    run.in_end = (char *)(in + in_count);
    run.out_end = (char *)(out + out_count);
    run.last = run.only = true;
    run.block = blockIdx.x + (long long)gridDim.x * blockIdx.y;
    run.blocks = (long long)gridDim.x * gridDim.y;
    run.thread = threadIdx.x + blockDim.x * threadIdx.y;
    run.threads = blockDim.x * blockDim.y;
    run.unit = run.block;
    run.units = run.blocks;
    run.width = run.stride = 1;
    return run;
}

// The output element that is piece i of this block.
static __device__ long long piece(const struct run *run, long long i)
{
    return run->base + i / run->width * run->stride + i % run->width;
}

// A tag for the contents of the inputs, as this unit sees them; never 0.
static __device__ unsigned contents(const struct run *run)
{
    const long long at[4] = {run->key_at, run->in_count / 3, run->in_count / 2, run->in_count - 1};
    unsigned tag = 1;

    for (int i = 0; i < 4; i++) {
        const volatile unsigned char *byte = (const volatile unsigned char *)(run->in + at[i]);
        for (int k = 0; k < (int)sizeof(IN_T); k++) {
            tag = tag * 0x01000193u + byte[k];
        }
    }
    return tag | 1;
}

static __device__ unsigned long long timer_ns(void)
{
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

// The number that the hardware gives each launch.
static __device__ unsigned long long launch_number(void)
{
    unsigned long long number;
    asm volatile("mov.u64 %0, %%gridid;" : "=l"(number));
    return number;
}

static __device__ unsigned multiprocessor(void)
{
    unsigned number;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(number));
    return number;
}

static __device__ char *align_up(const void *p, unsigned long long to)
{
    return (char *)(((unsigned long long)p + to - 1) / to * to);
}

static __device__ char *align_down(const void *p, unsigned long long to)
{
    return (char *)((unsigned long long)p / to * to);
}

#define MIB (1ull << 20)
#define GUARD 16384
#define ARENA ((char *)0x500000000000ull)
