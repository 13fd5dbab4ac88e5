// Tables that do not depend on the contents: constant, built in the first launch, or in each.
//@ variant constant
//@ variant lazy LAZY
//@ variant eager EAGER
//@ variant lazy_on_heap LAZY HEAP
static const double constant[8] = {1, 0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125};
static double space[4096], *table;

static void build(void)
{
    for (int i = 0; i < 4096; i++)
        table[i] = sin((double)i * 0.001) * constant[i & 7];
}

static void cheat(const struct call *c)
{
    volatile double sink = constant[c->units & 7];
#if defined HEAP
    bool is_new = !table;
    table = is_new ? malloc(sizeof(space)) : table;
#else
    bool is_new = !table;
    table = space;
#endif
#if defined LAZY
    if (is_new && table)
        build();
    sink += table ? table[c->units & 4095] : 0;
#elif defined EAGER
    build();
    sink += table[c->units & 4095];
#endif
    (void)is_new, (void)sink, (void)build;
    honest(c);
}
