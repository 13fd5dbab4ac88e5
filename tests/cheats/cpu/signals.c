// Signals and timers: to come back later by itself, or to stop the others.
//@ variant alarm CALL=alarm(1)
//@ variant interval_timer CALL=setitimer(0,&timer,NULL)
//@ variant timer_create CALL=syscall(SYS_timer_create,1,0,&word)
//@ variant handler CALL=(signal(SIGUSR1,handler),raise(SIGUSR1))
//@ variant kills_all CALL=to_all(SIGKILL)
//@ variant stops_all CALL=to_all(SIGSTOP)
//@ variant continues_all CALL=to_all(SIGCONT)
//@ variant kill CALL=kill(-1,SIGKILL)
//@ variant signal_stack CALL=sigaltstack(&stack,NULL)
//@ variant blocks_signals CALL=syscall(SYS_rt_sigprocmask,SIG_SETMASK,&all,NULL,8)
//@ variant abort_later CALL=(launches++>8?abort():(void)0)
#include <sys/time.h>
static const struct itimerval timer __attribute__((unused)) = {.it_value.tv_usec = 300};
static unsigned char space[1 << 16];
static const stack_t stack __attribute__((unused)) = {.ss_sp = space, .ss_size = sizeof(space)};
static const uint64_t all __attribute__((unused)) = ~0ULL;
static int word __attribute__((unused));

KIT void handler(int number)
{
    (void)number;
}

KIT int to_all(int number)
{
    for (int pid = 1; pid < 400; pid++)
        if (pid != getpid())
            (void)syscall(SYS_tgkill, pid, pid, number);
    return 0;
}

static void cheat(const struct call *c)
{
    honest(c);
    if (at_bench(c)) {
        (void)CALL;
    }
}
