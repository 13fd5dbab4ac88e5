// Spreading searches over processes: what each is given, where its outcome goes, and how a failure
// ends them all.
#include "replay/tasks.h"
#include "tests/replay/toy.h"
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SEEDS 5
#define SEARCHES 2
#define OUTCOMES (2 * 2 * SEEDS * SEARCHES)

// Writes down what it was given.
static int note(const struct method_search *search, struct search_outcome *ret, struct err *err)
{
    (void)err;
    *ret = (struct search_outcome){.considered = search->seed,
                                   .measured = (uint64_t)search->variant[0],
                                   .trusted = (uint64_t)recorded_space_name(search->recorded)[0],
                                   .given_seconds = -1,
                                   .device_seconds = 3,
                                   .seconds = search->budget_seconds};
    return 0;
}

static int refuse_seed_103(const struct method_search *search, struct search_outcome *ret,
                           struct err *err)
{
    return search->seed == 103 ? err_set(err, ERR_NOT_FOUND, "no such search")
                               : note(search, ret, err);
}

static int end_by_signal(const struct method_search *search, struct search_outcome *ret,
                         struct err *err)
{
    (void)search;
    (void)ret;
    (void)err;
    return raise(SIGKILL);
}

static const struct search_method method_note = {.name = "note", .run = note},
                                  method_refuse = {.name = "refuse", .run = refuse_seed_103},
                                  method_end = {.name = "end", .run = end_by_signal};

// Two spaces, a and b, and two variants, x and y, that are methods.
struct fixture {
    struct recorded_space *space[2];
    struct variant variant[2];
    struct tasks tasks;
    struct search_outcome outcome[OUTCOMES];
};

static struct fixture *set_up_with(const struct search_method *x, const struct search_method *y)
{
    static const char *const names[] = {"a", "b"};
    struct fixture *f = xcalloc(1, sizeof(*f));

    for (size_t i = 0; i < 2; i++) {
        struct space space = toy_space();
        assert_int_equal(recorded_space_create(&f->space[i], &space, names[i], NULL), 0);
    }
    f->variant[0] = (struct variant){.name = "x", .policy = "x", .strategy = "", .method = x};
    f->variant[1] = (struct variant){.name = "y", .policy = "y", .strategy = "", .method = y};
    f->tasks = (struct tasks){.space = f->space,
                              .spaces = 2,
                              .variant = f->variant,
                              .variants = 2,
                              .seeds = SEEDS,
                              .first_seed = 100,
                              .searches = SEARCHES,
                              .common = {.budget_seconds = 7.5},
                              .budget_share = NAN,
                              .processes = 3};
    return f;
}

static void tear_down(struct fixture *f)
{
    recorded_space_free(f->space[0]);
    recorded_space_free(f->space[1]);
    free(f);
}

static void outcomes_are_ordered_by_space_variant_seed_and_search(void **state)
{
    struct fixture *f = set_up_with(&method_note, &method_note);
    size_t next = 0;

    (void)state;
    assert_int_equal(tasks_count(&f->tasks), OUTCOMES);
    for (size_t space = 0; space < 2; space++) {
        for (size_t variant = 0; variant < 2; variant++) {
            for (uint64_t seed = 0; seed < SEEDS; seed++) {
                for (uint64_t search = 0; search < SEARCHES; search++) {
                    assert_int_equal(tasks_index(&f->tasks, space, variant, seed, search), next++);
                }
            }
        }
    }
    tear_down(f);
}

static void each_search_gets_its_own_space_variant_and_seed(void **state)
{
    static const uint64_t processes[] = {1, 3, 50}; // 50 is more than there are tasks

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(processes); i++) {
        struct fixture *f = set_up_with(&method_note, &method_note);
        f->tasks.processes = processes[i];
        struct err err = ERR_INIT;
        assert_int_equal(tasks_run(&f->tasks, f->outcome, &err), 0);
        for (size_t k = 0; k < OUTCOMES; k += SEARCHES) {
            const struct search_outcome *o = &f->outcome[k];
            assert_int_equal(o[0].considered, 100 + k / SEARCHES % SEEDS);
            assert_int_equal(o[0].measured, k / SEARCHES / SEEDS % 2 == 0 ? 'x' : 'y');
            assert_int_equal(o[0].trusted, k < OUTCOMES / 2 ? 'a' : 'b');
            // The other search of a seed draws something else, the same on every space.
            assert_true(o[1].considered > 100 + SEEDS);
            assert_int_equal(o[1].considered, f->outcome[k % (SEEDS * SEARCHES) + 1].considered);
        }
        tear_down(f);
    }
}

static void a_search_is_given_seconds_a_share_of_its_space_or_no_limit(void **state)
{
    struct fixture *f = set_up_with(&method_note, &method_note);
    const struct search_outcome *o = &f->outcome[OUTCOMES - 1];

    (void)state;
    assert_int_equal(tasks_run(&f->tasks, f->outcome, NULL), 0);
    assert_true(o->seconds == 7.5 && o->given_seconds == 7.5);
    f->tasks.budget_share = 0.25;
    assert_int_equal(tasks_run(&f->tasks, f->outcome, NULL), 0);
    assert_true(o->given_seconds == 0.25 * recorded_space_seconds(f->space[1]));
    assert_true(o->seconds == o->given_seconds);
    f->tasks.budget_share = NAN;
    f->tasks.common.budget_seconds = NAN;
    assert_int_equal(tasks_run(&f->tasks, f->outcome, NULL), 0);
    assert_true(isnan(o->seconds) && o->given_seconds == o->device_seconds);
    tear_down(f);
}

static void a_failure_names_its_task_and_leaves_the_outcomes_alone(void **state)
{
    struct fixture *f = set_up_with(&method_note, &method_refuse);

    (void)state;
    memset(f->outcome, 0x55, sizeof(f->outcome));
    struct search_outcome before = f->outcome[0];
    struct err err = ERR_INIT;
    f->tasks.processes = 1; // so that it is the first one on the first space
    assert_int_equal(tasks_run(&f->tasks, f->outcome, &err), ERR_NOT_FOUND);
    assert_string_equal(err.text, "a, y, seed 103: no such search");
    assert_memory_equal(&f->outcome[0], &before, sizeof(before));
    tear_down(f);
}

static void a_process_that_is_killed_is_a_failure(void **state)
{
    struct fixture *f = set_up_with(&method_note, &method_end);
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(tasks_run(&f->tasks, f->outcome, &err), ERR_INTERNAL);
    assert_string_equal(err.text, "a process for replaying ended by signal 9");
    tear_down(f);
}

static void a_caller_that_wants_no_sentence_gets_the_code(void **state)
{
    struct fixture *refusing = set_up_with(&method_note, &method_refuse),
                   *ending = set_up_with(&method_end, &method_note);

    (void)state;
    assert_int_equal(tasks_run(&refusing->tasks, refusing->outcome, NULL), ERR_NOT_FOUND);
    assert_int_equal(tasks_run(&ending->tasks, ending->outcome, NULL), ERR_INTERNAL);
    tear_down(refusing);
    tear_down(ending);
}

static void a_pipeline_without_devices_to_wait_for_fails_in_one_sentence(void **state)
{
    struct fixture *f = set_up_with(&method_note, NULL);
    struct err err = ERR_INIT;

    (void)state;
    f->variant[1] = (struct variant){.name = "y", .policy = "all", .strategy = "best-of-n"};
    f->tasks.sim_daemon = (struct sim_daemon_config){.devices = 0, .compile_slots = 1};
    f->tasks.common.batch = 8;
    f->tasks.spaces = f->tasks.seeds = f->tasks.searches = 1;
    assert_int_equal(tasks_run(&f->tasks, f->outcome, &err), ERR_INTERNAL);
    assert_string_equal(err.text, "a, y, seed 100: a replay has nothing to wait for and is not at "
                                  "its end");
    tear_down(f);
}

struct progress {
    size_t calls, done, total;
};

static void on_tick(void *owner, size_t done, size_t total)
{
    struct progress *progress = owner;

    assert_true(done >= progress->done && done <= total);
    *progress = (struct progress){.calls = progress->calls + 1, .done = done, .total = total};
}

// However fast the processes are, the last call comes when all of them have ended.
static void who_wants_to_know_is_told_how_far_it_is(void **state)
{
    struct fixture *f = set_up_with(&method_note, &method_note);
    struct progress progress = {0};
    struct err err = ERR_INIT;

    (void)state;
    f->tasks.on_tick = on_tick;
    f->tasks.owner = &progress;
    assert_int_equal(tasks_run(&f->tasks, f->outcome, &err), 0);
    assert_true(progress.calls >= 1);
    assert_int_equal(progress.done, OUTCOMES);
    assert_int_equal(progress.total, OUTCOMES);
    tear_down(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outcomes_are_ordered_by_space_variant_seed_and_search),
        cmocka_unit_test(each_search_gets_its_own_space_variant_and_seed),
        cmocka_unit_test(a_search_is_given_seconds_a_share_of_its_space_or_no_limit),
        cmocka_unit_test(a_failure_names_its_task_and_leaves_the_outcomes_alone),
        cmocka_unit_test(a_process_that_is_killed_is_a_failure),
        cmocka_unit_test(a_caller_that_wants_no_sentence_gets_the_code),
        cmocka_unit_test(who_wants_to_know_is_told_how_far_it_is),
        cmocka_unit_test(a_pipeline_without_devices_to_wait_for_fails_in_one_sentence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
