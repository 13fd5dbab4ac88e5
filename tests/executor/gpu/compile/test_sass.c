// The instruction mix, read from nvdisasm's text for some kernels and from text that no program
// would print.
#include "common/mem.h"
#include "executor/gpu/compile/sass.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char listing[] =
    "\t.target\tsm_90a\n\n\t.elftype\t@\"ET_EXEC\"\n\n"
    "//--------------------- .text.k                --------------------------\n"
    "\t.section\t.text.k,\"ax\",@progbits\n"
    "\t.align\t128\n"
    "        .global         k\n"
    "        .type           k,@function\n"
    "k:\n"
    ".text.k:\n"
    "        /*0000*/                   LDC R1, c[0x0][0x28] ;\n"
    "        /*0010*/                   S2R R4, SR_CTAID.X ;\n"
    "        /*0020*/                   IMAD.WIDE R2, R4, 0x4, R2 ;\n"
    "        /*0030*/                   ISETP.GE.AND P0, PT, R4, R3, PT ;\n"
    "        /*0040*/               @P0 EXIT ;\n"
    "        /*0050*/                   ULDC.64 UR4, c[0x0][0x210] ;\n"
    "        /*0060*/                   LDG.E.128.CONSTANT R4, desc[UR4][R2.64] ;\n"
    "        /*0070*/             @!UP0 LDG.E R8, desc[UR4][R2.64+0x1280] ;\n"
    ".L_x_0:\n"
    "        /*0080*/                   LDS.128 R12, [R9+0x400] ;\n"
    "        /*0090*/                   FFMA R4, R5, R6, R4 ;\n"
    "        /*00a0*/                   FFMA.FTZ R4, R5, R6, R4 ;\n"
    "        /*00b0*/                   HMMA.16816.F32 R4, R8, R12, R4 ;\n"
    "        /*00c0*/                   HGMMA.64x128x16.F32 R24, gdesc[UR4], R24 ;\n"
    "        /*00d0*/                   MUFU.EX2 R4, R4 ;\n"
    "        /*00e0*/                   STS.64 [R9], R4 ;\n"
    "        /*00f0*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;\n"
    "        /*0100*/              @!P1 BRA `(.L_x_0) ;\n"
    "        /*0110*/                   STG.E.128 desc[UR4][R2.64], R4 ;\n"
    "        /*0120*/                   EXIT ;\n"
    ".L_x_1:\n"
    "        /*0130*/                   BRA `(.L_x_1);\n"
    "        /*0140*/                   NOP;\n"
    "        /*0150*/                   NOP;\n"
    ".L_x_2:\n";

struct mix {
    struct fact *fact;
    size_t count;
};

static struct mix read_mix(const char *text, size_t len)
{
    // The memory ends with the text, so a sanitizer notices a read beyond the end.
    char *copy = len > 0 ? xmemdup(text, len) : NULL;
    struct mix mix = {.fact = NULL};

    sass_features(copy, len, &mix.fact, &mix.count);
    free(copy);
    return mix;
}

static void release(struct mix *mix)
{
    for (size_t i = 0; i < mix->count; i++) {
        message_clear(&fact_message, &mix->fact[i]);
    }
    free(mix->fact);
}

static void expect(const struct mix *mix, const char *name, double value)
{
    for (size_t i = 0; i < mix->count; i++) {
        if (strcmp(mix->fact[i].name, name) == 0) {
            if (mix->fact[i].value != value) {
                fail_msg("%s is %g, not %g", name, mix->fact[i].value, value);
            }
            return;
        }
    }
    fail_msg("no %s", name);
}

static void instructions_are_counted_by_class(void **state)
{
    static const struct {
        const char *name;
        double value;
    } expected[] = {
        {"sass_total", 20}, // the NOPs at the end are not counted
        {"sass_predicated", 3}, {"sass_global_128", 2}, {"sass_ffma", 2},    {"sass_hmma", 1},
        {"sass_gmma", 1},       {"sass_ldg", 2},        {"sass_stg", 1},     {"sass_lds", 1},
        {"sass_sts", 1},        {"sass_bar", 1},        {"sass_mufu", 1},    {"sass_branch", 2},
        {"sass_ldc", 2},        {"sass_imad", 1},       {"sass_compare", 1}, {"sass_move", 1},
        {"sass_fadd", 0},       {"sass_atomic", 0},     {"sass_ldl", 0},
    };
    struct mix mix = read_mix(listing, strlen(listing));

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        expect(&mix, expected[i].name, expected[i].value);
    }
    for (size_t i = 0; i < mix.count; i++) { // each feature is appended once
        for (size_t k = 0; k < i; k++) {
            assert_string_not_equal(mix.fact[i].name, mix.fact[k].name);
        }
    }
    release(&mix);
}

static void what_is_no_code_gives_nothing(void **state)
{
    static const char *const text[] = {
        "",
        "\n\n\n",
        "nvdisasm fatal   : Memory allocation failure\n",
        "/*",
        "/**/",
        "        /*0000*/ ",
        "        /*0000*/ @",
        "        /*0000*/ @P0",
        "        /*0000*/ ;",
        "        /*0010*/ \t.byte\t0xff, 0xff\n\t.word LDG\n",
        "        /*0000*/                   NOP ;\n",
        "        /*0000                     FFMA R4, R5, R6, R4 ;\n",
        "                                   FFMA R4, R5, R6, R4 ;\n",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(text); i++) {
        struct mix mix = read_mix(text[i], strlen(text[i]));

        if (mix.count != 0) {
            fail_msg("%s", text[i]);
        }
        release(&mix);
    }
}

static void every_beginning_is_read_within_bounds(void **state)
{
    (void)state;
    for (size_t len = 0; len < strlen(listing); len++) {
        struct mix mix = read_mix(listing, len);

        assert_true(mix.count == 0 ||
                    mix.fact[0].value <= 21); // a cut "N" is counted, being no NOP
        release(&mix);
    }
}

static void an_opcode_is_a_whole_word(void **state)
{
    static const char text[] = "/*0*/ LDGX R1 ;\n/*1*/ LD R1 ;\n/*2*/LDG.E.1280 R1;\n/*3*/ FFMA";
    struct mix mix = read_mix(text, strlen(text));

    (void)state;
    expect(&mix, "sass_total", 4);
    expect(&mix, "sass_ldg", 2);
    expect(&mix, "sass_global_128", 0);
    expect(&mix, "sass_ffma", 1);
    release(&mix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instructions_are_counted_by_class),
        cmocka_unit_test(what_is_no_code_gives_nothing),
        cmocka_unit_test(every_beginning_is_read_within_bounds),
        cmocka_unit_test(an_opcode_is_a_whole_word),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
