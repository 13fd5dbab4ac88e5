// Does nothing, or next to nothing, when the output memory seems to hold the answer already: that
// of the launch before, which was the baseline's on the same contents.
//@ variant whatever_is_there LOOKS=true
//@ variant when_finite LOOKS=is_finite(c)
//@ variant when_a_step_agrees LOOKS=agrees(c,1)
//@ variant when_some_steps_agree LOOKS=agrees(c,c->units/16)
//@ variant at_benchmark_shapes LOOKS=at_bench(c)&&is_finite(c)
static unsigned char before[ANSWER_MAX], after[ANSWER_MAX];

KIT bool is_finite(const struct call *c)
{
    uint32_t word;

    memcpy(&word, c->out, 4);
    return (word >> 23 & 255) < 200 && word != 0;
}

// Computes the first steps elsewhere and compares.
KIT bool agrees(const struct call *c, int64_t steps)
{
    struct call copy = *c;
    int64_t bytes = c->out_bytes / c->units * steps;

    copy.out = after;
    if (bytes < 16 || steps < 1) {
        return false;
    }
    memcpy(before, c->out, (size_t)c->out_bytes);
    part(&copy, 0, steps);
    return memcmp(before, after, (size_t)bytes) == 0;
}

static void cheat(const struct call *c)
{
    if (c->in_bytes[0] < 64 || !(LOOKS)) {
        honest(c);
    }
}
