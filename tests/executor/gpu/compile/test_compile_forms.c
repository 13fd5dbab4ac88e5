// PTX and cubins with a launch manifest as sources, in the real jail. Skipped without a CUDA
// compiler.
#include "common/file.h"
#include "common/strbuf.h"
#include "executor/gpu/compile/compile.h"
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/executor/gpu/compile/compile_fixture.h"
#include "tests/support/gpu_cubin.h"

#define PTX_HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"
#define PTX_BODY                                                                                   \
    ".visible .global .align 4 .u32 counter;\n"                                                    \
    ".visible .entry scale(.param .u64 x, .param .u64 y, .param .u32 n, .param .f32 a)\n{\n"       \
    "\t.reg .u32 %r<3>;\n\tld.param.u32 %r2, [n];\n"                                               \
    "\tst.global.u32 [counter], %r2;\n\tret;\n}\n"

static void skip_without_assembler(void **state)
{
    struct fixture *fixture = *state;

    if (!fixture->there || !fixture->jail.toolkit.nvjitlink) {
        printf("skipped because the CUDA toolkit has no libnvJitLink.so\n");
        skip();
    }
}

static double feature(const struct compiled *compiled, const char *name)
{
    for (size_t i = 0; i < compiled->features_count; i++) {
        if (strcmp(compiled->features[i].name, name) == 0) {
            return compiled->features[i].value;
        }
    }
    return -1;
}

// The text of a cubin with a manifest.
static char *cubin_text(const char *manifest, const struct bytes *cubin)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    struct strbuf out = STRBUF_INIT;

    strbuf_adds(&out, manifest);
    for (size_t i = 0; i < cubin->len; i += 3) {
        size_t n = cubin->len - i < 3 ? cubin->len - i : 3;
        unsigned bits = 0;

        for (size_t k = 0; k < 3; k++) {
            bits = bits << 8 | (k < n ? cubin->data[i + k] : 0);
        }
        for (size_t k = 0; k < 4; k++) {
            strbuf_addf(&out, "%c", k <= n ? digits[bits >> (18 - 6 * k) & 63] : '=');
        }
        strbuf_adds(&out, i % 57 == 54 ? "\n" : "");
    }
    return strbuf_detach(&out);
}

static void ptx_is_assembled_and_looked_into_like_any_source(void **state)
{
    struct compile_outcome outcome;
    struct cuda_object object;

    skip_without_assembler(state);
    compile(state, LAUNCH "// a comment\n" PTX_HEAD PTX_BODY, 30, &outcome);
    read_object(&outcome, &object);
    assert_int_equal(object.variants_count, 1);
    const struct cuda_variant *variant = &object.variants[0];
    assert_int_equal(variant->kernels_count, 1);
    assert_string_equal(variant->kernels[0].symbol, "scale");
    assert_int_equal(variant->kernels[0].sizes_count, 4);
    assert_int_equal(variant->kernels[0].offsets[3], 20);
    assert_int_equal(variant->globals_count, 1);
    assert_string_equal(variant->globals[0].symbol, "counter");
    assert_true(feature(outcome.compiled, "registers") > 0);
    assert_true(feature(outcome.compiled, "ptx_instructions") > 0);
    assert_true(feature(outcome.compiled, "occupancy") != 0);
    message_clear(&cuda_object_message, &object);
    message_clear(&compile_outcome_message, &outcome);
}

static void ptx_that_is_refused_says_where(void **state)
{
    skip_without_assembler(state);
    refused(state, LAUNCH PTX_HEAD "\n.visible .entry scale()\n{\n\taddd.f32 %f1, %f2, %f3;\n}\n",
            VERDICT_COMPILE_ERROR,
            "candidate.ptx(8): error: Not a name of any known instruction: 'addd'");
    refused(state, LAUNCH PTX_HEAD, VERDICT_COMPILE_ERROR,
            "candidate.ptx: the compiled code has no kernel scale");
    refused(state, LAUNCH PTX_HEAD ".visible .entry scale(.param .u64 x)\n{\n\tret;\n}\n",
            VERDICT_COMPILE_ERROR,
            "candidate.ptx:1: scale has 1 parameters, this line gives it 4 arguments");
    refused(state, LAUNCH ".version 8.0\n.target sm_100a\n.address_size 64\n" PTX_BODY,
            VERDICT_COMPILE_ERROR, "");
    refused(state, PTX_HEAD PTX_BODY, VERDICT_COMPILE_ERROR, "launch");
    refused(state, "//@ specialize n\n" LAUNCH PTX_HEAD PTX_BODY, VERDICT_COMPILE_ERROR,
            "candidate.ptx: it was compiled before its cases were known");
}

static void ptx_may_not_call_what_no_source_may(void **state)
{
    skip_without_assembler(state);
    refused(state,
            LAUNCH PTX_HEAD ".extern .func (.param .b64 r) malloc(.param .b64 n);\n"
                            ".visible .entry scale(.param .u64 x, .param .u64 y, .param .u32 n, "
                            ".param .f32 a)\n{\n\t.reg .b64 %rd<3>;\n\tmov.u64 %rd1, 64;\n"
                            "\t{ .param .b64 p; .param .b64 q; st.param.b64 [p], %rd1;\n"
                            "\tcall.uni (q), malloc, (p);\n\tld.param.b64 %rd2, [q]; }\n"
                            "\tst.global.u64 [%rd2], %rd1;\n\tret;\n}\n",
            VERDICT_REJECTED, "it calls malloc");
}

// A file of tests/data/cuda.
static struct bytes load(const char *name)
{
    const char *root = getenv("KCAST_ROOT");
    char *path = xasprintf("%s/tests/data/cuda/%s", root ? root : ".", name);
    struct err err = ERR_INIT;
    struct bytes bytes = {.len = 0};

    if (file_read(&bytes, path, 1 << 20, &err) != 0) {
        fail_msg("%s", err.text);
    }
    free(path);
    return bytes;
}

#define STATE_LAUNCH "//@ launch fk_axpy_state grid=(1) block=(64) args=(x, y, n, a)\n"

static void a_cubin_with_a_manifest_is_looked_into_like_any_source(void **state)
{
    struct bytes cubin = load("variables.cubin");
    char *source = cubin_text(STATE_LAUNCH "// made by another compiler\n\n", &cubin);
    struct compile_outcome outcome;
    struct cuda_object object;

    compile(state, source, 30, &outcome);
    read_object(&outcome, &object);
    const struct cuda_variant *variant = &object.variants[0];
    assert_int_equal(variant->cubin.len, cubin.len);
    assert_memory_equal(variant->cubin.data, cubin.data, cubin.len);
    assert_int_equal(variant->kernels[0].sizes_count, 4);
    assert_int_equal(variant->globals_count, 3);
    assert_true(feature(outcome.compiled, "registers") > 4);
    assert_true(feature(outcome.compiled, "shared_static_bytes") == 256);
    assert_true(feature(outcome.compiled, "ptx_instructions") == -1); // there is no PTX
    message_clear(&cuda_object_message, &object);
    message_clear(&compile_outcome_message, &outcome);
    free(source);
    bytes_clear(&cubin);
}

static void bad_cubins(void **state, const struct bytes *cubin, const char *words)
{
    char *source = cubin_text(LAUNCH, cubin);

    refused(state, source, VERDICT_COMPILE_ERROR, words);
    free(source);
}

// It gets no check less than what a recording brings.
static void a_cubin_that_a_driver_should_not_see_is_a_compile_error(void **state)
{
    struct bytes cubin = gpu_cubin("scale", NULL);
    Elf64_Ehdr *head = (Elf64_Ehdr *)(void *)cubin.data;
    Elf64_Shdr *section = (Elf64_Shdr *)(void *)(cubin.data + head->e_shoff);

    head->e_flags = 80 << 8;
    bad_cubins(state, &cubin,
               "candidate.cubin: it is for sm_80, which a device of sm_90 does not run");
    head->e_flags = 90 << 8;
    cubin.len -= 1;
    bad_cubins(state, &cubin, "candidate.cubin: the compiled code is damaged");
    cubin.len += 1;
    section[4].sh_size = 1 << 20; // .nv.global
    bad_cubins(state, &cubin, "1048576 bytes of memory that belong to no variable");
    bytes_clear(&cubin);
    cubin = gpu_cubin("scale", "v");
    head = (Elf64_Ehdr *)(void *)cubin.data;
    section = (Elf64_Shdr *)(void *)(cubin.data + head->e_shoff);
    Elf64_Sym *symbol = (Elf64_Sym *)(void *)(cubin.data + section[5].sh_offset);
    symbol[1] = symbol[2]; // in the place of the kernel's
    bad_cubins(state, &cubin, "the compiled code has two variables called v");
    bytes_clear(&cubin);
    cubin = gpu_cubin("other", NULL);
    bad_cubins(state, &cubin, "candidate.cubin: the compiled code has no kernel scale");
    bytes_clear(&cubin);
    refused(state, LAUNCH "f0VMRgIBAUEI\n*\n", VERDICT_COMPILE_ERROR,
            "candidate.cubin: error: a character is none of base64; write it by: base64");
    refused(state, LAUNCH "f0VMRgIBAUEIA\n", VERDICT_COMPILE_ERROR, "its base64 is cut off");
    refused(state, "\177ELF", VERDICT_COMPILE_ERROR, "launch");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(ptx_is_assembled_and_looked_into_like_any_source),
        TEST(ptx_that_is_refused_says_where),
        TEST(ptx_may_not_call_what_no_source_may),
        TEST(a_cubin_with_a_manifest_is_looked_into_like_any_source),
        TEST(a_cubin_that_a_driver_should_not_see_is_a_compile_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
