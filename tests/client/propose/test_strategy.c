// Strategies on a simulated space, without daemon or files: a search is a loop over choose() that
// fills in outcomes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/propose/strategy.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char template_text[] = "//@ tune A in (1, 2, 4, 8, 16, 32)\n"
                                    "//@ tune B in (1, 2, 4, 8, 16, 32)\n"
                                    "//@ tune C in (1, 2, 3, 4, 5)\n"
                                    "//@ tune D in (0, 1)\n"
                                    "void f(void) {}\n";
#define POINTS 360

static const struct strategy *const all[] = {&strategy_best_of_n, &strategy_greedy,
                                             &strategy_islands, &strategy_puct};

static struct generator *make_generator(const char *text)
{
    struct bytes bytes = {.data = (unsigned char *)(uintptr_t)text, .len = strlen(text)};
    struct generator *generator = NULL;
    struct err err = ERR_INIT;
    if (generator_create(&generator, "tunable", &bytes, "t.c", &err) != 0) {
        fail_msg("%s", err.text);
    }
    return generator;
}

// The log2 speedup of a point: smooth, with one best point (A=16 B=4 C=2 D=1) at 3. NaN: it fails.
static double landscape(const struct generator *generator, size_t point)
{
    double x[GENERATOR_AXIS_MAX];
    generator->ops->position(generator, point, x);
    if (x[0] > 0.9 && x[1] > 0.9) {
        return NAN;
    }
    return 3 - 4 * pow(x[0] - 0.8, 2) - 4 * pow(x[1] - 0.4, 2) - pow(x[2] - 0.25, 2) -
           (x[3] < 0.5 ? 0.7 : 0);
}

// Appends a proposal with its outcome (NaN: it fails) to the run state without an event.
static void add(struct run_state *run_state, size_t point, uint64_t parent, double y)
{
    size_t n = run_state->candidate_count++;
    run_state->candidate = xrealloc(run_state->candidate, n + 1, sizeof(*run_state->candidate));
    run_state->candidate[n] =
        (struct run_state_candidate){.proposed = {.candidate = n + 1, .point = point + 1}};
    run_state->candidate[n].proposed.parent = parent;
    run_state->candidate[n].compiled = xcalloc(1, sizeof(struct compiled));
    run_state->candidate[n].result = xcalloc(1, sizeof(struct result));
    run_state->candidate[n].result->verdict = isnan(y) ? VERDICT_WRONG : VERDICT_FASTER;
    if (!isnan(y)) {
        run_state->candidate[n].result->speedup = xcalloc(1, sizeof(struct estimate));
        run_state->candidate[n].result->speedup->log2 = y;
    }
}

// Runs a strategy for up to `limit` candidates in batches of 8. A batch sees the outcomes that were
// known two batches before. Returns how many candidates it took to come within 1 % of the best, or
// 0 when none did.
static size_t simulate(const struct strategy *strategy, const struct generator *generator,
                       uint64_t seed, size_t limit, struct run_state *run_state)
{
    struct strategy_choice choice[8], again[8];
    run_state_init(run_state);
    size_t took = 0;
    while (run_state->candidate_count < limit) {
        struct strategy_view view = {.run_state = run_state, .generator = generator, .seed = seed};
        view.visible = run_state->candidate_count > 8 ? run_state->candidate_count - 8 : 0;
        size_t count = strategy->choose(&view, 8, choice);
        assert_int_equal(strategy->choose(&view, 8, again), count);
        assert_memory_equal(choice, again, count * sizeof(*choice));
        if (count == 0) {
            break;
        }
        for (size_t i = 0; i < count; i++) {
            assert_true(choice[i].point < generator->point_count);
            assert_true(choice[i].parent <= view.visible);
            add(run_state, choice[i].point, choice[i].parent,
                landscape(generator, choice[i].point));
            if (took == 0 && landscape(generator, choice[i].point) > 3 - 0.0144) {
                took = run_state->candidate_count;
            }
        }
    }
    return took;
}

static void every_point_comes_exactly_once(void **state)
{
    struct generator *generator = make_generator(template_text);
    (void)state;
    assert_int_equal(generator->point_count, POINTS);
    for (size_t s = 0; s < ARRAY_LEN(all); s++) {
        struct run_state run_state;
        assert_true(simulate(all[s], generator, 5, POINTS * 2, &run_state) > 0);
        assert_int_equal(run_state.candidate_count, POINTS);
        bool seen[POINTS] = {false};
        for (size_t i = 0; i < POINTS; i++) {
            size_t point = (size_t)run_state.candidate[i].proposed.point - 1;
            assert_false(seen[point]);
            seen[point] = true;
        }
        run_state_release(&run_state);
    }
    generator_free(generator);
}

static void seeds_give_different_orders(void **state)
{
    struct generator *generator = make_generator(template_text);
    struct run_state a, b;
    (void)state;
    (void)simulate(&strategy_best_of_n, generator, 1, 64, &a);
    (void)simulate(&strategy_best_of_n, generator, 2, 64, &b);
    size_t same = 0;
    for (size_t i = 0; i < 64; i++) {
        same += a.candidate[i].proposed.point == b.candidate[i].proposed.point;
    }
    assert_true(same < 8);
    run_state_release(&a);
    run_state_release(&b);
    generator_free(generator);
}

static void climbers_find_the_top_sooner_than_chance(void **state)
{
    struct generator *generator = make_generator(template_text);
    (void)state;
    size_t mean[ARRAY_LEN(all)] = {0};
    for (size_t s = 0; s < ARRAY_LEN(all); s++) {
        for (uint64_t seed = 1; seed <= 20; seed++) {
            struct run_state run_state;
            size_t took = simulate(all[s], generator, seed, POINTS, &run_state);
            assert_true(took > 0);
            mean[s] += took;
            run_state_release(&run_state);
        }
        mean[s] /= 20;
        print_message("%s: found after %zu candidates, in the mean of 20 seeds\n", all[s]->name,
                      mean[s]);
        assert_true(s == 0 || mean[s] * 2 < mean[0]);
    }
    generator_free(generator);
}

static void what_is_not_visible_is_not_looked_at(void **state)
{
    struct generator *generator = make_generator(template_text);
    (void)state;
    for (size_t s = 1; s < ARRAY_LEN(all); s++) {
        struct run_state run_state;
        struct strategy_choice before[16], after[16];
        (void)simulate(all[s], generator, 9, 64, &run_state);
        struct strategy_view view = {
            .run_state = &run_state, .generator = generator, .seed = 9, .visible = 40};
        size_t count = all[s]->choose(&view, 16, before);
        for (size_t i = 40; i < run_state.candidate_count; i++) {
            if (run_state.candidate[i].result->speedup) {
                run_state.candidate[i].result->speedup->log2 += 10;
            }
        }
        assert_int_equal(all[s]->choose(&view, 16, after), count);
        assert_memory_equal(before, after, count * sizeof(*before));
        view.visible = 64;
        assert_int_equal(all[s]->choose(&view, 16, after), count);
        assert_memory_not_equal(before, after, count * sizeof(*before));
        run_state_release(&run_state);
    }
    generator_free(generator);
}

// A candidate that is forecast to be fast but was not measured gets no children.
static void forecasts_are_no_speedups(void **state)
{
    struct generator *generator = make_generator(template_text);
    (void)state;
    for (size_t s = 1; s < ARRAY_LEN(all); s++) {
        struct run_state run_state;
        struct strategy_choice before[16], after[16];
        (void)simulate(all[s], generator, 2, 64, &run_state);
        struct run_state_candidate *trusted = &run_state.candidate[20];
        message_clear(&result_message, trusted->result);
        free(trusted->result);
        trusted->result = NULL;
        struct strategy_view view = {
            .run_state = &run_state, .generator = generator, .seed = 2, .visible = 64};
        size_t count = all[s]->choose(&view, 16, before);
        trusted->forecast = xcalloc(1, sizeof(*trusted->forecast));
        trusted->forecast->mean_log2 = 9;
        assert_int_equal(all[s]->choose(&view, 16, after), count);
        assert_memory_equal(before, after, count * sizeof(*before));
        for (size_t i = 0; i < count; i++) {
            assert_int_not_equal(after[i].parent, 21);
        }
        run_state_release(&run_state);
    }
    generator_free(generator);
}

static bool beside(const struct generator *generator, size_t a, size_t b)
{
    size_t neighbour[64], count = generator->ops->neighbours(generator, a, neighbour, 64);
    for (size_t i = 0; i < count; i++) {
        if (neighbour[i] == b) {
            return true;
        }
    }
    return false;
}

// The three best candidates are one family; there are thirteen others.
static void puct_takes_one_of_a_family_for_a_batch(void **state)
{
    struct generator *generator = make_generator(template_text);
    (void)state;
    struct run_state run_state;
    run_state_init(&run_state);
    add(&run_state, 100, 0, 2.8);
    add(&run_state, 101, 1, 3);
    add(&run_state, 102, 2, 2.2);
    for (size_t i = 0; i < 13; i++) {
        add(&run_state, 150 + 10 * i, 0, 0.1 * (double)i);
    }
    struct strategy_view view = {.run_state = &run_state, .generator = generator, .visible = 16};
    bool had_best = false;
    for (view.seed = 1; view.seed <= 20; view.seed++) {
        struct strategy_choice choice[24];
        size_t children[17] = {0}, others = 0;
        assert_int_equal(strategy_puct.choose(&view, 24, choice), 24);
        for (size_t i = 0; i < 24; i++) {
            uint64_t parent = choice[i].parent;
            children[parent]++;
            assert_true(parent == 0 ||
                        beside(generator, run_state.candidate[parent - 1].proposed.point - 1,
                               choice[i].point));
        }
        for (size_t id = 1; id <= 16; id++) {
            assert_true(children[id] <= 4);
            others += id > 3 && children[id] > 0;
        }
        assert_int_equal((children[1] > 0) + (children[2] > 0) + (children[3] > 0), 1);
        assert_true(others >= 3);
        had_best |= children[2] == 4;
        // A language model is asked for four at a time, from one family after the other.
        uint64_t first = strategy_puct.parent(&view, 17), second = strategy_puct.parent(&view, 21);
        assert_true(first == 0 || first == 2);
        assert_true(second == 0 || second > 3);
    }
    assert_true(had_best);
    run_state_release(&run_state);
    generator_free(generator);
}

// A candidate counts by the best of its descendants. The only one with a good child is slow itself,
// and it is taken before faster ones when the child has no free neighbours left.
static void puct_goes_by_the_best_descendant(void **state)
{
    struct generator *generator = make_generator(template_text);
    (void)state;
    struct run_state run_state;
    run_state_init(&run_state);
    add(&run_state, 100, 0, -1);
    add(&run_state, 300, 1, 5);
    size_t neighbour[64];
    size_t count = generator->ops->neighbours(generator, 300, neighbour, 64);
    for (size_t i = 0; i < count; i++) {
        add(&run_state, neighbour[i], 1, NAN);
    }
    for (size_t i = 0; i < 16; i++) {
        add(&run_state, 5 * i, 0, 0.1 * (double)i);
    }
    struct strategy_view view = {
        .run_state = &run_state, .generator = generator, .visible = run_state.candidate_count};
    size_t from_it = 0;
    struct strategy_choice choice[4];
    for (view.seed = 1; view.seed <= 20; view.seed++) {
        assert_int_equal(strategy_puct.choose(&view, 4, choice), 4);
        for (size_t i = 0; i < 4; i++) {
            assert_true(choice[i].parent <= 1);
            from_it += choice[i].parent == 1;
        }
    }
    assert_true(from_it > 60);
    run_state_release(&run_state);
    generator_free(generator);
}

// There are 64 candidates, and those of island 1 (5 to 8, 21 to 24 and so on) are the better ones.
// Counts which candidates are parents on island 0 in these slots, over many seeds.
static void parents_on_island_0(const struct generator *generator, uint64_t first_slot,
                                size_t count[65])
{
    struct run_state run_state;
    run_state_init(&run_state);
    for (uint64_t id = 1; id <= 64; id++) {
        add(&run_state, (id * 5) % POINTS, 0, (id - 1) / 4 % 4 == 1 ? 2 + 0.01 * (double)id : 0.1);
    }
    struct strategy_view view = {.run_state = &run_state, .generator = generator, .visible = 64};
    memset(count, 0, 65 * sizeof(*count));
    for (view.seed = 1; view.seed <= 200; view.seed++) {
        for (uint64_t slot = first_slot; slot < first_slot + 4; slot++) {
            count[strategy_islands.parent(&view, slot)]++;
        }
    }
    run_state_release(&run_state);
}

static void migrants_come_at_the_end_of_an_epoch(void **state)
{
    struct generator *generator = make_generator(template_text);
    size_t count[65], migrants[3] = {0};
    // After no epoch, one (24 slots) and three (72).
    static const uint64_t first_slot[3] = {17, 33, 81};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        parents_on_island_0(generator, first_slot[i], count);
        size_t own = 0;
        for (uint64_t id = 1; id <= 64; id++) {
            unsigned island = (unsigned)((id - 1) / 4 % 4);
            own += island == 0 && count[id] > 0;
            migrants[i] += island == 1 && count[id] > 0;
            assert_true(island < 2 || count[id] == 0);
            assert_true(island == 0 || id <= (first_slot[i] - 1) / 24 * 24 || count[id] == 0);
        }
        assert_true(own > 1);
        assert_in_range(count[0], 40, 160); // 10 % of 800
    }
    assert_int_equal(migrants[0], 0);
    assert_int_equal(migrants[1], 2);
    assert_int_equal(migrants[2], 2);
    assert_true(count[56] > 0); // the best of island 1
    generator_free(generator);
}

// One island has two candidates that use 40 registers and a slower one that uses 120. The result is
// the same for points and for candidates of a language model.
static void an_elite_is_the_best_of_its_behaviour(void **state)
{
    static const double registers[] = {40, 45, 120}, y[] = {1, 1.5, 0.2};
    struct generator *generator[2] = {make_generator(template_text), NULL};
    (void)state;
    struct err err = ERR_INIT;
    assert_int_equal(generator_create(&generator[1], "llm", &(struct bytes){0}, "", &err), 0);
    struct run_state run_state;
    run_state_init(&run_state);
    for (size_t i = 0; i < 3; i++) {
        add(&run_state, i * 100, 0, y[i]);
        struct compiled *compiled = run_state.candidate[i].compiled;
        compiled->features = xcalloc(1, sizeof(*compiled->features));
        compiled->features[0] = (struct fact){xstrdup("registers"), registers[i]};
        compiled->features_count = 1;
    }
    for (size_t i = 0; i < 2; i++) {
        struct strategy_view view = {
            .run_state = &run_state, .generator = generator[i], .visible = 3};
        size_t count[4] = {0};
        for (view.seed = 1; view.seed <= 100; view.seed++) {
            count[strategy_islands.parent(&view, 4)]++;
            assert_in_range(strategy_puct.parent(&view, 4), 0, 3);
        }
        assert_int_equal(count[1], 0);
        assert_true(count[2] > count[3] && count[3] > 0);
        generator_free(generator[i]);
    }
    run_state_release(&run_state);
}

static void parents_are_the_best_known_or_a_failure(void **state)
{
    struct generator *generator = make_generator(template_text);
    uint64_t failures = 0, best = 0;
    (void)state;
    struct run_state run_state;
    (void)simulate(&strategy_best_of_n, generator, 4, 64, &run_state);
    struct strategy_view view = {
        .run_state = &run_state, .generator = generator, .seed = 4, .visible = 40};
    double most = -INFINITY;
    for (uint64_t id = 1; id <= 40; id++) {
        double y;
        if (strategy_score(&view, id, &y) && y > most) {
            most = y;
            best = id;
        }
    }
    bool had_best = false;
    for (uint64_t slot = 65; slot < 265; slot++) {
        uint64_t parent = strategy_greedy.parent(&view, slot), better = 0;
        double y, other;
        assert_true(parent <= 40);
        assert_int_equal(strategy_greedy.parent(&view, slot), parent);
        assert_int_equal(strategy_best_of_n.parent(&view, slot), 0);
        if (parent == 0 || !strategy_score(&view, parent, &y)) {
            failures++;
            continue;
        }
        for (uint64_t id = 1; id <= 40; id++) {
            better += strategy_score(&view, id, &other) && other > y;
        }
        assert_true(better < 6);
        had_best |= parent == best;
    }
    assert_true(had_best);
    assert_in_range(failures, 10, 60); // 15 % of 200
    view.visible = 0;
    assert_int_equal(strategy_greedy.parent(&view, 1), 0);
    run_state_release(&run_state);
    generator_free(generator);
}

static void unknown_strategy_is_not_found(void **state)
{
    (void)state;
    assert_null(strategy_find("luck"));
    assert_ptr_equal(strategy_find(STRATEGY_DEFAULT), &strategy_greedy);
    for (size_t s = 0; s < ARRAY_LEN(all); s++) {
        assert_ptr_equal(strategy_find(all[s]->name), all[s]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_point_comes_exactly_once),
        cmocka_unit_test(seeds_give_different_orders),
        cmocka_unit_test(climbers_find_the_top_sooner_than_chance),
        cmocka_unit_test(what_is_not_visible_is_not_looked_at),
        cmocka_unit_test(forecasts_are_no_speedups),
        cmocka_unit_test(puct_takes_one_of_a_family_for_a_batch),
        cmocka_unit_test(puct_goes_by_the_best_descendant),
        cmocka_unit_test(migrants_come_at_the_end_of_an_epoch),
        cmocka_unit_test(an_elite_is_the_best_of_its_behaviour),
        cmocka_unit_test(parents_are_the_best_known_or_a_failure),
        cmocka_unit_test(unknown_strategy_is_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
