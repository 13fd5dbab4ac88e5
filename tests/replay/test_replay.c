// Searches of a made-up space in simulated time, and their summaries.
#include "replay/compare.h"
#include "replay/summary.h"
#include "replay/tasks.h"
#include "tests/replay/toy.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define SEEDS 6

struct fixture {
    struct recorded_space *recorded;
    struct variant variant[2];
    struct tasks tasks;
    struct search_outcome outcome[2 * SEEDS * 2];
};

static struct fixture *set_up(void)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    f->recorded = make_recorded();
    f->variant[0] = (struct variant){.name = "all", .policy = "all", .strategy = "best-of-n"};
    f->variant[1] = (struct variant){.name = "threshold",
                                     .policy = "threshold",
                                     .strategy = "best-of-n",
                                     .forecaster = SIM_FORECASTER_STATIC};
    f->tasks = (struct tasks){
        .space = &f->recorded,
        .spaces = 1,
        .variant = f->variant,
        .variants = 2,
        .seeds = SEEDS,
        .first_seed = 1,
        .searches = 1,
        .sim_daemon = {.devices = 1, .compile_slots = 4},
        .common = {.confidence = 0.9, .audit = 0.05, .budget_seconds = NAN, .batch = 8},
        .budget_share = NAN,
        .processes = 2};
    return f;
}

static void tear_down(struct fixture *f)
{
    recorded_space_free(f->recorded);
    free(f);
}

static void run(struct fixture *f)
{
    struct err err = ERR_INIT;
    int rc = tasks_run(&f->tasks, f->outcome, &err);

    assert_string_equal(err.text, "");
    assert_int_equal(rc, 0);
}

static void without_a_limit_everything_is_measured_once_and_the_best_found(void **state)
{
    struct fixture *f = set_up();

    (void)state;
    run(f);
    for (size_t i = 0; i < SEEDS; i++) {
        const struct search_outcome *o = &f->outcome[tasks_index(&f->tasks, 0, 0, i, 0)];

        assert_int_equal(o->considered, TOY_POINTS);
        // TOY_C do not compile, and TOY_B have the object of another candidate.
        assert_int_equal(o->measured, TOY_POINTS - TOY_C - TOY_B);
        assert_true(fabs(o->best_log2 - 2.45) < 1e-9);
        assert_int_equal(o->missed, 0);
        assert_true(o->improvers >= o->steps && o->steps > 0);
        assert_true(o->device_seconds > 0.1 * (double)o->measured);
        assert_true(search_outcome_reached(o, o->best_log2) <= o->device_seconds &&
                    search_outcome_reached(o, 0) == 0);
        assert_true(isinf(search_outcome_reached(o, 2.5)));
        assert_true(o->seconds >= o->device_seconds); // one device
    }
    tear_down(f);
}

static void a_surrogate_measures_less_and_finds_as_much(void **state)
{
    struct fixture *f = set_up();

    (void)state;
    run(f);
    double shortfall = 0;
    for (size_t i = 0; i < SEEDS; i++) {
        const struct search_outcome *all = &f->outcome[tasks_index(&f->tasks, 0, 0, i, 0)],
                                    *o = &f->outcome[tasks_index(&f->tasks, 0, 1, i, 0)];

        assert_int_equal(o->considered, TOY_POINTS);
        assert_true(o->measured < all->measured * 3 / 4);
        assert_true(o->trusted > 0 && o->device_seconds < all->device_seconds);
        shortfall += all->best_log2 - o->best_log2;
    }
    assert_true(shortfall / SEEDS < 0.1);
    tear_down(f);
}

static void a_certified_threshold_measures_less_and_misses_few(void **state)
{
    struct fixture *f = set_up();
    uint64_t trusted = 0, missed = 0;

    (void)state;
    f->variant[1].policy = "risk";
    f->tasks.common.guarantee = "online";
    f->tasks.common.alpha = f->tasks.common.delta = 0.2;
    run(f);
    for (size_t i = 0; i < SEEDS; i++) {
        const struct search_outcome *all = &f->outcome[tasks_index(&f->tasks, 0, 0, i, 0)],
                                    *o = &f->outcome[tasks_index(&f->tasks, 0, 1, i, 0)];

        assert_int_equal(o->considered, TOY_POINTS);
        assert_int_equal(o->measured + o->trusted, all->measured);
        trusted += o->trusted;
        missed += o->missed;
    }
    assert_true(trusted > 0);
    assert_true((double)missed <= 0.2 * (double)trusted);
    tear_down(f);
}

static void outcomes_do_not_depend_on_the_processes(void **state)
{
    struct fixture *f = set_up(), *g = set_up();

    (void)state;
    f->tasks.processes = 1;
    g->tasks.processes = 3;
    run(f);
    run(g);
    assert_memory_equal(f->outcome, g->outcome, 2 * SEEDS * sizeof(*f->outcome));
    bool differ = false;
    for (size_t i = 1; i < SEEDS; i++) {
        differ |= f->outcome[i].step[0].log2 != f->outcome[0].step[0].log2;
    }
    assert_true(differ);
    tear_down(f);
    tear_down(g);
}

static void a_budget_ends_searches_soon_after_it_is_spent(void **state)
{
    struct fixture *f = set_up();

    (void)state;
    f->tasks.budget_share = 0.2;
    run(f);
    for (size_t i = 0; i < 2 * SEEDS; i++) {
        double budget = 0.2 * recorded_space_seconds(f->recorded);

        assert_true(f->outcome[i].device_seconds < budget + 2 * 8 * 0.2);
        assert_true(f->outcome[i].measured < TOY_POINTS / 2);
    }
    tear_down(f);
}

static void searches_at_once_share_devices_and_each_has_its_outcome(void **state)
{
    struct fixture *f = set_up(), *alone = set_up();

    (void)state;
    f->tasks.searches = 2;
    run(f);
    run(alone);
    for (size_t i = 0; i < SEEDS; i++) {
        const struct search_outcome *one = &f->outcome[tasks_index(&f->tasks, 0, 0, i, 0)],
                                    *two = &f->outcome[tasks_index(&f->tasks, 0, 0, i, 1)];

        assert_int_equal(one->considered, TOY_POINTS);
        assert_int_equal(two->considered, TOY_POINTS);
        assert_true(one->step[0].log2 != two->step[0].log2 ||
                    one->step[0].device_seconds != two->step[0].device_seconds);
        // The decisions do not depend on the other search; the simulated time does.
        assert_int_equal(one->measured,
                         alone->outcome[tasks_index(&alone->tasks, 0, 0, i, 0)].measured);
        assert_true(fmax(one->seconds, two->seconds) >=
                    one->device_seconds + two->device_seconds - 1);
    }
    tear_down(f);
    tear_down(alone);
}

static void a_variant_is_compared_with_the_control_in_pairs(void **state)
{
    struct fixture *f = set_up();
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    (void)state;
    for (size_t i = 0; i < SEEDS; i++) {
        f->outcome[tasks_index(&f->tasks, 0, 0, i, 0)] =
            (struct search_outcome){.best_log2 = 0.5 * (double)i, .considered = 10, .measured = 10};
        f->outcome[tasks_index(&f->tasks, 0, 1, i, 0)] = (struct search_outcome){
            .best_log2 = 0.5 * (double)i + 0.25, .considered = 20, .measured = 5};
    }
    struct compare_ratio ratio = compare_final(&f->tasks, f->outcome, 1, 0);
    assert_true(fabs(ratio.ratio - exp2(0.25)) < 1e-9);
    assert_true(fabs(ratio.lo - ratio.hi) < 1e-9); // the same in every pair
    ratio = compare_final(&f->tasks, f->outcome, 0, 0);
    assert_true(ratio.ratio == 1 && ratio.lo == 1 && ratio.hi == 1);
    summary_print(&f->tasks, f->outcome, out);
    summary_json(&f->tasks, f->outcome, out);
    assert_int_equal(fclose(out), 0);
    assert_non_null(strstr(text, "threshold"));
    assert_non_null(strstr(text, "1.189 [1.189, 1.189]"));
    assert_non_null(strstr(text, "\"best_log2\":0.25,"));
    free(text);
    tear_down(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_limit_everything_is_measured_once_and_the_best_found),
        cmocka_unit_test(a_surrogate_measures_less_and_finds_as_much),
        cmocka_unit_test(a_certified_threshold_measures_less_and_misses_few),
        cmocka_unit_test(outcomes_do_not_depend_on_the_processes),
        cmocka_unit_test(a_budget_ends_searches_soon_after_it_is_spent),
        cmocka_unit_test(searches_at_once_share_devices_and_each_has_its_outcome),
        cmocka_unit_test(a_variant_is_compared_with_the_control_in_pairs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
