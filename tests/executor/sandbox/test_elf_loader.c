// Holds the inspection of objects against the dynamic loader: what the inspection accepts is loaded
// in a process of its own, as a runner does it, and no code of the object may run. Objects are
// changed at random, but with a knowledge of their parts; the seed is fixed, or KCAST_SEED for a
// longer search by hand, and printed with what it finds. The tests of the test show that it finds a
// hole where a rule is left out.
#include "common/mem.h"
#include "tests/executor/sandbox/elf_parts.h"
#include "tests/executor/sandbox/elf_try.h"

#if defined(__x86_64__)
#define IRELATIVE R_X86_64_IRELATIVE
#define RELATIVE R_X86_64_RELATIVE
#define RELOCATION_TYPES 38
#define PROPERTY_FLAG "-fcf-protection" // makes a note of properties, which some gcc make anyway
#else
#define IRELATIVE R_AARCH64_IRELATIVE
#define RELATIVE R_AARCH64_RELATIVE
#define RELOCATION_TYPES 1033
#define PROPERTY_FLAG "-mbranch-protection=standard"
#endif

// Objects that are changed; few with a sanitizer, of whose processes each takes long to be cloned.
#define ROUNDS (SANDBOX_SANITIZED ? 1000 : 20000)
#define SEED 20261122

// ---- objects ----

static const char plain[] =
    "#include <math.h>\n#include <string.h>\n"
    "static __thread int own = 3;\n"
    "static const char *const names[] = {\"a\", \"b\"};\n"
    "static float zeros[1000]; int data[4] = {1, 2};\n"
    "static void helper(void) { MARK; data[0]++; }\n"
    "void (*pointer[])(void) = {helper, helper};\n"
    "void kcast_entry(float *x, int n) { MARK; own += n; x[0] = sinf(x[0]) + zeros[n] + own;\n"
    "    memcpy(x + 1, names[n & 1], (unsigned)n); pointer[n & 1](); }\n";

static const char constructed[] =
    "static int ready;\n"
    "__attribute__((constructor)) static void begin(void) { MARK; ready = 1; }\n"
    "__attribute__((destructor)) static void end(void) { MARK; ready = 0; }\n"
    "void kcast_entry(int *x) { MARK; x[0] = ready; }\n";

static const char resolved[] = "static void slow(int *x) { MARK; x[0] = 1; }\n"
                               "static void (*choose(void))(int *) { MARK; return slow; }\n"
                               "void chosen(int *x) __attribute__((ifunc(\"choose\")));\n"
                               "static void (*taken)(int *) = chosen;\n"
                               "void kcast_entry(int *x) { MARK; chosen(x); taken(x); }\n";

enum sample { PLAIN, PLAIN_NOW, PLAIN_OLD_HASH, PLAIN_PACKED, CONSTRUCTED, RESOLVED, SAMPLE_COUNT };

struct fuzz {
    struct bytes sample[SAMPLE_COUNT];
    struct try_place place;
    struct stats_rng rng;
};

static int setup(void **state)
{
    struct fuzz *fuzz = xcalloc(1, sizeof(*fuzz));
    static const struct {
        const char *source, *flag[2];
    } row[SAMPLE_COUNT] = {
        [PLAIN] = {plain, {"-Wl,-z,lazy"}},
        [PLAIN_NOW] = {plain, {"-Wl,-z,now", PROPERTY_FLAG}},
        [PLAIN_OLD_HASH] = {plain, {"-Wl,--hash-style=both"}},
        [PLAIN_PACKED] = {plain, {"-Wl,-z,pack-relative-relocs"}},
        [CONSTRUCTED] = {constructed, {"-Wl,-z,lazy"}},
        [RESOLVED] = {resolved, {"-Wl,-z,lazy"}},
    };

    *state = fuzz;
    for (size_t i = 0; i < SAMPLE_COUNT; i++) {
        const char *const flags[] = {row[i].flag[0], row[i].flag[1], NULL};
        fuzz->sample[i] = try_compile(row[i].source, flags);
        // Not every ld packs relocations.
        assert_true(fuzz->sample[i].len > 0 || i == PLAIN_PACKED);
    }
    try_place_init(&fuzz->place);
    return 0;
}

static int teardown(void **state)
{
    struct fuzz *fuzz = *state;

    try_place_release(&fuzz->place);
    for (size_t i = 0; i < SAMPLE_COUNT; i++) {
        bytes_clear(&fuzz->sample[i]);
    }
    free(fuzz);
    return 0;
}

// ---- what is accepted, and what then happens ----

static bool accepted(const struct bytes *object, unsigned rules, bool facts_count)
{
    struct elf_facts facts;

    return elf_inspect_by(object, rules, &facts, NULL) == 0 && facts.needs[0] == '\0' &&
           (!facts_count || (!facts.runs_when_loaded && !facts.has_ifunc));
}

// ---- changes ----

// Returns a number that stands somewhere in the object, or is near one, or is a limit.
static uint64_t interesting(struct fuzz *fuzz, const struct bytes *original)
{
    static const uint64_t fixed[] = {
        0, 1, 2, 3, 7, 8, 16, 24, 4096, 8192, ~0UL, 1UL << 63, 0xffffffff, 1UL << 32, MARK_ADDRESS};
    struct stats_rng *rng = &fuzz->rng;
    size_t count;
    const Elf64_Phdr *segment = segments(original, &count);
    const Elf64_Dyn *entry;
    uint64_t value;

    switch (stats_rng_below(rng, 6)) {
    case 0:
        return fixed[stats_rng_below(rng, ARRAY_LEN(fixed))];
    case 1:
        value = segment[stats_rng_below(rng, count)].p_vaddr;
        break;
    case 2:
        entry = dynamic_of(original, &count);
        value = entry[stats_rng_below(rng, count)].d_un.d_val;
        break;
    case 3: // code
        value = symbol_named(original, "kcast_entry")->st_value;
        break;
    case 4:
        value = stats_rng_below(rng, 0x5000);
        break;
    default:
        return stats_rng_u64(rng) >> stats_rng_below(rng, 64);
    }
    return value + 8 * (stats_rng_below(rng, 9) - 4) * (stats_rng_below(rng, 2));
}

static void change_segment(struct fuzz *fuzz, const struct bytes *original, struct bytes *object)
{
    static const uint32_t type[] = {PT_NULL, PT_LOAD, PT_DYNAMIC,   PT_INTERP,    PT_NOTE,
                                    PT_PHDR, PT_TLS,  PT_GNU_STACK, PT_GNU_RELRO, PT_GNU_PROPERTY};
    struct stats_rng *rng = &fuzz->rng;
    size_t count;
    Elf64_Phdr *all = segments(object, &count), *one = &all[stats_rng_below(rng, count)];
    Elf64_Phdr *other = &all[stats_rng_below(rng, count)], copy = *one;

    switch (stats_rng_below(rng, 9)) {
    case 0:
        one->p_type = type[stats_rng_below(rng, ARRAY_LEN(type))];
        break;
    case 1:
        one->p_flags = (uint32_t)stats_rng_below(rng, 8);
        break;
    case 2:
        one->p_offset = interesting(fuzz, original);
        break;
    case 3:
        one->p_vaddr = interesting(fuzz, original);
        break;
    case 4:
        one->p_filesz = interesting(fuzz, original);
        break;
    case 5:
        one->p_memsz = interesting(fuzz, original);
        break;
    case 6: // both, as of a segment that was moved
        one->p_vaddr = one->p_offset = interesting(fuzz, original);
        break;
    case 7:
        *one = *other;
        *other = copy;
        break;
    default:
        *one = *other;
        break;
    }
}

static void change_entry(struct fuzz *fuzz, const struct bytes *original, struct bytes *object)
{
    static const int64_t tag[] = {
        DT_NULL,     DT_INIT,     DT_FINI,     DT_INIT_ARRAY,    DT_INIT_ARRAYSZ, DT_FINI_ARRAY,
        DT_TEXTREL,  DT_FLAGS,    DT_FLAGS_1,  DT_SYMTAB,        DT_STRTAB,       DT_RELA,
        DT_RELASZ,   DT_JMPREL,   DT_PLTRELSZ, DT_RELACOUNT,     DT_RELR,         DT_RELRSZ,
        DT_HASH,     DT_GNU_HASH, DT_PLTGOT,   DT_PREINIT_ARRAY, DT_RUNPATH,      DT_REL,
        DT_SYMBOLIC, DT_BIND_NOW, DT_DEBUG,    DT_AUDIT};
    struct stats_rng *rng = &fuzz->rng;
    size_t count, offset = (size_t)((unsigned char *)dynamic_of(original, &count) - original->data);
    Elf64_Dyn *all = (Elf64_Dyn *)(object->data + offset), *one = &all[stats_rng_below(rng, count)];
    Elf64_Dyn *other = &all[stats_rng_below(rng, count)], copy = *one;

    switch (stats_rng_below(rng, 5)) {
    case 0:
        one->d_tag = tag[stats_rng_below(rng, ARRAY_LEN(tag))];
        break;
    case 1:
        one->d_un.d_val = interesting(fuzz, original);
        break;
    case 2:
        *one = *other;
        *other = copy;
        break;
    case 3:
        one->d_tag = other->d_tag;
        break;
    default:
        *one = *other;
        break;
    }
}

static void change_relocation(struct fuzz *fuzz, const struct bytes *original, struct bytes *object)
{
    struct stats_rng *rng = &fuzz->rng;
    bool plt = stats_rng_below(rng, 3) == 0;
    const Elf64_Dyn *table = tag_of(original, plt ? DT_JMPREL : DT_RELA);
    const Elf64_Dyn *size = tag_of(original, plt ? DT_PLTRELSZ : DT_RELASZ);

    if (!table || !size) {
        return;
    }
    size_t offset = (size_t)((unsigned char *)at(original, table->d_un.d_ptr) - original->data);
    Elf64_Rela *one = (Elf64_Rela *)(object->data + offset) +
                      stats_rng_below(rng, size->d_un.d_val / sizeof(Elf64_Rela));
    switch (stats_rng_below(rng, 4)) {
    case 0:
        one->r_offset = interesting(fuzz, original);
        break;
    case 1:
        one->r_info =
            ELF64_R_INFO(ELF64_R_SYM(one->r_info), stats_rng_below(rng, RELOCATION_TYPES));
        break;
    case 2:
        one->r_info = ELF64_R_INFO(stats_rng_below(rng, 12), ELF64_R_TYPE(one->r_info));
        break;
    default:
        one->r_addend = (int64_t)interesting(fuzz, original);
        break;
    }
}

static void change_symbol(struct fuzz *fuzz, const struct bytes *original, struct bytes *object)
{
    struct stats_rng *rng = &fuzz->rng;
    uint64_t table = tag_of(original, DT_SYMTAB)->d_un.d_ptr;
    uint64_t count = (tag_of(original, DT_STRTAB)->d_un.d_ptr - table) / sizeof(Elf64_Sym);
    size_t offset = (size_t)((unsigned char *)at(original, table) - original->data);
    Elf64_Sym *one = (Elf64_Sym *)(object->data + offset) + stats_rng_below(rng, count);

    switch (stats_rng_below(rng, 4)) {
    case 0:
        one->st_info = (unsigned char)stats_rng_u64(rng);
        break;
    case 1:
        one->st_value = interesting(fuzz, original);
        break;
    case 2:
        one->st_shndx = (uint16_t)interesting(fuzz, original);
        break;
    default:
        one->st_name = (uint32_t)stats_rng_below(rng, 100);
        break;
    }
}

// Puts a copy of the dynamic section, or of any part, elsewhere into the data, and has the program
// header say so, by its address, its offset or both.
static void move_dynamic(struct fuzz *fuzz, const struct bytes *original, struct bytes *object)
{
    struct stats_rng *rng = &fuzz->rng;
    const Elf64_Phdr *from = segment_of(original, PT_DYNAMIC);
    size_t length = from->p_filesz, to = 8 * stats_rng_below(rng, (object->len - length) / 8);

    memmove(object->data + to, original->data + from->p_offset, length);
    size_t count;
    Elf64_Phdr *segment = segments(object, &count);
    uint64_t what = stats_rng_below(rng, 3);
    for (size_t i = 0; i < count && i < 64 && to > 4096; i++) {
        if (segment[i].p_type == PT_DYNAMIC) {
            segment[i].p_offset = what != 0 ? to : segment[i].p_offset;
            segment[i].p_vaddr =
                what != 1 ? to + (from->p_vaddr - from->p_offset) : segment[i].p_vaddr;
        }
    }
}

static void change_bytes(struct fuzz *fuzz, struct bytes *object)
{
    struct stats_rng *rng = &fuzz->rng;
    size_t range = stats_rng_below(rng, 3) ? 0x600 : object->len;

    object->data[stats_rng_below(rng, range)] = (unsigned char)stats_rng_u64(rng);
}

static void change(struct fuzz *fuzz, const struct bytes *original, struct bytes *object)
{
    for (size_t times = 1 + stats_rng_below(&fuzz->rng, 3); times > 0; times--) {
        // A changed number of segments would hide from the next change what it changes.
        switch (stats_rng_below(&fuzz->rng, 12)) {
        case 0:
        case 1:
            change_segment(fuzz, original, object);
            break;
        case 2:
        case 3:
            change_entry(fuzz, original, object);
            break;
        case 4:
        case 5:
        case 6:
            change_relocation(fuzz, original, object);
            break;
        case 7:
        case 8:
            change_symbol(fuzz, original, object);
            break;
        case 9:
            move_dynamic(fuzz, original, object);
            break;
        default:
            change_bytes(fuzz, object);
            break;
        }
        ((Elf64_Ehdr *)object->data)->e_phnum = ((Elf64_Ehdr *)original->data)->e_phnum;
    }
}

// ---- tests ----

// The mark works, and so does what keeps an object from running.
static void samples_are_what_they_are_meant_to_be(void **state)
{
    struct fuzz *fuzz = *state;

    for (size_t i = 0; i < SAMPLE_COUNT; i++) {
        const struct bytes *sample = &fuzz->sample[i];
        bool runs = i == CONSTRUCTED || i == RESOLVED;
        if (sample->len == 0) {
            continue;
        }
        assert_int_equal(try_load(&fuzz->place, sample), runs ? TRY_RAN : TRY_LOADED);
        assert_int_equal(accepted(sample, ELF_RULES_ALL, true), !runs);
        assert_true(accepted(sample, ELF_RULES_ALL, false));
    }
}

// Returns how many of the changed objects were accepted by the rules and ran.
static size_t fuzz_rounds(struct fuzz *fuzz, size_t rounds, unsigned rules, bool facts_count,
                          bool stop_at_first)
{
    const char *other = getenv("KCAST_SEED");
    unsigned long seed = other ? strtoul(other, NULL, 10) : SEED;
    size_t loaded = 0, crashed = 0, ran = 0;

    stats_rng_init(&fuzz->rng, seed, 1);
    for (size_t round = 0; round < rounds && (ran == 0 || !stop_at_first); round++) {
        const struct bytes *original = &fuzz->sample[round % SAMPLE_COUNT];
        if (original->len == 0) {
            continue;
        }
        struct bytes object = bytes_copy(original->data, original->len);
        change(fuzz, original, &object);
        if (accepted(&object, rules, facts_count)) {
            switch (try_load(&fuzz->place, &object)) {
            case TRY_LOADED:
            case TRY_REFUSED:
                loaded++;
                break;
            case TRY_CRASHED:
                crashed++;
                print_message("round %zu of seed %lu: the loader crashes\n", round, seed);
                break;
            case TRY_RAN:
                ran++;
                if (!stop_at_first) {
                    print_message("round %zu of seed %lu: code ran\n", round, seed);
                }
                break;
            }
        }
        bytes_clear(&object);
    }
    print_message("%zu objects: %zu accepted, %zu loaded or refused by the loader, %zu crashed, "
                  "%zu ran\n",
                  rounds, loaded + crashed + ran, loaded, crashed, ran);
    assert_true(stop_at_first || loaded > rounds / 100); // enough is left of them to say something
    return ran + (stop_at_first ? 0 : crashed);
}

static void what_is_accepted_runs_nothing_when_it_is_loaded(void **state)
{
    assert_int_equal(fuzz_rounds(*state, ROUNDS, ELF_RULES_ALL, true, false), 0);
}

static void the_fuzzer_finds_what_is_not_looked_at(void **state)
{
    assert_int_equal(fuzz_rounds(*state, 200, ELF_RULES_ALL, false, true), 1);
}

// An object that only the rule refuses, and whose code runs.
static void expect_hole(struct fuzz *fuzz, const struct bytes *object, enum elf_rule rule)
{
    assert_false(accepted(object, ELF_RULES_ALL, true));
    assert_true(accepted(object, ELF_RULES_ALL & ~(1U << rule), true));
    assert_int_equal(try_load(&fuzz->place, object), TRY_RAN);
}

// The look-up of the entry calls a resolver function that no relocation names.
static void a_resolver_for_the_entry_runs_and_is_refused(void **state)
{
    struct fuzz *fuzz = *state;
    struct bytes object = bytes_copy(fuzz->sample[PLAIN].data, fuzz->sample[PLAIN].len);

    symbol_named(&object, "kcast_entry")->st_info = ELF64_ST_INFO(STB_GLOBAL, STT_GNU_IFUNC);
    assert_true(accepted(&object, ELF_RULES_ALL, false));
    assert_false(accepted(&object, ELF_RULES_ALL, true));
    assert_int_equal(try_load(&fuzz->place, &object), TRY_RAN);
    bytes_clear(&object);
}

// A second segment at the same addresses replaces the first, whose dynamic section is harmless.
static void a_segment_over_another_runs_and_is_refused(void **state)
{
    struct fuzz *fuzz = *state;
    const struct bytes *sample = &fuzz->sample[CONSTRUCTED];
    size_t whole = (sample->len + 4095) / 4096 * 4096, count;
    struct bytes object = {.data = xcalloc(2, whole), .len = 2 * whole};

    memcpy(object.data, sample->data, sample->len);
    memcpy(object.data + whole, sample->data, sample->len);
    Elf64_Dyn *entry = dynamic_of(&object, &count);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (entry[i].d_tag < DT_INIT_ARRAY || entry[i].d_tag > DT_FINI_ARRAYSZ) {
            entry[kept++] = entry[i];
        }
    }
    memset(entry + kept, 0, (count - kept) * sizeof(*entry));
    Elf64_Phdr *second = segment_of(&object, PT_GNU_EH_FRAME);
    Elf64_Phdr *all = segments(&object, &count);
    for (size_t i = 0; i < count; i++) {
        if (all[i].p_type == PT_LOAD && (all[i].p_flags & PF_W)) {
            *second = all[i];
        }
    }
    second->p_offset += whole;
    expect_hole(fuzz, &object, ELF_RULE_SEGMENTS);
    bytes_clear(&object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_what_they_are_meant_to_be),
        cmocka_unit_test(the_fuzzer_finds_what_is_not_looked_at),
        cmocka_unit_test(a_resolver_for_the_entry_runs_and_is_refused),
        cmocka_unit_test(a_segment_over_another_runs_and_is_refused),
        cmocka_unit_test(what_is_accepted_runs_nothing_when_it_is_loaded),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
