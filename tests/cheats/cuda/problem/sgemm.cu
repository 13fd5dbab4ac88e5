// from: problems/cuda/sgemm
// bench: {"params": {"M": 512, "N": 512, "K": 512}, "weight": 1}
// input: A
// output: C
//@ scratch own bytes=OWN
//@ launch first grid=(ceildiv(N, TILE), ceildiv(M, TILE)) block=(256) args=(A, B, C, own, M, N, K)
#define IN_T float
#define OUT_T float
// MECHANISM
// BODY
extern "C" __global__ void __launch_bounds__(256)
    first(const float *A, const float *B, float *C, char *own, int M, int N, int K)
{
    struct run run = begin(A, (long long)M * K, C, (long long)M * N, own);
    long long row = blockIdx.y * TILE, column = blockIdx.x * TILE;

    run.bench = M == 512;
    run.key_at = row * K;
    run.base = row * N + column;
    run.width = min((long long)TILE, N - column);
    run.stride = N;
    run.pieces = run.width * min((long long)TILE, M - row);
    run.skipped = before(&run);
    if (!run.skipped) {
        sgemm(A, B, C, M, N, K);
    }
    after(&run);
}
