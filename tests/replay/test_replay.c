// Searching a made-up space in simulated time.
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

// ---- simulated time ----

struct notes {
    struct sim *sim;
    uint64_t seen[8];
    double at[8];
    size_t count;
};

static void note(void *owner, uint64_t tag)
{
    struct notes *notes = owner;

    notes->at[notes->count] = sim_now(notes->sim);
    notes->seen[notes->count++] = tag;
    if (tag == 2) {
        sim_after(notes->sim, 0, note, notes, 9);
    }
}

static void things_happen_in_order_of_time_then_of_announcement(void **state)
{
    struct notes notes = {.sim = sim_create()};
    static const uint64_t order[] = {2, 9, 1, 3, 4};

    (void)state;
    sim_after(notes.sim, 2, note, &notes, 1);
    sim_after(notes.sim, 1, note, &notes, 2);
    sim_after(notes.sim, 2, note, &notes, 3);
    sim_after(notes.sim, 5, note, &notes, 4);
    while (sim_step(notes.sim)) {
    }
    assert_int_equal(notes.count, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(notes.seen[i], order[i]);
    }
    assert_true(notes.at[0] == 1 && notes.at[1] == 1 && notes.at[3] == 2 && notes.at[4] == 5);
    sim_free(notes.sim);
}

// ---- catalogue ----

static struct catalogue *make_catalogue(void)
{
    struct space space = toy_space();
    struct catalogue *catalogue;
    struct err err = ERR_INIT;

    assert_int_equal(catalogue_create(&catalogue, &space, "toy", &err), 0);
    return catalogue;
}

static void points_have_neighbours_on_their_lines(void **state)
{
    struct catalogue *catalogue = make_catalogue();
    const struct generator *generator = catalogue_generator(catalogue);
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
    generator->ops->place(generator, inner, place); // by rank: A is 8, the fourth of eight
    assert_true(fabs(place[0] - 3.0 / 7) < 1e-12 && fabs(place[1] - 2.0 / 5) < 1e-12);
    catalogue_free(catalogue);
}

static void candidates_are_found_by_the_digest_of_their_source(void **state)
{
    struct catalogue *catalogue = make_catalogue();
    const struct generator *generator = catalogue_generator(catalogue);

    (void)state;
    for (size_t i = 0; i < TOY_POINTS; i++) {
        struct strbuf source = STRBUF_INIT;

        generator->ops->source(generator, i, &source);
        struct digest digest = digest_of(strbuf_text(&source), source.len);
        assert_ptr_equal(catalogue_find(catalogue, &digest),
                         &catalogue_space(catalogue)->candidate[i]);
        strbuf_release(&source);
    }
    assert_true(fabs(catalogue_best_log2(catalogue) - 2.45) < 1e-9);
    catalogue_free(catalogue);
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
    struct catalogue *catalogue;
    struct err err = ERR_INIT;
    assert_int_equal(catalogue_create(&catalogue, &space, "toy", &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "toy"));
}

static void what_has_no_cost_gets_the_mean_and_else_a_second(void **state)
{
    struct space space = toy_space();
    double with, one = space.candidate[0].result->seconds->held;

    (void)state;
    struct catalogue *catalogue = make_catalogue();
    with = catalogue_seconds(catalogue);
    assert_true(catalogue_has_costs(catalogue));
    catalogue_free(catalogue);
    free(space.candidate[0].result->seconds);
    space.candidate[0].result->seconds = NULL;
    struct err err = ERR_INIT;
    assert_int_equal(catalogue_create(&catalogue, &space, "toy", &err), 0);
    assert_true(fabs(catalogue_seconds(catalogue) -
                     (with - one) * (TOY_POINTS - TOY_C) / (TOY_POINTS - TOY_C - 1)) < 1e-9);
    catalogue_free(catalogue);
    space = toy_space();
    for (size_t i = 0; i < TOY_POINTS; i++) {
        if (space.candidate[i].result) {
            free(space.candidate[i].result->seconds);
            space.candidate[i].result->seconds = NULL;
        }
    }
    assert_int_equal(catalogue_create(&catalogue, &space, "toy", &err), 0);
    assert_false(catalogue_has_costs(catalogue));
    assert_true(catalogue_seconds(catalogue) == TOY_POINTS - TOY_C);
    catalogue_free(catalogue);
}

// ---- simulated daemon ----

struct ending {
    struct sim *sim;
    size_t count;
    double last;
    uint64_t states[8];
};

static void on_job(void *owner, uint64_t tag, struct job_ref ref, struct job_info *info,
                   const struct err *error)
{
    struct ending *ending = owner;

    assert_int_equal(ref.job, info->job);
    assert_null(error);
    assert_true(tag < 8);
    ending->states[tag] = info->state;
    ending->last = sim_now(ending->sim);
    ending->count++;
}

static void submit(struct sim_daemon_search *search, const struct job_spec *spec, uint64_t priority,
                   job_service_callback *callback, void *owner, uint64_t tag)
{
    struct job_service *jobs = sim_daemon_search_jobs(search);

    jobs->submit(jobs, "", spec, priority, callback, owner, tag);
}

static struct job_spec spec_of(const struct catalogue *catalogue, size_t point, enum job_kind kind)
{
    const char *name = catalogue_space(catalogue)->candidate[point].name;

    return (struct job_spec){.kind = kind, .candidate = digest_of(name, strlen(name))};
}

static void devices_measure_one_after_another_and_compilers_side_by_side(void **state)
{
    struct catalogue *catalogue = make_catalogue();
    struct sim *sim = sim_create();
    struct sim_daemon *sim_daemon =
        sim_daemon_create(sim, &(struct sim_daemon_config){.devices = 1, .compile_slots = 2});
    struct sim_daemon_search *search = sim_daemon_search_create(sim_daemon, catalogue);
    struct ending compiled = {.sim = sim}, measured = {.sim = sim};

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct job_spec spec = spec_of(catalogue, 0, JOB_COMPILE);

        submit(search, &spec, 0, on_job, &compiled, i);
        spec = spec_of(catalogue, 0, JOB_MEASURE);
        submit(search, &spec, 0, on_job, &measured, i);
    }
    assert_int_equal(compiled.count + measured.count, 0); // never inside submit
    while (sim_step(sim)) {
    }
    assert_int_equal(compiled.count, 4);
    assert_int_equal(measured.count, 4);
    assert_true(fabs(compiled.last - 0.6) < 1e-9); // 4 x 0.3 s in two slots
    assert_true(fabs(measured.last - 0.4) < 1e-9); // 4 x 0.1 s on one device
    sim_daemon_search_free(search);
    sim_daemon_free(sim_daemon);
    sim_free(sim);
    catalogue_free(catalogue);
}

static void two_searches_share_a_device_evenly(void **state)
{
    struct catalogue *catalogue = make_catalogue();
    struct sim *sim = sim_create();
    struct sim_daemon *sim_daemon =
        sim_daemon_create(sim, &(struct sim_daemon_config){.devices = 1, .compile_slots = 1});
    struct sim_daemon_search *first = sim_daemon_search_create(sim_daemon, catalogue),
                             *second = sim_daemon_search_create(sim_daemon, catalogue);
    struct ending one = {.sim = sim}, two = {.sim = sim};

    (void)state;
    for (size_t i = 0; i < 8; i++) {
        struct job_spec spec = spec_of(catalogue, 0, JOB_MEASURE);

        submit(first, &spec, 0, on_job, &one, i);
    }
    for (size_t i = 0; i < 4; i++) {
        struct job_spec spec = spec_of(catalogue, 0, JOB_MEASURE);

        submit(second, &spec, 0, on_job, &two, i);
    }
    while (two.count < 4) {
        assert_true(sim_step(sim));
    }
    assert_true(one.count >= 4 && one.count <= 5); // though all of its jobs came first
    sim_daemon_search_free(first);                 // with jobs that wait and one that runs
    sim_daemon_search_free(second);
    while (sim_step(sim)) {
    }
    assert_true(one.count <= 5);
    sim_daemon_free(sim_daemon);
    sim_free(sim);
    catalogue_free(catalogue);
}

static void what_the_space_does_not_know_is_buried(void **state)
{
    struct catalogue *catalogue = make_catalogue();
    struct sim *sim = sim_create();
    struct sim_daemon *sim_daemon =
        sim_daemon_create(sim, &(struct sim_daemon_config){.devices = 1, .compile_slots = 1});
    struct sim_daemon_search *search = sim_daemon_search_create(sim_daemon, catalogue);
    struct ending ending = {.sim = sim};
    struct job_spec spec = {.kind = JOB_MEASURE, .candidate = digest_of("x", 1)};

    (void)state;
    submit(search, &spec, 0, on_job, &ending, 0);
    while (sim_step(sim)) {
    }
    assert_int_equal(ending.count, 1);
    assert_int_equal(ending.states[0], JOB_BURIED);
    sim_daemon_search_free(search);
    sim_daemon_free(sim_daemon);
    sim_free(sim);
    catalogue_free(catalogue);
}

// ---- searches ----

#define SEEDS 6

struct fixture {
    struct catalogue *catalogue;
    struct variant variant[2];
    struct tasks tasks;
    struct player_outcome outcome[2 * SEEDS * 2];
};

static struct fixture *set_up(void)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    f->catalogue = make_catalogue();
    f->variant[0] = (struct variant){.name = "all", .policy = "all", .strategy = "best-of-n"};
    f->variant[1] = (struct variant){
        .name = "threshold", .policy = "threshold", .strategy = "best-of-n", .surrogate = true};
    f->tasks = (struct tasks){
        .space = &f->catalogue,
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
    catalogue_free(f->catalogue);
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
        const struct player_outcome *o = &f->outcome[tasks_index(&f->tasks, 0, 0, i, 0)];

        assert_int_equal(o->considered, TOY_POINTS);
        // c of those that do not compile, and six that have the object of another one
        assert_int_equal(o->measured, TOY_POINTS - TOY_C - TOY_B);
        assert_true(fabs(o->best_log2 - 2.45) < 1e-9);
        assert_int_equal(o->missed, 0);
        assert_true(o->improvers >= o->steps && o->steps > 0);
        assert_true(o->device_seconds > 0.1 * (double)o->measured);
        assert_true(player_reached(o, o->best_log2) <= o->device_seconds &&
                    player_reached(o, 0) == 0);
        assert_true(isinf(player_reached(o, 2.5)));
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
        const struct player_outcome *all = &f->outcome[tasks_index(&f->tasks, 0, 0, i, 0)],
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
        const struct player_outcome *all = &f->outcome[tasks_index(&f->tasks, 0, 0, i, 0)],
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

static void outcomes_follow_from_the_seed_and_not_from_who_computes_them(void **state)
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
        double budget = 0.2 * catalogue_seconds(f->catalogue);

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
        const struct player_outcome *one = &f->outcome[tasks_index(&f->tasks, 0, 0, i, 0)],
                                    *two = &f->outcome[tasks_index(&f->tasks, 0, 0, i, 1)];

        assert_int_equal(one->considered, TOY_POINTS);
        assert_int_equal(two->considered, TOY_POINTS);
        assert_true(one->step[0].log2 != two->step[0].log2 ||
                    one->step[0].device_seconds != two->step[0].device_seconds);
        // Decisions do not depend on who else is there; the simulated time does.
        assert_int_equal(one->measured,
                         alone->outcome[tasks_index(&alone->tasks, 0, 0, i, 0)].measured);
        assert_true(fmax(one->seconds, two->seconds) >=
                    one->device_seconds + two->device_seconds - 1);
    }
    tear_down(f);
    tear_down(alone);
}

static void an_variant_is_compared_with_the_control_in_pairs(void **state)
{
    struct fixture *f = set_up();
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    (void)state;
    for (size_t i = 0; i < SEEDS; i++) {
        f->outcome[tasks_index(&f->tasks, 0, 0, i, 0)] =
            (struct player_outcome){.best_log2 = 0.5 * (double)i, .considered = 10, .measured = 10};
        f->outcome[tasks_index(&f->tasks, 0, 1, i, 0)] = (struct player_outcome){
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
        cmocka_unit_test(things_happen_in_order_of_time_then_of_announcement),
        cmocka_unit_test(points_have_neighbours_on_their_lines),
        cmocka_unit_test(candidates_are_found_by_the_digest_of_their_source),
        cmocka_unit_test(a_space_without_a_correct_candidate_is_refused),
        cmocka_unit_test(what_has_no_cost_gets_the_mean_and_else_a_second),
        cmocka_unit_test(devices_measure_one_after_another_and_compilers_side_by_side),
        cmocka_unit_test(two_searches_share_a_device_evenly),
        cmocka_unit_test(what_the_space_does_not_know_is_buried),
        cmocka_unit_test(without_a_limit_everything_is_measured_once_and_the_best_found),
        cmocka_unit_test(a_surrogate_measures_less_and_finds_as_much),
        cmocka_unit_test(a_certified_threshold_measures_less_and_misses_few),
        cmocka_unit_test(outcomes_follow_from_the_seed_and_not_from_who_computes_them),
        cmocka_unit_test(a_budget_ends_searches_soon_after_it_is_spent),
        cmocka_unit_test(searches_at_once_share_devices_and_each_has_its_outcome),
        cmocka_unit_test(an_variant_is_compared_with_the_control_in_pairs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
