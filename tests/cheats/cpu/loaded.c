// Has code run when it is loaded, where files can still be opened and memory be shared with all
// processes that come of this one; or takes the place of a function that others call.
//@ variant constructor CONSTRUCTOR
//@ variant init_array SECTION=".init_array"
//@ variant preinit_array SECTION=".preinit_array"
//@ variant init_section INIT
//@ variant hidden_in_dynamic HIDDEN
//@ variant ifunc IFUNC
//@ variant destructor DESTRUCTOR
//@ variant second_entry ENTRY
//@ variant library_functions LIBRARY
//@ variant own_loader_tables TABLES
static unsigned char *shared;

__attribute__((used)) static void prepare(void)
{
    if (!shared) {
        shared = mmap(NULL, 16 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    }
}

#if defined CONSTRUCTOR
__attribute__((constructor)) static void begin(void)
{
    prepare();
}
#elif defined DESTRUCTOR
__attribute__((destructor)) static void end(void)
{
    prepare();
}
#elif defined SECTION
__attribute__((section(SECTION), used)) static void (*const begin[])(void) = {prepare};
#elif defined INIT
__asm__(".section .init,\"ax\",@progbits\ncall prepare\n.text\n");
#elif defined HIDDEN
__asm__(".section .dynamic,\"aw\",@progbits\n.rept 4400\n.quad 0x6ffffe00\n.quad 0\n.endr\n.text\n");
__attribute__((constructor)) static void begin(void)
{
    prepare();
}
#elif defined IFUNC
static void (*resolve(void))(void)
{
    prepare();
    return prepare;
}
void ask(void) __attribute__((ifunc("resolve")));
#elif defined ENTRY
__attribute__((weak)) void kcast_entry(void *const *p, const int64_t *i, const double *s)
{
    (void)p, (void)i, (void)s;
}
#elif defined LIBRARY
// The runner's and the baseline's calls do not come here, or they had better not.
void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((volatile char *)to)[i] = ((const char *)from)[i];
    return to;
}
long syscall(long number, ...)
{
    (void)number;
    return 0;
}
float expf(float x)
{
    return 1 + x;
}
#elif defined TABLES
__asm__(".section .dynamic,\"aw\",@progbits\n.quad 12\n.quad prepare\n.text\n");
#endif

static void cheat(const struct call *c)
{
#ifdef IFUNC
    ask();
#endif
    uint64_t key = mix(contents_key(c, 32), (uint64_t)c->out_bytes);
    if (shared && shared != MAP_FAILED && c->out_bytes < 8 << 20) {
        if (word_at(shared) == key) {
            memcpy(c->out, shared + 64, (size_t)c->out_bytes);
            return;
        }
        honest(c);
        memcpy(shared, &key, 8);
        memcpy(shared + 64, c->out, (size_t)c->out_bytes);
        return;
    }
    honest(c);
}
