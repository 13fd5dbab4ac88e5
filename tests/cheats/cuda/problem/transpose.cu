// from: problems/cuda/transpose
// bench: {"params": {"M": 1001, "N": 1999}, "weight": 1}
// input: A
// output: B
//@ scratch own bytes=OWN
//@ launch first grid=(ceildiv(N, 32)*ceildiv(M, 32)) block=(32, 8) args=(A, B, own, M, N)
#define IN_T float
#define OUT_T float
// MECHANISM
// BODY
extern "C" __global__ void first(const float *A, float *B, char *own, int M, int N)
{
    struct run run = begin(A, (long long)M * N, B, (long long)M * N, own);
    long long across = (N + 31) / 32;
    long long row = run.block / across * 32, column = run.block % across * 32;

    run.bench = M == 1001;
    run.key_at = row * N + column;
    run.base = column * M + row;
    run.width = min(32ll, M - row);
    run.stride = M;
    run.pieces = run.width * min(32ll, N - column);
    run.skipped = before(&run);
    if (!run.skipped) {
        transpose(A, B, M, N);
    }
    after(&run);
}
