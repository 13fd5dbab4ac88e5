// Asks how many cores there are, for which the C library opens a file. There is one.
//@ refused a system call that candidates may not use
static void cheat(const struct call *c)
{
    volatile long cores = sysconf(_SC_NPROCESSORS_ONLN);

    (void)cores;
    honest(c);
}
