// One endpoint: when it takes a request, what an answer changes, and which failures pass. Time is
// what the test says.
#include "worker/endpoint/endpoint_state.h"

#include "common/mem.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NOW 1000000ull

static struct endpoint make(double requests_per_minute, double tokens_per_minute, double in_flight)
{
    const struct endpoint_config config = {.url = "http://h/v1",
                                           .model = "m",
                                           .key = "secret",
                                           .weight = 1,
                                           .requests_per_minute = requests_per_minute,
                                           .tokens_per_minute = tokens_per_minute,
                                           .in_flight = in_flight};
    struct endpoint endpoint;

    endpoint_init(&endpoint, &config, NOW);
    endpoint.proven = true;
    endpoint.answered = true;
    return endpoint;
}

// Begins a request, as the set of endpoints does.
static void begin(struct endpoint *endpoint)
{
    breaker_begins(&endpoint->breaker);
    endpoint->status.in_flight++;
}

// A request that is answered like this.
static void answer(struct endpoint *endpoint, long status, enum err_code code, const char *headers,
                   uint64_t now_ms)
{
    struct http_reply reply = {.status = status, .err = {.code = code}};

    (void)snprintf(reply.headers, sizeof(reply.headers), "%s", headers);
    begin(endpoint);
    struct refusal refusal;
    endpoint_read_refusal(endpoint, &reply, &refusal);
    endpoint_update(endpoint, &reply, &refusal, now_ms);
}

static void the_configuration_is_copied_and_the_key_only_in_the_header(void **state)
{
    char url[] = "http://h/v1", model[] = "m", key[] = "secret";
    const struct endpoint_config config = {.url = url, .model = model, .key = key, .weight = 2};

    (void)state;
    struct endpoint endpoint;
    endpoint_init(&endpoint, &config, NOW);
    memset(url, 'x', sizeof(url) - 1);
    memset(model, 'x', sizeof(model) - 1);
    memset(key, 'x', sizeof(key) - 1);
    assert_string_equal(endpoint.config.url, "http://h/v1");
    assert_string_equal(endpoint.config.model, "m");
    assert_null(endpoint.config.key);
    assert_string_equal(endpoint.authorization, "Authorization: Bearer secret");
    assert_true(endpoint_has_model(&endpoint, "m"));
    assert_false(endpoint_has_model(&endpoint, "m2"));
    assert_false(endpoint_has_model(&endpoint, ""));
    assert_false(endpoint_has_model(&endpoint, NULL));
    endpoint_release(&endpoint);
    // A local server takes no key, and then there is no header.
    const struct endpoint_config open = {.url = "http://h", .model = "m"};
    endpoint_init(&endpoint, &open, NOW);
    assert_null(endpoint.authorization);
    endpoint_release(&endpoint);
}

static void it_takes_as_many_at_once_as_the_window(void **state)
{
    (void)state;
    struct endpoint endpoint = make(0, 0, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(endpoint_reserve(&endpoint, 1e9, NOW), 0);
        begin(&endpoint);
    }
    // Not before another request ends, and no time says when that is.
    assert_true(endpoint_reserve(&endpoint, 1, NOW) == UINT64_MAX);
    const struct http_reply reply = {.status = 200};
    const struct refusal none = {.kind = REFUSAL_NONE};
    endpoint_update(&endpoint, &reply, &none, NOW);
    assert_int_equal(endpoint_reserve(&endpoint, 1, NOW), 0);
    endpoint_release(&endpoint);
}

static void buckets_say_when_there_is_enough(void **state)
{
    (void)state;
    struct endpoint endpoint = make(60, 6000, 100);
    assert_int_equal(endpoint_reserve(&endpoint, 5000, NOW), 0);
    assert_int_equal(endpoint_reserve(&endpoint, 1000, NOW), 0);
    assert_int_equal(endpoint_reserve(&endpoint, 100, NOW), NOW + 1000);
    // A request that waits for tokens has not used up one of the requests.
    for (int i = 0; i < 200; i++) {
        assert_int_equal(endpoint_reserve(&endpoint, 100, NOW), NOW + 1000);
    }
    assert_true(endpoint.requests.level == 58);
    assert_int_equal(endpoint_reserve(&endpoint, 100, NOW + 1000), 0);
    // Now requests are what is scarce.
    for (int i = 0; i < 58; i++) {
        assert_int_equal(endpoint_reserve(&endpoint, 0, NOW + 1000), 0);
    }
    assert_int_equal(endpoint_reserve(&endpoint, 0, NOW + 1000), NOW + 2000);
    endpoint_release(&endpoint);
}

static void which_failures_pass(void **state)
{
    static const struct {
        long status;
        enum err_code code;
        bool passes;
    } row[] = {
        {200, ERR_NONE, false},   {400, ERR_NONE, false},       {401, ERR_NONE, false},
        {403, ERR_NONE, false},   {404, ERR_NONE, false},       {408, ERR_NONE, true},
        {413, ERR_NONE, false},   {422, ERR_NONE, false},       {429, ERR_NONE, true},
        {500, ERR_NONE, true},    {501, ERR_NONE, false},       {502, ERR_NONE, true},
        {503, ERR_NONE, true},    {504, ERR_NONE, true},        {529, ERR_NONE, true},
        {0, ERR_TIMED_OUT, true}, {0, ERR_UNREACHABLE, true},   {0, ERR_INVALID, true},
        {0, ERR_LIMIT, false},    {200, ERR_LIMIT, false},      {0, ERR_DENIED, false},
        {301, ERR_DENIED, false}, {200, ERR_UNREACHABLE, true}, // the answer broke off
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct http_reply reply = {.status = row[i].status, .err = {.code = row[i].code}};

        struct refusal refusal;
        refusal_read(&refusal, reply.status, "", 0);
        if (endpoint_failure_passes(&reply, &refusal) != row[i].passes) {
            fail_msg("status %ld, %s", row[i].status, err_name(row[i].code));
        }
    }
}

static void a_wait_that_is_asked_for_is_kept_and_does_not_open_the_breaker(void **state)
{
    (void)state;
    struct endpoint endpoint = make(0, 0, 100);
    for (int i = 0; i < 3 * BREAKER_FAILURES; i++) {
        answer(&endpoint, 429, ERR_NONE, "retry-after: 7\n", NOW);
    }
    assert_int_equal(endpoint.status.failures, 3 * BREAKER_FAILURES);
    assert_int_equal(endpoint.status.in_flight, 0);
    assert_int_equal(endpoint_reserve(&endpoint, 1, NOW), NOW + 7000);
    assert_int_equal(endpoint_reserve(&endpoint, 1, NOW + 6999), NOW + 7000);
    assert_int_equal(endpoint_reserve(&endpoint, 1, NOW + 7000), 0);
    // A shorter wait that comes later does not shorten the longer one.
    answer(&endpoint, 503, ERR_NONE, "retry-after: 9\n", NOW + 7000);
    answer(&endpoint, 503, ERR_NONE, "retry-after: 1\n", NOW + 7000);
    assert_int_equal(endpoint_reserve(&endpoint, 1, NOW + 7000), NOW + 16000);
    // A server's fault is no request to wait, whatever its headers say.
    struct endpoint other = make(0, 0, 100);
    answer(&other, 500, ERR_NONE, "retry-after: 7\n", NOW);
    assert_int_equal(endpoint_reserve(&other, 1, NOW), 0);
    endpoint_release(&other);
    endpoint_release(&endpoint);
}

static void crowding_halves_the_window_and_other_faults_do_not(void **state)
{
    static const struct {
        long status;
        enum err_code code;
        bool halves;
    } row[] = {
        {429, ERR_NONE, true},       {503, ERR_NONE, true},         {529, ERR_NONE, true},
        {0, ERR_TIMED_OUT, true},    {500, ERR_NONE, false},        {502, ERR_NONE, false},
        {0, ERR_UNREACHABLE, false}, {200, ERR_UNREACHABLE, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct endpoint endpoint = make(0, 0, 100);
        double before = endpoint.window.limit;

        answer(&endpoint, row[i].status, row[i].code, "", NOW);
        assert_true(endpoint.window.limit == (row[i].halves ? before / 2 : before));
        assert_int_equal(endpoint.status.failures, 1);
        endpoint_release(&endpoint);
    }
}

static void failures_in_a_row_rest_the_endpoint_until_one_request_succeeds(void **state)
{
    (void)state;
    struct endpoint endpoint = make(0, 0, 100);
    for (int i = 0; i < BREAKER_FAILURES - 1; i++) {
        answer(&endpoint, 500, ERR_NONE, "", NOW);
    }
    answer(&endpoint, 400, ERR_NONE, "", NOW); // an answer, if no welcome one: the row is broken
    for (int i = 0; i < BREAKER_FAILURES - 1; i++) {
        answer(&endpoint, 0, ERR_UNREACHABLE, "", NOW);
    }
    assert_int_equal(endpoint_reserve(&endpoint, 1, NOW), 0);
    answer(&endpoint, 0, ERR_LIMIT, "", NOW); // an answer that is too large is a failure, too
    uint64_t until = endpoint_reserve(&endpoint, 1, NOW);
    assert_int_equal(until, NOW + 5000);
    assert_int_equal(endpoint.status.failures, 2 * BREAKER_FAILURES - 1);
    // One request may try, and nobody else meanwhile.
    assert_int_equal(endpoint_reserve(&endpoint, 1, until), 0);
    begin(&endpoint);
    assert_true(endpoint_reserve(&endpoint, 1, until) == UINT64_MAX);
    const struct http_reply good = {.status = 200};
    const struct refusal none = {.kind = REFUSAL_NONE};
    endpoint_update(&endpoint, &good, &none, until);
    assert_int_equal(endpoint_reserve(&endpoint, 1, until), 0);
    endpoint_release(&endpoint);
}

static void a_wait_ends_the_trial_of_a_resting_endpoint(void **state)
{
    (void)state;
    struct endpoint endpoint = make(0, 0, 100);
    for (int i = 0; i < BREAKER_FAILURES; i++) {
        answer(&endpoint, 500, ERR_NONE, "", NOW);
    }
    answer(&endpoint, 429, ERR_NONE, "retry-after: 3\n", NOW + 5000);
    assert_int_equal(endpoint_reserve(&endpoint, 1, NOW + 5000), NOW + 8000);
    assert_int_equal(endpoint_reserve(&endpoint, 1, NOW + 8000), 0);
    endpoint_release(&endpoint);
}

static void a_refused_key_rests_the_endpoint_at_once(void **state)
{
    static const long status[] = {401, 403};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(status); i++) {
        struct endpoint endpoint = make(0, 0, 100);

        answer(&endpoint, status[i], ERR_NONE, "", NOW);
        assert_int_equal(endpoint_reserve(&endpoint, 1, NOW), NOW + 5000);
        assert_int_equal(endpoint.status.in_flight, 0);
        assert_int_equal(endpoint.status.failures, 1);
        assert_false(endpoint_is_hopeful(&endpoint, NOW + 60000, true)); // not even with patience
        endpoint_release(&endpoint);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_configuration_is_copied_and_the_key_only_in_the_header),
        cmocka_unit_test(it_takes_as_many_at_once_as_the_window),
        cmocka_unit_test(buckets_say_when_there_is_enough),
        cmocka_unit_test(which_failures_pass),
        cmocka_unit_test(a_wait_that_is_asked_for_is_kept_and_does_not_open_the_breaker),
        cmocka_unit_test(crowding_halves_the_window_and_other_faults_do_not),
        cmocka_unit_test(failures_in_a_row_rest_the_endpoint_until_one_request_succeeds),
        cmocka_unit_test(a_wait_ends_the_trial_of_a_resting_endpoint),
        cmocka_unit_test(a_refused_key_rests_the_endpoint_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
