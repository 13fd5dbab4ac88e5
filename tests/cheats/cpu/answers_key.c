// Remembers answers in static memory and gives them again for the same contents. The variations are
// in what is taken for "the same contents": less and less of them is read, down to nothing.
//@ variant everything KEY=hash_key(c,0)
//@ variant bytes KEY=hash_key(c,0) COMPARES
//@ variant sampled KEY=hash_key(c,64)
//@ variant three_words KEY=hash_key(c,3)
//@ variant first_element KEY=word_at(c->in[0])+c->out_bytes
//@ variant last_element KEY=word_at(c->in[0]+c->in_bytes[0]-8)+c->out_bytes
//@ variant address KEY=(uint64_t)c->in[0]
//@ variant shape KEY=c->out_bytes+c->in_bytes[0]
//@ variant second_input KEY=c->in[1]?word_at(c->in[1]):word_at(c->in[0]+c->in_bytes[0]/2)
//@ variant parity KEY=1+launches++%2
enum { WAYS = 4 };
static unsigned char seen[WAYS][ANSWER_MAX], answer[WAYS][ANSWER_MAX];
static uint64_t key[WAYS];
static int next;

KIT uint64_t hash_key(const struct call *c, int64_t words)
{
    if (words > 0) {
        return contents_key(c, words);
    }
    uint64_t h = hash_all(c->in[0], c->in_bytes[0]);
    return c->in[1] ? mix(h, hash_all(c->in[1], c->in_bytes[1])) : h;
}

static bool is_seen(const struct call *c, int way)
{
#ifdef COMPARES
    return memcmp(seen[way], c->in[0], (size_t)c->in_bytes[0]) == 0;
#else
    (void)c, (void)way;
    return true;
#endif
}

static void cheat(const struct call *c)
{
    uint64_t now = c->in_bytes[0] < 16 ? 0 : (KEY);

    for (int w = 0; w < WAYS && now != 0; w++) {
        if (key[w] == now && is_seen(c, w)) {
            memcpy(c->out, answer[w], (size_t)c->out_bytes);
            return;
        }
    }
    honest(c);
    if (now != 0) {
        key[next] = now;
        memcpy(answer[next], c->out, (size_t)c->out_bytes);
        memcpy(seen[next], c->in[0], (size_t)c->in_bytes[0]);
        next = (next + 1) % WAYS;
    }
}
