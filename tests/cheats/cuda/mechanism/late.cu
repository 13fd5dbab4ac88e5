// Lets what follows begin before the work is done. A small launch follows that may begin
// early and does not wait, so that it, and perhaps the clock, is done first. DELAY: ns that the
// work waits then. TAIL_WAITS: the small launch does wait.
//@ launch tail grid=(1) block=(32) args=(own) pdl
#ifndef DELAY
#define DELAY 0
#endif

static __device__ bool before(const struct run *run)
{
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    unsigned long long start = timer_ns();
    while (DELAY > 0 && timer_ns() - start < DELAY) {
        __nanosleep(500);
    }
    return false;
}

static __device__ void after(const struct run *run)
{
}

extern "C" __global__ void tail(char *own)
{
#ifdef TAIL_WAITS
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
