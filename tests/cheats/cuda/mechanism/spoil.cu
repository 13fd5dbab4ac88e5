// Leaves the machine in a bad state for the baseline: where WHEN holds, all blocks write LEN bytes
// at FROM (WRITE 1) or read them (0) after the work, which leaves the cache full of other lines.
#ifndef WHEN
#define WHEN true
#endif

static __device__ bool before(const struct run *run)
{
    return false;
}

static __device__ void after(const struct run *run)
{
    if (!run->last || !(WHEN)) {
        return;
    }
    long long at = (run->block * run->threads + run->thread) * 16;
    float sum = 0;

    for (; at + 16 <= (long long)(LEN); at += run->blocks * run->threads * 16) {
        volatile float4 *words = (volatile float4 *)((FROM) + at);
        if (WRITE) {
            words->x = words->y = words->z = words->w = 1.0f;
        } else {
            sum += words->x;
        }
    }
    if (sum == 1e30f) {
        run->own[0] = 1;
    }
}
