// Features of hand-made listings whose counts are known, and of text that is no listing.
#include "executor/cpu/features.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const char listing[] = "\n"
                              "object.so:     file format elf64-x86-64\n"
                              "\n"
                              "Disassembly of section .plt:\n"
                              "\n"
                              "0000000000001000 <expf@plt>:\n"
                              "    1000:\tjmp    *0x2fe2(%rip)        # 3fe8 <expf>\n"
                              "\n"
                              "Disassembly of section .text:\n"
                              "\n"
                              "0000000000001100 <helper>:\n"
                              "    1100:\tvdivss %xmm1,%xmm0,%xmm0\n"
                              "    1104:\tret\n"
                              "    1105:\tnopw   0x0(%rax,%rax,1)\n"
                              "\n"
                              "0000000000001110 <work>:\n"
                              "    1110:\tvxorps %xmm0,%xmm0,%xmm0\n"
                              "    1114:\txor    %eax,%eax\n"
                              "    1116:\tmov    (%rdi),%rcx\n"
                              "    1118:\tprefetcht0 0x40(%rdi)\n"
                              "    1120:\tvmovups (%rdi,%rax,4),%zmm1\n"
                              "    1127:\tvfmadd231ps (%rsi,%rax,4),%zmm1,%zmm0\n"
                              "    112e:\tvaddps %ymm2,%ymm3,%ymm4\n"
                              "    1132:\tvmulps %ymm2,%ymm3,%ymm4\n"
                              "    1136:\tadd    $0x10,%rax\n"
                              "    113a:\tcmp    %rdx,%rax\n"
                              "    113d:\tjne    1120 <work+0x10>\n"
                              "    113f:\tvmovaps %zmm0,0x40(%rsp)\n"
                              "    1145:\tvmovaps 0x40(%rsp),%zmm5\n"
                              "    114b:\tvgatherdps (%rdi,%zmm1,4),%zmm2{%k1}\n"
                              "    1151:\tvpermps %zmm1,%zmm2,%zmm3\n"
                              "    1157:\tvbroadcastss (%rdi),%zmm6\n"
                              "    115d:\tsub    $0x1,%ecx\n"
                              "    1160:\tjne    1114 <work+0x4>\n"
                              "    1162:\tvmovss %xmm0,(%rsi)\n"
                              "    1166:\taddl   $0x1,0x8(%rsi)\n"
                              "    116a:\tcall   1000 <expf@plt>\n"
                              "    116f:\tvcvtss2sd %xmm0,%xmm0,%xmm0\n"
                              "    1173:\tret\n"
                              "\n"
                              "0000000000001180 <kcast_entry>:\n"
                              "    1180:\tmov    (%rdi),%rdi\n"
                              "    1183:\tjmp    1110 <work>\n";

static double value[FEATURE_COUNT];

static void expect(enum feature feature, double expected)
{
    if (value[feature] != expected) {
        fail_msg("%s is %g, expected %g", feature_name[feature], value[feature], expected);
    }
}

static void known_listing_gives_known_counts(void **state)
{
#if defined(__x86_64__)
    (void)state;
    features_read(listing, sizeof(listing) - 1, value);
    expect(FEATURE_functions, 2); // neither the linkage stub nor the glue
    expect(FEATURE_instructions, 2 + 24 - 1);
    expect(FEATURE_scalar_fp, 3);
    expect(FEATURE_vector_512, 7);
    expect(FEATURE_vector_256, 2);
    expect(FEATURE_vector_128, 1);
    expect(FEATURE_fma, 1);
    expect(FEATURE_fp_mul, 1);
    expect(FEATURE_fp_add, 1);
    expect(FEATURE_div_sqrt, 1);
    expect(FEATURE_converts, 1);
    expect(FEATURE_prefetches, 1);
    expect(FEATURE_gathers, 1);
    expect(FEATURE_shuffles, 1);
    expect(FEATURE_broadcasts, 1);
    expect(FEATURE_loads, 7);
    expect(FEATURE_stores, 3);
    expect(FEATURE_spills, 1);
    expect(FEATURE_reloads, 1);
    expect(FEATURE_branches, 2);
    expect(FEATURE_calls, 1);
    expect(FEATURE_loops, 2);
    expect(FEATURE_loop_depth, 2);
    expect(FEATURE_inner_instructions, 7);
    expect(FEATURE_inner_fma, 1);
    expect(FEATURE_inner_vectors, 4);
    expect(FEATURE_inner_loads, 2);
    expect(FEATURE_inner_stores, 0);
    expect(FEATURE_entry_bytes, 0x70);
    expect(FEATURE_function_bytes, 0x70 + 0x10);
#else
    (void)state;
#endif
}

static void no_listing_gives_zeros(void **state)
{
    static const char *const text[] = {"",
                                       "\n\n\n",
                                       "hello",
                                       "0000000000001000 <",
                                       "    1000:",
                                       "    :\tmov",
                                       "    zz:\tmov %rax",
                                       "0000000000001000 <f>:\n    1000:\t\n    1001:\trep\n"};

    (void)state;
    for (size_t i = 0; i < sizeof(text) / sizeof(text[0]); i++) {
        features_read(text[i], strlen(text[i]), value);
        expect(FEATURE_loads, 0);
        expect(FEATURE_loops, 0);
        assert_true(value[FEATURE_instructions] <= 1);
    }
}

static void overlong_lines_and_many_loops_are_bounded(void **state)
{
    size_t lines = 50000, len = 0;
    size_t size = lines * 64 + 100000;
    char *text = malloc(size);

    (void)state;
    assert_non_null(text);
    len += (size_t)snprintf(text + len, size - len, "0000000000001000 <f>:\n");
    for (size_t i = 0; i < lines; i++) {
        len +=
            (size_t)snprintf(text + len, size - len, "    %zx:\tjne    1000 <f>\n", 0x1000 + 4 * i);
    }
    memset(text + len, 'x', 50000);
    len += 50000;
    features_read(text, len, value);
    assert_true(value[FEATURE_branches] == (double)lines);
    assert_true(value[FEATURE_loops] <= (double)lines);
    free(text);
}

static void names_are_unique_and_short(void **state)
{
    (void)state;
    for (size_t i = 0; i < FEATURE_COUNT; i++) {
        assert_true(strlen(feature_name[i]) < 64);
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(feature_name[i], feature_name[j]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_listing_gives_known_counts),
        cmocka_unit_test(no_listing_gives_zeros),
        cmocka_unit_test(overlong_lines_and_many_loops_are_bounded),
        cmocka_unit_test(names_are_unique_and_short),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
