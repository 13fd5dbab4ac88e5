// The strategy `greedy` on runs made by hand: where it climbs from, what outcomes teach it, and how
// it parts slots between climbing and chance.
#include "tests/client/propose/made_view.h"

#define BEGUN 16 // candidates after which it climbs
#define SIDE 16
#define WANT 32

// A square: point i of the square is at (i / SIDE, i % SIDE).
static const char square[] =
    "//@ tune A in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)\n"
    "//@ tune B in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)\nint x;\n";

// A run of the square that has begun: candidate i + 1 stands at the place of that number on the
// diagonal and is slow.
static void make(struct made_view *made)
{
    made_view(made, "tunable", square, BEGUN);
    assert_int_equal(made->generator->point_count, SIDE * SIDE);
    for (size_t i = 0; i < BEGUN; i++) {
        made->candidate[i].proposed.point = i * SIDE + i + 1;
        made_view_measured(made, i, VERDICT_SLOWER, -1);
    }
}

static bool is_beside(const struct made_view *made, size_t point, uint64_t candidate)
{
    size_t neighbour[128];
    size_t count = made->generator->ops->neighbours(
        made->generator, (size_t)made->candidate[candidate - 1].proposed.point - 1, neighbour, 128);
    for (size_t i = 0; i < count; i++) {
        if (neighbour[i] == point) {
            return true;
        }
    }
    return false;
}

// Chooses over many seeds, WANT points each. Counts the choices by their parents, and checks that
// each is a free point, comes once, and is its parent's neighbour.
static void count_parents(struct made_view *made, size_t seeds, size_t by_parent[BEGUN + 1])
{
    memset(by_parent, 0, (BEGUN + 1) * sizeof(*by_parent));
    for (made->view.seed = 1; made->view.seed <= seeds; made->view.seed++) {
        struct strategy_choice choice[WANT];
        bool *taken = strategy_taken(&made->view);
        assert_int_equal(strategy_greedy.choose(&made->view, WANT, choice), WANT);
        for (size_t i = 0; i < WANT; i++) {
            assert_true(choice[i].point < made->generator->point_count);
            assert_false(taken[choice[i].point]);
            taken[choice[i].point] = true;
            assert_in_range(choice[i].parent, 0, BEGUN);
            assert_true(choice[i].parent == 0 ||
                        is_beside(made, choice[i].point, choice[i].parent));
            by_parent[choice[i].parent]++;
        }
        free(taken);
    }
}

static void the_first_choice_is_beside_the_best(void **state)
{
    (void)state;
    struct made_view made;
    make(&made);
    made_view_measured(&made, 9, VERDICT_FASTER, 2);
    size_t climbed = 0;
    for (made.view.seed = 1; made.view.seed <= 100; made.view.seed++) {
        struct strategy_choice choice;
        assert_int_equal(strategy_greedy.choose(&made.view, 1, &choice), 1);
        assert_true(choice.parent == 0 || choice.parent == 10);
        climbed += choice.parent == 10;
    }
    assert_in_range(climbed, 70, 97); // 85 %
    generator_free(made.generator);
}

static void more_is_left_to_chance_where_poor_points_cost_nothing(void **state)
{
    (void)state;
    struct made_view made;
    size_t by_parent[BEGUN + 1];
    make(&made);
    count_parents(&made, 40, by_parent);
    assert_in_range(by_parent[0], 40 * WANT * 10 / 100, 40 * WANT * 20 / 100); // 15 %
    made.view.discards = true;
    count_parents(&made, 40, by_parent);
    assert_in_range(by_parent[0], 40 * WANT * 33 / 100, 40 * WANT * 47 / 100); // 40 %
    generator_free(made.generator);
}

static void before_it_has_begun_all_is_chance(void **state)
{
    (void)state;
    struct made_view made;
    make(&made);
    made.run_state.candidate_count = made.view.visible = BEGUN - 4;
    made_view_measured(&made, 3, VERDICT_FASTER, 3);
    for (made.view.seed = 1; made.view.seed <= 50; made.view.seed++) {
        struct strategy_choice choice[4];
        assert_int_equal(strategy_greedy.choose(&made.view, 4, choice), 4);
        for (size_t i = 0; i < 4; i++) {
            assert_int_equal(choice[i].parent, 0);
        }
    }
    generator_free(made.generator);
}

static void what_failed_is_no_parent(void **state)
{
    (void)state;
    struct made_view made;
    size_t by_parent[BEGUN + 1];
    make(&made);
    for (size_t i = 0; i < BEGUN; i++) {
        made_view_measured(&made, i, i == 4 ? VERDICT_SLOWER : VERDICT_WRONG, i == 4 ? -6 : 3);
    }
    count_parents(&made, 10, by_parent);
    for (size_t id = 1; id <= BEGUN; id++) {
        assert_int_equal(by_parent[id] > 0, id == 5);
    }
    generator_free(made.generator);
}

// A daemon that leaves the number out of one answer does not spoil what the others teach.
static void a_number_that_was_not_sent_teaches_nothing(void **state)
{
    static const double strange[] = {NAN, INFINITY, -INFINITY};
    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(strange); k++) {
        struct made_view made;
        make(&made);
        made_view_measured(&made, 9, VERDICT_FASTER, 2);
        made_view_measured(&made, 3, VERDICT_FASTER, strange[k]);
        size_t climbed = 0;
        for (made.view.seed = 1; made.view.seed <= 100; made.view.seed++) {
            struct strategy_choice choice;
            assert_int_equal(strategy_greedy.choose(&made.view, 1, &choice), 1);
            assert_true(choice.parent == 0 || choice.parent == 10);
            climbed += choice.parent == 10;
        }
        assert_in_range(climbed, 70, 97);
        generator_free(made.generator);
    }
}

static void no_strategy_has_a_parent_whose_number_was_not_sent(void **state)
{
    static const struct strategy *const all[] = {&strategy_best_of_n, &strategy_greedy,
                                                 &strategy_islands, &strategy_puct};
    (void)state;
    for (size_t s = 0; s < ARRAY_LEN(all); s++) {
        struct made_view made;
        make(&made);
        for (size_t i = 0; i < BEGUN; i += 2) {
            made_view_measured(&made, i, VERDICT_FASTER, i % 4 == 0 ? NAN : INFINITY);
        }
        for (made.view.seed = 1; made.view.seed <= 20; made.view.seed++) {
            struct strategy_choice choice[WANT];
            assert_int_equal(all[s]->choose(&made.view, WANT, choice), WANT);
            for (size_t i = 0; i < WANT; i++) {
                assert_true(choice[i].parent == 0 || choice[i].parent % 2 == 0);
            }
        }
        generator_free(made.generator);
    }
}

static void points_without_neighbours_are_all_chance(void **state)
{
    (void)state;
    struct strbuf lines = STRBUF_INIT;
    for (int i = 0; i < BEGUN + 8; i++) {
        strbuf_addf(&lines, "{\"source\": \"int a%d;\"}\n", i);
    }
    struct made_view made;
    made_view(&made, "pool:x", strbuf_text(&lines), BEGUN);
    for (size_t i = 0; i < BEGUN; i++) {
        made_view_measured(&made, i, VERDICT_FASTER, 1);
    }
    struct strategy_choice choice[WANT];
    assert_int_equal(strategy_greedy.choose(&made.view, WANT, choice), 8); // no more are left
    unsigned seen = 0;
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(choice[i].parent, 0);
        assert_in_range(choice[i].point, BEGUN, BEGUN + 7);
        seen |= 1U << (choice[i].point - BEGUN);
    }
    assert_int_equal(seen, 0xff);
    assert_int_equal(strategy_greedy.choose(&made.view, 0, choice), 0);
    generator_free(made.generator);
    strbuf_release(&lines);
}

// ---- the parents of a language model's candidates ----

static void the_best_six_take_turns(void **state)
{
    (void)state;
    struct made_view made;
    make(&made);
    for (size_t i = 0; i < 10; i++) {
        made_view_measured(&made, i, VERDICT_FASTER, (double)i / 10); // candidate 10 is the best
    }
    for (size_t i = 10; i < BEGUN; i++) {
        made.candidate[i].result = NULL;
    }
    for (uint64_t slot = BEGUN + 1; slot < BEGUN + 201; slot++) {
        uint64_t parent = strategy_greedy.parent(&made.view, slot);
        assert_true(parent == 0 || parent == 10 - slot % 6); // nothing failed: the baseline
    }
    generator_free(made.generator);
}

static void without_anything_correct_the_newest_failure_is_repaired(void **state)
{
    (void)state;
    struct made_view made;
    make(&made);
    for (size_t i = 0; i < BEGUN; i++) {
        made.candidate[i].result = NULL;
    }
    assert_int_equal(strategy_greedy.parent(&made.view, 20), 0);
    made_view_measured(&made, 2, VERDICT_CRASH, 0);
    made_view_measured(&made, 5, VERDICT_WRONG, 0);
    made_view_measured(&made, 8, VERDICT_WRONG, 0);
    made.candidate[8].proposed.duplicate_of = 6;
    made_view_measured(&made, 12, VERDICT_TIMEOUT, 0);
    made.view.visible = 10;
    assert_int_equal(strategy_greedy.parent(&made.view, 20), 6);
    made.view.visible = BEGUN;
    assert_int_equal(strategy_greedy.parent(&made.view, 20), 13);
    generator_free(made.generator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_choice_is_beside_the_best),
        cmocka_unit_test(more_is_left_to_chance_where_poor_points_cost_nothing),
        cmocka_unit_test(before_it_has_begun_all_is_chance),
        cmocka_unit_test(what_failed_is_no_parent),
        cmocka_unit_test(a_number_that_was_not_sent_teaches_nothing),
        cmocka_unit_test(no_strategy_has_a_parent_whose_number_was_not_sent),
        cmocka_unit_test(points_without_neighbours_are_all_chance),
        cmocka_unit_test(the_best_six_take_turns),
        cmocka_unit_test(without_anything_correct_the_newest_failure_is_repaired),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
