// Inspects a shared object that came out of the compile jail. Nothing in the object is trusted:
// every offset is checked, and what is not known to be made by gcc and ld is refused
// (executor/sandbox/elf_rules.h). The compilation calls this before the object is accepted, the
// harness to learn which library it needs. It must not know who compiled it.
#ifndef EXECUTOR_SANDBOX_ELF_H
#define EXECUTOR_SANDBOX_ELF_H

#include "common/err.h"
#include "common/mem.h"
#include <stdbool.h>
#include <stdint.h>

struct elf_facts {
    uint64_t code_bytes;      // executable segments in memory
    uint64_t data_bytes;      // initialised writable data
    uint64_t bss_bytes;       // writable memory without file contents
    uint64_t read_only_bytes; // all other segments
    bool runs_when_loaded;    // there are constructors, destructors or an .init section
    bool has_ifunc;           // there are resolver functions, which run when it is loaded
    char needs[64];           // the first library that is not allowed; "" when there is none
};

// ERR_INVALID, with a sentence, when the object is no shared object of this machine, its tables are
// damaged, or there is something in it that gcc and ld do not make with our flags. When it returns
// 0 and runs_when_loaded and has_ifunc are false and needs is empty, the dynamic loader runs no
// code of the object.
MUST_CHECK int elf_inspect(const struct bytes *object, struct elf_facts *ret, struct err *err);

// Whether the object names this library. False when the object cannot be read.
bool elf_needs(const struct bytes *object, const char *library);

#endif
