// The nearest shape: how far shapes are from each other, and which of several entries answers.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/tune/wisdom_lookup.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct wisdom_value whole(const char *name, int64_t value)
{
    return (struct wisdom_value){
        .name = name, .integer = true, .whole = value, .real = (double)value};
}

static struct wisdom_value scalar(const char *name, double value)
{
    return (struct wisdom_value){.name = name, .real = value};
}

static struct wisdom_case shape(int64_t m, int64_t n)
{
    return (struct wisdom_case){.count = 2, .param = {whole("M", m), whole("N", n)}};
}

static double apart(struct wisdom_case a, struct wisdom_case b)
{
    double there = wisdom_distance(&a, &b), back = wisdom_distance(&b, &a);
    assert_true(there == back || (isnan(there) && isnan(back)));
    return there;
}

static void a_factor_of_two_is_about_one_and_a_sign_is_a_long_way(void **state)
{
    (void)state;
    assert_true(apart(shape(64, 64), shape(64, 64)) == 0);
    assert_true(fabs(apart(shape(1023, 7), shape(511, 7)) - 1) < 1e-12);
    assert_true(fabs(apart(shape(1023, 1023), shape(511, 255)) - sqrt(5)) < 1e-12);
    assert_true(fabs(apart(shape(-3, 0), shape(3, 0)) - 4) < 1e-12);
    assert_true(fabs(apart(shape(0, 0), shape(1, 0)) - 1) < 1e-12);
    double most = apart(shape(INT64_MIN, 0), shape(INT64_MAX, 0));
    assert_true(isfinite(most) && fabs(most - 126) < 1e-9);
}

// From 2^53 on, numbers that differ may be equal as doubles.
static void numbers_beyond_what_doubles_tell_apart_are_next_to_each_other(void **state)
{
    (void)state;
    const int64_t large = INT64_C(1) << 60;
    assert_true(apart(shape(large, 0), shape(large, 0)) == 0);
    assert_true(apart(shape(large, 0), shape(large + 1, 0)) < 1e-9);
}

static void the_order_of_parameters_does_not_matter_and_scalars_do_not_count(void **state)
{
    (void)state;
    struct wisdom_case a = shape(8, 16);
    struct wisdom_case b = {.count = 3,
                            .param = {scalar("alpha", 7), whole("N", 16), whole("M", 8)}};
    assert_true(apart(a, b) == 0);
    b.param[0].real = NAN;
    assert_true(apart(a, b) == 0);
}

static void shapes_of_other_parameters_are_no_distance_apart(void **state)
{
    (void)state;
    struct wisdom_case a = shape(8, 16), fewer = a, other = a, real = a, none = {0};
    fewer.count = 1;
    other.param[1].name = "K";
    real.param[1] = scalar("N", 16);
    assert_true(isnan(apart(a, fewer)));
    assert_true(isnan(apart(a, other)));
    assert_true(isnan(apart(a, real)));
    assert_true(isnan(apart(a, none)));
    assert_true(apart(none, none) == 0);
}

static void names_of_shapes_are_the_shortest_that_read_back(void **state)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0.1, "x=0.1"},      {1, "x=1"}, {1.0 / 3, "x=0.33333333333333331"},   {-2.5, "x=-2.5"},
        {1e300, "x=1e+300"}, {0, "x=0"}, {0.1 + 0.2, "x=0.30000000000000004"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct wisdom_case one = {.count = 1, .param = {scalar("x", cases[i].value)}};
        struct strbuf name = STRBUF_INIT;
        wisdom_case_name(&one, &name);
        assert_string_equal(strbuf_text(&name), cases[i].text);
        assert_true(strtod(strbuf_text(&name) + 2, NULL) == cases[i].value);
        strbuf_release(&name);
    }
    struct wisdom_case both = shape(INT64_MIN, INT64_MAX);
    struct strbuf name = STRBUF_INIT;
    wisdom_case_name(&both, &name);
    assert_string_equal(strbuf_text(&name), "M=-9223372036854775808 N=9223372036854775807");
    strbuf_release(&name);
}

// ---- entries made by hand ----

static const char kernel_a[] = "a", kernel_b[] = "b";

// An entry of the kernel for some shapes, tuned at a time that is one letter.
static struct wisdom_entry entry(const char *kernel, const char *at, struct wisdom_case *shapes,
                                 size_t count)
{
    return (struct wisdom_entry){.problem = "gemm",
                                 .kernel_digest = kernel,
                                 .device_class = "cpu",
                                 .tuned_at = at,
                                 .shape = shapes,
                                 .shape_count = count};
}

static struct wisdom_match find(struct wisdom_entry **entries, size_t count, const char *text)
{
    const struct wisdom wisdom = {.entry = entries, .count = count};
    const struct wisdom_query query = {.problem = "gemm", .shape = text};
    struct wisdom_match match = {0};
    struct err err = ERR_INIT;
    if (wisdom_lookup(&match, &wisdom, &query, "w.json", &err) != 0) {
        fail_msg("%s: %s", text, err.text);
    }
    return match;
}

static void the_nearest_of_an_entrys_shapes_is_named(void **state)
{
    (void)state;
    struct wisdom_case shapes[] = {shape(1, 1), shape(64, 64), shape(4096, 4096)};
    struct wisdom_entry one = entry(kernel_a, "1", shapes, 3);
    struct wisdom_entry *entries[] = {&one};
    static const struct {
        const char *asked;
        size_t shape;
        bool exact;
    } cases[] = {
        {"M=1 N=1", 0, true},    {"M=0 N=0", 0, false},           {"N=64\tM=64", 1, true},
        {"M=65 N=63", 1, false}, {"M=100000 N=100000", 2, false}, {"M=64 N=4096", 1, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wisdom_match match = find(entries, 1, cases[i].asked);
        assert_ptr_equal(match.entry, &one);
        assert_int_equal(match.shape, cases[i].shape);
        assert_int_equal(match.exact, cases[i].exact);
        assert_int_equal(match.distance == 0, cases[i].exact);
    }
}

static void of_equally_near_entries_the_narrowest_and_then_the_latest_answers(void **state)
{
    (void)state;
    struct wisdom_case shapes[] = {shape(64, 64), shape(8, 8)};
    struct wisdom_entry both = entry(kernel_a, "9", shapes, 2);
    struct wisdom_entry old = entry(kernel_a, "1", shapes, 1);
    struct wisdom_entry new = entry(kernel_a, "2", shapes, 1);
    struct wisdom_entry *forward[] = {&both, &old, &new}, *backward[] = {&new, &old, &both};
    assert_ptr_equal(find(forward, 3, "M=64 N=64").entry, &new);
    assert_ptr_equal(find(backward, 3, "M=64 N=64").entry, &new);
    assert_ptr_equal(find(forward, 3, "M=8 N=9").entry, &both); // nearer goes before all else
    assert_ptr_equal(find(forward, 2, "M=65 N=64").entry, &old);
}

static void the_scalars_that_were_asked_for_make_a_match_exact(void **state)
{
    (void)state;
    struct wisdom_case half = {.count = 2, .param = {whole("M", 8), scalar("s", 0.5)}};
    struct wisdom_case third = {.count = 2, .param = {whole("M", 8), scalar("s", 1.0 / 3)}};
    struct wisdom_entry first = entry(kernel_a, "1", &half, 1);
    struct wisdom_entry second = entry(kernel_a, "2", &third, 1);
    struct wisdom_entry *entries[] = {&first, &second};
    struct wisdom_match match = find(entries, 2, "M=8 s=0.5");
    assert_true(match.exact && match.entry == &first);
    match = find(entries, 2, "M=8"); // any will do: the latest
    assert_true(match.exact && match.entry == &second);
    match = find(entries, 2, "s=4 M=8");
    assert_true(!match.exact && match.distance == 0 && match.entry == &second);
}

// The kernel that was tuned last, and shapes of other parameters of an older one are passed over.
static void an_older_kernel_does_not_answer(void **state)
{
    (void)state;
    struct wisdom_case near = shape(64, 64), far = shape(2, 2);
    struct wisdom_case other = {.count = 1, .param = {whole("K", 3)}};
    struct wisdom_entry old = entry(kernel_a, "1", &near, 1);
    struct wisdom_entry new = entry(kernel_b, "2", &far, 1);
    struct wisdom_entry strange = entry(kernel_b, "1", &other, 1);
    struct wisdom_entry *entries[] = {&old, &strange, &new};
    assert_ptr_equal(find(entries, 3, "M=64 N=64").entry, &new);
}

static void a_shape_is_refused_with_one_to_copy(void **state)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "the parameter M is missing; give a shape like \"M=64 N=64\""},
        {"N=3", "the parameter M is missing"},
        {"M=1 N=2 K=3", "\"K\" is no parameter of the problem; give a shape like \"M=64 N=64\""},
        {"M=1 N=2 N=2", "\"N\" is given twice"},
        {"M=1,N=2", "M=1,N=2"},
        {"M=9223372036854775808 N=1", "M=9223372036854775808"},
        {"M=1.5 N=1", "M=1.5"},
        {"M= N=1", "M="},
        {"=1", "\"\" is no parameter"},
        {"M =1", "\"M\" is no NAME=VALUE"},
    };
    (void)state;
    struct wisdom_case like = shape(64, 64);
    struct wisdom_entry one = entry(kernel_a, "1", &like, 1);
    struct wisdom_entry *entries[] = {&one};
    const struct wisdom wisdom = {.entry = entries, .count = 1};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct wisdom_query query = {.problem = "gemm", .shape = cases[i].text};
        struct wisdom_match match = {.shape = 77};
        struct err err = ERR_INIT;
        assert_int_equal(wisdom_lookup(&match, &wisdom, &query, "w.json", &err), ERR_INVALID);
        if (!strstr(err.text, cases[i].words)) {
            fail_msg("\"%s\" does not say \"%s\"", err.text, cases[i].words);
        }
        assert_int_equal(match.shape, 77);
    }
    char *longest = xcalloc(5000, 1);
    memset(longest, ' ', 4999);
    const struct wisdom_query query = {.problem = "gemm", .shape = longest};
    struct wisdom_match match;
    struct err err = ERR_INIT;
    assert_int_equal(wisdom_lookup(&match, &wisdom, &query, "w.json", &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "more than 4096 bytes"));
    free(longest);
}

static void an_empty_file_has_nothing_for_anybody(void **state)
{
    (void)state;
    const struct wisdom wisdom = {0};
    const struct wisdom_query query = {.problem = "gemm", .shape = "M=1", .device_class = "cpu"};
    struct wisdom_match match;
    struct err err = ERR_INIT;
    assert_int_equal(wisdom_lookup(&match, &wisdom, &query, "w.json", &err), ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, "w.json has nothing for the problem \"gemm\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_factor_of_two_is_about_one_and_a_sign_is_a_long_way),
        cmocka_unit_test(numbers_beyond_what_doubles_tell_apart_are_next_to_each_other),
        cmocka_unit_test(the_order_of_parameters_does_not_matter_and_scalars_do_not_count),
        cmocka_unit_test(shapes_of_other_parameters_are_no_distance_apart),
        cmocka_unit_test(names_of_shapes_are_the_shortest_that_read_back),
        cmocka_unit_test(the_nearest_of_an_entrys_shapes_is_named),
        cmocka_unit_test(of_equally_near_entries_the_narrowest_and_then_the_latest_answers),
        cmocka_unit_test(the_scalars_that_were_asked_for_make_a_match_exact),
        cmocka_unit_test(an_older_kernel_does_not_answer),
        cmocka_unit_test(a_shape_is_refused_with_one_to_copy),
        cmocka_unit_test(an_empty_file_has_nothing_for_anybody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
