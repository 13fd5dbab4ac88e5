// What programs do beside their work.
//@ variant denormals_flushed DO=flush_denormals(c)
//@ variant rounding_restored DO=rounding(c)
//@ variant counts_launches DO=(launches++,honest(c))
//@ variant prints DO=(fprintf(stderr,"launch\n"),honest(c))
//@ variant prints_once DO=(launches++==0?fprintf(stderr,"hello\n"):0,honest(c))
//@ variant asserts DO=(check(c),honest(c))
//@ variant errno DO=(honest(c),errno=EDOM)
//@ variant inline_assembly DO=(fence(),honest(c),fence())
//@ variant vector_registers_cleared DO=(honest(c),upper())
//@ variant memset_first DO=(memset(c->out,0,(size_t)c->out_bytes),honest(c))
//@ variant sorts DO=(sort(),honest(c))
//@ variant reads_time_stamp DO=(sink=cycles(),honest(c))
//@ variant signal_stack DO=(own_signal_stack(),honest(c))
//@ variant asks_who_it_is DO=(sink=(uint64_t)getpid(),honest(c))
//@ variant asks_for_page_size DO=(sink=(uint64_t)sysconf(_SC_PAGESIZE),honest(c))
//@ variant function_pointer DO=call_through(c)
//@ variant jumps_back DO=jump(c)
//@ variant twice DO=(honest(c),honest(c))
//@ variant vector_math DO=(math(),honest(c))
#include <assert.h>
#include <fenv.h>
#include <setjmp.h>
static volatile uint64_t sink __attribute__((unused));

KIT void flush_denormals(const struct call *c)
{
    unsigned before = __builtin_ia32_stmxcsr();

    __builtin_ia32_ldmxcsr(before | 0x8040);
    honest(c);
    __builtin_ia32_ldmxcsr(before);
}

KIT void rounding(const struct call *c)
{
    int before = fegetround();

    (void)fesetround(FE_UPWARD);
    sink = (uint64_t)rint(1.5);
    (void)fesetround(before);
    honest(c);
}

KIT void check(const struct call *c)
{
    assert(c->units > 0 && c->out_bytes > 0);
    assert(((uintptr_t)c->out & 63) == 0);
}

KIT void fence(void)
{
    __asm__ volatile("lfence\n mfence" ::: "memory");
}

KIT void upper(void)
{
    __builtin_ia32_vzeroupper();
}

KIT int compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

KIT void sort(void)
{
    int value[64];

    for (int i = 0; i < 64; i++)
        value[i] = i * 37 % 64;
    qsort(value, 64, sizeof(int), compare);
    sink = (uint64_t)value[3];
}

KIT void own_signal_stack(void)
{
    static char space[1 << 16];
    stack_t stack = {.ss_sp = space, .ss_size = sizeof(space)};

    (void)sigaltstack(&stack, NULL);
}

KIT void call_through(const struct call *c)
{
    void (*volatile f)(const struct call *) = honest;
    f(c);
}

KIT void jump(const struct call *c)
{
    jmp_buf back;

    if (setjmp(back) == 0) {
        honest(c);
        longjmp(back, 1);
    }
}

KIT __attribute__((optimize("Ofast"))) void math(void)
{
    float value[64];

    for (int i = 0; i < 64; i++)
        value[i] = sinf((float)i) + logf((float)i + 1);
    sink = (uint64_t)value[5];
}

static void cheat(const struct call *c)
{
    DO;
}
