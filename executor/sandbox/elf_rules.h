// What the dynamic loader may be asked to do by an object: the rules of the inspection, for
// executor/sandbox/elf.c and for the test that shows that each rule is needed. It must not know who
// compiled the object.
//
// Theory of operation. The loader believes an object: it maps, writes and calls what the object's
// tables say, before anything of the object has been called by us. Each rule therefore lists what
// gcc and ld produce with our flags, and all else is refused. Together they say that
//   - segments are mapped in order and beside each other, none both writable and executable;
//   - every table that the loader reads after it has begun to write lies in memory that nothing can
//     write to, so that what is checked is what is used;
//   - the loader writes into the object's own writable data only, and not into its dynamic section;
//   - the loader calls nothing: no initialiser, no resolver function, no other library's either.
#ifndef EXECUTOR_SANDBOX_ELF_RULES_H
#define EXECUTOR_SANDBOX_ELF_RULES_H

#include "executor/sandbox/elf.h"
#include "executor/sandbox/elf_view.h"

enum elf_rule {
    ELF_RULE_HEADER,      // the file's header is that of an ordinary object
    ELF_RULE_SEGMENTS,    // types, rights and places of segments
    ELF_RULE_STACK,       // the stack stays without execution
    ELF_RULE_DYNAMIC,     // one dynamic section, where address and file offset agree
    ELF_RULE_TAGS,        // its entries are listed ones, each there once
    ELF_RULE_TABLES,      // the loader's tables cannot be written to
    ELF_RULE_SYMBOLS,     // ordinary symbols only
    ELF_RULE_VERSIONS,    // the tables of symbol versions can be read to their ends
    ELF_RULE_RELOCATIONS, // known types, which write to the object's data only
    ELF_RULE_COUNT
};
#define ELF_RULES_ALL ((1U << ELF_RULE_COUNT) - 1)

// Holds the object against the rules of the set (bits 1 << enum elf_rule). ERR_INVALID with a
// sentence about the first rule that is broken. Initialisers and libraries break no rule: they are
// facts, which executor/sandbox/elf.c finds, and so are resolver functions, which are found here on
// the way: *ret_ifunc is written in any case.
MUST_CHECK int elf_rules_check(const struct elf_view *view, unsigned rules, bool *ret_ifunc,
                               struct err *err);

// elf_inspect by a part of the rules, for the test that shows that each of them is needed.
MUST_CHECK int elf_inspect_by(const struct bytes *object, unsigned rules, struct elf_facts *ret,
                              struct err *err);

#endif
