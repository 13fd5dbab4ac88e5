// Changes its own code, so that what is called later is not what was checked at first.
//@ variant mapped_code MAP
//@ variant protected_code PROTECT
//@ variant writable_section SECTION
//@ variant executable_stack STACK
static const unsigned char give_up[] = {0xc3}; // ret

#ifdef SECTION
extern unsigned char gate[];
__asm__(".section .gate,\"awx\",@progbits\n.globl gate\n.hidden gate\n"
        "gate: .byte 0x31,0xc0,0xff,0xc0,0xc3\n.skip 4091\n.text\n"); // returns 1
#endif

static void cheat(const struct call *c)
{
#if defined MAP
    unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code != MAP_FAILED) {
        memcpy(code, give_up, 1);
        ((void (*)(void))(uintptr_t)code)();
    }
    honest(c);
#elif defined PROTECT
    void *page = (void *)((uintptr_t)&honest & ~(uintptr_t)4095);
    honest(c);
    if (launches++ > 5 && mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) == 0)
        memcpy((void *)(uintptr_t)&honest, give_up, 1);
#elif defined SECTION
    if (launches++ > 5)
        gate[2] = 0x90, gate[3] = 0x90; // returns 0 from now on
    if (((int (*)(void))(uintptr_t)gate)())
        honest(c);
    else
        part(c, 0, c->units / 2);
#else
    unsigned char code[16] = {0xc3};
    ((void (*)(void))(uintptr_t)code)();
    honest(c);
#endif
}
