// The orders that language models write, in the forms in which they write them.
#include "worker/llm/rank_answer.h"

#include "common/mem.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define COUNT 4

// Reads a text about COUNT candidates. order has the numbers that are expected, from 1.
static void check(const char *text, size_t named, const size_t order[COUNT], const double p[COUNT])
{
    json_t *ranking = json_loads(text, JSON_DECODE_ANY, NULL);
    size_t got[COUNT], got_named = 0;
    double got_p[COUNT];
    struct err err = ERR_INIT;

    assert_non_null(ranking);
    if (rank_answer_read(ranking, COUNT, got, got_p, &got_named, &err) != 0) {
        fail_msg("%s: %s", text, err.text);
    }
    json_decref(ranking);
    assert_int_equal(got_named, named);
    for (size_t i = 0; i < COUNT; i++) {
        if (got[i] + 1 != order[i] || (isnan(p[i]) ? !isnan(got_p[i]) : got_p[i] != p[i])) {
            fail_msg("%s: place %zu has %zu, p of %zu is %g", text, i, got[i] + 1, i + 1, got_p[i]);
        }
    }
}

static void orders_are_read_in_every_form(void **state)
{
    const double none[COUNT] = {NAN, NAN, NAN, NAN};
    const double all[COUNT] = {0.1, 0.2, 0.3, 0.4};

    (void)state;
    check("[{\"candidate\":3,\"p\":0.3},{\"candidate\":1,\"p\":0.1},{\"candidate\":4,\"p\":0.4},"
          "{\"candidate\":2,\"p\":0.2}]",
          4, (const size_t[]){3, 1, 4, 2}, all);
    check("[3, 1, 4, 2]", 4, (const size_t[]){3, 1, 4, 2}, none);
    check("[\"#3\", \"candidate 1\", \"4\", \"Candidate 2: the fast one\"]", 4,
          (const size_t[]){3, 1, 4, 2}, none);
    check("[[4, 0.4], [3, 0.3], [2, 0.2], [1, 0.1]]", 4, (const size_t[]){4, 3, 2, 1}, all);
    check("[{\"id\":\"#2\",\"probability\":\"20 %\"},{\"number\":4,\"score\":\"0.4\"},"
          "{\"index\":3,\"p\":30},{\"n\":1,\"p_improves\":10}]",
          4, (const size_t[]){2, 4, 3, 1}, all);
    check("{\"1\":0.1,\"2\":0.2,\"3\":0.3,\"4\":0.4}", 4, (const size_t[]){4, 3, 2, 1}, all);
    check("{\"candidate 2\":\"20%\",\"candidate 4\":0.4}", 2, (const size_t[]){4, 2, 1, 3},
          (const double[]){NAN, 0.2, NAN, 0.4});
}

static void what_is_missing_twice_or_none_is_made_good(void **state)
{
    const double none[COUNT] = {NAN, NAN, NAN, NAN};

    (void)state;
    check("[4]", 1, (const size_t[]){4, 1, 2, 3}, none);
    check("[2, 2, 9, 0, -1, 2.5, null, \"none\", 1, 2]", 2, (const size_t[]){2, 1, 3, 4}, none);
    check("[{\"candidate\":2,\"p\":0.5},{\"candidate\":2,\"p\":0.9},{\"candidate\":1,\"p\":-3},"
          "{\"p\":0.7},{\"candidate\":3,\"p\":\"high\"}]",
          3, (const size_t[]){2, 1, 3, 4}, (const double[]){NAN, 0.5, NAN, NAN});
}

static void what_names_nobody_is_refused_with_a_reason(void **state)
{
    static const char *const row[][2] = {
        {"[]", "\"ranking\" names none of the candidates 1 to 4"},
        {"[7, \"x\", {}]", "\"ranking\" names none of the candidates 1 to 4"},
        {"{}", "\"ranking\" names none of the candidates 1 to 4"},
        {"\"3 then 1\"", "\"ranking\" is neither a list nor an object"},
        {"3", "\"ranking\" is neither a list nor an object"},
        {"null", "\"ranking\" is neither a list nor an object"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        json_t *ranking = json_loads(row[i][0], JSON_DECODE_ANY, NULL);
        size_t order[COUNT] = {77, 77, 77, 77}, named = 77;
        double p[COUNT] = {77, 77, 77, 77};
        struct err err = ERR_INIT;

        assert_int_equal(rank_answer_read(ranking, COUNT, order, p, &named, &err), ERR_INVALID);
        assert_string_equal(err.text, row[i][1]);
        assert_true(named == 77 && order[0] == 77 && p[3] == 77); // nothing is written
        json_decref(ranking);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders_are_read_in_every_form),
        cmocka_unit_test(what_is_missing_twice_or_none_is_made_good),
        cmocka_unit_test(what_names_nobody_is_refused_with_a_reason),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
