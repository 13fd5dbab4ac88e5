// Does the work in steps: one after the other, in blocks, by recursion, backwards where it may.
//@ variant singly STEP=1
//@ variant blocks STEP=16
//@ variant odd_blocks STEP=7
//@ variant halves STEP=(c->units+1)/2
//@ variant recursive RECURSIVE
//@ variant deep_recursion DEEP
KIT void recurse(const struct call *c, int64_t from, int64_t to)
{
    if (to - from <= 8) {
        part(c, from, to);
        return;
    }
    recurse(c, from, from + (to - from) / 2);
    recurse(c, from + (to - from) / 2, to);
}

// A frame of 300 bytes for each step.
KIT int deep(const struct call *c, int64_t from)
{
    volatile char frame[256];
    int64_t step = c->units / 64 + 1, to = from + step < c->units ? from + step : c->units;

    frame[from & 255] = 1;
    part(c, from, to);
    return to < c->units ? deep(c, to) + frame[from & 255] : 0;
}

static void cheat(const struct call *c)
{
#if defined RECURSIVE
    recurse(c, 0, c->units);
#elif defined DEEP
    (void)deep(c, 0);
#else
    int64_t step = STEP;
    for (int64_t at = 0; at < c->units; at += step)
        part(c, at, at + step < c->units ? at + step : c->units);
#endif
}
