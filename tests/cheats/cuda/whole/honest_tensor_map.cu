// expect: ratio
// problem: reduce_sum
// Tiles come into shared memory by the tensor memory accelerator, which fills up with zeros what
// lies behind the end.
#define BLOCKS 264
//@ tensormap map tensor=x box=(256)
//@ scratch total bytes=16 init=zero
//@ launch add grid=(BLOCKS) block=(256) args=(map, total, N)
//@ launch finish grid=(1) block=(1) args=(total, y)
struct alignas(64) tensor_map {
    char bytes[128];
};
extern "C" __global__ void add(const __grid_constant__ tensor_map map, float *total, int N)
{
    __shared__ alignas(128) float tile[256];
    __shared__ alignas(8) unsigned long long arrived;
    unsigned barrier = (unsigned)__cvta_generic_to_shared(&arrived), phase = 0;
    unsigned to = (unsigned)__cvta_generic_to_shared(tile);
    float sum = 0;

    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("fence.proxy.async;" ::: "memory");
    }
    __syncthreads();
    for (int start = (int)blockIdx.x * 256; start < N; start += BLOCKS * 256) {
        if (threadIdx.x == 0) {
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" ::"r"(barrier)
                         : "memory");
            asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile"
                         ".mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];" ::"r"(to),
                         "l"(&map), "r"(start), "r"(barrier)
                         : "memory");
        }
        unsigned done = 0;
        while (!done) {
            asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;"
                         " selp.u32 %0, 1, 0, p; }"
                         : "=r"(done)
                         : "r"(barrier), "r"(phase)
                         : "memory");
        }
        phase ^= 1;
        sum += tile[threadIdx.x];
        __syncthreads();
    }
    for (int step = 16; step > 0; step /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    }
    if (threadIdx.x % 32 == 0) {
        atomicAdd(total, sum);
    }
}
extern "C" __global__ void finish(const float *total, float *y)
{
    *y = *total;
}
