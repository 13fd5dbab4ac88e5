// Any bytes as a shared object that came out of the compile sandbox. Each rule reads only what is
// there, also where another one that would have refused the object is left out.
#include "executor/sandbox/elf_rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct err err = ERR_INIT;
    struct elf_facts facts;
    const struct bytes object = {.data = (unsigned char *)(uintptr_t)data, .len = len};
    if (elf_inspect(&object, &facts, &err) == 0 && facts.needs[sizeof facts.needs - 1] != 0) {
        __builtin_trap();
    }
    for (unsigned rule = 0; rule < ELF_RULE_COUNT; rule++) {
        (void)!elf_inspect_by(&object, ELF_RULES_ALL & ~(1U << rule), &facts, NULL);
        (void)!elf_inspect_by(&object, 1U << rule, &facts, NULL);
    }
    (void)elf_needs(&object, "libm.so.6");
    return 0;
}
