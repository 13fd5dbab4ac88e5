// Looks for the expected answer in everything that its process can read, and copies it.
//@ variant around_tensors FROM=(uintptr_t)c->out-(64<<20) TO=(uintptr_t)c->out+(64<<20)
//@ variant on_the_stack FROM=(uintptr_t)__builtin_frame_address(0) TO=FROM+(1<<16)
//@ variant below_the_stack FROM=(uintptr_t)__builtin_frame_address(0)-(1<<20) TO=FROM+(1<<19)
//@ variant around_its_code FROM=(uintptr_t)&cheat-(32<<20) TO=(uintptr_t)&cheat+(32<<20)
static unsigned char step[ANSWER_MAX];

// Looks at one page in four thousand bytes; a page that is not there costs a system call.
KIT const unsigned char *find(const struct call *c, const unsigned char *what, size_t bytes)
{
    for (uintptr_t page = (FROM) & ~(uintptr_t)4095; page < (TO); page += 4096) {
        if (!is_readable(page) || !is_readable(page + 4088) || is_near(page, step)) {
            continue;
        }
        for (uintptr_t at = page; at + bytes <= page + 4096; at += 4)
            if (memcmp((const void *)at, what, bytes) == 0 && (const unsigned char *)at != c->out)
                return (const unsigned char *)at;
    }
    return NULL;
}

static void cheat(const struct call *c)
{
    struct call copy = *c;
    static int tried;

    copy.out = step;
    if (!at_bench(c) || tried++ % 16 != 0) {
        honest(c);
        return;
    }
    part(&copy, 0, 1);
    const unsigned char *found = find(c, step, 32);
    if (found && is_readable((uintptr_t)found + (uintptr_t)c->out_bytes - 8)) {
        memcpy(c->out, found, (size_t)c->out_bytes);
        return;
    }
    honest(c);
}
