// The rules of the inspection: what gcc and ld do not make is refused, one change at a time of an
// object that is good without it.
#include "tests/executor/sandbox/elf_made.h"

static void symbols_that_gcc_does_not_make_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < 6; i++) {
        struct made *made = make();
        struct elf_facts facts;
        struct err err = ERR_INIT;

        made->symbol[1].st_info = (unsigned char)(i == 0   ? ELF64_ST_INFO(STB_GNU_UNIQUE, STT_FUNC)
                                                  : i == 1 ? ELF64_ST_INFO(STB_GLOBAL, 13)
                                                           : made->symbol[1].st_info);
        // With a value it is a function that is defined, for the loader of some machines.
        made->symbol[1].st_shndx = i == 2 ? SHN_UNDEF : 1;
        made->symbol[1].st_name = i == 3 ? 4096 : 1;
        made->hash[7] &= i == 4 ? ~1U : ~0U; // the chain goes on to where no table is
        made->hash[6] = i == 5 ? 4000000 : 1;
        assert_int_equal(inspect(made, &facts, &err), ERR_INVALID);
        assert_non_null(strstr(err.text, "symbol"));
    }
}

static void relocations_may_write_to_data_only(void **state)
{
    static const struct {
        uint64_t offset, info;
    } row[] = {
        {WORDS_AT - 8, RELATIVE},                        // read-only memory
        {DYNAMIC_AT, RELATIVE},                          // which the loader uses meanwhile
        {DYNAMIC_AT - 4, RELATIVE},                      // half of it there
        {offsetof(struct made, entries), RELATIVE},      // behind the data
        {(uint64_t)1 << 32, RELATIVE},                   // another library's memory
        {UINT64_MAX - 4, RELATIVE},                      // before this one
        {WORDS_AT, ELF64_R_INFO(1, RELATIVE)},           // with a symbol
        {WORDS_AT, ELF64_R_INFO((uint64_t)2, GLOB_DAT)}, // there is no symbol 2
        {WORDS_AT, COPY},
        {WORDS_AT, 4711},
        {WORDS_AT, ELF64_R_INFO(1, JUMP_SLOT)}, // in the wrong table
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct made *made = make();
        struct elf_facts facts;
        struct err err = ERR_INIT;

        made->relocation[1] = (Elf64_Rela){.r_offset = row[i].offset, .r_info = row[i].info};
        add_entry(made, DT_RELA, RELOCATIONS_AT);
        add_entry(made, DT_RELASZ, 2 * sizeof(Elf64_Rela));
        assert_int_equal(inspect(made, &facts, &err), ERR_INVALID);
        assert_string_equal(err.text, "the object's relocations are damaged");
    }
    // As many as are counted are applied without a look at their type.
    struct made *made = make();
    struct elf_facts facts;
    made->relocation[1].r_info = ELF64_R_INFO(1, GLOB_DAT);
    add_entry(made, DT_RELA, RELOCATIONS_AT);
    add_entry(made, DT_RELASZ, 2 * sizeof(Elf64_Rela));
    add_entry(made, DT_RELACOUNT, 2);
    assert_int_equal(inspect(made, &facts, NULL), ERR_INVALID);
}

static void packed_relocations_may_write_to_data_only(void **state)
{
    static const struct {
        uint64_t word[2];
        bool good;
    } row[] = {
        {{WORDS_AT, 1}, true},
        {{WORDS_AT, 0xff}, true},   // the seven words behind the first
        {{WORDS_AT, 0x1ff}, false}, // and the dynamic section
        {{WORDS_AT, 1ULL << 63 | 1}, false},
        {{WORDS_AT - 8, 1}, false},
        {{3, 3}, false}, // no address to begin with
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct made *made = make();
        struct elf_facts facts;

        memcpy(made->relocation, row[i].word, sizeof(row[i].word));
        add_entry(made, DT_RELR, RELOCATIONS_AT);
        add_entry(made, DT_RELRSZ, sizeof(row[i].word));
        add_entry(made, DT_RELRENT, sizeof(uint64_t));
        assert_int_equal(inspect(made, &facts, NULL), row[i].good ? 0 : ERR_INVALID);
    }
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
        {WORDS_AT - 8, sizeof(Elf64_Rela)},
        {DYNAMIC_AT, sizeof(Elf64_Rela)}, // where other relocations could write to
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
        assert_non_null(strstr(err.text, "is damaged or could be written to"));
    }
}

// Each row changes the last segment of an object that is good without the change.
static void segments_that_gcc_does_not_make_are_refused(void **state)
{
    static const Elf64_Phdr row[] = {
        {.p_type = PT_LOAD, .p_flags = PF_R | PF_W | PF_X}, // both
        {.p_type = PT_LOAD, .p_flags = PF_X},
        {.p_type = PT_LOAD, .p_flags = PF_R, .p_vaddr = WORDS_AT, .p_offset = WORDS_AT}, // twice
        {.p_type = PT_LOAD, .p_flags = PF_R, .p_vaddr = (uint64_t)-4096},
        {.p_type = PT_LOAD, .p_flags = PF_R, .p_vaddr = (1 << 20) + 8}, // not where its page is
        {.p_type = PT_LOAD, .p_flags = PF_R, .p_memsz = 5000},          // zeros in read-only memory
        {.p_type = PT_LOAD, .p_flags = PF_R | PF_W, .p_memsz = (uint64_t)1 << 60},
        {.p_type = PT_LOAD, .p_flags = PF_R, .p_align = 1},
        {.p_type = PT_LOAD, .p_flags = PF_R, .p_align = 12288},
        {.p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = 1 << 30, .p_memsz = 1 << 30},
        {.p_type = PT_INTERP, .p_flags = PF_R},
        {.p_type = PT_PHDR, .p_flags = PF_R},
        {.p_type = PT_SHLIB, .p_flags = PF_R},
        {.p_type = PT_NULL, .p_flags = PF_R},
        {.p_type = 0x65a3dbe6, .p_flags = PF_R},
        {.p_type = PT_GNU_STACK, .p_flags = PF_R | PF_W},
        {.p_type = PT_DYNAMIC, .p_flags = PF_R | PF_W, .p_vaddr = DYNAMIC_AT},
        {.p_type = PT_TLS, .p_flags = PF_R, .p_vaddr = 1 << 30},
        {.p_type = PT_TLS, .p_flags = PF_R, .p_align = 3},
        {.p_type = PT_TLS, .p_flags = PF_R, .p_memsz = 1 << 30},
        {.p_type = PT_NOTE, .p_flags = PF_R, .p_align = 1},
        {.p_type = PT_NOTE, .p_flags = PF_R, .p_align = 4, .p_vaddr = 1 << 30},
        {.p_type = PT_GNU_PROPERTY, .p_flags = PF_R, .p_align = 8, .p_vaddr = 1 << 30},
        {.p_type = PT_GNU_EH_FRAME, .p_flags = PF_R, .p_vaddr = 1 << 30},
        {.p_type = PT_GNU_RELRO, .p_flags = PF_R, .p_vaddr = 64},
        {.p_type = PT_GNU_RELRO, .p_flags = PF_R, .p_vaddr = WORDS_AT, .p_memsz = 1 << 30},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct made *made = make();
        struct elf_facts facts;
        Elf64_Phdr *last = &made->segment[4];

        made->header.e_phnum = SEGMENTS;
        *last = row[i];
        last->p_vaddr = last->p_vaddr == 0 && last->p_type == PT_LOAD ? 1 << 20 : last->p_vaddr;
        last->p_filesz = last->p_filesz == 0 ? 4 : last->p_filesz;
        last->p_memsz = last->p_memsz == 0 ? 4 : last->p_memsz;
        last->p_align = last->p_align == 0 ? 4096 : last->p_align;
        assert_int_equal(inspect(made, &facts, NULL), ERR_INVALID);
    }
}

static void the_stack_stays_without_execution(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct made *made = make();
        struct elf_facts facts;
        struct err err = ERR_INIT;

        made->header.e_phnum = i == 0 ? 3 : 4; // without the segment the loader makes it executable
        made->segment[3].p_flags |= PF_X;
        assert_int_equal(inspect(made, &facts, &err), ERR_INVALID);
        assert_non_null(strstr(err.text, "executable stack"));
    }
}

// The loader goes by the address, other tools by the offset.
static void the_dynamic_section_is_where_both_say(void **state)
{
    (void)state;
    struct made *made = make();
    struct elf_facts facts;
    struct err err = ERR_INIT;

    made->segment[2].p_offset = 64;
    assert_int_equal(inspect(made, &facts, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "dynamic section"));
    made = make();
    made->segment[2].p_memsz += sizeof(Elf64_Dyn);
    assert_int_equal(inspect(made, &facts, NULL), ERR_INVALID);
    made = make();
    made->header.e_phnum = 2;
    made->segment[1] = made->segment[3];
    assert_int_equal(inspect(made, &facts, NULL), ERR_INVALID);
}

static void entries_that_gcc_does_not_make_are_refused(void **state)
{
    static const struct {
        int64_t tag;
        uint64_t value;
    } row[] = {
        {DT_RPATH, 1},
        {DT_RUNPATH, 1},
        {DT_SONAME, 1},
        {DT_TEXTREL, 0},
        {DT_FLAGS, DF_TEXTREL},
        {DT_FLAGS, DF_ORIGIN},
        {DT_FLAGS_1, DF_1_INITFIRST},
        {DT_FLAGS_1, DF_1_GLOBAL},
        {DT_FLAGS_1, DF_1_LOADFLTR},
        {DT_AUDIT, 1},
        {DT_DEPAUDIT, 1},
        {DT_REL, RELOCATIONS_AT},
        {DT_PLTREL, DT_REL},
        {DT_RELAENT, 1},
        {DT_VERDEF, STRINGS_AT},
        {DT_DEBUG, 0},
        {0x6ffffe00, 0},
        {DT_STRTAB, STRINGS_AT}, // the second one
        {INT64_MIN, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct made *made = make();
        struct elf_facts facts;
        struct err err = ERR_INIT;

        add_entry(made, row[i].tag, row[i].value);
        add_entry(made, DT_NULL, 0);
        assert_int_equal(inspect(made, &facts, &err), ERR_INVALID);
        assert_non_null(strstr(err.text, "has an entry that gcc does not make there"));
    }
}

// Other tools would see them, the loader does not.
static void entries_behind_the_end_are_refused(void **state)
{
    struct elf_facts facts;
    struct err err = ERR_INIT;

    (void)state;
    struct made *made = make();
    add_entry(made, DT_NULL, 0);
    add_entry(made, DT_NULL, 0);
    assert_int_equal(inspect(made, &facts, &err), 0);
    made = make();
    add_entry(made, DT_NULL, 0);
    add_entry(made, DT_STRTAB, STRINGS_AT - 10);
    assert_int_equal(inspect(made, &facts, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "entries behind its end"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(symbols_that_gcc_does_not_make_are_refused),
        cmocka_unit_test(relocations_may_write_to_data_only),
        cmocka_unit_test(packed_relocations_may_write_to_data_only),
        cmocka_unit_test(relocations_that_cannot_be_read_as_a_whole_are_refused),
        cmocka_unit_test(segments_that_gcc_does_not_make_are_refused),
        cmocka_unit_test(the_stack_stays_without_execution),
        cmocka_unit_test(the_dynamic_section_is_where_both_say),
        cmocka_unit_test(entries_that_gcc_does_not_make_are_refused),
        cmocka_unit_test(entries_behind_the_end_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
