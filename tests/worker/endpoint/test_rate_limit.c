// The limits of requests to an endpoint, with a clock that the test moves.
#include "worker/endpoint/rate_limit.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define WALL 1760000000.0 // Thu, 09 Oct 2025 08:53:20 GMT

static void waits_are_understood_in_every_spelling(void **state)
{
    static const struct {
        const char *headers;
        double ms; // < 0: no pause
    } row[] = {
        {"", -1},
        {"retry-after: 5\n", 5000},
        {"retry-after: 0\n", -1},
        {"retry-after: -1\n", -1},
        {"retry-after: soon\n", -1},
        {"retry-after: Thu, 09 Oct 2025 08:53:30 GMT\n", 10000},
        {"retry-after: Thu, 09 Oct 2025 08:53:10 GMT\n", -1},
        {"retry-after-ms: 20\n", 20},
        {"x-ratelimit-reset-requests: 1s\n", 1000},
        {"x-ratelimit-reset-tokens: 6m0s\n", 360000},
        {"x-ratelimit-reset-tokens: 20ms\n", 20},
        {"x-ratelimit-reset-tokens: 1m1.5s\n", 61500},
        {"x-ratelimit-reset: 1760000007\n", 7000},
        {"retry-after: 5\nretry-after-ms: 9000\nx-ratelimit-reset-tokens: 20ms\n", 9000},
        {"retry-after: 99999999\n", RATE_LIMIT_RETRY_MAX_MS},
        {"retry-after: 1e999\n", -1},
        {"retry-after: 5 parsecs\n", -1},
        {"x-ratelimit-remaining-tokens: 5\n", -1},
        {"retry-after\n: 7\nretry-after: 3", 3000},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        double ms = rate_limit_retry_ms(row[i].headers, WALL);

        if (row[i].ms < 0 ? !isnan(ms) : !(fabs(ms - row[i].ms) < 1)) {
            fail_msg("%s: %g instead of %g", row[i].headers, ms, row[i].ms);
        }
    }
}

static void backoff_has_full_jitter_and_a_limit(void **state)
{
    (void)state;
    struct stats_rng rng;
    stats_rng_init(&rng, 1, 1);
    for (unsigned attempt = 0; attempt < 40; attempt++) {
        double most = 0, least = INFINITY, limit = fmin(500 * exp2(attempt), 30000);

        for (int i = 0; i < 200; i++) {
            double ms = rate_limit_backoff_ms(&rng, attempt);

            most = fmax(most, ms);
            least = fmin(least, ms);
        }
        assert_true(most <= limit && most > 0.8 * limit && least < 0.2 * limit);
    }
}

static void a_bucket_gives_what_flows_in(void **state)
{
    struct bucket bucket, open;

    (void)state;
    bucket_init(&bucket, 60, 1000);
    for (int i = 0; i < 60; i++) {
        assert_true(bucket_take(&bucket, 1, 1000) == 0);
    }
    assert_true(fabs(bucket_take(&bucket, 1, 1000) - 1000) < 1);
    assert_true(bucket_take(&bucket, 1, 1500) > 0);
    assert_true(bucket_take(&bucket, 1, 2001) == 0);
    // More than the bucket holds is given when it is full.
    assert_true(bucket_take(&bucket, 1e9, 62001) == 0);
    assert_true(bucket_take(&bucket, 1, 62001) > 0);
    bucket_init(&open, 0, 0);
    assert_true(bucket_take(&open, 1e9, 0) == 0);
}

static void the_window_grows_slowly_and_shrinks_at_once(void **state)
{
    (void)state;
    struct window window;
    window_init(&window, 8, 100);
    for (int i = 0; i < 8; i++) {
        window_success(&window);
    }
    assert_true(window.limit == 16); // doubled after as many successes as the limit
    window_refused(&window, 5000);
    window_refused(&window, 5100); // belongs to the same burst
    assert_true(window.limit == 8);
    for (int i = 0; i < 8; i++) {
        window_success(&window);
    }
    assert_true(window.limit > 8.9 && window.limit <= 9); // one more after a window of successes
    for (int i = 0; i < 20; i++) {
        window_refused(&window, 10000 + 2000 * (uint64_t)i);
    }
    assert_true(window.limit >= 1);
    for (int i = 0; i < 100000; i++) {
        window_success(&window);
    }
    assert_true(window.limit <= 100);
}

static void the_breaker_lets_one_try(void **state)
{
    (void)state;
    struct breaker breaker = {.failures = 0};
    for (int i = 0; i < BREAKER_FAILURES; i++) {
        assert_true(breaker_allows(&breaker, 1000));
        breaker_failure(&breaker, 1000);
    }
    assert_false(breaker_allows(&breaker, 5999));
    assert_true(breaker_allows(&breaker, 6000));
    breaker_begins(&breaker);
    assert_false(breaker_allows(&breaker, 6000)); // only one request may try
    breaker_failure(&breaker, 7000);
    assert_false(breaker_allows(&breaker, 16999)); // it stays open twice as long
    assert_true(breaker_allows(&breaker, 17000));
    breaker_begins(&breaker);
    breaker_success(&breaker);
    assert_true(breaker_allows(&breaker, 17000));
    for (int i = 0; i < 100; i++) {
        breaker_open(&breaker, 1000000);
    }
    assert_true(breaker.until_ms <= 1000000 + 300000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_are_understood_in_every_spelling),
        cmocka_unit_test(backoff_has_full_jitter_and_a_limit),
        cmocka_unit_test(a_bucket_gives_what_flows_in),
        cmocka_unit_test(the_window_grows_slowly_and_shrinks_at_once),
        cmocka_unit_test(the_breaker_lets_one_try),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
