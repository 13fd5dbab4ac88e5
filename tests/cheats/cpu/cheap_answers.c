// Writes something that is quickly had in the place of the answer.
//@ variant input COPY
//@ variant zeros FILL=0
//@ variant ones FILL=63
//@ variant own_first_answer FIRST
//@ variant own_last_answer LAST
//@ variant first_step_everywhere SPREAD
static unsigned char kept[ANSWER_MAX];
static int64_t bytes;

static void cheat(const struct call *c)
{
    size_t n = (size_t)c->out_bytes;

    (void)kept, (void)bytes;
#if defined COPY
    memcpy(c->out, c->in[0], n < (size_t)c->in_bytes[0] ? n : (size_t)c->in_bytes[0]);
#elif defined FILL
    memset(c->out, FILL, n);
#elif defined SPREAD
    part(c, 0, c->units / 8 + 1);
    int64_t step = c->out_bytes / 8;
    for (int64_t at = step; at + step <= c->out_bytes && step > 0; at += step)
        memcpy(c->out + at, c->out, (size_t)step);
#else
    if (bytes == c->out_bytes) {
        memcpy(c->out, kept, n);
#if defined LAST
        struct call copy = *c;
        copy.out = kept;
        honest(&copy);
#endif
        return;
    }
    honest(c);
    bytes = c->out_bytes;
    memcpy(kept, c->out, n);
#endif
}
