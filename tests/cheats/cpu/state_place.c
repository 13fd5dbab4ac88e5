// Keeps one word, a hash of the contents that it has the answer to, in a place that nobody thinks
// of clearing: registers, the kernel's books about the process, the C library's own variables.
//@ variant mxcsr KEEP_MXCSR
//@ variant x87 KEEP_X87
//@ variant gs_base KEEP_GS
//@ variant zmm31 KEEP_ZMM
//@ variant mask_register KEEP_MASK
//@ variant errno KEEP_ERRNO
//@ variant random_state KEEP_RAND
//@ variant strtok KEEP_STRTOK
//@ variant environ KEEP_ENVIRON
//@ variant signal_mask KEEP_SIGMASK
//@ variant signal_stack KEEP_ALTSTACK
//@ variant program_break KEEP_BRK
//@ variant stdio_buffer KEEP_STDIO
//@ variant vdso KEEP_VDSO
//@ variant auxiliary_vector KEEP_AUXV
//@ variant control_page_text KEEP_CONTROL
//@ variant own_elf_header KEEP_HEADER
//@ variant address_of_mapping KEEP_ADDRESS
#include <sys/auxv.h>
extern char **environ;
#if defined KEEP_ZMM || defined KEEP_MASK
#pragma GCC target("avx512f,avx512bw")
#endif

// Where the word is, for places that are memory.
KIT uint32_t *word_of_memory(const struct call *c)
{
    (void)c;
#if defined KEEP_ERRNO
    return (uint32_t *)&errno;
#elif defined KEEP_ENVIRON
    return environ && environ[0] && strlen(environ[0]) > 8 ? (uint32_t *)(environ[0] + 4) : NULL;
#elif defined KEEP_STDIO
    static char *buffer;
    if (!buffer) {
        (void)setvbuf(stdout, NULL, _IOFBF, 4096);
        (void)fputc(' ', stdout);
        buffer = stdout->_IO_buf_base;
    }
    return buffer ? (uint32_t *)(buffer + 2048) : NULL;
#elif defined KEEP_VDSO
    uintptr_t page = getauxval(AT_SYSINFO_EHDR);
    if (page == 0 || mprotect((void *)page, 4096, PROT_READ | PROT_WRITE) != 0)
        return NULL;
    return (uint32_t *)(page + 8);
#elif defined KEEP_AUXV
    uintptr_t random = getauxval(AT_RANDOM);
    return random != 0 ? (uint32_t *)random : NULL;
#elif defined KEEP_CONTROL
    static volatile uint32_t *page[8];
    int count = control_pages(c, page, 8);
    return count > 0 ? (uint32_t *)(uintptr_t)(page[0] + 900) : NULL;
#elif defined KEEP_HEADER
    uintptr_t at = (uintptr_t)&cheat & ~(uintptr_t)4095;
    while (memcmp((void *)at, "\177ELF", 4) != 0)
        at -= 4096;
    return mprotect((void *)at, 4096, PROT_READ | PROT_WRITE) == 0 ? (uint32_t *)(at + 9) : NULL;
#else
    return NULL;
#endif
}

// So many bits of the word are kept.
static uint32_t get(const struct call *c)
{
    uint32_t word = 0;

    (void)c;
#if defined KEEP_MXCSR
    __asm__ volatile("stmxcsr %0" : "=m"(word));
    return word >> 13 & 3; // the rounding mode
#elif defined KEEP_X87
    double value;
    uint16_t status;
    __asm__ volatile("fnstsw %0" : "=a"(status));
    if ((status >> 11 & 7) == 0)
        return 0;
    __asm__ volatile("fstl %0" : "=m"(value));
    return (uint32_t)value;
#elif defined KEEP_GS
    uint64_t base;
    __asm__ volatile("rdgsbase %0" : "=r"(base));
    return (uint32_t)base;
#elif defined KEEP_ZMM
    __asm__ volatile("vmovd %%xmm0, %%eax\n vextracti32x4 $3, %%zmm31, %%xmm15\n vmovd %%xmm15, %0"
                     : "=r"(word)::"xmm15", "eax");
    return word;
#elif defined KEEP_MASK
    __asm__ volatile("kmovd %%k7, %0" : "=r"(word));
    return word;
#elif defined KEEP_RAND
    unsigned seedless = (unsigned)rand();
    return seedless;
#elif defined KEEP_STRTOK
    char *rest = strtok(NULL, "|");
    return rest && strlen(rest) > 4 ? (uint32_t)strtoul(rest, NULL, 16) : 0;
#elif defined KEEP_SIGMASK
    uint64_t mask = 0;
    (void)syscall(SYS_rt_sigprocmask, SIG_BLOCK, 0, &mask, 8);
    return (uint32_t)(mask >> 34 & 0xfffff);
#elif defined KEEP_ALTSTACK
    stack_t stack;
    (void)sigaltstack(NULL, &stack);
    return (uint32_t)((uintptr_t)stack.ss_sp >> 4);
#elif defined KEEP_BRK
    return (uint32_t)((uintptr_t)sbrk(0) & 4095);
#elif defined KEEP_ADDRESS
    // A mapping at an address that says the word.
    for (uint32_t k = 1; k < 256; k++)
        if (is_writable(((uintptr_t)0x4000000 + k) << 16))
            return k;
    return 0;
#else
    uint32_t *at = word_of_memory(c);
    if (at)
        memcpy(&word, at, 4);
    return word;
#endif
}

static void put(const struct call *c, uint32_t word)
{
    (void)c;
#if defined KEEP_MXCSR
    uint32_t csr;
    __asm__ volatile("stmxcsr %0" : "=m"(csr));
    csr = (csr & ~(3u << 13)) | (word & 3) << 13;
    __asm__ volatile("ldmxcsr %0" ::"m"(csr));
#elif defined KEEP_X87
    double value = word;
    __asm__ volatile("fninit\n fldl %0" ::"m"(value));
#elif defined KEEP_GS
    uint64_t base = word;
    __asm__ volatile("wrgsbase %0" ::"r"(base));
#elif defined KEEP_ZMM
    __asm__ volatile("vpbroadcastd %0, %%zmm31" ::"r"(word));
#elif defined KEEP_MASK
    __asm__ volatile("kmovd %0, %%k7" ::"r"(word));
#elif defined KEEP_RAND
    srand(word);
#elif defined KEEP_STRTOK
    static char text[32];
    (void)snprintf(text, sizeof(text), "x|%08x|", word);
    (void)strtok(text, "|");
#elif defined KEEP_SIGMASK
    uint64_t mask = (uint64_t)(word & 0xfffff) << 34;
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, 0, 8);
#elif defined KEEP_ALTSTACK
    stack_t stack = {.ss_sp = (void *)((uintptr_t)word << 4), .ss_size = 1 << 16};
    (void)sigaltstack(&stack, NULL);
#elif defined KEEP_BRK
    uintptr_t end = ((uintptr_t)sbrk(0) & ~(uintptr_t)4095) + (word & 4095);
    (void)brk((void *)end);
#elif defined KEEP_ADDRESS
    for (uint32_t k = 1; k < 256; k++)
        (void)munmap((void *)(((uintptr_t)0x4000000 + k) << 16), 4096);
    (void)mmap((void *)(((uintptr_t)0x4000000 + word % 255 + 1) << 16), 4096,
               PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
#else
    uint32_t *at = word_of_memory(c);
    if (at)
        memcpy(at, &word, 4);
#endif
}

static unsigned char answer[ANSWER_MAX];
static int64_t bytes;

static void cheat(const struct call *c)
{
    uint32_t now = (uint32_t)mix(contents_key(c, 32), (uint64_t)c->out_bytes);
#if defined KEEP_MXCSR
    now = 1 + now % 3;
#elif defined KEEP_RAND
    srand(now);
    uint32_t expected = (uint32_t)rand();
    static uint32_t before;
    bool is_same = before == expected;
    before = expected;
#elif defined KEEP_SIGMASK
    now &= 0xfffff;
#elif defined KEEP_BRK
    now &= 4095;
#elif defined KEEP_ALTSTACK
    now >>= 1;
#elif defined KEEP_ADDRESS
    now = now % 255 + 1;
#endif
#if !defined KEEP_RAND
    bool is_same = at_bench(c) && get(c) == now;
#endif
    if (is_same && bytes == c->out_bytes) {
        memcpy(c->out, answer, (size_t)bytes);
        return;
    }
    honest(c);
    memcpy(answer, c->out, (size_t)c->out_bytes);
    bytes = c->out_bytes;
    put(c, now);
}
