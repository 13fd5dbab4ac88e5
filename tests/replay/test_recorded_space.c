// Recorded spaces, ready to be searched again: neighbours, lookup and costs.
#include "replay/recorded_space.h"

#include "tests/replay/toy.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void neighbours_differ_in_one_parameter(void **state)
{
    struct recorded_space *recorded = make_recorded();
    const struct generator *generator = recorded_space_generator(recorded);
    size_t inner = 3 + TOY_A * (2 + TOY_B * 1), corner = 0, out[16];

    (void)state;
    assert_int_equal(generator->point_count, TOY_POINTS);
    assert_int_equal(generator->axis_count, 3);
    assert_int_equal(generator->ops->neighbours(generator, inner, out, 16), 6);
    for (size_t i = 0; i < 6; i++) {
        size_t distance = out[i] > inner ? out[i] - inner : inner - out[i];

        assert_true(distance == 1 || distance == TOY_A || distance == TOY_A * TOY_B);
    }
    assert_int_equal(generator->ops->neighbours(generator, corner, out, 16), 3);
    assert_int_equal(generator->ops->neighbours(generator, inner, out, 2), 2);
    double place[3];
    generator->ops->position(generator, inner, place); // by rank: A is 8, the fourth of eight
    assert_true(fabs(place[0] - 3.0 / 7) < 1e-12 && fabs(place[1] - 2.0 / 5) < 1e-12);
    recorded_space_free(recorded);
}

static void candidates_are_found_by_the_digest_of_their_source(void **state)
{
    struct recorded_space *recorded = make_recorded();
    const struct generator *generator = recorded_space_generator(recorded);

    (void)state;
    for (size_t i = 0; i < TOY_POINTS; i++) {
        struct strbuf source = STRBUF_INIT;

        generator->ops->source(generator, i, &source);
        struct digest digest = digest_of(strbuf_text(&source), source.len);
        assert_ptr_equal(recorded_space_find(recorded, &digest),
                         &recorded_space_data(recorded)->candidate[i]);
        strbuf_release(&source);
    }
    assert_true(fabs(recorded_space_best_log2(recorded) - 2.45) < 1e-9);
    recorded_space_free(recorded);
}

static void a_space_without_a_correct_candidate_is_refused(void **state)
{
    struct space space = toy_space();

    (void)state;
    for (size_t i = 0; i < TOY_POINTS; i++) {
        if (space.candidate[i].result) {
            space.candidate[i].result->verdict = VERDICT_WRONG;
        }
    }
    struct recorded_space *recorded;
    struct err err = ERR_INIT;
    assert_int_equal(recorded_space_create(&recorded, &space, "toy", &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "toy"));
}

static void a_missing_cost_is_the_mean_or_a_second(void **state)
{
    struct space space = toy_space();
    double with, one = space.candidate[0].result->seconds->held;

    (void)state;
    struct recorded_space *recorded = make_recorded();
    with = recorded_space_seconds(recorded);
    assert_true(recorded_space_has_costs(recorded));
    recorded_space_free(recorded);
    free(space.candidate[0].result->seconds);
    space.candidate[0].result->seconds = NULL;
    struct err err = ERR_INIT;
    assert_int_equal(recorded_space_create(&recorded, &space, "toy", &err), 0);
    assert_true(fabs(recorded_space_seconds(recorded) -
                     (with - one) * (TOY_POINTS - TOY_C) / (TOY_POINTS - TOY_C - 1)) < 1e-9);
    recorded_space_free(recorded);
    space = toy_space();
    for (size_t i = 0; i < TOY_POINTS; i++) {
        if (space.candidate[i].result) {
            free(space.candidate[i].result->seconds);
            space.candidate[i].result->seconds = NULL;
        }
    }
    assert_int_equal(recorded_space_create(&recorded, &space, "toy", &err), 0);
    assert_false(recorded_space_has_costs(recorded));
    assert_true(recorded_space_seconds(recorded) == TOY_POINTS - TOY_C);
    recorded_space_free(recorded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_differ_in_one_parameter),
        cmocka_unit_test(candidates_are_found_by_the_digest_of_their_source),
        cmocka_unit_test(a_space_without_a_correct_candidate_is_refused),
        cmocka_unit_test(a_missing_cost_is_the_mean_or_a_second),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
