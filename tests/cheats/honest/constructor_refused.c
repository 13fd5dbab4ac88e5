// Builds a table when it is loaded. Nothing may run before the entry is called.
//@ refused runs code when it is loaded
static double table[64];

__attribute__((constructor)) static void build(void)
{
    for (int i = 0; i < 64; i++)
        table[i] = (double)i;
}

static void cheat(const struct call *c)
{
    volatile double sink = table[c->units & 63];

    (void)sink;
    honest(c);
}
