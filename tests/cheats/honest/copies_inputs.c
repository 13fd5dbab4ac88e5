// Packs its inputs into memory of its own first, anew in every launch.
//@ variant memcpy COPY=memcpy(to,from,n)
//@ variant memmove COPY=memmove(to,from,n)
//@ variant words COPY=words(to,from,n)
//@ variant string_instruction COPY=string(to,from,n)
//@ variant prefetched COPY=prefetched(to,from,n)
static unsigned char packed[2][ANSWER_MAX] __attribute__((aligned(4096)));

KIT void words(unsigned char *to, const unsigned char *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = from[i];
}

KIT void string(unsigned char *to, const unsigned char *from, size_t n)
{
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n)::"memory");
}

KIT void prefetched(unsigned char *to, const unsigned char *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        __builtin_prefetch(from + i + 512, 0, 3);
        to[i] = from[i];
    }
}

static void cheat(const struct call *c)
{
    struct call copy = *c;

    for (int t = 0; t < INPUTS; t++) {
        unsigned char *to = packed[t];
        const unsigned char *from = c->in[t];
        size_t n = (size_t)c->in_bytes[t];
        COPY;
        copy.in[t] = packed[t];
    }
    honest(&copy);
}
