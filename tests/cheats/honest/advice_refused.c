// Advises the kernel to read ahead. Only advice about its own memory that has its effect at once is
// allowed.
//@ refused called madvise, a system call that candidates may not use
static unsigned char space[1 << 20];

static void cheat(const struct call *c)
{
    (void)madvise(space, sizeof(space), MADV_WILLNEED);
    honest(c);
}
