// Searches that have ended and are given more: they go on where they were, with whole batches, and
// end anew with a survey and a play-off of their own. What the end before had drawn stays known.
#include "tests/client/search/search_fixture.h"

#include "client/policy/false_omission.h"
#include "client/report/run_counts.h"
#include <math.h>

// Searches and then gives the search more. Loads both ends.
static void extend(struct fixture *f, const char *name, const char *const *first,
                   const char *const *more, struct run_state *before, struct run_state *after)
{
    char *path = run_path(f, name);
    const char *search[ARGUMENT_MAX] = {"search", f->problem, "--run", path,
                                        "--seed", "5",        "--json"};
    const char *resume[ARGUMENT_MAX] = {"resume", path, "--json"};
    for (size_t i = 0; first[i]; i++) {
        search[7 + i] = first[i];
    }
    for (size_t i = 0; more[i]; i++) {
        resume[3 + i] = more[i];
    }
    forget(f);
    expect(f, 0, NULL, search);
    load(before, path);
    expect(f, 0, NULL, resume);
    load(after, path);
    assert_true(before->finished && after->finished);
    assert_int_equal(after->extensions, 1);
    free(path);
}

// All that was paid for, games of both ends included.
static void expect_all_paid(const struct run_state *run_state)
{
    double all = 0, last = 0;
    for (size_t i = 0; i < run_state->candidate_count; i++) {
        all += run_state_held_seconds(run_state->candidate[i].result) +
               run_state_held_seconds(run_state->candidate[i].record);
    }
    for (size_t i = 0; i < run_state->game_count; i++) {
        double held = run_state_held_seconds(run_state->game[i].result);
        all += held;
        last += i >= run_state->first_game ? held : 0;
    }
    assert_true(fabs(all - run_state->device_seconds) < 1e-6);
    assert_true(fabs(last - run_state->play_off_seconds) < 1e-6);
}

// What was done before is as it was.
static void expect_same_begin(const struct run_state *before, const struct run_state *after)
{
    assert_true(after->candidate_count > before->candidate_count);
    for (size_t i = 0; i < before->candidate_count; i++) {
        const struct run_state_candidate *x = &before->candidate[i], *y = &after->candidate[i];
        assert_true(digest_equal(&x->proposed.source, &y->proposed.source));
        assert_true(!x->result || x->measured_order == y->measured_order);
        assert_true(x->decided.draw == 0 || y->drawn_before > 0);
    }
}

// The first end draws points, so that its last batch is a part of one, with audits behind it.
static void more_candidates_are_proposed_after_drawn_ones(void **state)
{
    struct fixture *f = *state;
    struct run_state before, after;
    extend(f, "candidates",
           (const char *[]){"--candidates", "31", "--batch", "4", "--audit", "0.4", NULL},
           (const char *[]){"--candidates", "52", NULL}, &before, &after);
    assert_true(before.draws > 0);
    expect_same_begin(&before, &after);
    assert_int_equal(after.candidate_count, 52);
    assert_int_equal(run_counts_of(&after).considered, 52);
    assert_true(after.searched > before.candidate_count);
    assert_int_equal(after.surveys, 2); // once to draw, once for what is left
    assert_true(after.drawn > 0 && after.drawn <= after.draws);
    assert_true((double)after.audited <= 0.4 * (double)after.measured + 1e-9);
    uint64_t next = 1;
    for (size_t i = (size_t)before.candidate_count; i < after.candidate_count; i++) {
        const struct run_proposed *proposed = &after.candidate[i].proposed;
        assert_int_equal(proposed->draw > 0, i >= after.searched);
        assert_true(proposed->draw == 0 || proposed->draw == next++);
    }
    assert_int_equal(next, after.draws + 1);
    // The audits of the first end are none of the second's.
    struct false_omission omission = false_omission_of_run(&after);
    assert_int_equal(omission.audited, after.draws);
    assert_int_equal(omission.discarded, after.draw_population);
    assert_true(before.has_played_off && after.has_played_off);
    assert_true(after.game_count > after.first_game && after.first_game == before.game_count);
    expect_all_paid(&after);
    run_state_release(&before);
    run_state_release(&after);
}

// Killed at any of its events after it was given more, it goes on to the same end.
static void an_extended_search_that_is_killed_decides_the_same(void **state)
{
    struct fixture *f = *state;
    struct run_state before, after;
    const char *const first[] = {"--candidates", "31", "--batch", "4", "--audit", "0.4", NULL};
    const char *const more[] = {"--candidates", "52", NULL};
    extend(f, "whole", first, more, &before, &after);
    uint64_t from = before.last_sequence, to = after.last_sequence;
    assert_true(to > from + 20);
    for (uint64_t n = from + 1; n <= to; n += (to - from) / 9) {
        char *fault = xasprintf("event:%llu", (unsigned long long)n);
        char *name = xasprintf("killed-%llu", (unsigned long long)n), *path = run_path(f, name);
        forget(f);
        expect(f, 0, NULL,
               (const char *[]){"search", f->problem, "--run", path, "--seed", "5", "--candidates",
                                "31", "--batch", "4", "--audit", "0.4", NULL});
        expect(f, -SIGKILL, fault, (const char *[]){"resume", path, "--candidates", "52", NULL});
        resume(f, 0, path);
        struct run_state killed;
        load(&killed, path);
        assert_int_equal(killed.extensions, 1);
        assert_same_decisions(&after, &killed, fault);
        run_state_release(&killed);
        free(path);
        free(name);
        free(fault);
    }
    run_state_release(&before);
    run_state_release(&after);
}

// The last batch of the first part is not full, and what was proposed and not decided about is.
static void more_measurements_are_made_up_to_the_new_limit(void **state)
{
    struct fixture *f = *state;
    struct run_state before, after;
    extend(f, "measurements",
           (const char *[]){"--policy", "threshold", "--batch", "8", "--measurements", "13",
                            "--audit", "0.3", "--candidates", "45", NULL},
           (const char *[]){"--measurements", "23", "--candidates", "200", NULL}, &before, &after);
    assert_true(before.measured <= 13);
    assert_true(after.measured > 13 && after.measured <= 23);
    assert_true(after.has_played_off);
    expect_same_begin(&before, &after);
    expect_all_paid(&after);
    run_state_release(&before);
    run_state_release(&after);
}

// The second play-off has what is left of the new budget, whatever the first one has used.
static void a_larger_budget_is_used_and_kept(void **state)
{
    struct fixture *f = *state;
    struct run_state before, after;
    extend(f, "budget", (const char *[]){"--policy", "all", "--budget", "5s", NULL},
           (const char *[]){"--budget", "11s", NULL}, &before, &after);
    assert_true(before.device_seconds <= 5 + 1e-9);
    assert_true(after.device_seconds <= 11 + 1e-9);
    assert_true(after.device_seconds - before.device_seconds > 5);
    assert_true(after.play_off_seconds <= after.play_off.seconds_max + 1e-9);
    expect_same_begin(&before, &after);
    expect_all_paid(&after);
    run_state_release(&before);
    run_state_release(&after);
}

static void what_is_used_up_is_no_limit(void **state)
{
    struct fixture *f = *state;
    char *path = run_path(f, "used");
    forget(f);
    expect(f, 0, NULL,
           (const char *[]){"search", f->problem, "--run", path, "--candidates", "12", "--policy",
                            "all", NULL});
    expect(f, 2, NULL, (const char *[]){"resume", path, "--candidates", "12", NULL});
    expect(f, 2, NULL, (const char *[]){"resume", path, "--measurements", "3", NULL});
    struct run_state run_state;
    load(&run_state, path);
    assert_true(run_state.finished && run_state.extensions == 0);
    run_state_release(&run_state);
    free(path);
}

// It ends with the record that reaches the target, and goes on when it is given a higher one, or
// something else than one.
static void a_search_ends_with_its_target(void **state)
{
    struct fixture *f = *state;
    char *path = run_path(f, "no-target"), *aimed = run_path(f, "aimed"), target[32], higher[32];
    struct run_state whole, run_state;
    forget(f);
    expect(f, 0, NULL,
           (const char *[]){"search", f->problem, "--run", path, "--seed", "5", "--candidates",
                            "60", NULL});
    load(&whole, path);
    assert_true(whole.incumbent_count > 0);
    double first = whole.incumbent[0].event.speedup->log2;
    double aim = exp2(0.9 * first);
    snprintf(target, sizeof(target), "%.6f", aim);
    snprintf(higher, sizeof(higher), "%.6f", exp2(run_state_incumbent_log2(&whole)) * 100);

    forget(f);
    expect(f, 0, NULL,
           (const char *[]){"search", f->problem, "--run", aimed, "--seed", "5", "--candidates",
                            "60", "--target", target, NULL});
    load(&run_state, aimed);
    assert_true(run_state.finished && strstr(run_state.finish_reason, "target of"));
    assert_true(run_state.candidate_count < whole.candidate_count && run_state.surveys == 0 &&
                run_state.game_count == 0);
    assert_true(exp2(run_state_incumbent_log2(&run_state)) >= aim - 1e-6);
    uint64_t before = run_state.candidate_count;
    run_state_release(&run_state);

    expect(f, 2, NULL, (const char *[]){"resume", aimed, "--target", target, NULL});
    expect(f, 0, NULL, (const char *[]){"resume", aimed, "--target", higher, NULL});
    load(&run_state, aimed);
    assert_true(run_state.finished && !strstr(run_state.finish_reason, "target of"));
    assert_true(run_state.candidate_count > before && run_state.has_played_off);
    run_state_release(&run_state);

    // What it has reached does not hold it up when it is given more of something else.
    forget(f);
    free(aimed);
    aimed = run_path(f, "more");
    expect(f, 0, NULL,
           (const char *[]){"search", f->problem, "--run", aimed, "--seed", "5", "--candidates",
                            "60", "--target", target, NULL});
    expect(f, 0, NULL, (const char *[]){"resume", aimed, "--candidates", "70", NULL});
    load(&run_state, aimed);
    assert_true(run_state.finished && run_state.candidate_count > before);
    assert_false(run_state.started.target > 0);
    run_state_release(&run_state);
    run_state_release(&whole);
    free(aimed);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_candidates_are_proposed_after_drawn_ones),
        cmocka_unit_test(an_extended_search_that_is_killed_decides_the_same),
        cmocka_unit_test(more_measurements_are_made_up_to_the_new_limit),
        cmocka_unit_test(a_larger_budget_is_used_and_kept),
        cmocka_unit_test(what_is_used_up_is_no_limit),
        cmocka_unit_test(a_search_ends_with_its_target),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
