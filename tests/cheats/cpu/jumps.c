// Meddles with the frames above: the runner's variables, its return address, its loop.
//@ variant over_the_caller OVER=40
//@ variant runner_entry ENTRY
//@ variant returns_twice TWICE
//@ variant leaves_by_longjmp JUMP
#include <setjmp.h>
static jmp_buf back;
static bool is_set;

KIT void nothing(void)
{
}

static void cheat(const struct call *c)
{
#if defined JUMP
    if (is_set && launches++ > 6)
        longjmp(back, 1);
    if (setjmp(back) == 0)
        is_set = true;
    honest(c);
#elif defined TWICE
    if (setjmp(back) == 0) {
        honest(c);
        is_set = true;
    }
    if (is_set && launches++ % 8 == 7) {
        is_set = false;
        longjmp(back, 1);
    }
#else
    uintptr_t *frame = __builtin_frame_address(0);
    (void)back, (void)is_set;
    honest(c);
    if (!at_bench(c) || launches++ < 6)
        return;
#ifdef ENTRY
    // What looks like a pointer to this object's entry becomes one to a function that does nothing.
    for (int i = 0; i < 300 && is_readable((uintptr_t)(frame + i)); i++)
        if ((frame[i] ^ (uintptr_t)&nothing) >> 14 == 0)
            frame[i] = (uintptr_t)&nothing;
#else
    for (int i = 16; i < OVER && is_readable((uintptr_t)(frame + i)); i++)
        frame[i] ^= 1;
#endif
#endif
}
