// Compares what is read from a cubin with its source (tests/data/cuda/variables.cu).
#include "common/file.h"
#include "common/strbuf.h"
#include "executor/gpu/compile/cubin.h"
#include "tests/support/gpu_cubin.h"
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct bytes load_named(const char *name)
{
    const char *root = getenv("KCAST_ROOT");
    char *path = xasprintf("%s/tests/data/cuda/%s.cubin", root ? root : ".", name);
    struct err err = ERR_INIT;
    struct bytes bytes;

    assert_int_equal(file_read(&bytes, path, 1 << 20, &err), 0);
    free(path);
    return bytes;
}

static struct bytes load(void)
{
    return load_named("variables");
}

static void variables_and_sizes_are_found(void **state)
{
    struct bytes cubin = load();
    uint64_t code, constants;

    (void)state;
    struct cuda_global *list = NULL;
    struct err err = ERR_INIT;
    size_t count = 0;
    assert_int_equal(cubin_globals(&cubin, &list, &count, &err), 0);
    assert_true(count >= 1);
    assert_int_equal(cubin_sizes(&cubin, &code, &constants, &err), 0);
    assert_true(code > 0 && constants > 0);
    char forbidden[64];
    assert_int_equal(cubin_forbidden(&cubin, forbidden, &err), 0);
    assert_string_equal(forbidden, "");
    for (size_t i = 0; i < count; i++) {
        message_clear(&cuda_global_message, &list[i]);
    }
    free(list);
    bytes_clear(&cubin);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Bytes of a kernel's code that are not 0.
static size_t code_of(const struct bytes *cubin, const char *name)
{
    Elf64_Ehdr head;
    size_t found = 0;

    memcpy(&head, cubin->data, sizeof(head));
    const unsigned char *file = cubin->data;
    Elf64_Shdr names, section;
    memcpy(&names, file + head.e_shoff + head.e_shstrndx * sizeof(names), sizeof(names));
    for (size_t i = 0; i < head.e_shnum; i++) {
        memcpy(&section, file + head.e_shoff + i * sizeof(section), sizeof(section));
        const char *text = (const char *)file + names.sh_offset + section.sh_name;
        if (strncmp(text, ".text.", 6) != 0 || strcmp(text + 6, name) != 0) {
            continue;
        }
        for (uint64_t k = 0; k < section.sh_size; k++) {
            found += file[section.sh_offset + k] != 0;
        }
    }
    return found;
}

// Only the code of the others is left out: all that is read from the cubin stays the same.
static void kernels_that_are_not_launched_are_left_out(void **state)
{
    static const char *const kernel[] = {"_Z7fk_copyILi4EEvPKfPfi", "fk_axpy_state"};
    struct err err = ERR_INIT;

    (void)state;
    for (size_t kept = 0; kept < 2; kept++) {
        struct bytes cubin = load(), whole = load();
        const char *list[] = {"absent", kernel[kept], "nothing"};
        uint64_t code[2], constants[2];

        qsort(list, 3, sizeof(*list), by_name);
        cubin_keep_kernels(&cubin, list, 3);
        assert_int_equal(code_of(&cubin, kernel[kept]), code_of(&whole, kernel[kept]));
        assert_true(code_of(&whole, kernel[1 - kept]) > 0);
        assert_int_equal(code_of(&cubin, kernel[1 - kept]), 0);
        assert_int_equal(cubin_check(&cubin, &err), 0);
        assert_int_equal(cubin_sizes(&cubin, &code[0], &constants[0], &err), 0);
        assert_int_equal(cubin_sizes(&whole, &code[1], &constants[1], &err), 0);
        assert_true(code[0] == code[1] && constants[0] == constants[1]);
        bytes_clear(&cubin);
        bytes_clear(&whole);
    }
    struct bytes none = bytes_copy("no cubin", 8);
    cubin_keep_kernels(&none, kernel, 2);
    assert_memory_equal(none.data, "no cubin", 8);
    bytes_clear(&none);
}

static void no_kernel_of_that_name_is_said(void **state)
{
    struct bytes cubin = load();

    (void)state;
    struct cuda_kernel kernel;
    message_init(&cuda_kernel_message, &kernel);
    struct err err = ERR_INIT;
    assert_int_equal(cubin_parameters(&cubin, "nobody", &kernel, &err), ERR_NOT_FOUND);
    message_clear(&cuda_kernel_message, &kernel);
    bytes_clear(&cubin);
}

static void every_cut_is_refused_or_harmless(void **state)
{
    struct bytes cubin = load();

    (void)state;
    for (size_t len = 0; len < cubin.len; len += 7) {
        struct bytes cut = {.data = malloc(len + 1),
                            .len = len}; // a copy, so that sanitizers notice reads beyond its end
        struct cuda_global *list = NULL;

        memcpy(cut.data, cubin.data, len);
        struct err err = ERR_INIT;
        size_t count = 0;
        (void)!cubin_globals(&cut, &list, &count, &err);
        cubin_keep_kernels(&cut, NULL, 0);
        for (size_t i = 0; i < count; i++) {
            message_clear(&cuda_global_message, &list[i]);
        }
        free(list);
        free(cut.data);
    }
    bytes_clear(&cubin);
}

static void checked(const struct bytes *cubin, const char *words)
{
    struct err err = ERR_INIT;
    int rc = cubin_check(cubin, &err);

    if (words ? rc != ERR_INVALID || !strstr(err.text, words) : rc != 0) {
        fail_msg("%d %s; expected: %s", rc, err.text, words ? words : "it passes");
    }
}

// A driver gets no length, so every table that a cubin has must lie in it.
static void what_a_driver_would_read_beyond_the_end_is_refused(void **state)
{
    struct bytes cubin = load();

    (void)state;
    checked(&cubin, NULL);
    for (size_t len = 0; len < cubin.len; len++) {
        struct bytes cut = {.data = cubin.data, .len = len};

        checked(&cut, "the compiled code is damaged");
    }
    bytes_clear(&cubin);
}

// The section of this name: of the kernel "k" and of the variable "v", as gpu_cubin makes them.
static Elf64_Shdr *section_of(const struct bytes *cubin, const char *name)
{
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)(const void *)cubin->data;
    Elf64_Shdr *section = (Elf64_Shdr *)(void *)(cubin->data + head->e_shoff);
    const char *names = (const char *)cubin->data + section[head->e_shstrndx].sh_offset;

    for (unsigned i = 0; i < head->e_shnum; i++) {
        if (strcmp(names + section[i].sh_name, name) == 0) {
            return &section[i];
        }
    }
    fail_msg("no section %s", name);
    return NULL;
}

// Whatever a launch can write to must have a name, or it would be there in the next one.
static void memory_that_nobody_puts_back_is_refused(void **state)
{
    struct bytes cubin = gpu_cubin("k", "v"), bare = gpu_cubin("k", NULL);

    (void)state;
    checked(&cubin, NULL);
    checked(&bare, NULL);
    section_of(&cubin, ".nv.global")->sh_size += 256; // as alignment may
    checked(&cubin, NULL);
    section_of(&cubin, ".nv.global")->sh_size += 1;
    checked(&cubin, "257 bytes of memory that belong to no variable");
    section_of(&bare, ".nv.global")->sh_size = 1 << 20;
    checked(&bare, "1048576 bytes of memory that belong to no variable");
    section_of(&bare, ".nv.global")->sh_size = 0;
    section_of(&bare, ".comment")->sh_flags = SHF_ALLOC | SHF_WRITE;
    checked(&bare, "memory to write to that is none of its variables'");
    bytes_clear(&cubin);
    bytes_clear(&bare);
}

static void symbols_and_relocations_lie_inside(void **state)
{
    struct bytes cubin = gpu_cubin("k", "v");
    Elf64_Shdr *symbols = section_of(&cubin, ".symtab"), was = *symbols;
    Elf64_Sym *symbol = (Elf64_Sym *)(void *)(cubin.data + symbols->sh_offset);

    (void)state;
    symbol[2].st_value = 1;
    checked(&cubin, "a variable lies outside its section");
    symbol[2].st_value = UINT64_MAX;
    checked(&cubin, "a variable lies outside its section");
    symbol[2].st_value = 0;
    symbol[1].st_name = 1000;
    checked(&cubin, "a symbol's name");
    symbol[1].st_name = 0;
    checked(&cubin, NULL);
    symbols->sh_link = 77;
    checked(&cubin, "its table of symbols");
    *symbols = was;
    symbols->sh_entsize = 23;
    checked(&cubin, "its table of symbols");
    *symbols = was;
    section_of(&cubin, ".comment")->sh_type = SHT_RELA; // of some bytes that are none
    checked(&cubin, "a table of relocations");
    section_of(&cubin, ".comment")->sh_type = SHT_SYMTAB;
    checked(&cubin, "the compiled code is damaged");
    bytes_clear(&cubin);
}

enum { FRAME_BYTES = 16 };

// Appends the bytes as the content of a section.
static void put(struct strbuf *file, Elf64_Shdr *section, const void *data, size_t bytes)
{
    section->sh_offset = file->len;
    section->sh_size = bytes;
    strbuf_add(file, data, bytes);
}

// Appends a name to the table of names, which is at the end of the file.
static void put_name(struct strbuf *file, Elf64_Shdr *names, Elf64_Shdr *section, const char *name)
{
    section->sh_name = (uint32_t)names->sh_size;
    names->sh_size += strlen(name) + 1;
    strbuf_add(file, name, strlen(name) + 1);
}

// The cubin with one more section, and a relocation of its first byte by the symbol "v".
static struct bytes with_relocation(const struct bytes *cubin, const char *name, const char *table)
{
    static const unsigned char frame[FRAME_BYTES];
    const Elf64_Rel relocation = {.r_info = ELF64_R_INFO(2, 2)};
    const Elf64_Shdr *symbols = section_of(cubin, ".symtab");
    struct strbuf file = STRBUF_INIT;
    Elf64_Shdr section[16];
    Elf64_Ehdr head;

    memcpy(&head, cubin->data, sizeof(head));
    unsigned count = head.e_shnum;
    assert_true(count + 2 <= ARRAY_LEN(section));
    memcpy(section, cubin->data + head.e_shoff, count * sizeof(section[0]));
    Elf64_Shdr *names = &section[head.e_shstrndx], *of = &section[count], *by = of + 1;
    *of = (Elf64_Shdr){.sh_type = SHT_PROGBITS};
    *by = (Elf64_Shdr){.sh_type = SHT_REL,
                       .sh_link = (uint32_t)(symbols - section_of(cubin, "")),
                       .sh_info = count,
                       .sh_entsize = sizeof(relocation)};
    strbuf_add(&file, cubin->data, cubin->len);
    put(&file, of, frame, sizeof(frame));
    put(&file, by, &relocation, sizeof(relocation));
    put(&file, names, cubin->data + names->sh_offset, names->sh_size);
    put_name(&file, names, of, name);
    put_name(&file, names, by, table);
    strbuf_add(&file, frame, -file.len % 8);
    head.e_shoff = file.len;
    head.e_shnum = (uint16_t)(count + 2);
    memcpy(file.data, &head, sizeof(head));
    strbuf_add(&file, section, (count + 2) * sizeof(section[0]));
    return strbuf_detach_bytes(&file);
}

// As cuBLAS of CUDA 13 has them: the section that is said to be the table of symbols is another.
static void only_relocations_for_a_debugger_may_name_another_table(void **state)
{
    struct bytes plain = gpu_cubin("k", "v");
    struct bytes debug = with_relocation(&plain, ".debug_frame", ".rel.debug_frame");
    struct bytes loaded = with_relocation(&plain, ".nv.constant0.k", ".rel.nv.constant0.k");
    Elf64_Shdr *table = section_of(&debug, ".rel.debug_frame");
    Elf64_Rel *one = (Elf64_Rel *)(void *)(debug.data + table->sh_offset);
    uint32_t symbols = table->sh_link;

    (void)state;
    checked(&debug, NULL);
    checked(&loaded, NULL);
    section_of(&loaded, ".rel.nv.constant0.k")->sh_link = 2;
    checked(&loaded, "a table of relocations");
    table->sh_link = 2;
    checked(&debug, NULL);
    table->sh_link = 77; // no section at all
    checked(&debug, "a table of relocations");
    table->sh_link = 2;
    section_of(&debug, ".debug_frame")->sh_flags = SHF_ALLOC;
    checked(&debug, "a table of relocations");
    table->sh_link = symbols;
    checked(&debug, NULL);
    section_of(&debug, ".debug_frame")->sh_flags = 0;
    table->sh_link = 2;
    one->r_info = ELF64_R_INFO(3, 2);
    checked(&debug, "a relocation");
    one->r_info = ELF64_R_INFO(2, 2);
    one->r_offset = FRAME_BYTES;
    checked(&debug, "a relocation");
    one->r_offset = FRAME_BYTES - 1;
    checked(&debug, NULL);
    table->sh_info = 77;
    checked(&debug, "a table of relocations");
    bytes_clear(&plain);
    bytes_clear(&debug);
    bytes_clear(&loaded);
}

static void architectures_are_read_of_both_forms(void **state)
{
    struct bytes cubin = load();
    Elf64_Ehdr *head = (Elf64_Ehdr *)(void *)cubin.data;
    struct err err = ERR_INIT;
    unsigned number = 0;

    (void)state;
    assert_int_equal(cubin_architecture(&cubin, &number, &err), 0);
    assert_int_equal(number, 90);
    head->e_ident[EI_ABIVERSION] = 7;
    head->e_flags = 0x500550; // as CUDA 12 wrote them
    assert_int_equal(cubin_architecture(&cubin, &number, &err), 0);
    assert_int_equal(number, 80);
    bytes_clear(&cubin);
    assert_int_equal(cubin_target("sm_90", &number, &err), 0);
    assert_int_equal(number, 90);
    assert_int_equal(cubin_target("sm_100a", &number, &err), 0);
    assert_int_equal(number, 100);
    static const char *const bad[] = {"", "sm_", "90", "compute_90", "sm_90ab", "sm_12345"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(cubin_target(bad[i], &number, &err), ERR_INVALID);
    }
    assert_true(cubin_runs_on(80, 86) && cubin_runs_on(90, 90));
    assert_false(cubin_runs_on(86, 80) || cubin_runs_on(80, 90) || cubin_runs_on(100, 90));
}

// tests/data/cuda/two.cu has what the compiler said.
static void what_each_kernel_takes_is_told_apart(void **state)
{
    static const struct {
        const char *symbol;
        struct cubin_usage usage;
    } row[] = {
        {"small", {.registers = 10}},
        {"large", {.registers = 80, .stack_bytes = 256, .shared_bytes = 2048}},
        {NULL, {.registers = 80, .stack_bytes = 256, .shared_bytes = 2048}},
        {"none", {.registers = 0}},
    };
    struct bytes cubin = load_named("two");

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct cubin_usage usage;
        struct err err = ERR_INIT;

        assert_int_equal(cubin_usage(&cubin, row[i].symbol, &usage, &err), 0);
        assert_int_equal(usage.registers, row[i].usage.registers);
        assert_int_equal(usage.stack_bytes, row[i].usage.stack_bytes);
        assert_int_equal(usage.shared_bytes, row[i].usage.shared_bytes);
    }
    bytes_clear(&cubin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_each_kernel_takes_is_told_apart),
        cmocka_unit_test(variables_and_sizes_are_found),
        cmocka_unit_test(kernels_that_are_not_launched_are_left_out),
        cmocka_unit_test(no_kernel_of_that_name_is_said),
        cmocka_unit_test(every_cut_is_refused_or_harmless),
        cmocka_unit_test(what_a_driver_would_read_beyond_the_end_is_refused),
        cmocka_unit_test(memory_that_nobody_puts_back_is_refused),
        cmocka_unit_test(symbols_and_relocations_lie_inside),
        cmocka_unit_test(only_relocations_for_a_debugger_may_name_another_table),
        cmocka_unit_test(architectures_are_read_of_both_forms),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
