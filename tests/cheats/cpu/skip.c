// Leaves some of the work undone, and hopes that nobody looks at that place, or not at that launch.
//@ variant last_step SKIPS=true FROM=c->units-1 TO=c->units
//@ variant last_tile SKIPS=true FROM=c->units*15/16 TO=c->units
//@ variant last_tile_at_benchmark_shapes SKIPS=at_bench(c) FROM=c->units*7/8 TO=c->units
//@ variant half_at_benchmark_shapes SKIPS=at_bench(c) FROM=c->units/2 TO=c->units
//@ variant middle_in_1_of_2 SKIPS=any()%2==0 FROM=c->units/4 TO=c->units*3/4
//@ variant middle_in_1_of_5 SKIPS=any()%5==0 FROM=c->units/4 TO=c->units*3/4
//@ variant middle_in_1_of_20 SKIPS=any()%20==0 FROM=c->units/4 TO=c->units*3/4
//@ variant all_in_1_of_20 SKIPS=any()%20==0 FROM=0 TO=c->units
//@ variant all_in_1_of_50 SKIPS=any()%50==0 FROM=0 TO=c->units
//@ variant one_step_anywhere SKIPS=true FROM=r*97%c->units TO=FROM+1
//@ variant tenth_anywhere SKIPS=true FROM=r%10*c->units/10 TO=FROM+c->units/10
//@ variant after_9_launches SKIPS=launches++>9 FROM=c->units/4 TO=c->units*3/4
//@ variant after_3_launches SKIPS=launches++>3&&at_bench(c) FROM=c->units/4 TO=c->units
//@ variant when_launched_soon SKIPS=cycles()-last<3000000 FROM=c->units/4 TO=c->units*3/4
//@ variant when_poisoned_by_noise SKIPS=noise FROM=c->units/4 TO=c->units*3/4
//@ variant when_poisoned_by_nan SKIPS=!noise FROM=c->units/4 TO=c->units*3/4
//@ variant when_slack_behind_input SKIPS=((uintptr_t)c->in[0]&4095)>2048 FROM=c->units/2 TO=c->units
static uint64_t last;

static void cheat(const struct call *c)
{
    int64_t r = (int64_t)any() & 0xffff;
    bool noise = (word_at(c->out) >> 16 & 0x7ff8) != 0x7ff8;
    int64_t from = FROM, to = TO;

    (void)noise, (void)r;
    if (SKIPS) {
        part(c, 0, from);
        part(c, to < c->units ? to : c->units, c->units);
    } else {
        honest(c);
    }
    last = cycles();
}
