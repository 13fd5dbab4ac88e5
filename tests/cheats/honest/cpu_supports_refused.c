// Chooses its code by __builtin_cpu_supports, whose tables libgcc fills in a constructor of its
// own. Code is compiled for the core that it is measured on; who must ask uses <cpuid.h>.
//@ refused runs code when it is loaded
static void cheat(const struct call *c)
{
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && c->units < 0) {
        return;
    }
    honest(c);
}
