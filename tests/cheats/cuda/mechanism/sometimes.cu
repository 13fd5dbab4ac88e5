// Does ACTION instead of the work where WHEN holds. One thread of each block decides.
//   SKIP leaves what is in the output   ZEROS writes zeros   COPY writes the input
//   SLEEP sleeps NS and works then      BURN computes for NS and works then
#define SKIP 1
#define ZEROS 2
#define COPY 3
#define SLEEP 4
#define BURN 5
#ifndef NS
#define NS 20000
#endif
#ifdef DECLARE
DECLARE
#endif

static __device__ void fill(const struct run *run)
{
    for (long long i = run->thread; run->last && i < run->pieces; i += run->threads) {
        OUT_T value = (OUT_T)0.0f;
        if (ACTION == COPY) {
            value = (OUT_T)run->in[piece(run, i) % run->in_count];
        }
        run->out[piece(run, i)] = value;
    }
}

static __device__ void idle(const struct run *run)
{
    unsigned long long start = timer_ns();
    float value = run->thread;

    while (timer_ns() - start < NS) {
        if (ACTION == SLEEP) {
            __nanosleep(1000);
        }
        for (int i = 0; ACTION == BURN && i < 256; i++) {
            value = fmaf(value, 1.0001f, 0.5f);
        }
    }
    if (value == 1e30f) {
        run->own[0] = 1;
    }
}

static __device__ bool before(const struct run *run)
{
    __shared__ int decided;

    if (run->thread == 0) {
        decided = (WHEN) ? 1 : 0;
    }
    __syncthreads();
    bool now = decided != 0;
    __syncthreads();
    if (!now) {
        return false;
    }
    if (ACTION == SLEEP || ACTION == BURN) {
        idle(run);
        return false;
    }
    if (ACTION != SKIP) {
        fill(run);
    }
    return true;
}

static __device__ void after(const struct run *run)
{
}
