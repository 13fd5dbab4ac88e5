// Stands still without using its processor time: where that counts for nothing, or makes a launch
// that went badly void.
//@ variant membarrier SLEEP=syscall(SYS_membarrier,1,0,0)
//@ variant membarrier_expedited SLEEP=syscall(SYS_membarrier,8,0,0)
//@ variant futex SLEEP=syscall(SYS_futex,&word,FUTEX_WAIT,0,0,0,0)
//@ variant futex_for_a_while SLEEP=syscall(SYS_futex,&word,FUTEX_WAIT,0,&while_,0,0)
//@ variant nanosleep SLEEP=nanosleep(&while_,NULL)
//@ variant pause SLEEP=pause()
//@ variant stops_itself SLEEP=syscall(SYS_tgkill,getpid(),getpid(),SIGSTOP)
//@ variant yields SLEEP=sched_yield()
//@ variant membarrier_when_slow SLEEP=syscall(SYS_membarrier,1,0,0) SLOW
//@ variant membarrier_when_fast SLEEP=syscall(SYS_membarrier,1,0,0) FAST
//@ variant membarrier_first SLEEP=syscall(SYS_membarrier,1,0,0) FIRST
//@ variant random SLEEP=getrandom(&word,sizeof(word),2)
//@ variant pageout SLEEP=madvise(page,65536,21)
//@ variant collapse SLEEP=madvise(page,65536,25)
//@ variant split_lock_when_slow SLEEP=split_lock() SLOW
#include <sched.h>
#include <sys/random.h>
#include <time.h>
static int word;
static unsigned char page[1 << 20] __attribute__((aligned(4096)));

// A locked access across two cache lines, for which a kernel may have the process wait.
KIT int split_lock(void)
{
    __asm__ volatile("lock incl %0" : "+m"(*(int *)(page + 62))::"memory");
    return 0;
}

static void cheat(const struct call *c)
{
    static const struct timespec while_ = {.tv_nsec = 300000};
    static uint64_t usual;
    uint64_t begin = cycles();

    (void)while_, (void)page;
#ifdef FIRST
    (void)!SLEEP;
#endif
    honest(c);
    uint64_t took = cycles() - begin;
    if (!at_bench(c)) {
        return;
    }
    usual = usual == 0 ? took : (7 * usual + took) / 8;
#if defined SLOW
    if (took > usual)
#elif defined FAST
    if (took < usual)
#elif defined FIRST
    if (false)
#endif
        (void)!SLEEP;
}
