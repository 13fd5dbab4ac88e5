// When a job reached its states, as a client makes it of what the daemon says.
#include "client/search/job_times.h"
#include "common/mem.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void ages_become_times_of_this_clock(void **state)
{
    struct job_ages ages = {.compiling = 9, .ready = 8, .running = 6, .ended = 0.5};
    struct job_info info = {.age_seconds = 10, .ages = &ages};
    (void)state;
    double before = job_times_now();
    struct job_times *times = job_times_of(before, &info);
    assert_true(times->answered >= before && times->answered <= job_times_now());
    // An earlier process of this search submitted it.
    assert_true(fabs(times->submitted - times->answered + 10) < 1e-3);
    assert_true(fabs(times->compiling - times->answered + 9) < 1e-3);
    assert_true(fabs(times->ready - times->answered + 8) < 1e-3);
    assert_true(fabs(times->running - times->answered + 6) < 1e-3);
    assert_true(fabs(times->ended - times->answered + 0.5) < 1e-3);
    free(times);
    // The submission took a while on its way, or the daemon started later.
    times = job_times_of(before - 30, &info);
    assert_true(fabs(times->submitted - before + 30) < 1e-3);
    free(times);
    ages.ready = ages.running = NAN; // a compilation
    times = job_times_of(before, &info);
    assert_true(isnan(times->ready) && isnan(times->running));
    free(times);
}

static void an_older_daemon_says_it_by_its_results(void **state)
{
    struct accounts seconds = {.held = 3};
    struct result result = {.seconds = &seconds};
    struct compiled compiled = {.seconds = 2};
    struct job_info info = {.age_seconds = NAN, .result = &result};
    (void)state;
    double begin = job_times_now() - 20;
    struct job_times *times = job_times_of(begin, &info);
    assert_true(fabs(times->submitted - begin - 0) < 1e-3);
    assert_true(fabs(times->running - times->answered + 3) < 1e-3);
    assert_true(isnan(times->ended) && isnan(times->ready) && isnan(times->compiling));
    free(times);
    info = (struct job_info){.age_seconds = NAN, .compiled = &compiled};
    times = job_times_of(begin, &info);
    assert_true(fabs(times->compiling - times->answered + 2) < 1e-3);
    assert_true(isnan(times->running));
    free(times);
    // An answer from a cache took nothing now.
    compiled.cached = true;
    times = job_times_of(begin, &info);
    assert_true(isnan(times->compiling));
    free(times);
    result.cached = true;
    info = (struct job_info){.age_seconds = NAN, .result = &result};
    times = job_times_of(begin, &info);
    assert_true(isnan(times->running));
    free(times);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ages_become_times_of_this_clock),
        cmocka_unit_test(an_older_daemon_says_it_by_its_results),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
