// The search methods of other programs on a made-up space, what they are charged, and how variants
// are compared.
#include "common/file.h"
#include "replay/budget.h"
#include "replay/compare.h"
#include "replay/search_methods.h"
#include "replay/summary_markdown.h"
#include "replay/variants.h"
#include "tests/replay/toy.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

// --- a budget

static size_t point(size_t a, size_t b, size_t c)
{
    return a + TOY_A * (b + TOY_B * c);
}

static void a_candidate_is_charged_once_and_a_failed_compilation_never(void **state)
{
    struct recorded_space *recorded = make_recorded();
    struct budget budget;
    const struct search_outcome *o = &budget.outcome;

    (void)state;
    budget_init(&budget, recorded, 0.35);
    assert_true(fabs(budget_measure(&budget, point(5, 2, 0)) - 2.0) < 1e-9);
    assert_true(fabs(o->device_seconds - 0.15) < 1e-9);
    assert_true(fabs(budget_measure(&budget, point(5, 2, 0)) - 2.0) < 1e-9);
    assert_true(fabs(o->device_seconds - 0.15) < 1e-9);
    assert_true(isnan(budget_measure(&budget, point(7, 5, 1)))); // does not compile
    assert_true(isnan(budget_measure(&budget, point(0, 4, 3)))); // wrong, and charged
    assert_int_equal(o->considered, 3);
    assert_int_equal(o->measured, 2);
    assert_true(fabs(o->device_seconds - 0.25) < 1e-9 && !budget_empty(&budget));
    (void)budget_measure(&budget, point(5, 2, 3));
    assert_true(budget_empty(&budget)); // the last measurement goes beyond it
    assert_int_equal(o->steps, 2);
    assert_true(fabs(o->step[1].log2 - 2.45) < 1e-9 && o->step[1].considered == 4 &&
                o->step[1].measured == 3);
    assert_true(search_outcome_reached(o, 2.4) == o->device_seconds &&
                search_outcome_reached(o, 1.9) == o->step[0].device_seconds);
    budget_release(&budget);
    recorded_space_free(recorded);
}

// --- sequences

static int read_sequences(struct sequences **ret, const char *text, struct err *err)
{
    char path[] = "/tmp/orders.XXXXXX";
    int fd = mkstemp(path), rc;

    assert_true(fd >= 0);
    assert_int_equal(file_write_fd(fd, text, strlen(text), path, err), 0);
    rc = sequences_read(ret, path, err);
    (void)close(fd);
    (void)unlink(path);
    return rc;
}

static void a_sequence_is_followed_until_the_budget_is_used(void **state)
{
    struct recorded_space *recorded = make_recorded();
    struct method_search search = {
        .recorded = recorded, .variant = "a/b", .seed = 7, .budget_seconds = 0.3};

    (void)state;
    struct sequences *sequences = NULL;
    struct err err = ERR_INIT;
    assert_int_equal(
        read_sequences(&sequences, "a/b toy 7 1 1 2 3 4\na/b toy 8 500\n\nc toy 7\n", &err), 0);
    assert_string_equal(sequences_variant(sequences, 0), "a/b");
    assert_string_equal(sequences_variant(sequences, 1), "c");
    assert_null(sequences_variant(sequences, 2));
    search.sequences = sequences;
    struct search_outcome outcome;
    assert_int_equal(method_sequence.run(&search, &outcome, &err), 0);
    assert_int_equal(outcome.measured, 3); // 0.10 + 0.11 + 0.12 s
    assert_true(fabs(outcome.device_seconds - 0.33) < 1e-9);
    search.variant = "c"; // nothing is measured, so the baseline is the best
    assert_int_equal(method_sequence.run(&search, &outcome, &err), 0);
    assert_true(outcome.measured == 0 && outcome.best_log2 == 0);
    search.variant = "a/b";
    search.seed = 8;
    assert_int_equal(method_sequence.run(&search, &outcome, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "candidate 500 of 192"));
    err = (struct err)ERR_INIT;
    search.seed = 9;
    assert_int_equal(method_sequence.run(&search, &outcome, &err), ERR_NOT_FOUND);
    sequences_free(sequences);
    recorded_space_free(recorded);
}

static void a_wrong_line_of_sequences_is_named(void **state)
{
    static const struct {
        const char *text, *sentence;
    } bad[] = {
        {"a toy 1 2\na toy x 1\n", ":2"},
        {"a toy 1 0\n", "number of a candidate"},
        {"a toy 1 2 b\n", ":1"},
        {"a toy 1 2\na toy 1 3\n", "an earlier line"},
        {"a\n", "seed"},
    };

    (void)state;
    struct sequences *sequences = NULL;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct err err = ERR_INIT;

        assert_int_equal(read_sequences(&sequences, bad[i].text, &err), ERR_INVALID);
        assert_non_null(strstr(err.text, bad[i].sentence));
        assert_null(sequences);
    }
}

// --- variants

#define SEEDS 8

struct fixture {
    struct recorded_space *recorded;
    struct variant variant[TASKS_VARIANTS_MAX];
    struct tasks tasks;
    struct search_outcome outcome[5 * SEEDS];
};

static struct fixture *set_up(const char *policies, const char *methods, double share)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    struct variants_wanted wanted = {
        .policies = policies, .strategies = "best-of-n", .methods = methods};

    f->recorded = make_recorded();
    f->tasks = (struct tasks){
        .space = &f->recorded,
        .spaces = 1,
        .variant = f->variant,
        .seeds = SEEDS,
        .first_seed = 1,
        .searches = 1,
        .sim_daemon = {.devices = 1, .compile_slots = 4},
        .common = {.confidence = 0.9, .audit = 0.05, .batch = 8, .budget_seconds = NAN},
        .budget_share = share,
        .processes = 2};
    struct err err = ERR_INIT;
    assert_int_equal(variants_make(&wanted, f->variant, &f->tasks.variants, &err), 0);
    assert_int_equal(tasks_run(&f->tasks, f->outcome, &err), 0);
    assert_string_equal(err.text, "");
    return f;
}

static const struct search_outcome *outcome_of(const struct fixture *f, size_t variant,
                                               uint64_t seed)
{
    return &f->outcome[tasks_index(&f->tasks, 0, variant, seed, 0)];
}

static void tear_down(struct fixture *f)
{
    recorded_space_free(f->recorded);
    free(f);
}

static double mean_best(const struct fixture *f, size_t variant)
{
    double sum = 0;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        sum += outcome_of(f, variant, seed)->best_log2;
    }
    return sum / SEEDS;
}

static void tvm_s_rule_keeps_to_the_budget_and_learns(void **state)
{
    struct fixture *f = set_up("all", "tvm,tvm-knobs", 0.5),
                   *again = set_up("all", "tvm,tvm-knobs", 0.5);
    double budget = 0.5 * recorded_space_seconds(f->recorded);

    (void)state;
    assert_memory_equal(f->outcome, again->outcome, sizeof(f->outcome));
    for (size_t variant = 1; variant < 3; variant++) {
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            const struct search_outcome *o = outcome_of(f, variant, seed);

            assert_true(o->device_seconds >= budget && o->device_seconds < budget + 0.2);
            assert_true(o->given_seconds == budget);
            assert_true(o->measured > 70 &&
                        o->measured <= o->considered); // a plan, and some of the next
            assert_true(seed == 0 ||
                        o->step[0].log2 != outcome_of(f, variant, seed - 1)->step[0].log2);
        }
        // The first 64 of 192 are random; then a model of a smooth function chooses.
        assert_true(mean_best(f, variant) > mean_best(f, 0) && mean_best(f, variant) > 2.43);
    }
    tear_down(f);
    tear_down(again);
}

static void tvm_s_rule_measures_everything_once_without_a_budget(void **state)
{
    struct fixture *f = set_up("", "tvm", NAN);

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const struct search_outcome *o = outcome_of(f, 0, seed);

        assert_int_equal(o->considered, TOY_POINTS);
        assert_int_equal(o->measured, TOY_POINTS - TOY_C);
        assert_true(fabs(o->best_log2 - 2.45) < 1e-9);
        assert_true(o->given_seconds == o->device_seconds);
    }
    tear_down(f);
}

static void a_tenth_is_measured_half_of_it_by_forecast(void **state)
{
    struct fixture *f = set_up("all", "tenth", 0.1);

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        assert_int_equal(outcome_of(f, 1, seed)->measured, (TOY_POINTS + 9) / 10);
        assert_int_equal(outcome_of(f, 1, seed)->considered, TOY_POINTS - TOY_C);
    }
    assert_true(mean_best(f, 1) > mean_best(f, 0));
    tear_down(f);
}

static void unknown_variants_are_refused(void **state)
{
    (void)state;
    struct variants_wanted wanted = {.policies = "", .strategies = "greedy", .methods = "tvm,hope"};
    struct variant variant[TASKS_VARIANTS_MAX];
    struct err err = ERR_INIT;
    size_t count;
    assert_int_equal(variants_make(&wanted, variant, &count, &err), ERR_USAGE);
    assert_non_null(strstr(err.text, "there is no peer \"hope\""));
    err = (struct err)ERR_INIT;
    wanted.methods = NULL;
    assert_int_equal(variants_make(&wanted, variant, &count, &err), ERR_USAGE);
    err = (struct err)ERR_INIT;
    wanted.methods = "tvm,tenth";
    assert_int_equal(variants_make(&wanted, variant, &count, &err), 0);
    struct against against;
    assert_int_equal(against_find(&against, NULL, variant, count, &err), 0);
    assert_true(against.count == 1 && against.variant[0] == 0);
    assert_int_equal(against_find(&against, "tenth,tvm", variant, count, &err), 0);
    assert_true(against.count == 2 && against.variant[0] == 1 && against.variant[1] == 0);
    assert_int_equal(against_find(&against, "tenth,hope", variant, count, &err), ERR_USAGE);
}

// --- comparing

// Makes outcomes up. The control finds a log2 of 1 after 4 s of 10. The variant finds 0.5 after 1 s
// and, after 3 s, 1.2 for even seeds and only 0.995 for odd ones.
static void make_up(struct fixture *f)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        f->outcome[tasks_index(&f->tasks, 0, 0, seed, 0)] = (struct search_outcome){
            .best_log2 = 1,
            .given_seconds = 10,
            .device_seconds = 9.5,
            .steps = 1,
            .step = {{.device_seconds = 4, .log2 = 1, .considered = 8, .measured = 8}}};
        f->outcome[tasks_index(&f->tasks, 0, 1, seed, 0)] = (struct search_outcome){
            .best_log2 = seed % 2 == 0 ? 1.2 : 0.995,
            .given_seconds = 10,
            .steps = 2,
            .step = {{.device_seconds = 1, .log2 = 0.5, .considered = 5, .measured = 2},
                     {.device_seconds = 3,
                      .log2 = seed % 2 == 0 ? 1.2 : 0.995,
                      .considered = 30,
                      .measured = 6}}};
    }
}

static void time_is_a_share_of_what_the_other_was_given_or_needed(void **state)
{
    struct fixture *f = set_up("all", "tenth", 0.1);

    (void)state;
    make_up(f);
    struct compare_time time = compare_time(&f->tasks, f->outcome, 1, 0, 0, COMPARE_OF_GIVEN);
    assert_true(time.quartile[0] == 0.3 && time.quartile[1] == 0.3 && isinf(time.quartile[2]));
    assert_true(time.reached == 0.5 && time.per_measured == 5);
    time = compare_time(&f->tasks, f->outcome, 1, 0, 0.0072, COMPARE_OF_GIVEN);
    assert_true(time.quartile[2] == 0.3 && time.reached == 1);
    time = compare_time(&f->tasks, f->outcome, 1, 0, 0, COMPARE_OF_NEEDED);
    assert_true(time.quartile[0] == 0.75);
    tear_down(f);
}

static void tables_name_who_is_ahead(void **state)
{
    struct fixture *f = set_up("all", "tenth", 0.1);
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    (void)state;
    make_up(f);
    struct against against = {.variant = {0, 1}, .count = 2};
    summary_markdown(&f->tasks, f->outcome, &against, out);
    assert_int_equal(fclose(out), 0);
    assert_non_null(strstr(text, "| `all/best-of-n` | 0.366 | 0.366 | 0.366 |"));
    assert_non_null(strstr(text, "| against `all/best-of-n` |"));
    assert_non_null(strstr(
        text, "| 0.30 [0.30, never] | 0.30 | 50 %, 100 % | 0.75 | 5.0 | **toy** +7.0 % | 0, 0 |"));
    assert_non_null(strstr(text, "| none | 1, 1 |"));
    free(text);
    tear_down(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_candidate_is_charged_once_and_a_failed_compilation_never),
        cmocka_unit_test(a_sequence_is_followed_until_the_budget_is_used),
        cmocka_unit_test(a_wrong_line_of_sequences_is_named),
        cmocka_unit_test(tvm_s_rule_keeps_to_the_budget_and_learns),
        cmocka_unit_test(tvm_s_rule_measures_everything_once_without_a_budget),
        cmocka_unit_test(a_tenth_is_measured_half_of_it_by_forecast),
        cmocka_unit_test(unknown_variants_are_refused),
        cmocka_unit_test(time_is_a_share_of_what_the_other_was_given_or_needed),
        cmocka_unit_test(tables_name_who_is_ahead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
