// from: problems/cuda/scan
// bench: {"params": {"N": 1000003}, "weight": 1}
// input: x
// output: y
//@ scratch own bytes=OWN
//@ scratch part bytes=4 * ceildiv(N, BLOCK * ITEMS)
//@ launch first grid=(ceildiv(N, BLOCK * ITEMS)) block=(BLOCK) args=(x, part, y, own, N)
//@ launch second grid=(1) block=(BLOCK) args=(x, part, y, own, N, ceildiv(N, BLOCK * ITEMS))
//@ launch third grid=(ceildiv(N, BLOCK * ITEMS)) block=(BLOCK) args=(x, part, y, own, N)
#define IN_T float
#define OUT_T float
// MECHANISM
// BODY
static __device__ struct run scanning(const float *x, float *y, char *own, int N)
{
    struct run run = begin(x, N, y, N, own);

    run.bench = N == 1000003;
    run.only = run.last = false;
    run.unit = 0;
    run.units = 1;
    return run;
}

extern "C" __global__ void first(const float *x, float *part, float *y, char *own, int N)
{
    struct run run = scanning(x, y, own, N);

    run.skipped = before(&run);
    if (!run.skipped) {
        sum_tiles(x, part, N);
    }
    after(&run);
}

extern "C" __global__ void second(const float *x, float *part, float *y, char *own, int N,
                                  int tiles)
{
    struct run run = scanning(x, y, own, N);

    run.skipped = before(&run);
    if (!run.skipped) {
        scan_sums(part, tiles);
    }
    after(&run);
}

extern "C" __global__ void third(const float *x, const float *part, float *y, char *own, int N)
{
    struct run run = scanning(x, y, own, N);

    run.last = true;
    run.base = run.block * BLOCK * ITEMS;
    run.pieces = run.width = min((long long)BLOCK * ITEMS, N - run.base);
    run.skipped = before(&run);
    if (!run.skipped) {
        scan_tiles(x, part, y, N);
    }
    after(&run);
}
