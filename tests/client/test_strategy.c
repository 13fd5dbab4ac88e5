// Strategies on a made-up space, without daemon or files: a search is a loop over choose() that
// fills in outcomes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/strategy.h"
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

// Smooth, with one best point (A=16 B=4 C=2 D=1) at log2 speedup 3; NaN: it fails.
static double landscape(const struct generator *generator, size_t point)
{
    double x[GENERATOR_AXIS_MAX];
    generator->ops->place(generator, point, x);
    if (x[0] > 0.9 && x[1] > 0.9) {
        return NAN;
    }
    return 3 - 4 * pow(x[0] - 0.8, 2) - 4 * pow(x[1] - 0.4, 2) - pow(x[2] - 0.25, 2) -
           (x[3] < 0.5 ? 0.7 : 0);
}

// Appends a proposal with its outcome to the fold, behind fold_apply's back.
static void add(struct fold *fold, const struct generator *generator, size_t point)
{
    size_t n = fold->candidate_count++;
    double y = landscape(generator, point);
    fold->candidate = xrealloc(fold->candidate, n + 1, sizeof(*fold->candidate));
    fold->candidate[n] =
        (struct fold_candidate){.proposed = {.candidate = n + 1, .point = point + 1}};
    fold->candidate[n].compiled = xcalloc(1, sizeof(struct compiled));
    fold->candidate[n].result = xcalloc(1, sizeof(struct result));
    fold->candidate[n].result->verdict = isnan(y) ? VERDICT_WRONG : VERDICT_FASTER;
    if (!isnan(y)) {
        fold->candidate[n].result->speedup = xcalloc(1, sizeof(struct estimate));
        fold->candidate[n].result->speedup->log2 = y;
    }
}

// Runs a strategy for up to `limit` candidates in batches of 8 that see what was known two batches
// before. Returns how many it took to come within 1 % of the best; 0: it did not.
static size_t simulate(const struct strategy *strategy, const struct generator *generator,
                       uint64_t seed, size_t limit, struct fold *fold)
{
    struct strategy_choice choice[8], again[8];
    size_t took = 0;
    fold_init(fold);
    while (fold->candidate_count < limit) {
        struct strategy_view view = {.fold = fold, .generator = generator, .seed = seed};
        view.visible = fold->candidate_count > 8 ? fold->candidate_count - 8 : 0;
        size_t count = strategy->choose(&view, 8, choice);
        assert_int_equal(strategy->choose(&view, 8, again), count);
        assert_memory_equal(choice, again, count * sizeof(*choice));
        if (count == 0) {
            break;
        }
        for (size_t i = 0; i < count; i++) {
            assert_true(choice[i].point < generator->point_count);
            assert_true(choice[i].parent <= view.visible);
            add(fold, generator, choice[i].point);
            if (took == 0 && landscape(generator, choice[i].point) > 3 - 0.0144) {
                took = fold->candidate_count;
            }
        }
    }
    return took;
}

static void every_point_comes_exactly_once(void **state)
{
    const struct strategy *const all[] = {&strategy_best_of_n, &strategy_greedy};
    struct generator *generator = make_generator(template_text);
    (void)state;
    assert_int_equal(generator->point_count, POINTS);
    for (size_t s = 0; s < 2; s++) {
        struct fold fold;
        bool seen[POINTS] = {false};
        assert_true(simulate(all[s], generator, 5, POINTS * 2, &fold) > 0);
        assert_int_equal(fold.candidate_count, POINTS);
        for (size_t i = 0; i < POINTS; i++) {
            size_t point = (size_t)fold.candidate[i].proposed.point - 1;
            assert_false(seen[point]);
            seen[point] = true;
        }
        fold_release(&fold);
    }
    generator_free(generator);
}

static void seeds_give_different_orders(void **state)
{
    struct generator *generator = make_generator(template_text);
    struct fold a, b;
    (void)state;
    (void)simulate(&strategy_best_of_n, generator, 1, 64, &a);
    (void)simulate(&strategy_best_of_n, generator, 2, 64, &b);
    size_t same = 0;
    for (size_t i = 0; i < 64; i++) {
        same += a.candidate[i].proposed.point == b.candidate[i].proposed.point;
    }
    assert_true(same < 8);
    fold_release(&a);
    fold_release(&b);
    generator_free(generator);
}

static void greedy_finds_the_top_sooner_than_chance(void **state)
{
    struct generator *generator = make_generator(template_text);
    size_t greedy = 0, chance = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct fold fold;
        size_t took = simulate(&strategy_greedy, generator, seed, POINTS, &fold);
        assert_true(took > 0);
        greedy += took;
        fold_release(&fold);
        chance += simulate(&strategy_best_of_n, generator, seed, POINTS, &fold);
        fold_release(&fold);
    }
    print_message("found after %zu candidates by greedy, %zu by chance, in the mean of 20 seeds\n",
                  greedy / 20, chance / 20);
    assert_true(greedy * 2 < chance);
    generator_free(generator);
}

static void greedy_does_not_look_at_what_is_not_visible(void **state)
{
    struct generator *generator = make_generator(template_text);
    struct fold fold;
    struct strategy_choice before[8], after[8];
    (void)state;
    (void)simulate(&strategy_greedy, generator, 9, 64, &fold);
    struct strategy_view view = {.fold = &fold, .generator = generator, .seed = 9, .visible = 40};
    size_t count = strategy_greedy.choose(&view, 8, before);
    for (size_t i = 40; i < fold.candidate_count; i++) {
        if (fold.candidate[i].result->speedup != NULL) {
            fold.candidate[i].result->speedup->log2 += 10;
        }
    }
    assert_int_equal(strategy_greedy.choose(&view, 8, after), count);
    assert_memory_equal(before, after, count * sizeof(*before));
    view.visible = 64;
    assert_int_equal(strategy_greedy.choose(&view, 8, after), count);
    assert_memory_not_equal(before, after, count * sizeof(*before));
    fold_release(&fold);
    generator_free(generator);
}

static void parents_are_the_best_known_or_a_failure(void **state)
{
    struct generator *generator = make_generator(template_text);
    struct fold fold;
    uint64_t failures = 0, best = 0;
    double most = -INFINITY;
    (void)state;
    (void)simulate(&strategy_best_of_n, generator, 4, 64, &fold);
    struct strategy_view view = {.fold = &fold, .generator = generator, .seed = 4, .visible = 40};
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
    fold_release(&fold);
    generator_free(generator);
}

static void unknown_strategy_is_not_found(void **state)
{
    (void)state;
    assert_null(strategy_find("luck"));
    assert_ptr_equal(strategy_find(STRATEGY_DEFAULT), &strategy_greedy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_point_comes_exactly_once),
        cmocka_unit_test(seeds_give_different_orders),
        cmocka_unit_test(greedy_finds_the_top_sooner_than_chance),
        cmocka_unit_test(greedy_does_not_look_at_what_is_not_visible),
        cmocka_unit_test(parents_are_the_best_known_or_a_failure),
        cmocka_unit_test(unknown_strategy_is_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
