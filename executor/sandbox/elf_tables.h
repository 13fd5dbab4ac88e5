// The rules about the tables that an object's dynamic section names, for
// executor/sandbox/elf_rules.c only. Each returns ERR_INVALID with a sentence. They read only what
// executor/sandbox/elf_view.h has checked to be there, whatever rules were left out before.
#ifndef EXECUTOR_SANDBOX_ELF_TABLES_H
#define EXECUTOR_SANDBOX_ELF_TABLES_H

#include "executor/sandbox/elf_view.h"

// Every table lies in one segment's bytes that nothing can write to, and the linkage table, which
// the loader writes to, in a writable one.
MUST_CHECK int elf_check_tables(const struct elf_view *view, struct err *err);

// The hash table can be read to its end, and each symbol that it or a relocation can lead to is one
// that a compiler makes. Resolver functions are let pass: elf_find_ifunc finds them.
MUST_CHECK int elf_check_symbols(const struct elf_view *view, struct err *err);

// Every symbol's version is one that the table of needed versions defines, or none.
MUST_CHECK int elf_check_versions(const struct elf_view *view, struct err *err);

// Every relocation has a known type and a known symbol, and writes to bytes of the object's
// writable data that are not in its dynamic section. Those that call a resolver function are let
// pass: elf_find_ifunc finds them.
MUST_CHECK int elf_check_relocations(const struct elf_view *view, struct err *err);

// Whether the loader, or a look-up of a symbol, would call a resolver function.
bool elf_find_ifunc(const struct elf_view *view);

#endif
