// The page of `kcast top`: what is on it, in which order, and that it fits into any terminal.
#include "client/top/top.h"
#include "proto/verdict.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DEVICES 8
#define SEARCHES 40

struct fixture {
    struct device_info device[DEVICES];
    struct search_load now_load[SEARCHES], before_load[SEARCHES];
    uint64_t now_verdict[11], before_verdict[11], states[7];
    char name[SEARCHES][32];
    struct status now, before;
    struct top_page page;
    struct top_input input;
};

static int set_up(void **state)
{
    static char *const device_name[] = {"cuda0", "cuda1", "cuda2", "cuda3",
                                        "cuda4", "cuda5", "cuda6", "cuda7"};
    struct fixture *f = calloc(1, sizeof(*f));

    for (size_t i = 0; i < DEVICES; i++) {
        f->device[i] = (struct device_info){.name = device_name[i], .state = "ready"};
    }
    f->device[0].state = "busy";
    f->device[0].job = 77;
    f->device[0].busy_seconds = 3;
    f->device[1].state = "draining";
    f->device[1].reason = "new fan";
    for (size_t i = 0; i < SEARCHES; i++) {
        snprintf(f->name[i], sizeof(f->name[i]), "search-%02zu", i);
        f->now_load[i] = (struct search_load){.name = f->name[i], .unfinished = 5, .running = 1};
        f->now_load[i].device_seconds = 100 + (double)i;
        f->before_load[i] = f->now_load[i];
    }
    // Since the earlier reply the first search has used 30 s, 3 of them on the device that it
    // holds, and the second 10 s.
    f->device[0].search = f->name[0];
    f->before_load[0].device_seconds -= 27;
    f->before_load[1].device_seconds -= 10;
    f->now_verdict[VERDICT_FASTER] = 25;
    f->before_verdict[VERDICT_FASTER] = 5;
    f->states[JOB_READY] = 12;
    f->now = (struct status){.devices = f->device,
                             .devices_count = DEVICES,
                             .searches = f->now_load,
                             .searches_count = SEARCHES,
                             .verdicts = f->now_verdict,
                             .verdicts_count = 11,
                             .states = f->states,
                             .states_count = 7,
                             .uptime_seconds = 100};
    f->before = (struct status){.searches = f->before_load,
                                .searches_count = SEARCHES,
                                .verdicts = f->before_verdict,
                                .verdicts_count = 11};
    f->input = (struct top_input){.url = "tcp://127.0.0.1:7410",
                                  .now = &f->now,
                                  .before = &f->before,
                                  .seconds = 10,
                                  .width = 80,
                                  .height = 24};
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    free(*state);
    return 0;
}

// The number of the line that has this text. The test fails when there is none.
static size_t line_with(const struct top_page *page, const char *text)
{
    for (size_t i = 0; i < page->count; i++) {
        if (strstr(page->line[i].text, text)) {
            return i;
        }
    }
    for (size_t i = 0; i < page->count; i++) {
        printf("%s\n", page->line[i].text);
    }
    fail_msg("no line has \"%s\"", text);
    return 0;
}

static void a_page_of_80_by_24_has_everything(void **state)
{
    struct fixture *f = *state;

    top_compose(&f->page, &f->input);
    assert_int_equal(f->page.count, 24);
    assert_int_equal(line_with(&f->page, "tcp://127.0.0.1:7410"), 0);
    (void)line_with(&f->page, "1 of 8 devices busy");
    (void)line_with(&f->page, "12 ready");
    (void)line_with(&f->page, "faster 2/s");
    assert_non_null(strstr(f->page.line[line_with(&f->page, "cuda0")].text, "search-00"));
    assert_non_null(strstr(f->page.line[line_with(&f->page, "cuda1")].text, "draining"));
    (void)line_with(&f->page, "new fan");
    (void)line_with(&f->page, "cuda7");
    (void)line_with(&f->page, "searches more");
    assert_int_equal(line_with(&f->page, "q quit"), 23);
}

static void searches_are_sorted_as_asked(void **state)
{
    struct fixture *f = *state;

    f->device[0].search = NULL; // so that the names are only on lines of searches
    f->before_load[0].device_seconds -= 3;
    top_compose(&f->page, &f->input);
    size_t first = line_with(&f->page, "SHARE") + 1;
    assert_non_null(strstr(f->page.line[first].text, " 75%"));
    assert_non_null(strstr(f->page.line[first].text, "search-00"));
    assert_non_null(strstr(f->page.line[first + 1].text, " 25%"));
    assert_non_null(strstr(f->page.line[first + 1].text, "search-01"));
    f->input.sort = TOP_BY_SECONDS;
    top_compose(&f->page, &f->input);
    assert_non_null(strstr(f->page.line[first].text, "search-39"));
}

static void what_runs_now_counts(void **state)
{
    struct fixture *f = *state;

    top_compose(&f->page, &f->input);
    assert_non_null(strstr(f->page.line[line_with(&f->page, "SHARE") + 1].text, " 75%"));
}

// How much devices are held, and from 100 columns on where the time of searches went.
static void it_says_where_time_went(void **state)
{
    struct fixture *f = *state;

    f->device[0].utilisation = 0.34;
    f->device[0].utilisation_minute = 0.87;
    f->device[1].utilisation = f->device[1].utilisation_minute = NAN; // an older daemon
    f->now_load[0].measuring_seconds = 30;
    f->now_load[0].waiting_seconds = 6;
    f->now_load[0].compiling_seconds = 12;
    f->now_load[0].queued_seconds = 0;
    f->now_load[0].away_seconds = 12;
    f->now_load[1].measuring_seconds = NAN;
    top_compose(&f->page, &f->input);
    assert_non_null(strstr(f->page.line[line_with(&f->page, "cuda0")].text, "   87%   34%  "));
    assert_non_null(strstr(f->page.line[line_with(&f->page, "cuda1")].text, "     -     -  "));
    assert_null(strstr(f->page.line[line_with(&f->page, "SHARE")].text, "AWAY"));
    f->input.width = 100;
    top_compose(&f->page, &f->input);
    size_t header = line_with(&f->page, "  MEAS  WAIT  COMP QUEUE  AWAY  SEARCH");
    assert_non_null(
        strstr(f->page.line[header + 1].text, "   50%   10%   20%    0%   20%  search-00"));
    assert_non_null(
        strstr(f->page.line[header + 2].text, "     -     -     -     -     -  search-01"));
}

static void it_fits_into_any_terminal(void **state)
{
    struct fixture *f = *state;

    f->now.illness = "no device takes jobs; cuda0 is lost: a very long sentence about the reason";
    for (size_t width = 1; width <= 300; width += 13) {
        for (size_t height = 1; height <= 60; height++) {
            f->input.width = width;
            f->input.height = height;
            top_compose(&f->page, &f->input);
            assert_true(f->page.count >= 1 && f->page.count <= height);
            for (size_t i = 0; i < f->page.count; i++) {
                assert_true(strlen(f->page.line[i].text) <= width);
            }
        }
    }
}

static void names_cannot_command_the_terminal(void **state)
{
    struct fixture *f = *state;

    f->device[0].search = "\x1b]0;owned\x07 \xc3\xa4\n";
    f->now_load[0].name = f->device[0].search;
    f->input.before = NULL;
    top_compose(&f->page, &f->input);
    (void)line_with(&f->page, "?]0;owned? ???");
    for (size_t i = 0; i < f->page.count; i++) {
        for (const char *c = f->page.line[i].text; *c; c++) {
            assert_in_range(*c, 0x20, 0x7e);
        }
    }
    (void)line_with(&f->page, "results since the start: faster 25");
}

static void searches_that_have_ended_are_counted_and_shown_on_demand(void **state)
{
    struct fixture *f = *state;

    f->now.searches_count = f->before.searches_count = 3;
    f->now_load[1].unfinished = f->before_load[1].unfinished = 0;
    f->now_load[2].running = f->now_load[2].unfinished = 0; // it had jobs at the look before
    top_compose(&f->page, &f->input);
    size_t header = line_with(&f->page, "SHARE");
    assert_non_null(strstr(f->page.line[header + 1].text, "search-00"));
    assert_non_null(strstr(f->page.line[header + 2].text, "search-02"));
    assert_non_null(strstr(f->page.line[header + 3].text, "1 search has ended; f shows them"));
    f->input.finished = true;
    top_compose(&f->page, &f->input);
    assert_non_null(strstr(f->page.line[header + 2].text, "search-01"));
}

static void a_search_has_its_problem_best_and_progress(void **state)
{
    static char problem[] = "softmax";
    struct estimate best = {.log2 = 1, .lo = 0.9, .hi = 1.1};
    struct fixture *f = *state;

    f->now_load[0].problem = problem;
    f->now_load[0].best = &best;
    f->now_load[0].measured = 7;
    f->now_load[0].planned = 40;
    f->now_load[1].planned_seconds = 404;
    f->input.selected = 0;
    top_compose(&f->page, &f->input);
    size_t header = line_with(&f->page, "SHARE");
    assert_non_null(strstr(f->page.line[header + 1].text, " 7/40   2.00x softmax "));
    assert_int_equal(f->page.line[header + 1].text[0], '>');
    assert_non_null(strstr(f->page.line[header + 2].text, "25% time"));
    f->input.view = TOP_DETAILS;
    top_compose(&f->page, &f->input);
    (void)line_with(&f->page, "search search-00");
    (void)line_with(&f->page, "problem    softmax");
    (void)line_with(&f->page, "best       2.00x [1.87, 2.14] the baseline");
    (void)line_with(&f->page, "holds      cuda0, job 77");
    size_t count;
    assert_ptr_equal(top_selected(&f->input, &count), &f->now_load[0]);
    assert_int_equal(count, SEARCHES);
}

static void keys_are_explained(void **state)
{
    struct fixture *f = *state;

    top_compose(&f->page, &f->input);
    (void)line_with(&f->page, "h help");
    f->input.message = "cancel the 5 jobs of search-00?";
    top_compose(&f->page, &f->input);
    (void)line_with(&f->page, "cancel the 5 jobs of search-00?");
    f->input.view = TOP_HELP;
    top_compose(&f->page, &f->input);
    (void)line_with(&f->page, "cancel the jobs of the selected search");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_page_of_80_by_24_has_everything, set_up, tear_down),
        cmocka_unit_test_setup_teardown(searches_are_sorted_as_asked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_runs_now_counts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_says_where_time_went, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_fits_into_any_terminal, set_up, tear_down),
        cmocka_unit_test_setup_teardown(searches_that_have_ended_are_counted_and_shown_on_demand,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_search_has_its_problem_best_and_progress, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(keys_are_explained, set_up, tear_down),
        cmocka_unit_test_setup_teardown(names_cannot_command_the_terminal, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
