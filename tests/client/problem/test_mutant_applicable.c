// Which mutants apply to which problems: those that can differ from an honest implementation in one
// of the problem's cases. And which input a mutant copies.
#include "client/problem/mutant_cuda.h"
#include "tests/client/problem/problem_code.h"

#define NORMAL "{\"distribution\":\"normal\",\"mean\":0,\"stddev\":1}"

// What varies between the problems here.
struct made {
    const char *in_type, *in_values; // the input; NULL: float and NORMAL
    const char *out_type;            // NULL: float
    const char *out_shape;           // NULL: ["N"]
    const char *check, *bench;       // values of N; NULL: 5 and 32
    const char *hidden;              // range of N; NULL: none
    bool inout;                      // the input is written as well, and there is no other
    bool cuda;
};

static const char *or_else(const char *text, const char *otherwise)
{
    return text ? text : otherwise;
}

static struct problem *make(const struct made *made)
{
    char *hidden = made->hidden ? xasprintf(",\"hidden\":{\"N\":%s}", made->hidden) : xstrdup("");
    char *in = xasprintf("{\"name\":\"x\",\"direction\":\"%s\",\"dtype\":\"%s\",\"shape\":[\"N\"],"
                         "%s\"values\":%s}",
                         made->inout ? "inout" : "in", or_else(made->in_type, "f32"),
                         made->inout ? "\"tolerance\":4," : "", or_else(made->in_values, NORMAL));
    char *out = xasprintf(",{\"name\":\"y\",\"direction\":\"out\",\"dtype\":\"%s\",\"shape\":%s,"
                          "\"tolerance\":%d}",
                          or_else(made->out_type, "f32"), or_else(made->out_shape, "[\"N\"]"),
                          made->out_type && made->out_type[0] == 'i' ? 0 : 4);
    char *json = xasprintf(
        "{\"name\":\"p\",\"title\":\"t\",\"license\":\"MIT\",\"language\":\"%s\",%s"
        "\"params\":[{\"name\":\"N\",\"type\":\"int\"}],\"tensors\":[%s%s],"
        "\"cases\":{\"check\":[{\"N\":%s}],\"bench\":[{\"params\":{\"N\":%s},\"weight\":1}]%s},"
        "\"cache\":\"warm\",\"work\":{\"flops\":\"N\",\"bytes\":\"8*N\"}}",
        made->cuda ? "cuda" : "c", made->cuda ? "" : "\"entry\":\"p\",", in, made->inout ? "" : out,
        or_else(made->check, "5"), or_else(made->bench, "32"), hidden);
    struct problem *problem = parse(json);
    free(json);
    free(in);
    free(out);
    free(hidden);
    return problem;
}

// Whether it applies; if not, the reason has these words.
static bool applies(const struct made *made, enum mutant mutant, const char *words)
{
    struct problem *problem = make(made);
    struct strbuf reason = STRBUF_INIT;
    bool ret = mutant_applicable(mutant, problem, &reason);
    assert_int_equal(ret, reason.len == 0);
    if (!ret && !strstr(strbuf_text(&reason), words)) {
        fail_msg("%s: \"%s\" does not say \"%s\"", mutant_name(mutant), strbuf_text(&reason),
                 words);
    }
    strbuf_release(&reason);
    problem_free(problem);
    return ret;
}

static void an_output_of_one_element_cannot_be_shifted_or_swapped(void **state)
{
    (void)state;
    const struct made one = {.out_shape = "[\"1\"]"}, row = {.out_shape = "[\"1\",\"N\"]"};
    assert_false(applies(&one, MUTANT_CONSTANT, "its own mean"));
    assert_false(applies(&one, MUTANT_SHIFTED, "a single element"));
    assert_false(applies(&one, MUTANT_SWAPPED, "the first axis has one element"));
    assert_true(applies(&one, MUTANT_ZEROS, ""));
    assert_true(applies(&one, MUTANT_OVERRUN, ""));
    assert_true(applies(&row, MUTANT_SHIFTED, ""));
    assert_false(applies(&row, MUTANT_SWAPPED, "the first axis has one element"));
}

static void a_scalar_output_has_no_axes_at_all(void **state)
{
    (void)state;
    const struct made scalar = {.out_shape = "[]"};
    assert_false(applies(&scalar, MUTANT_SWAPPED, "one element"));
    assert_false(applies(&scalar, MUTANT_LAST_COLUMN_ZERO, "two axes"));
    assert_true(applies(&scalar, MUTANT_REMAINDER, "")); // 1 is no multiple of 16
}

static void the_last_column_is_another_than_the_last_row_with_two_axes_only(void **state)
{
    static const enum mutant column[] = {MUTANT_LAST_COLUMN_POISON, MUTANT_LAST_COLUMN_ZERO};
    (void)state;
    const struct made vector = {0}, matrix = {.out_shape = "[\"N\",\"N\"]"};
    for (size_t i = 0; i < ARRAY_LEN(column); i++) {
        assert_false(applies(&vector, column[i], "the last column is the last row"));
        assert_true(applies(&matrix, column[i], ""));
    }
    assert_true(applies(&vector, MUTANT_LAST_ROW_POISON, ""));
}

// Any case counts: a listed one, one that is timed, or a hidden one.
static void one_case_with_a_remainder_is_enough(void **state)
{
    (void)state;
    const struct made cases[] = {
        {.check = "16", .bench = "32"},
        {.check = "17", .bench = "32"},
        {.check = "16", .bench = "33"},
        {.check = "16", .bench = "32", .hidden = "{\"min\":1,\"max\":90}"},
        {.check = "16", .bench = "32", .hidden = "{\"min\":16,\"max\":96,\"multiple\":16}"},
    };
    static const bool wanted[] = {false, true, true, true, false};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(applies(&cases[i], MUTANT_REMAINDER, "always a multiple of 16"),
                         wanted[i]);
    }
}

static void precision_that_an_output_does_not_have_cannot_be_lost(void **state)
{
    static const struct {
        const char *type;
        bool cuda, bf16, f32, percent;
    } cases[] = {
        {"f32", false, true, false, true},   {"f64", false, true, true, true},
        {"i32", false, false, false, true},  {"f16", true, true, false, true},
        {"bf16", true, false, false, true},  {"e4m3", true, false, false, false},
        {"e5m2", true, false, false, false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct made made = {.out_type = cases[i].type, .cuda = cases[i].cuda};
        bool bf16 = applies(&made, MUTANT_BF16_OUTPUT, "more precision than bfloat16");
        bool f32 = applies(&made, MUTANT_F32_OUTPUT, "no output is in double precision");
        bool percent = applies(&made, MUTANT_ONE_PERCENT, "less than a unit in the last place");
        if (bf16 != cases[i].bf16 || f32 != cases[i].f32 || percent != cases[i].percent) {
            fail_msg("%s: bf16 %d, f32 %d, one percent %d", cases[i].type, bf16, f32, percent);
        }
    }
}

static void inputs_that_rounding_leaves_alone_are_no_mutants(void **state)
{
    static const struct {
        const char *type, *values;
        bool bf16, tf32;
    } cases[] = {
        {"f32", NORMAL, true, true},
        {"f32", "{\"distribution\":\"integers\",\"low\":-256,\"high\":256}", false, false},
        {"f32", "{\"distribution\":\"integers\",\"low\":-257,\"high\":0}", true, false},
        {"f32", "{\"distribution\":\"integers\",\"low\":0,\"high\":2048}", true, false},
        {"f32", "{\"distribution\":\"integers\",\"low\":0,\"high\":2049}", true, true},
        {"i32", "{\"distribution\":\"integers\",\"low\":0,\"high\":100000}", false, false},
        {"f64", "{\"distribution\":\"uniform\",\"low\":0,\"high\":1}", true, true},
        {"f32", "{\"distribution\":\"one-hot\"},\"also\":[" NORMAL "]", true, true},
        {"f32", "{\"distribution\":\"one-hot\"},\"also\":[{\"distribution\":\"one-hot\"}]", false,
         false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct made made = {.in_type = cases[i].type, .in_values = cases[i].values};
        if (applies(&made, MUTANT_BF16_INPUTS, "the rounding would change") != cases[i].bf16 ||
            applies(&made, MUTANT_TF32_INPUTS, "the rounding would change") != cases[i].tf32) {
            fail_msg("%s of %s", cases[i].values, cases[i].type);
        }
    }
}

static void without_a_pure_input_nothing_is_copied_or_spoilt(void **state)
{
    (void)state;
    const struct made made = {.inout = true};
    assert_false(applies(&made, MUTANT_INPUT_COPY, "no tensor that is only an input"));
    assert_false(applies(&made, MUTANT_WRITES_INPUT, "no tensor that is only an input"));
    assert_true(applies(&made, MUTANT_OTHER_INPUTS, "")); // it has a content all the same
    assert_true(applies(&made, MUTANT_BF16_INPUTS, ""));
    struct problem *problem = make(&made);
    assert_int_equal(mutant_copy_source(problem, 0), problem->tensor_count);
    problem_free(problem);
}

static void inputs_of_one_element_have_no_other_order(void **state)
{
    (void)state;
    const struct made one = {.check = "1", .bench = "1", .out_shape = "[\"4\"]"};
    const struct made more = {.check = "1", .bench = "2"};
    assert_false(applies(&one, MUTANT_OTHER_INPUTS, "no input has two elements"));
    assert_true(applies(&more, MUTANT_OTHER_INPUTS, ""));
}

static void sealed_candidates_have_no_memory_of_the_launch_before(void **state)
{
    static const enum mutant remembering[] = {MUTANT_PREVIOUS, MUTANT_FIRST};
    (void)state;
    const struct made plain = {0}, sealed = {.cuda = true};
    for (size_t i = 0; i < ARRAY_LEN(remembering); i++) {
        assert_true(applies(&plain, remembering[i], ""));
        assert_false(applies(&sealed, remembering[i], "keeps nothing"));
    }
    struct problem *problem = make(&sealed);
    struct strbuf reason = STRBUF_INIT;
    assert_true(honest_applicable(HONEST_BASELINE, problem, &reason));
    assert_int_equal(reason.len, 0);
    assert_false(honest_applicable(HONEST_REORDERED, problem, &reason));
    assert_true(reason.len > 0);
    strbuf_release(&reason);
    problem_free(problem);
}

// Type and shape go before type, type before shape, and anything before nothing.
static void the_nearest_input_is_copied(void **state)
{
    static const char input[] = "{\"name\":\"%c\",\"direction\":\"in\",\"dtype\":\"%s\","
                                "\"shape\":[\"%s\"],\"values\":%s},";
    static const char ints[] = "{\"distribution\":\"integers\",\"low\":0,\"high\":9}";
    static const struct {
        struct {
            const char *type, *shape;
        } in[3];
        size_t copied;
    } cases[] = {
        {{{"f64", "N"}, {"f32", "M"}, {"f32", "N"}}, 2},
        {{{"f64", "N"}, {"i32", "M"}, {"f32", "M"}}, 2},
        {{{"f64", "M"}, {"i32", "N"}, {"f64", "N"}}, 1},
        {{{"f64", "M"}, {"i32", "M"}, {"i32", "M"}}, 0},
        {{{"f32", "N"}, {"f32", "N"}, {"f32", "N"}}, 0},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct strbuf json = STRBUF_INIT;
        strbuf_adds(&json, "{\"name\":\"p\",\"title\":\"t\",\"license\":\"MIT\",\"language\":\"c\","
                           "\"entry\":\"p\",\"params\":[{\"name\":\"N\",\"type\":\"int\"},"
                           "{\"name\":\"M\",\"type\":\"int\"}],\"tensors\":[");
        for (size_t k = 0; k < 3; k++) {
            const char *type = cases[i].in[k].type;
            strbuf_addf(&json, input, (int)('a' + k), type, cases[i].in[k].shape,
                        type[0] == 'i' ? ints : NORMAL);
        }
        strbuf_adds(&json, "{\"name\":\"y\",\"direction\":\"out\",\"dtype\":\"f32\",\"shape\":"
                           "[\"N\"],\"tolerance\":4}],\"cases\":{\"check\":[{\"N\":5,\"M\":7}],"
                           "\"bench\":[{\"params\":{\"N\":5,\"M\":7},\"weight\":1}]},"
                           "\"cache\":\"warm\",\"work\":{\"flops\":\"N\",\"bytes\":\"N\"}}");
        struct problem *problem = parse(strbuf_text(&json));
        assert_int_equal(mutant_copy_source(problem, 3), cases[i].copied);
        problem_free(problem);
        strbuf_release(&json);
    }
}

static void every_mutant_and_variant_is_described_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < MUTANT_COUNT; i++) {
        enum mutant mutant = (enum mutant)i;
        assert_true(strlen(mutant_what(mutant)) > 0 && strlen(mutant_meaning(mutant)) > 0);
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(mutant_name(mutant), mutant_name((enum mutant)j));
            assert_string_not_equal(mutant_what(mutant), mutant_what((enum mutant)j));
        }
        for (size_t j = 0; j < HONEST_COUNT; j++) {
            assert_string_not_equal(mutant_name(mutant), honest_name((enum honest)j));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_output_of_one_element_cannot_be_shifted_or_swapped),
        cmocka_unit_test(a_scalar_output_has_no_axes_at_all),
        cmocka_unit_test(the_last_column_is_another_than_the_last_row_with_two_axes_only),
        cmocka_unit_test(one_case_with_a_remainder_is_enough),
        cmocka_unit_test(precision_that_an_output_does_not_have_cannot_be_lost),
        cmocka_unit_test(inputs_that_rounding_leaves_alone_are_no_mutants),
        cmocka_unit_test(without_a_pure_input_nothing_is_copied_or_spoilt),
        cmocka_unit_test(inputs_of_one_element_have_no_other_order),
        cmocka_unit_test(sealed_candidates_have_no_memory_of_the_launch_before),
        cmocka_unit_test(the_nearest_input_is_copied),
        cmocka_unit_test(every_mutant_and_variant_is_described_once),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
