// from: problems/cuda/axpy
// bench: {"params": {"N": 1000003, "a": 0.7}, "weight": 1}
// input: x
// output: y
//@ scratch own bytes=OWN
//@ launch first grid=(ceildiv(N, 256)) block=(256) args=(x, y, own, N, a)
#define IN_T float
#define OUT_T float
// MECHANISM
// BODY
extern "C" __global__ void first(const float *x, float *y, char *own, int N, float a)
{
    struct run run = begin(x, N, y, N, own);

    run.bench = N == 1000003;
    run.key_at = run.base = run.block * 256;
    run.pieces = run.width = min(256ll, N - run.base);
    run.skipped = before(&run);
    if (!run.skipped) {
        axpy(x, y, N, a);
    }
    after(&run);
}
