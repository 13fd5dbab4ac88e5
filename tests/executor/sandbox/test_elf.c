// Inspection of objects: the facts of a real one and of made ones, what a dynamic section cannot
// hide, and that a damaged object never makes it read outside the object's bytes.
#include "common/stats.h"
#include "tests/executor/sandbox/elf_made.h"

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

static void entries_that_the_loader_obeys_are_found(void **state)
{
    static const struct {
        int64_t tag;
        uint64_t value;
        bool runs;
        const char *needs;
    } row[] = {
        {DT_SYMBOLIC, 0, false, ""},
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

static void a_dynamic_section_without_an_end_is_refused(void **state)
{
    static const char sentence[] = "dynamic section is damaged or has more than 4096 entries";
    struct elf_facts facts;
    struct err err = ERR_INIT;

    (void)state;
    // Too many entries before those of the linker.
    struct made *made = make();
    made->segment[2].p_filesz = made->segment[2].p_memsz = ENTRIES_MAX * sizeof(Elf64_Dyn);
    while (made->entries < 4096) {
        add_entry(made, DT_NEEDED, 1);
    }
    add_entry(made, DT_INIT, 64);
    assert_int_equal(inspect(made, &facts, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, sentence));
    // The end is the last entry that is looked at.
    made = make();
    made->segment[2].p_filesz = made->segment[2].p_memsz = 4096 * sizeof(Elf64_Dyn);
    while (made->entries < 4095) {
        add_entry(made, DT_NEEDED, 1);
    }
    add_entry(made, DT_NULL, 0);
    assert_int_equal(inspect(made, &facts, NULL), 0);
    // The segment ends before the section does: the loader would read on.
    made = make();
    made->segment[2].p_filesz = made->entries * sizeof(Elf64_Dyn);
    err_clear(&err);
    assert_int_equal(inspect(made, &facts, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, sentence));
    // No segment has its address.
    made = make();
    made->segment[2].p_vaddr = UINT64_MAX - 64;
    assert_int_equal(inspect(made, &facts, NULL), ERR_INVALID);
}

static void resolver_functions_are_found_among_relocations(void **state)
{
    (void)state;
    for (int64_t table = 0; table < 2; table++) {
        for (size_t type = 0; type < 2; type++) {
            struct made *made = make();
            struct elf_facts facts;

            for (size_t i = 0; table == 1 && i < 6; i++) {
                made->relocation[i].r_info = ELF64_R_INFO(1, JUMP_SLOT);
            }
            if (type == 1) {
                made->relocation[5].r_info = ELF64_R_INFO(0, IRELATIVE);
            }
            add_entry(made, table == 0 ? DT_RELA : DT_JMPREL, RELOCATIONS_AT);
            add_entry(made, table == 0 ? DT_RELASZ : DT_PLTRELSZ, 6 * sizeof(Elf64_Rela));
            assert_int_equal(inspect(made, &facts, NULL), 0);
            assert_int_equal(facts.has_ifunc, type == 1);
        }
    }
    struct made *made = make();
    struct elf_facts facts;
    struct err err = ERR_INIT;
    made->segment[0].p_memsz = made->segment[0].p_filesz;
    add_entry(made, DT_RELA, RELOCATIONS_AT);
    add_entry(made, DT_RELASZ, UINT64_MAX);
    assert_int_equal(inspect(made, &facts, &err), ERR_INVALID);
}

// A look-up by name can lead to any symbol, also to one that no relocation names.
static void resolver_functions_are_found_among_symbols(void **state)
{
    (void)state;
    for (unsigned defined = 0; defined < 2; defined++) {
        struct made *made = make();
        struct elf_facts facts;

        made->symbol[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_GNU_IFUNC);
        if (defined == 0) {
            made->symbol[1].st_shndx = SHN_UNDEF;
            made->symbol[1].st_value = 0;
        }
        assert_int_equal(inspect(made, &facts, NULL), 0);
        assert_int_equal(facts.has_ifunc, defined);
    }
}

static void segments_are_added_up_by_what_they_may_do(void **state)
{
    (void)state;
    struct made *made = make();
    made->header.e_phnum = SEGMENTS;
    made->segment[1].p_memsz += 50;
    made->segment[4] = (Elf64_Phdr){.p_type = PT_LOAD,
                                    .p_flags = PF_R | PF_X,
                                    .p_vaddr = 1 << 20,
                                    .p_filesz = 7,
                                    .p_memsz = 7,
                                    .p_align = 4096};
    struct elf_facts facts;
    assert_int_equal(inspect(made, &facts, NULL), 0);
    assert_int_equal(facts.read_only_bytes, WORDS_AT);
    assert_int_equal(facts.data_bytes, offsetof(struct made, entries) - WORDS_AT);
    assert_int_equal(facts.bss_bytes, 50);
    assert_int_equal(facts.code_bytes, 7);
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
        made->header.e_phnum = i == 4 ? 65 : 4;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_object_is_described),
        cmocka_unit_test(what_is_no_object_is_refused),
        cmocka_unit_test(entries_that_the_loader_obeys_are_found),
        cmocka_unit_test(a_dynamic_section_without_an_end_is_refused),
        cmocka_unit_test(resolver_functions_are_found_among_relocations),
        cmocka_unit_test(resolver_functions_are_found_among_symbols),
        cmocka_unit_test(segments_are_added_up_by_what_they_may_do),
        cmocka_unit_test(objects_of_other_kinds_are_refused),
        cmocka_unit_test(a_needed_library_is_named_exactly),
        cmocka_unit_test(damaged_objects_are_read_within_bounds),
    };

    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
