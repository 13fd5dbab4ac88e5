// Beginning with what was measured elsewhere: what is read, which points come first, and when it is
// given up.
#include "client/propose/warm.h"
#include "common/strbuf.h"
#include "proto/verdict.h"
#include "tests/client/propose/made_view.h"

static const char grid[] = "//@ tune A in (1, 2, 3, 4, 5, 6)\n//@ tune B in (0, 1, 2, 3)\nint x;\n";

static int create(struct warm **ret, const char *text, const struct generator *generator,
                  struct err *err)
{
    const struct bytes bytes = {.data = (unsigned char *)(uintptr_t)text, .len = strlen(text)};
    return warm_create(ret, &bytes, "there", generator, err);
}

// Point i had the log2 speedup (7 i) % 24 / 8; those with B = 3 were wrong.
static double there_of(size_t point)
{
    return (double)(7 * point % 24) / 8;
}

static struct warm *made_warm(const struct made_view *made)
{
    struct strbuf text = STRBUF_INIT;
    struct warm *warm;
    struct err err = ERR_INIT;
    for (size_t i = 0; i < made->generator->point_count; i++) {
        struct fact *fact;
        assert_int_equal(made->generator->ops->params(made->generator, i, &fact), 2);
        strbuf_addf(&text, "{\"params\":{\"%s\":%g,\"%s\":%g},\"log2\":", fact[1].name,
                    fact[1].value, fact[0].name, fact[0].value);
        if (fact[1].value == 3) {
            strbuf_adds(&text, "null}\n");
        } else {
            strbuf_addf(&text, "%g}\n", there_of(i));
        }
        free(fact[0].name);
        free(fact[1].name);
        free(fact);
    }
    if (create(&warm, strbuf_text(&text), made->generator, &err) != 0) {
        fail_msg("%s", err.text);
    }
    strbuf_release(&text);
    return warm;
}

static void the_best_elsewhere_come_first(void **state)
{
    (void)state;
    struct made_view made;
    made_view(&made, "tunable", grid, 0);
    struct warm *warm = made_warm(&made);
    struct strategy_choice choice[24];
    assert_int_equal(warm_choose(warm, &made.view, 24, choice), 18); // six were wrong
    bool seen[24] = {false};
    for (size_t i = 0; i < 18; i++) {
        assert_false(seen[choice[i].point]);
        seen[choice[i].point] = true;
        assert_false(isnan(warm_log2(warm, choice[i].point)));
    }
    for (size_t i = 2; i < 10;
         i += 2) { // every second one of those that are tried is one of the best
        assert_true(warm_log2(warm, choice[i].point) <= warm_log2(warm, choice[i - 2].point));
    }
    double least = INFINITY, most = -INFINITY;
    for (size_t i = 0; i < 10; i++) {
        least = fmin(least, warm_log2(warm, choice[i].point));
        most = fmax(most, warm_log2(warm, choice[i].point));
    }
    for (size_t point = 0; point < 24; point++) { // both ends are tried
        double y = warm_log2(warm, point);
        assert_true(isnan(y) || (y >= least && y <= most));
    }
    for (size_t i = 11; i < 18; i++) {
        assert_true(warm_log2(warm, choice[i].point) <= warm_log2(warm, choice[i - 1].point));
    }
    warm_free(warm);
    generator_free(made.generator);
}

// Measures the first count points of those that are tried; sign: as there, or the other way round.
static bool holds_after(size_t count, double sign, bool fail_best)
{
    struct made_view made;
    made_view(&made, "tunable", grid, 0);
    struct warm *warm = made_warm(&made);
    struct strategy_choice choice[10];
    assert_int_equal(warm_choose(warm, &made.view, 10, choice), 10);
    for (size_t i = 0; i < count; i++) {
        double y = warm_log2(warm, choice[i].point);
        made.candidate[i].proposed =
            (struct run_proposed){.candidate = i + 1, .point = choice[i].point + 1};
        bool fails = fail_best && y > 1;
        made_view_measured(&made, i, fails ? VERDICT_WRONG : VERDICT_FASTER, sign * y);
        if (fails) {
            made.result[i].speedup = NULL;
        }
    }
    made.run_state.candidate_count = made.view.visible = count;
    bool holds = warm_holds(warm, &made.view);
    warm_free(warm);
    generator_free(made.generator);
    return holds;
}

static void ten_outcomes_decide_whether_it_holds(void **state)
{
    (void)state;
    assert_true(holds_after(0, 1, false));
    assert_true(holds_after(9, -1, false)); // too few to tell
    assert_true(holds_after(10, 1, false));
    assert_false(holds_after(10, -1, false));
    assert_false(holds_after(10, 1, true)); // what was fast there is wrong here
}

static void wrong_lines_are_refused(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"{", "there:1: no JSON"},
        {"\n[]", "there:2: \"log2\" is missing"},
        {"{\"params\":{\"A\":1}}", "\"log2\" is missing"},
        {"{\"params\":{\"A\":1},\"log2\":\"x\"}", "\"log2\" is missing"},
        {"{\"params\":{\"A\":1},\"log2\":41}", "a number from -40 to 40"},
        {"{\"log2\":1}", "\"params\" is missing"},
        {"{\"params\":{},\"log2\":1}", "\"params\" is missing"},
        {"{\"params\":{\"A\":\"x\"},\"log2\":1}", "the parameter A is no number"},
        {"{\"params\":{\"A\":1,\"C\":0},\"log2\":1}", "no candidate with the parameters"},
        {"{\"params\":{\"A\":1,\"B\":0},\"log2\":1}", "only 1 correct candidates"},
        {"", "no candidate with the parameters"},
    };
    (void)state;
    struct made_view made;
    made_view(&made, "tunable", grid, 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct warm *warm = NULL;
        struct err err = ERR_INIT;
        assert_int_equal(create(&warm, cases[i].text, made.generator, &err), ERR_INVALID);
        if (!strstr(err.text, cases[i].says)) {
            fail_msg("%s: %s", cases[i].text, err.text);
        }
        assert_null(warm);
    }
    generator_free(made.generator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_elsewhere_come_first),
        cmocka_unit_test(ten_outcomes_decide_whether_it_holds),
        cmocka_unit_test(wrong_lines_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
