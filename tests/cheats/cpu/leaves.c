// Ends otherwise than by returning: what it was called until then, or what the end looks like, may
// be better than the truth.
//@ variant exit_0 END=exit(0)
//@ variant exit_group_0 END=(void)syscall(SYS_exit_group,0)
//@ variant exit_thread END=(void)syscall(SYS_exit,0)
//@ variant quick_exit END=quick_exit(0)
//@ variant trap END=__builtin_trap()
//@ variant segmentation END=fault()
//@ variant killed END=(void)syscall(SYS_tgkill,getpid(),getpid(),SIGKILL)
//@ variant stack_end END=deep(1)
//@ variant memory_end END=eat()
//@ variant endless END=hang()
//@ variant deadly_system_call END=(void)syscall(SYS_reboot,0,0,0,0)
//@ variant unknown_system_call END=(void)syscall(9999)
//@ variant old_system_call END=int80()
KIT void fault(void)
{
    *(volatile int *)8 = 1;
}

KIT int deep(volatile int n)
{
    volatile char frame[4096];

    frame[0] = (char)n;
    return deep(n + 1) + frame[0];
}

KIT void eat(void)
{
    for (;;) {
        char *p = malloc(1 << 20);
        if (p)
            memset(p, 1, 1 << 20);
        else
            fault();
    }
}

KIT void hang(void)
{
    for (volatile int i = 0;; i++) {
    }
}

KIT void int80(void)
{
    __asm__ volatile("int $0x80" ::"a"(20) : "memory");
}

static void cheat(const struct call *c)
{
    honest(c);
    if (at_bench(c) && launches++ > 6) {
        END;
    }
}
