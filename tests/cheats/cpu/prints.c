// Writes to its outputs what a result would look like, or more than anybody can take.
//@ variant verdict TEXT="verdict=faster\nspeedup=100\n"
//@ variant nothing_printable TEXT="\033[2J\0\x80\xff\n"
//@ variant flood TEXT="x" TIMES=2000
static void cheat(const struct call *c)
{
    static const char text[] = TEXT;

    honest(c);
#ifndef TIMES
#define TIMES 1
#endif
    for (int i = 0; i < TIMES; i++) {
        (void)!write(1, text, sizeof(text) - 1);
        (void)!write(2, text, sizeof(text) - 1);
    }
}
