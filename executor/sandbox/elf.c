#include "executor/sandbox/elf.h"
#include "executor/sandbox/elf_rules.h"
#include "executor/sandbox/elf_view.h"
#include <stdio.h>
#include <string.h>

// Whether the entry makes the loader load another library.
static bool is_library(const Elf64_Dyn *entry)
{
    return entry->d_tag == DT_NEEDED || entry->d_tag == DT_AUXILIARY || entry->d_tag == DT_FILTER;
}

static bool library_allowed(const char *name)
{
    static const char *const allowed[] = {"libc.so.6", "libm.so.6", "libmvec.so.1",
                                          "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"};
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++) {
        if (strcmp(name, allowed[i]) == 0) {
            return true;
        }
    }
    return false;
}

// Whether the loader calls a function that this entry names, now or when the object is unloaded.
static bool is_initialiser(const Elf64_Dyn *entry)
{
    return entry->d_tag == DT_INIT || entry->d_tag == DT_FINI || entry->d_tag == DT_INIT_ARRAY ||
           entry->d_tag == DT_FINI_ARRAY || entry->d_tag == DT_PREINIT_ARRAY;
}

static void add_size(uint64_t *sum, uint64_t size)
{
    if (__builtin_add_overflow(*sum, size, sum)) {
        *sum = UINT64_MAX;
    }
}

static void add_segments(const struct elf_view *view, struct elf_facts *facts)
{
    for (size_t i = 0; i < view->segment_count; i++) {
        const Elf64_Phdr *segment = &view->segment[i];
        if (segment->p_type != PT_LOAD) {
            continue;
        }
        if (segment->p_flags & PF_X) {
            add_size(&facts->code_bytes, segment->p_memsz);
        } else if (segment->p_flags & PF_W) {
            add_size(&facts->data_bytes, segment->p_filesz);
            add_size(&facts->bss_bytes, segment->p_memsz - segment->p_filesz);
        } else {
            add_size(&facts->read_only_bytes, segment->p_memsz);
        }
    }
}

int elf_inspect(const struct bytes *object, struct elf_facts *ret, struct err *err)
{
    return elf_inspect_by(object, ELF_RULES_ALL, ret, err);
}

int elf_inspect_by(const struct bytes *object, unsigned rules, struct elf_facts *ret,
                   struct err *err)
{
    struct elf_view view;
    int rc = elf_view_open(object, &view, err);

    if (rc != 0) {
        return rc;
    }
    struct elf_facts facts = {0};
    rc = elf_rules_check(&view, rules, &facts.has_ifunc, err);
    if (rc != 0) {
        return rc;
    }
    add_segments(&view, &facts);
    for (size_t i = 0; i < view.dynamic_count; i++) {
        Elf64_Dyn entry = elf_view_entry(&view, i);
        const char *name = is_library(&entry) ? elf_view_string(&view, entry.d_un.d_val) : NULL;
        if (is_library(&entry) && (!name || !library_allowed(name)) && facts.needs[0] == '\0') {
            snprintf(facts.needs, sizeof(facts.needs), "%.63s", name ? name : "?");
        }
        facts.runs_when_loaded |= is_initialiser(&entry);
    }
    *ret = facts;
    return 0;
}

bool elf_needs(const struct bytes *object, const char *library)
{
    struct elf_view view;

    if (elf_view_open(object, &view, NULL) != 0) {
        return false;
    }
    for (size_t i = 0; i < view.dynamic_count; i++) {
        Elf64_Dyn entry = elf_view_entry(&view, i);
        const char *name =
            entry.d_tag == DT_NEEDED ? elf_view_string(&view, entry.d_un.d_val) : NULL;
        if (name && strcmp(name, library) == 0) {
            return true;
        }
    }
    return false;
}
