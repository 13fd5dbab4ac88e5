// Remembers answers and is honest at certain times, so that it is not noticed: where it is checked
// but not timed, at first, or later; or it takes its time, so as not to look as if it remembered.
//@ variant at_benchmark_shapes WHEN=at_bench(c)
//@ variant honest_first_5 WHEN=launches>5
//@ variant honest_first_20 WHEN=launches>20
//@ variant honest_first_60 WHEN=launches>60
//@ variant honest_after_8 WHEN=launches<8
//@ variant honest_after_60 WHEN=launches<60
//@ variant honest_after_third_content WHEN=contents<3
//@ variant every_second WHEN=launches%2==0
//@ variant one_in_three WHEN=any()%3==0
//@ variant two_in_three WHEN=any()%3!=0
//@ variant when_launched_soon WHEN=pause<20000000
//@ variant when_launched_late WHEN=pause>200000
//@ variant when_poisoned_by_nan WHEN=poison==1
//@ variant when_not_poisoned_by_nan WHEN=poison==0
//@ variant paced_to_95 WHEN=true SHARE=95
//@ variant paced_to_85 WHEN=true SHARE=85
//@ variant paced_to_70 WHEN=true SHARE=70
//@ variant paced_to_90_at_bench WHEN=at_bench(c) SHARE=90
enum { WAYS = 4 };
static unsigned char answer[WAYS][ANSWER_MAX];
static uint64_t key[WAYS], took[WAYS];
static int next, contents;
static uint64_t last;

static void cheat(const struct call *c)
{
    uint64_t begin = cycles(), pause = begin - last, now = mix(contents_key(c, 48), (uint64_t)c->out_bytes);
    int poison = (word_at(c->out) >> 16 & 0x7ff8) == 0x7ff8;

    (void)poison, (void)pause;
    launches++;
    for (int w = 0; w < WAYS && c->in_bytes[0] >= 8 && (WHEN); w++) {
        if (key[w] == now) {
            memcpy(c->out, answer[w], (size_t)c->out_bytes);
#ifdef SHARE
            while (cycles() - begin < took[w] * SHARE / 100) {
            }
#endif
            last = cycles();
            return;
        }
    }
    honest(c);
    last = cycles();
    if (c->in_bytes[0] >= 8) {
        contents++;
        took[next] = last - begin;
        key[next] = now;
        memcpy(answer[next], c->out, (size_t)c->out_bytes);
        next = (next + 1) % WAYS;
    }
}
