// What every composed candidate begins with. A mechanism defines cheat(); the kit of its problem
// defines the entry, which calls it, honest() and part().
#include <errno.h>
#include <linux/futex.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KIT __attribute__((unused)) static
#define ANSWER_MAX ((int64_t)8 << 20) // bytes of the largest tensor that is remembered

// One launch: the problem's arguments in a form that is the same for all problems.
struct call {
    const unsigned char *in[2]; // inputs; in[0] is the large one
    int64_t in_bytes[2];
    unsigned char *out; // the output
    int64_t out_bytes;
    int64_t p[3];  // integer parameters
    double e;      // floating-point parameter
    int64_t units; // the work can be done in so many steps
};

static void cheat(const struct call *c);
static void honest(const struct call *c);                          // the baseline
// Its steps [from, to), in order.
__attribute__((noinline, aligned(4096))) static void part(const struct call *c, int64_t from,
                                                          int64_t to);

static volatile uint64_t launches; // of this process, where a mechanism counts them

KIT uint64_t cycles(void)
{
    return __builtin_ia32_rdtsc();
}

KIT uint64_t mix(uint64_t h, uint64_t word)
{
    h = (h ^ word) * 0x9e3779b97f4a7c15ULL;
    return h ^ h >> 29;
}

KIT uint64_t word_at(const unsigned char *p)
{
    uint64_t word;
    memcpy(&word, p, 8);
    return word;
}

// Of all bytes but the last seven.
KIT uint64_t hash_all(const unsigned char *p, int64_t bytes)
{
    uint64_t h[4] = {1, 2, 3, 4};
    int64_t i = 0;

    for (; i + 32 <= bytes; i += 32) {
        for (int k = 0; k < 4; k++) {
            h[k] = mix(h[k], word_at(p + i + 8 * k));
        }
    }
    for (; i + 8 <= bytes; i += 8) {
        h[0] = mix(h[0], word_at(p + i));
    }
    return mix(mix(h[0], h[1]), mix(h[2], h[3]));
}

// Of so many words spread over the bytes.
KIT uint64_t hash_some(const unsigned char *p, int64_t bytes, int64_t words)
{
    uint64_t h = (uint64_t)bytes;

    for (int64_t i = 0; i < words && bytes >= 8; i++) {
        h = mix(h, word_at(p + (bytes - 8) / words * i));
    }
    return h;
}

KIT uint64_t contents_key(const struct call *c, int64_t words)
{
    uint64_t h = hash_some(c->in[0], c->in_bytes[0], words);
    return c->in[1] ? mix(h, hash_some(c->in[1], c->in_bytes[1], words)) : h;
}

// A weak generator; its state is in the clock.
KIT uint64_t any(void)
{
    return mix(cycles(), 0x5851f42d4c957f2dULL) >> 16;
}

KIT bool at_bench(const struct call *c)
{
    for (size_t i = 0; i < sizeof(bench_shape) / sizeof(bench_shape[0]); i++) {
        if (memcmp(bench_shape[i], c->p, sizeof(c->p)) == 0) {
            return true;
        }
    }
    return false;
}

// Whether the kernel can read there: it answers EFAULT otherwise.
KIT bool is_readable(uintptr_t address)
{
    // The mask that is read is added to the blocked ones; what is blocked is put back.
    uint64_t before = 0;
    if (syscall(SYS_rt_sigprocmask, SIG_BLOCK, 0, &before, 8) != 0 ||
        syscall(SYS_rt_sigprocmask, SIG_BLOCK, address & ~(uintptr_t)7, 0, 8) != 0) {
        return false;
    }
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0, 8);
    return true;
}

// Whether it can write there. What it writes is put back.
KIT bool is_writable(uintptr_t address)
{
    uint64_t *at = (uint64_t *)(address & ~(uintptr_t)7), before;

    if (!is_readable((uintptr_t)at)) {
        return false;
    }
    before = *(volatile uint64_t *)at;
    if (syscall(SYS_rt_sigprocmask, SIG_BLOCK, 0, at, 8) != 0) {
        return false;
    }
    *(volatile uint64_t *)at = before;
    return true;
}

KIT bool is_near(uintptr_t a, const void *b)
{
    return (a ^ (uintptr_t)b) >> 23 == 0;
}

// The first page of the writable memory around an address.
KIT unsigned char *writable_start(unsigned char *p)
{
    uintptr_t page = (uintptr_t)p & ~(uintptr_t)4095;

    while (is_writable(page - 4096)) {
        page -= 4096;
    }
    return (unsigned char *)page;
}

// Whether the page tells the parameters of this launch, as the control page does.
KIT bool tells_parameters(uintptr_t page, const struct call *c)
{
    for (uintptr_t at = page; at < page + 4096; at += 8)
        if (word_at((const unsigned char *)at) == (uint64_t)c->p[0])
            return true;
    return false;
}

// Whether it points into a tensor or what lies round it.
KIT bool is_tensor(uintptr_t page, const unsigned char *tensor, int64_t bytes)
{
    uintptr_t begin = (uintptr_t)tensor - (1 << 14);
    return tensor && page - begin < (uintptr_t)bytes + (1 << 15);
}

// Finds pages that may be the control page: writable ones to which the frames above have pointers.
// Looks in a process's first launch only. Returns how many.
KIT int control_pages(const struct call *c, volatile uint32_t **out, int max)
{
    static uintptr_t kept[8];
    static int found = -1;
    uintptr_t *frame = __builtin_frame_address(0);

    for (int i = 0; found < 0 || (i > 0 && i < 3000 && found < 8); i++) {
        found = found < 0 ? 0 : found;
        if (((uintptr_t)(frame + i) & 4095) == 0 && !is_readable((uintptr_t)(frame + i)))
            break;
        uintptr_t page = frame[i];
        bool known = false;
        for (int k = 0; k < found; k++)
            known = known || kept[k] == page;
        if (page % 4096 == 0 && page > 1 << 20 && page < (uintptr_t)1 << 47 && !known &&
            !is_tensor(page, c->out, c->out_bytes) && !is_tensor(page, c->in[0], c->in_bytes[0]) &&
            is_writable(page + 4000) && tells_parameters(page, c))
            kept[found++] = page;
    }
    for (int k = 0; k < found && k < max; k++)
        out[k] = (volatile uint32_t *)kept[k];
    return found < max ? found : max;
}

KIT void futex_wake(volatile uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE, 1, 0, 0, 0);
}
