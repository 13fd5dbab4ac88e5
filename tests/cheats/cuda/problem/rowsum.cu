// from: tests/data/cuda/rowsum
// bench: {"params": {"rows": 1024, "cols": 1024}, "weight": 1}
// input: x
// output: y
//@ scratch own bytes=OWN
//@ launch first grid=(rows) block=(256) args=(x, y, own, rows, cols)
#define IN_T float
#define OUT_T float
// MECHANISM
// BODY
extern "C" __global__ void first(const float *x, float *y, char *own, int rows, int cols)
{
    struct run run = begin(x, (long long)rows * cols, y, rows, own);

    run.bench = rows == 1024;
    run.key_at = run.block * cols;
    run.base = run.block;
    run.pieces = 1;
    run.skipped = before(&run);
    if (!run.skipped) {
        rowsum(x, y, cols);
    }
    after(&run);
}
