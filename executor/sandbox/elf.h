// Looks into a shared object that came out of the compile jail. Nothing in it is trusted: every
// offset is checked.
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
    uint64_t read_only_bytes; // the rest
    bool runs_when_loaded;    // constructors, destructors or an .init of its own
    bool has_ifunc;           // resolvers run when it is loaded
    char needs[64];           // a library beyond the allowed ones; "" when there is none
};

// ERR_INVALID when it is no shared object of this machine or its tables are damaged.
MUST_CHECK int elf_inspect(const struct bytes *object, struct elf_facts *ret, struct err *err);

// Whether the object names this library. False when it cannot be read.
bool elf_needs(const struct bytes *object, const char *library);

#endif
