// Measurements that begin before the compilations of earlier candidates are known: nothing is
// decided otherwise, and one slow compilation keeps no device from work.
#include "proto/verdict.h"
#include "tests/replay/sim_fixture.h"

#define SLOW 100 // seconds of the slow compilation

// What is done to the first two candidates of the search, by their numbers in the space.
typedef void changing(struct space *space, size_t first, size_t second);

// The number of a run's candidate in the space.
static size_t point_of(const struct fixture *f, uint64_t id)
{
    const struct run_proposed *proposed =
        &sim_search_run_state(f->search)->candidate[id - 1].proposed;
    const struct space *space = recorded_space_data(f->recorded);
    for (size_t i = 0; i < TOY_POINTS; i++) {
        bool same = proposed->params_count == space->candidate[i].params_count;
        for (size_t k = 0; same && k < proposed->params_count; k++) {
            same = proposed->params[k].value == space->candidate[i].params[k].value;
        }
        if (same) {
            return i;
        }
    }
    fail_msg("candidate %llu is not in the space", (unsigned long long)id);
    return 0;
}

// Searches among 32 candidates in two batches.
static struct fixture *search(const struct space *changed, const char *policy, uint64_t most)
{
    struct fixture *f = set_up_with(1, 64);
    if (changed) {
        struct space space = *changed;
        recorded_space_free(f->recorded);
        assert_int_equal(recorded_space_create(&f->recorded, &space, "toy", NULL), 0);
        f->config.recorded = f->recorded;
    }
    f->config.strategy = "greedy";
    f->config.policy = policy;
    f->config.forecaster = strcmp(policy, "all") != 0 ? SIM_FORECASTER_STATIC : SIM_FORECASTER_NONE;
    f->config.batch = f->config.wide = 16;
    f->config.candidates = 32;
    f->config.measurements = most;
    f->config.trust_by_skill = true;
    f->config.rules = RUN_RULES_NOW;
    start(f);
    (void)run(f, SIZE_MAX);
    return f;
}

// The same search where the space is changed like this.
static struct fixture *search_changed(changing *change, const char *policy, uint64_t most)
{
    struct fixture *f = search(NULL, policy, most);
    struct space space = toy_space();
    change(&space, point_of(f, 1), point_of(f, 2));
    tear_down(f);
    return search(&space, policy, most);
}

static void let_first_compile_slowly(struct space *space, size_t first, size_t second)
{
    (void)second;
    space->candidate[first].compiled->seconds = SLOW;
}

static void assert_same_search(struct fixture *a, struct fixture *b)
{
    const struct run_state *left = sim_search_run_state(a->search),
                           *right = sim_search_run_state(b->search);
    assert_int_equal(left->candidate_count, right->candidate_count);
    for (size_t i = 0; i < left->candidate_count; i++) {
        const struct run_state_candidate *l = &left->candidate[i], *r = &right->candidate[i];
        assert_memory_equal(&l->proposed.source, &r->proposed.source, sizeof(l->proposed.source));
        assert_int_equal(l->decided.decision, r->decided.decision);
        assert_true(l->decided.incumbent_log2 == r->decided.incumbent_log2);
        assert_int_equal(!!l->result, !!r->result);
        assert_int_equal(!!l->record, !!r->record);
    }
}

static void one_slow_compilation_holds_up_its_own_candidate(void **state)
{
    static const char *const policies[] = {"all", "threshold", "rank"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(policies); i++) {
        struct fixture *even = search(NULL, policies[i], 0);
        struct fixture *slow = search_changed(let_first_compile_slowly, policies[i], 0);
        struct search_outcome outcome = outcome_of(slow);
        double rest = 0.2 * (double)(outcome.records + 1); // what has to wait for it
        assert_same_search(even, slow);
        assert_true(outcome.measured > 24);
        if (strcmp(policies[i], "all") == 0) {
            assert_true(outcome.seconds < SLOW + rest);
        } else { // the second batch is forecast, in the order of candidates
            assert_true(outcome.seconds < SLOW + outcome.device_seconds - 15 * 0.1);
        }
        tear_down(even);
        tear_down(slow);
    }
}

static void a_limit_is_kept_whatever_compiles_first(void **state)
{
    (void)state;
    struct fixture *even = search(NULL, "all", 9);
    struct fixture *slow = search_changed(let_first_compile_slowly, "all", 9);
    assert_same_search(even, slow);
    assert_int_equal(outcome_of(slow).measured, 9);
    tear_down(even);
    tear_down(slow);
}

static void let_first_be_slow_and_the_same(struct space *space, size_t first, size_t second)
{
    let_first_compile_slowly(space, first, second);
    space->candidate[second].compiled->object = space->candidate[first].compiled->object;
}

// The second candidate is measured before it is known that it is the first one.
static void the_earlier_of_two_with_one_object_stands_for_both(void **state)
{
    (void)state;
    struct fixture *f = search_changed(let_first_be_slow_and_the_same, "all", 0);
    const struct run_state *run_state = sim_search_run_state(f->search);
    assert_int_equal(run_state->candidate[1].object_duplicate_of, 1);
    assert_int_equal(run_state->candidate[1].decided.decision, DECISION_REUSE);
    assert_null(run_state->candidate[1].result);
    assert_non_null(run_state->candidate[0].result);
    tear_down(f);
}

// Searches the whole space on four devices; where this point is one of the space's, its compilation
// is slow.
static struct fixture *search_on_four(size_t slow)
{
    struct fixture *f = set_up_with(4, 64);
    struct space space = toy_space();
    recorded_space_free(f->recorded);
    if (slow < TOY_POINTS) {
        space.candidate[slow].compiled->seconds = SLOW;
    }
    assert_int_equal(recorded_space_create(&f->recorded, &space, "toy", NULL), 0);
    f->config.recorded = f->recorded;
    f->config.strategy = "greedy";
    f->config.policy = "rank";
    f->config.forecaster = SIM_FORECASTER_STATIC;
    f->config.batch = 4;
    f->config.wide = 5;
    f->config.lag = 16;
    f->config.devices = 4;
    f->config.trust_by_skill = true;
    f->config.rules = RUN_RULES_NOW;
    start(f);
    return f;
}

// The first candidate compiles until long after all others are measured: it is put off, and comes
// again in the last batch.
static void on_several_devices_a_slow_compilation_holds_up_nobody(void **state)
{
    (void)state;
    struct fixture *even = search_on_four(TOY_POINTS);
    double seconds = outcome_of(even).seconds;
    struct fixture *slow = search_on_four(point_of(even, 1));
    assert_true(outcome_of(slow).seconds < SLOW + seconds / 4);
    const struct run_state *run_state = sim_search_run_state(slow->search);
    assert_int_equal(sim_search_run_state(even->search)->candidate_count, TOY_POINTS);
    assert_int_equal(run_state->considered, TOY_POINTS);
    assert_int_equal(run_state->candidate_count, TOY_POINTS + 1);
    const struct run_state_candidate *first = &run_state->candidate[0];
    assert_true(first->put_off && !first->compiled && !first->result);
    assert_true(first->proposed.duplicate_of > TOY_POINTS - 5); // in the last batch
    const struct run_state_candidate *again =
        &run_state->candidate[first->proposed.duplicate_of - 1];
    assert_int_equal(again->proposed.again, 1);
    assert_true(again->compiled && again->compiled->seconds == SLOW);
    tear_down(even);
    tear_down(slow);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_several_devices_a_slow_compilation_holds_up_nobody),
        cmocka_unit_test(one_slow_compilation_holds_up_its_own_candidate),
        cmocka_unit_test(a_limit_is_kept_whatever_compiles_first),
        cmocka_unit_test(the_earlier_of_two_with_one_object_stands_for_both),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
