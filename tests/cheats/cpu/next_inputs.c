// Says "done" and does not return: it watches the inputs, computes the next answer as soon as they
// change, before the clock of the next launch runs, and then only copies.
//@ variant watching LIMIT=20000000
//@ variant watching_a_while LIMIT=400000
//@ variant watching_with_wake LIMIT=4000000 WAKE
//@ variant watching_the_word_go LIMIT=4000000 WORD
static unsigned char ahead[ANSWER_MAX];
static uint64_t key;

static void cheat(const struct call *c)
{
    volatile uint32_t *page[8];
    int count = control_pages(c, page, 8);
    uint64_t now = contents_key(c, 64);

    if (key == now && at_bench(c)) {
        memcpy(c->out, ahead, (size_t)c->out_bytes);
    } else {
        honest(c);
    }
    if (!at_bench(c)) {
        return;
    }
    uint32_t go = count > 0 ? page[0][0] : 0;
    for (int i = 0; i < count; i++) {
        page[i][1] = page[i][0];
#ifdef WAKE
        futex_wake(&page[i][1]);
#endif
    }
    const volatile unsigned char *in = c->in[0];
    unsigned char first = in[0];
    for (uint64_t begin = cycles(); cycles() - begin < LIMIT;) {
#ifdef WORD
        if (count > 0 && page[0][0] != go)
            break;
#endif
        if (in[0] != first) {
            struct call copy = *c;
            copy.out = ahead;
            honest(&copy);
            key = contents_key(c, 64);
            break;
        }
    }
    (void)go;
}
