// What strategies see of a run: which candidates are points of their generator, what is known of
// them, and what is left to draw.
#include "tests/client/propose/made_view.h"

#define CANDIDATES 8

static void make(struct made_view *made, const char *template)
{
    made_view(made, "tunable", template, CANDIDATES);
}

static void measured(struct made_view *made, size_t i, uint64_t verdict, double log2)
{
    made_view_measured(made, i, verdict, log2);
}

static const char sixteen[] = "//@ tune A in (1, 2, 3, 4)\n//@ tune B in (1, 2, 3, 4)\nint x;\n";

static void points_are_those_of_the_views_generator_alone(void **state)
{
    (void)state;
    struct made_view made;
    make(&made, sixteen);
    made.candidate[1].proposed.generator = 1; // another generator's
    made.candidate[2].proposed.point = 0;     // no point
    made.candidate[3].proposed.point = 17;    // of a larger template
    made.candidate[4].proposed.point = UINT64_MAX;
    made.candidate[5].proposed.point = 16;
    size_t point = 99;
    assert_true(strategy_point(&made.view, 1, &point));
    assert_int_equal(point, 0);
    assert_true(strategy_point(&made.view, 6, &point));
    assert_int_equal(point, 15);
    for (uint64_t id = 2; id <= 5; id++) {
        assert_false(strategy_point(&made.view, id, &point));
    }
    assert_int_equal(point, 15); // as it was
    assert_int_equal(strategy_proposed(&made.view), 4);
    bool *taken = strategy_taken(&made.view);
    for (size_t i = 0; i < 16; i++) {
        assert_int_equal(taken[i], i == 0 || i == 6 || i == 7 || i == 15);
    }
    free(taken);
    made.view.number = 1;
    assert_int_equal(strategy_proposed(&made.view), 1);
    generator_free(made.generator);
}

// Proposals count although their outcomes are not visible yet.
static void what_is_proposed_is_taken_however_little_is_visible(void **state)
{
    (void)state;
    struct made_view made;
    make(&made, sixteen);
    made.view.visible = 0;
    assert_int_equal(strategy_proposed(&made.view), CANDIDATES);
    bool *taken = strategy_taken(&made.view);
    assert_true(taken[CANDIDATES - 1] && !taken[CANDIDATES]);
    free(taken);
    generator_free(made.generator);
}

static void random_points_come_once_each_until_none_is_left(void **state)
{
    (void)state;
    struct made_view made;
    make(&made, sixteen);
    bool *taken = strategy_taken(&made.view);
    bool drawn[16] = {false};
    size_t point = 99;
    for (uint64_t draw = 0; draw < 16 - CANDIDATES; draw++) {
        assert_true(strategy_random(&made.view, taken, draw, &point));
        assert_in_range(point, CANDIDATES, 15);
        assert_false(drawn[point]);
        drawn[point] = true;
        assert_true(taken[point]);
    }
    point = 99;
    assert_false(strategy_random(&made.view, taken, 1000, &point));
    assert_int_equal(point, 99);
    free(taken);
    generator_free(made.generator);
}

// One point of 4096 is free, which sixty-four draws hardly ever hit.
static void the_last_free_point_is_found(void **state)
{
    (void)state;
    struct made_view made;
    static const char eight[] = "(1, 2, 3, 4, 5, 6, 7, 8)";
    char *text = xasprintf("//@ tune A in %s\n//@ tune B in %s\n//@ tune C in %s\n"
                           "//@ tune D in %s\nint x;\n",
                           eight, eight, eight, eight);
    make(&made, text);
    free(text);
    size_t count = made.generator->point_count;
    assert_int_equal(count, 4096);
    bool *taken = xcalloc(count, sizeof(*taken));
    const size_t last[] = {0, 1, count / 2, count - 1};
    for (size_t i = 0; i < ARRAY_LEN(last); i++) {
        memset(taken, true, count);
        taken[last[i]] = false;
        size_t point = count;
        assert_true(strategy_random(&made.view, taken, i, &point));
        assert_int_equal(point, last[i]);
        assert_true(taken[last[i]]);
    }
    free(taken);
    generator_free(made.generator);
}

static void draws_depend_on_seed_and_draw_and_spread_evenly(void **state)
{
    enum { DRAWS = 16000 };
    (void)state;
    struct made_view made;
    make(&made, sixteen);
    size_t hits[16] = {0}, same = 0;
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        bool taken[16] = {false}, again[16] = {false}, other[16] = {false};
        size_t first, second, third;
        assert_true(strategy_random(&made.view, taken, draw, &first));
        assert_true(strategy_random(&made.view, again, draw, &second));
        assert_int_equal(first, second);
        made.view.seed++;
        assert_true(strategy_random(&made.view, other, draw, &third));
        made.view.seed--;
        hits[first]++;
        same += first == third;
    }
    for (size_t i = 0; i < 16; i++) {
        assert_in_range(hits[i], 850, 1150); // within five standard deviations of 1000
    }
    assert_in_range(same, 850, 1150);
    generator_free(made.generator);
}

static void uniform_numbers_fill_the_unit_interval_and_streams_differ(void **state)
{
    (void)state;
    struct made_view made;
    make(&made, sixteen);
    double sum = 0, product = 0;
    for (uint64_t slot = 0; slot < 10000; slot++) {
        double first = strategy_uniform(&made.view, 1, slot);
        double second = strategy_uniform(&made.view, 2, slot);
        assert_true(first >= 0 && first < 1);
        assert_true(first == strategy_uniform(&made.view, 1, slot));
        sum += first;
        product += (first - 0.5) * (second - 0.5);
    }
    assert_true(fabs(sum / 10000 - 0.5) < 0.015);
    assert_true(fabs(product / 10000) < 0.005); // they know nothing of each other
    generator_free(made.generator);
}

// ---- outcomes ----

static void scores_are_of_correct_and_visible_candidates_only(void **state)
{
    (void)state;
    struct made_view made;
    make(&made, sixteen);
    measured(&made, 0, VERDICT_FASTER, 1.5);
    measured(&made, 1, VERDICT_WRONG, 9);
    measured(&made, 2, VERDICT_SLOWER, -2);
    measured(&made, 3, VERDICT_FASTER, 1);
    made.result[3].speedup = NULL;           // a result that was damaged
    measured(&made, 4, 99, 1);               // a verdict of a later release
    measured(&made, 5, VERDICT_FASTER, NAN); // the number was not sent
    measured(&made, 7, VERDICT_FASTER, INFINITY);
    made.view.visible = 8;
    double none;
    assert_false(strategy_score(&made.view, 8, &none));
    assert_true(strategy_failed(&made.view, 6) && strategy_failed(&made.view, 8));
    made.view.visible = 6;
    measured(&made, 6, VERDICT_FASTER, 4); // not visible
    double score = 77;
    assert_true(strategy_score(&made.view, 1, &score) && score == 1.5);
    assert_true(strategy_score(&made.view, 3, &score) && score == -2);
    for (uint64_t id = 2; id <= 7; id += id == 2 ? 2 : 1) {
        assert_false(strategy_score(&made.view, id, &score));
    }
    assert_true(score == -2);
    generator_free(made.generator);
}

static void the_second_measurement_counts_where_there_is_one(void **state)
{
    (void)state;
    struct made_view made;
    make(&made, sixteen);
    measured(&made, 0, VERDICT_FASTER, 1.5);
    struct estimate lower = {.log2 = 0.25};
    struct result record = {.verdict = VERDICT_FASTER, .speedup = &lower};
    made.candidate[0].record = &record;
    double score;
    assert_true(strategy_score(&made.view, 1, &score) && score == 0.25);
    record.verdict = VERDICT_WRONG; // it was correct once only
    assert_false(strategy_score(&made.view, 1, &score));
    assert_true(strategy_failed(&made.view, 1));
    generator_free(made.generator);
}

static void the_same_code_has_the_score_of_who_was_measured(void **state)
{
    (void)state;
    struct made_view made;
    make(&made, sixteen);
    measured(&made, 1, VERDICT_FASTER, 0.75);
    made.candidate[4].object_duplicate_of = 2;
    made.candidate[4].compiled = &made.compiled[4];
    double score;
    assert_true(strategy_score(&made.view, 5, &score) && score == 0.75);
    assert_false(strategy_failed(&made.view, 5));
    made.view.visible = 4;
    assert_false(strategy_score(&made.view, 5, &score));
    generator_free(made.generator);
}

static void failures_are_outcomes_that_are_no_score(void **state)
{
    (void)state;
    struct made_view made;
    make(&made, sixteen);
    measured(&made, 0, VERDICT_CRASH, 0);
    measured(&made, 1, VERDICT_FASTER, 1);
    made.compiled[2].verdict = VERDICT_COMPILE_ERROR;
    made.candidate[2].compiled = &made.compiled[2];
    made.compiled[3].verdict = VERDICT_NONE; // compiled, and nothing is known yet
    made.candidate[3].compiled = &made.compiled[3];
    made.candidate[6] = made.candidate[0];
    made.view.visible = 6;
    static const bool failed[CANDIDATES] = {true, false, true};
    for (uint64_t id = 1; id <= CANDIDATES; id++) {
        assert_int_equal(strategy_failed(&made.view, id), failed[id - 1]);
    }
    generator_free(made.generator);
}

// ---- neighbours ----

static void neighbours_are_drawn_among_the_free_ones_and_stay_free(void **state)
{
    (void)state;
    struct made_view made;
    make(&made, sixteen);
    size_t neighbour[32];
    size_t count = made.generator->ops->neighbours(made.generator, 5, neighbour, 32);
    assert_true(count >= 4);
    bool taken[16] = {false}, seen[16] = {false};
    taken[neighbour[0]] = true;
    struct stats_rng rng;
    stats_rng_init(&rng, 1, 2);
    for (int i = 0; i < 400; i++) {
        size_t point;
        assert_true(strategy_neighbour(&made.view, taken, 5, &rng, &point));
        assert_false(taken[point]);
        seen[point] = true;
    }
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(seen[neighbour[i]], i != 0);
    }
    for (size_t i = 0; i < count; i++) {
        taken[neighbour[i]] = true;
    }
    size_t point = 99;
    assert_false(strategy_neighbour(&made.view, taken, 5, &rng, &point));
    assert_int_equal(point, 99);
    generator_free(made.generator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_are_those_of_the_views_generator_alone),
        cmocka_unit_test(what_is_proposed_is_taken_however_little_is_visible),
        cmocka_unit_test(random_points_come_once_each_until_none_is_left),
        cmocka_unit_test(the_last_free_point_is_found),
        cmocka_unit_test(draws_depend_on_seed_and_draw_and_spread_evenly),
        cmocka_unit_test(uniform_numbers_fill_the_unit_interval_and_streams_differ),
        cmocka_unit_test(scores_are_of_correct_and_visible_candidates_only),
        cmocka_unit_test(the_second_measurement_counts_where_there_is_one),
        cmocka_unit_test(the_same_code_has_the_score_of_who_was_measured),
        cmocka_unit_test(failures_are_outcomes_that_are_no_score),
        cmocka_unit_test(neighbours_are_drawn_among_the_free_ones_and_stay_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
