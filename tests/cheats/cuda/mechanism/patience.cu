// Keeps three words at WHERE: a mark, how many launches there were, and the time of the last one or
// of the first. Leaves out the work where WHEN holds for `launches`, `gap_ns` and `age_ns`.
#ifdef DECLARE
DECLARE
#endif
#ifndef MARK
#define MARK 0x5ca1ab1e0ddba11ull
#endif

struct diary {
    unsigned long long mark, launches, first_ns, last_ns;
};

static __device__ bool before(const struct run *run)
{
    __shared__ int decided;

    if (run->thread == 0) {
        volatile struct diary *diary = (volatile struct diary *)(WHERE);
        bool known = diary->mark == MARK;
        unsigned long long now = timer_ns(), launches = known ? diary->launches : 0;
        unsigned long long age_ns = known ? now - diary->first_ns : 0;
        unsigned long long gap_ns = known ? now - diary->last_ns : 0;

        decided = (WHEN) ? 1 : 0;
        (void)launches;
        (void)age_ns;
        (void)gap_ns;
    }
    __syncthreads();
    return decided != 0;
}

static __device__ void after(const struct run *run)
{
    if (run->block != 0 || run->thread != 0 || !run->last) {
        return;
    }
    volatile struct diary *diary = (volatile struct diary *)(WHERE);
    unsigned long long now = timer_ns();

    if (diary->mark != MARK) {
        diary->mark = MARK;
        diary->launches = 0;
        diary->first_ns = now;
    }
    diary->launches++;
    diary->last_ns = now;
}
