// What a language model starts from before there are outcomes: the programs that the user has
// given.
#include "tests/client/propose/made_view.h"

#define GIVEN 5
#define ALSO 3 // candidates of another generator behind them
#define SLOTS 60

static const char text[] = "{\"name\": \"a\", \"source\": \"1\"}\n"
                           "{\"name\": \"b\", \"source\": \"2\"}\n"
                           "{\"name\": \"c\", \"source\": \"3\"}\n"
                           "{\"name\": \"d\", \"source\": \"4\"}\n"
                           "{\"name\": \"e\", \"source\": \"5\"}\n";
static const struct strategy *const climbers[] = {&strategy_greedy, &strategy_islands,
                                                  &strategy_puct};

// Five programs of files, three of generator 1, and nothing is known of any.
static void made(struct made_view *ret)
{
    made_view(ret, "pool:x", text, GIVEN + ALSO);
    assert_true(ret->generator->is_files);
    for (size_t i = 0; i < ALSO; i++) {
        ret->candidate[GIVEN + i].proposed.generator = 1;
    }
    ret->view.number = 1;
    ret->view.visible = 0;
    ret->view.given = 1u << 0;
}

// Counts the parents of many slots.
static void count_parents(const struct strategy *strategy, const struct strategy_view *view,
                          size_t count[static GIVEN + ALSO + 1])
{
    memset(count, 0, (GIVEN + ALSO + 1) * sizeof(*count));
    for (uint64_t slot = 9; slot < 9 + SLOTS; slot++) {
        uint64_t parent = strategy->parent(view, slot);

        assert_true(parent <= GIVEN + ALSO);
        assert_int_equal(strategy->parent(view, slot), parent);
        count[parent]++;
    }
}

static void before_outcomes_each_given_program_is_started_from(void **state)
{
    struct made_view view;
    size_t count[GIVEN + ALSO + 1];

    (void)state;
    made(&view);
    view.candidate[2].proposed.duplicate_of = 2;
    for (size_t s = 0; s < ARRAY_LEN(climbers); s++) {
        count_parents(climbers[s], &view.view, count);
        assert_true(count[0] < SLOTS / 2); // the baseline by chance, where the strategy explores
        assert_int_equal(count[3], 0);
        assert_true(count[1] > 0 && count[2] > 0 && count[4] > 0 && count[5] > 0);
        assert_int_equal(count[6] + count[7] + count[8], 0);
    }
    count_parents(&strategy_best_of_n, &view.view, count);
    assert_int_equal(count[0], SLOTS);
    generator_free(view.generator);
}

static void what_has_failed_is_not_started_from_as_given(void **state)
{
    struct made_view view;
    size_t count[GIVEN + ALSO + 1];

    (void)state;
    made(&view);
    for (size_t i = 0; i < GIVEN; i++) {
        made_view_measured(&view, i, VERDICT_WRONG, NAN);
    }
    view.candidate[0].proposed.generator = 40; // of a damaged run file
    view.view.visible = 3;
    for (uint64_t slot = 9; slot < 9 + SLOTS; slot++) {
        uint64_t given = strategy_given(&view.view, slot);

        assert_true(given == 4 || given == 5);
    }
    view.view.visible = GIVEN;
    count_parents(&strategy_puct, &view.view, count);
    assert_int_equal(count[0], SLOTS);
    generator_free(view.generator);
}

static void without_given_programs_it_is_the_baseline(void **state)
{
    struct made_view view;
    size_t count[GIVEN + ALSO + 1];

    (void)state;
    made(&view);
    view.view.given = 0;
    for (size_t s = 0; s < ARRAY_LEN(climbers); s++) {
        count_parents(climbers[s], &view.view, count);
        assert_int_equal(count[0], SLOTS);
    }
    generator_free(view.generator);
}

static void with_outcomes_it_is_the_best(void **state)
{
    struct made_view view;
    size_t count[GIVEN + ALSO + 1];

    (void)state;
    made(&view);
    made_view_measured(&view, 3, VERDICT_FASTER, 0.5);
    view.view.visible = GIVEN;
    for (size_t s = 0; s < ARRAY_LEN(climbers); s++) {
        count_parents(climbers[s], &view.view, count);
        assert_true(count[4] > 0);
        for (size_t i = 1; i <= GIVEN + ALSO; i++) { // other islands begin with the given ones
            assert_true(i == 4 || count[i] == 0 || climbers[s] == &strategy_islands);
        }
    }
    generator_free(view.generator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(before_outcomes_each_given_program_is_started_from),
        cmocka_unit_test(what_has_failed_is_not_started_from_as_given),
        cmocka_unit_test(without_given_programs_it_is_the_baseline),
        cmocka_unit_test(with_outcomes_it_is_the_best),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
