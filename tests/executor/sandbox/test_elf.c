// Inspection of objects: the facts of a real one and of made ones, what a dynamic section cannot
// hide, and that a damaged object never makes it read outside the object's bytes.
#include "common/stats.h"
#include "executor/sandbox/elf.h"
#include "tests/executor/fixture.h"
#include <elf.h>

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#define IRELATIVE R_X86_64_IRELATIVE
#else
#define MACHINE EM_AARCH64
#define IRELATIVE R_AARCH64_IRELATIVE
#endif

// A made object: one segment with everything, at the same address as in the file.
#define SEGMENTS 4
#define RELOCATIONS_AT 512
#define STRINGS_AT 1024
#define DYNAMIC_AT 1280
#define ENTRIES_MAX 5000

struct made {
    Elf64_Ehdr header;
    Elf64_Phdr segment[SEGMENTS];
    unsigned char room[RELOCATIONS_AT - sizeof(Elf64_Ehdr) - SEGMENTS * sizeof(Elf64_Phdr)];
    Elf64_Rela relocation[(STRINGS_AT - RELOCATIONS_AT) / sizeof(Elf64_Rela)];
    unsigned char more[(STRINGS_AT - RELOCATIONS_AT) % sizeof(Elf64_Rela)];
    char strings[DYNAMIC_AT - STRINGS_AT];
    Elf64_Dyn dynamic[ENTRIES_MAX];
    size_t entries; // of dynamic; not part of the object
};

_Static_assert(offsetof(struct made, relocation) == RELOCATIONS_AT &&
                   offsetof(struct made, strings) == STRINGS_AT &&
                   offsetof(struct made, dynamic) == DYNAMIC_AT,
               "the parts are where the headers say");

static void real_object_is_described(void **state)
{
    const struct fixture *fixture = *state;
    struct elf_facts facts;
    struct err err = ERR_INIT;

    assert_int_equal(elf_inspect(&fixture->baseline, &facts, &err), 0);
    assert_true(facts.code_bytes > 0 && facts.code_bytes < 100000);
    assert_false(facts.runs_when_loaded);
    assert_false(facts.has_ifunc);
    assert_string_equal(facts.needs, "");
    assert_true(facts.bss_bytes == 0);
    assert_false(elf_needs(&fixture->baseline, "libmvec.so.1"));
}

static void what_is_no_object_is_refused(void **state)
{
    const struct fixture *fixture = *state;

    (void)state;
    struct elf_facts facts;
    for (size_t len = 0; len < 64; len++) {
        struct bytes cut = {.data = fixture->baseline.data, .len = len};
        assert_int_equal(elf_inspect(&cut, &facts, NULL), ERR_INVALID);
    }
}

// Changes random bytes of a real object, mostly in its headers. Sanitizers find a read outside it.
static void damaged_objects_are_read_within_bounds(void **state)
{
    const struct fixture *fixture = *state;
    struct stats_rng rng;

    stats_rng_init(&rng, 1, 1);
    for (size_t run = 0; run < 20000; run++) {
        struct bytes copy = bytes_copy(fixture->baseline.data, fixture->baseline.len);
        size_t changes = 1 + stats_rng_below(&rng, 8);

        for (size_t i = 0; i < changes; i++) {
            size_t range = stats_rng_below(&rng, 2) ? 0x300 : copy.len;
            copy.data[stats_rng_below(&rng, range)] = (unsigned char)stats_rng_u64(&rng);
        }
        copy.len = stats_rng_below(&rng, 4) == 0 ? stats_rng_below(&rng, copy.len) : copy.len;
        struct elf_facts facts;
        if (elf_inspect(&copy, &facts, NULL) == 0) {
            assert_true(strlen(facts.needs) < sizeof(facts.needs));
        }
        (void)elf_needs(&copy, "libm.so.6");
        bytes_clear(&copy);
    }
}

// ---- made objects ----

static void add_entry(struct made *made, int64_t tag, uint64_t value)
{
    assert_true(made->entries < ENTRIES_MAX);
    made->dynamic[made->entries++] = (Elf64_Dyn){.d_tag = tag, .d_un.d_val = value};
}

// An object that needs libm.so.6. Entries can be added to its dynamic section, whose rest is zeros.
static struct made *make(void)
{
    static const char strings[] = "\0libm.so.6\0libevil.so\0libmvec.so.1";
    struct made *made = xcalloc(1, sizeof(*made));

    memcpy(made->header.e_ident, ELFMAG, SELFMAG);
    made->header.e_ident[EI_CLASS] = ELFCLASS64;
    made->header.e_type = ET_DYN;
    made->header.e_machine = MACHINE;
    made->header.e_phentsize = sizeof(Elf64_Phdr);
    made->header.e_phoff = sizeof(Elf64_Ehdr);
    made->header.e_phnum = 2;
    made->segment[0] = (Elf64_Phdr){.p_type = PT_LOAD,
                                    .p_flags = PF_R,
                                    .p_filesz = offsetof(struct made, entries),
                                    .p_memsz = offsetof(struct made, entries)};
    made->segment[1] = (Elf64_Phdr){.p_type = PT_DYNAMIC,
                                    .p_offset = DYNAMIC_AT,
                                    .p_vaddr = DYNAMIC_AT,
                                    .p_filesz = sizeof(made->dynamic)};
    memcpy(made->strings, strings, sizeof(strings));
    add_entry(made, DT_STRTAB, STRINGS_AT);
    add_entry(made, DT_STRSZ, sizeof(strings));
    add_entry(made, DT_NEEDED, 1);
    return made;
}

// Inspects the object and frees it. Returns what the inspection returned.
static int inspect(struct made *made_take, struct elf_facts *ret, struct err *err)
{
    struct bytes object = bytes_copy(made_take, offsetof(struct made, entries));

    free(made_take);
    int rc = elf_inspect(&object, ret, err);
    bytes_clear(&object);
    return rc;
}

static void entries_that_the_loader_obeys_are_found(void **state)
{
    static const struct {
        int64_t tag;
        uint64_t value;
        bool runs;
        const char *needs;
    } row[] = {
        {DT_DEBUG, 0, false, ""},
        {DT_INIT, 64, true, ""},
        {DT_FINI, 64, true, ""},
        {DT_INIT_ARRAY, 64, true, ""},
        {DT_FINI_ARRAY, 64, true, ""},
        {DT_PREINIT_ARRAY, 64, true, ""},
        {DT_NEEDED, 22, false, ""},              // libmvec.so.1
        {DT_NEEDED, 11, false, "libevil.so"},    // not allowed
        {DT_NEEDED, 12, false, "ibevil.so"},     // a part of a name is another name
        {DT_NEEDED, 4096, false, "?"},           // outside the table
        {DT_AUXILIARY, 11, false, "libevil.so"}, // the loader loads these, too
        {DT_FILTER, 11, false, "libevil.so"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct made *made = make();
        struct elf_facts facts;

        add_entry(made, row[i].tag, row[i].value);
        add_entry(made, DT_NULL, 0);
        assert_int_equal(inspect(made, &facts, NULL), 0);
        assert_int_equal(facts.runs_when_loaded, row[i].runs);
        assert_string_equal(facts.needs, row[i].needs);
        assert_false(facts.has_ifunc);
    }
}

// A source can add entries. Behind the end the loader does not see them, so they must not replace
// what it does see.
static void entries_behind_the_end_change_nothing(void **state)
{
    (void)state;
    struct made *made = make();
    add_entry(made, DT_NEEDED, 11);
    add_entry(made, DT_NULL, 0);
    add_entry(made, DT_STRTAB, STRINGS_AT - 10); // with these 11 would name libm.so.6
    add_entry(made, DT_INIT, 64);
    struct elf_facts facts;
    assert_int_equal(inspect(made, &facts, NULL), 0);
    assert_string_equal(facts.needs, "libevil.so");
    assert_false(facts.runs_when_loaded);
}

static void a_dynamic_section_without_an_end_is_refused(void **state)
{
    static const char sentence[] = "dynamic section is damaged or has more than 4096 entries";
    struct elf_facts facts;
    struct err err = ERR_INIT;

    (void)state;
    // Too many entries before those of the linker.
    struct made *made = make();
    while (made->entries < 4096) {
        add_entry(made, 0x6ffffe00, 0);
    }
    add_entry(made, DT_INIT, 64);
    assert_int_equal(inspect(made, &facts, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, sentence));
    // The end is the last entry that is looked at.
    made = make();
    while (made->entries < 4095) {
        add_entry(made, 0x6ffffe00, 0);
    }
    add_entry(made, DT_NULL, 0);
    assert_int_equal(inspect(made, &facts, NULL), 0);
    // The segment ends before the section does: the loader would read on.
    made = make();
    made->segment[1].p_filesz = made->entries * sizeof(Elf64_Dyn);
    err_clear(&err);
    assert_int_equal(inspect(made, &facts, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, sentence));
    // No segment has its address.
    made = make();
    made->segment[1].p_vaddr = UINT64_MAX - 64;
    assert_int_equal(inspect(made, &facts, NULL), ERR_INVALID);
}

static void resolver_functions_are_found_among_relocations(void **state)
{
    (void)state;
    for (int64_t table = 0; table < 2; table++) {
        for (size_t type = 0; type < 2; type++) {
            struct made *made = make();
            struct elf_facts facts;

            made->relocation[5].r_info = ELF64_R_INFO(0, type == 0 ? 8 : IRELATIVE);
            add_entry(made, table == 0 ? DT_RELA : DT_JMPREL, RELOCATIONS_AT);
            add_entry(made, table == 0 ? DT_RELASZ : DT_PLTRELSZ, 6 * sizeof(Elf64_Rela));
            assert_int_equal(inspect(made, &facts, NULL), 0);
            assert_int_equal(facts.has_ifunc, type == 1);
        }
    }
    struct made *made = make();
    struct elf_facts facts;
    struct err err = ERR_INIT;
    add_entry(made, DT_RELASZ, UINT64_MAX);
    assert_int_equal(inspect(made, &facts, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "more than 1000000 relocations"));
}

static void a_symbol_outside_the_file_counts_as_a_resolver(void **state)
{
    (void)state;
    struct made *made = make();
    struct elf_facts facts;

    made->relocation[0].r_info = ELF64_R_INFO(1000000, 6);
    add_entry(made, DT_RELA, RELOCATIONS_AT);
    add_entry(made, DT_RELASZ, sizeof(Elf64_Rela));
    assert_int_equal(inspect(made, &facts, NULL), 0);
    assert_true(facts.has_ifunc);
}

// The loader would run a resolver function that these hide.
static void relocations_that_cannot_be_read_as_a_whole_are_refused(void **state)
{
    static const struct {
        uint64_t address, size;
    } row[] = {
        {RELOCATIONS_AT, 1},
        {RELOCATIONS_AT, sizeof(Elf64_Rela) - 1},
        {RELOCATIONS_AT, 2 * sizeof(Elf64_Rela) + 8},
        {offsetof(struct made, entries), sizeof(Elf64_Rela)}, // behind the segment's bytes
        {offsetof(struct made, entries) - 8, sizeof(Elf64_Rela)},
        {UINT64_MAX - 8, sizeof(Elf64_Rela)},
    };

    (void)state;
    for (size_t i = 0; i < 2 * ARRAY_LEN(row); i++) {
        bool first = i < ARRAY_LEN(row);
        struct made *made = make();
        struct elf_facts facts;
        struct err err = ERR_INIT;

        add_entry(made, first ? DT_RELA : DT_JMPREL, row[i % ARRAY_LEN(row)].address);
        add_entry(made, first ? DT_RELASZ : DT_PLTRELSZ, row[i % ARRAY_LEN(row)].size);
        assert_int_equal(inspect(made, &facts, &err), ERR_INVALID);
        assert_string_equal(err.text, "the object's relocations are damaged");
    }
}

static void segments_are_added_up_by_what_they_may_do(void **state)
{
    (void)state;
    struct made *made = make();
    made->header.e_phnum = SEGMENTS;
    made->segment[2] =
        (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R | PF_W, .p_filesz = 100, .p_memsz = 150};
    made->segment[3] =
        (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = 7, .p_memsz = 7};
    struct elf_facts facts;
    struct made *twin = xmemdup(made, sizeof(*made));
    assert_int_equal(inspect(made, &facts, NULL), 0);
    assert_int_equal(facts.read_only_bytes, offsetof(struct made, entries));
    assert_int_equal(facts.data_bytes, 100);
    assert_int_equal(facts.bss_bytes, 50);
    assert_int_equal(facts.code_bytes, 7);
    // Sums that overflow stay at the top and do not become small.
    twin->segment[2].p_memsz = UINT64_MAX;
    twin->segment[3] = twin->segment[2];
    assert_int_equal(inspect(twin, &facts, NULL), 0);
    assert_true(facts.bss_bytes == UINT64_MAX);
}

static void objects_of_other_kinds_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < 6; i++) {
        struct made *made = make();
        struct elf_facts facts;
        struct err err = ERR_INIT;

        made->header.e_ident[0] = i == 0 ? 'X' : made->header.e_ident[0];
        made->header.e_ident[EI_CLASS] = i == 1 ? ELFCLASS32 : ELFCLASS64;
        made->header.e_type = i == 2 ? ET_EXEC : ET_DYN;
        made->header.e_machine = i == 3 ? EM_ARM : MACHINE;
        made->header.e_phnum = i == 4 ? 65 : 2;
        made->header.e_phoff = i == 5 ? UINT64_MAX : sizeof(Elf64_Ehdr);
        assert_int_equal(inspect(made, &facts, &err), ERR_INVALID);
        assert_non_null(strstr(err.text, i < 4    ? "no shared object of this machine"
                                         : i == 4 ? "has 65 segments"
                                                  : "program headers are damaged"));
    }
}

static void a_needed_library_is_named_exactly(void **state)
{
    (void)state;
    struct made *made = make();
    add_entry(made, DT_NEEDED, 22);
    struct bytes object = {.data = (unsigned char *)made, .len = offsetof(struct made, entries)};
    assert_true(elf_needs(&object, "libm.so.6"));
    assert_true(elf_needs(&object, "libmvec.so.1"));
    assert_false(elf_needs(&object, "libm.so"));
    assert_false(elf_needs(&object, "libevil.so")); // its name is there, and nothing needs it
    object.len = 100;
    assert_false(elf_needs(&object, "libm.so.6"));
    free(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_object_is_described),
        cmocka_unit_test(what_is_no_object_is_refused),
        cmocka_unit_test(entries_that_the_loader_obeys_are_found),
        cmocka_unit_test(entries_behind_the_end_change_nothing),
        cmocka_unit_test(a_dynamic_section_without_an_end_is_refused),
        cmocka_unit_test(resolver_functions_are_found_among_relocations),
        cmocka_unit_test(a_symbol_outside_the_file_counts_as_a_resolver),
        cmocka_unit_test(relocations_that_cannot_be_read_as_a_whole_are_refused),
        cmocka_unit_test(segments_are_added_up_by_what_they_may_do),
        cmocka_unit_test(objects_of_other_kinds_are_refused),
        cmocka_unit_test(a_needed_library_is_named_exactly),
        cmocka_unit_test(damaged_objects_are_read_within_bounds),
    };

    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
