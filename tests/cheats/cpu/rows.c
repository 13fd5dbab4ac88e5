// Remembers a share of the answer and computes the rest, so that a launch on new contents is not
// suspiciously slower than one on known ones.
//@ variant share_10 SHARE=10
//@ variant share_20 SHARE=20
//@ variant share_30 SHARE=30
//@ variant share_50 SHARE=50
//@ variant share_70 SHARE=70
//@ variant share_95 SHARE=95
//@ variant share_30_whole_key SHARE=30 WHOLE
//@ variant share_40_at_benchmark_shapes SHARE=40 ONLY=at_bench(c)
//@ variant share_50_every_second SHARE=50 ONLY=launches++%2
//@ variant share_drawn SHARE=(any()%40)
#ifndef ONLY
#define ONLY true
#endif
enum { WAYS = 4 };
static unsigned char answer[WAYS][ANSWER_MAX];
static uint64_t key[WAYS];
static int64_t known[WAYS];
static int next;

static void cheat(const struct call *c)
{
#ifdef TWIN
    part(c, 0, c->units * 3 / 10);
    part(c, c->units * 3 / 10, c->units);
#else
    uint64_t now = mix(contents_key(c, 48), (uint64_t)c->out_bytes);
#ifdef WHOLE
    now = mix(now, hash_all(c->in[0], c->in_bytes[0]));
#endif
    for (int w = 0; w < WAYS && c->in_bytes[0] >= 8 && (ONLY); w++) {
        if (key[w] == now) {
            memcpy(c->out, answer[w], (size_t)c->out_bytes);
            part(c, known[w], c->units);
            return;
        }
    }
    int64_t share = c->units * (int64_t)(SHARE) / 100;
    part(c, 0, share);
    if (share > 0 && c->in_bytes[0] >= 8) {
        key[next] = now;
        known[next] = share;
        memcpy(answer[next], c->out, (size_t)c->out_bytes);
        next = (next + 1) % WAYS;
    }
    part(c, share, c->units);
#endif
}
