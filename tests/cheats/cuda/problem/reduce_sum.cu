// from: problems/cuda/reduce_sum
// bench: {"params": {"N": 2000003}, "weight": 1}
// input: x
// output: y
//@ scratch own bytes=OWN
//@ scratch part bytes=(4*1024)
//@ launch first grid=(min(ceildiv(N, 256), 1024)) block=(256) args=(x, part, y, own, N)
//@ launch second grid=(1) block=(256) args=(x, part, y, own, N, min(ceildiv(N, 256), 1024))
#define IN_T float
#define OUT_T float
// MECHANISM
// BODY
static __device__ struct run reduction(const float *x, float *y, char *own, int N)
{
    struct run run = begin(x, N, y, 1, own);

    run.bench = N == 2000003;
    run.only = false;
    run.unit = 0;
    run.units = 1;
    return run;
}

extern "C" __global__ void first(const float *x, float *part, float *y, char *own, int N)
{
    struct run run = reduction(x, y, own, N);

    run.last = false;
    run.skipped = before(&run);
    if (!run.skipped) {
        sum(x, part, N);
    }
    after(&run);
}

extern "C" __global__ void second(const float *x, const float *part, float *y, char *own, int N,
                                  int count)
{
    struct run run = reduction(x, y, own, N);

    run.pieces = 1;
    run.skipped = before(&run);
    if (!run.skipped) {
        sum(part, y, count);
    }
    after(&run);
}
