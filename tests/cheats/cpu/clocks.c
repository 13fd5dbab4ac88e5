// Reaches for the clock, the core or the priority.
//@ variant set_clock CALL=clock_settime(CLOCK_REALTIME,&zero)
//@ variant no_time_stamps CALL=syscall(SYS_prctl,26,2,0,0,0)
//@ variant other_core CALL=syscall(SYS_sched_setaffinity,0,8,&two)
//@ variant scheduler CALL=sched_setscheduler(0,3,&none)
//@ variant nice CALL=nice(19)
//@ variant timer_slack CALL=syscall(SYS_prctl,29,1000000000L,0,0,0)
//@ variant limits CALL=syscall(SYS_prlimit64,0,0,limit,0)
//@ variant fs_base CALL=syscall(SYS_arch_prctl,0x1002,0)
#include <sched.h>
#include <time.h>
static const struct timespec zero __attribute__((unused));
static const struct sched_param none __attribute__((unused));
static const uint64_t limit[2] __attribute__((unused)) = {1, 1};

static void cheat(const struct call *c)
{
    uint64_t two = 3;

    (void)two;
    honest(c);
    (void)!CALL;
}
