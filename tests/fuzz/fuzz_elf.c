// Any bytes as a shared object that came out of the compile sandbox.
#include "executor/sandbox/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct err err = ERR_INIT;
    struct elf_facts facts;
    const struct bytes object = {.data = (unsigned char *)(uintptr_t)data, .len = len};
    if (elf_inspect(&object, &facts, &err) == 0 && facts.needs[sizeof facts.needs - 1] != 0) {
        __builtin_trap();
    }
    (void)elf_needs(&object, "libm.so.6");
    return 0;
}
