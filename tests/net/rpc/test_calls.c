// A service and a remote against each other, on loopback and in one loop.
#include "tests/net/fixture.h"

static void hello_agrees_on_a_version(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    struct hello_reply hello;

    assert_int_equal(remote_hello_sync(f->remote, "kcastd", &hello, &err), 0);
    assert_int_equal(hello.version, 1);
    assert_int_equal(hello.features_count, 2);
    assert_int_equal(hello.pid, getpid());
    message_clear(&hello_reply_message, &hello);
    assert_int_equal(remote_hello_sync(f->remote, "kcast-worker", &hello, &err), ERR_PROTOCOL);
    assert_non_null(strstr(err.text, "is a kcastd where a kcast-worker is needed"));
}

static void a_client_of_the_future_is_refused_with_a_sentence(void **state)
{
    struct fixture *f = *state;
    struct hello_request hello = {.version_min = 90, .version_max = 99};

    call(f, OP_HELLO, &hello_request_message, &hello, &hello_reply_message, CALL_MS);
    run_until(f, 1);
    assert_int_equal(f->last_error, ERR_VERSION);
    assert_non_null(strstr(f->last_text, "protocol 1 to 1"));
}

static void many_calls_are_answered_each_once(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 200; i++) {
        call_status(f);
    }
    run_until(f, 200);
    assert_int_equal(f->successes, 200);
    assert_int_equal(service_request_count(f->service), 200);
}

static void parked_requests_do_not_block_others_and_are_bounded(void **state)
{
    struct fixture *f = *state;

    for (int i = 0; i < 6; i++) {
        call_wait(f, CALL_MS);
    }
    run_until(f, 1); // the sixth is answered at once
    assert_int_equal(f->held_count, 5);
    for (int i = 0; i < 100; i++) {
        call_status(f);
    }
    run_until(f, 101);
    assert_int_equal(f->successes, 101);
    for (size_t i = 0; i < f->held_count; i++) {
        answer_held(f, i);
    }
    run_until(f, 106);
    assert_int_equal(f->successes, 106);
}

// Requests beyond what the service takes wait unread, on one connection and on two, and all are
// answered in the end.
static void a_full_service_reads_on_when_there_is_room(void **state)
{
    struct fixture *f = *state;
    int fd = raw_connect(f);

    raw_greet(f, fd);
    raw_expect_greeting(f, fd);
    for (int i = 0; i < 20; i++) {
        call(f, OP_ACK, NULL, NULL, &waited_message, CALL_MS);
    }
    run_until_held(f, 8);
    for (uint32_t id = 1; id <= 20; id++) {
        raw_request(f, fd, OP_ACK, id);
    }
    for (int i = 0; i < 20; i++) {
        (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(f->held_count, 8);
    assert_int_equal(service_request_count(f->service), 8);
    for (size_t i = 0; i < 40; i++) {
        run_until_held(f, i + 1);
        answer_held(f, i);
        assert_true(f->held_count <= i + 9);
    }
    run_until(f, 20);
    assert_int_equal(f->successes, 20);
    for (uint32_t id = 1; id <= 20; id++) {
        assert_int_equal(raw_reply(f, fd), id);
    }
    close(fd);
}

static void a_deadline_ends_a_call_that_nobody_answers(void **state)
{
    struct fixture *f = *state;

    f->no_drop = true;
    expect_success(f); // it is connected, so the call is sent at once
    call_wait(f, 20);
    run_until(f, 2);
    assert_int_equal(f->last_error, ERR_TIMED_OUT);
    assert_non_null(strstr(f->last_text, "gave no answer within the deadline"));
    run_until_held(f, 1);
    answer_held(f, 0); // too late, so the reply is ignored
    expect_success(f);
    assert_int_equal(f->answers, 3);
}

static void an_error_reply_arrives_with_code_and_text(void **state)
{
    struct fixture *f = *state;

    call(f, OP_CANCEL, NULL, NULL, &job_infos_message, CALL_MS);
    run_until(f, 1);
    assert_int_equal(f->last_error, ERR_UNSUPPORTED);
    assert_non_null(strstr(f->last_text, "not known here"));
}

static void a_body_of_the_wrong_kind_is_refused_by_name(void **state)
{
    struct fixture *f = *state;
    struct fact fact = {.name = (char *)(uintptr_t) "x", .value = 1};

    call(f, OP_STATUS, &fact_message, &fact, &status_message, CALL_MS);
    run_until(f, 1);
    assert_int_equal(f->last_error, ERR_PROTOCOL);
    assert_non_null(strstr(f->last_text, "STATUS"));
    call(f, OP_STATUS, NULL, NULL, &fact_message, CALL_MS); // a reply of the wrong kind
    run_until(f, 2);
    assert_int_equal(f->last_error, ERR_PROTOCOL);
    expect_success(f);
}

static void a_request_that_is_too_long_is_not_sent(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    struct hello_reply hello;
    struct blob_put put = {.digest = digest_of("x", 1), .data = {f->blob_data, BLOB_LEN}};

    assert_int_equal(remote_hello_sync(f->remote, "kcastd", &hello, &err), 0);
    message_clear(&hello_reply_message, &hello);
    call(f, OP_BLOB_PUT, &blob_put_message, &put, &empty_message, CALL_MS);
    assert_int_equal(f->answers, 0); // never inside remote_call
    run_until(f, 1);
    assert_int_equal(f->last_error, ERR_LIMIT);
    assert_non_null(strstr(f->last_text, "takes 1048576"));
    expect_success(f);
}

// No other event wakes the loop.
static void a_call_that_cannot_be_packed_ends_by_itself(void **state)
{
    struct fixture *f = *state;
    struct blob_put put = {.digest = digest_of("x", 1), .data = {f->blob_data, BLOB_LEN + 1}};
    uv_loop_t loop;

    assert_int_equal(uv_loop_init(&loop), 0);
    struct err err = ERR_INIT;
    struct remote *remote;
    assert_int_equal(remote_create(&remote, &loop, service_url(f->service), &err), 0);
    struct empty empty;
    assert_int_equal(remote_call_sync(remote, OP_BLOB_PUT, &blob_put_message, &put, &empty_message,
                                      &empty, CALL_MS, &err),
                     ERR_LIMIT);
    remote_close(remote);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

// --- many in flight

struct numbered {
    struct fixture *f;
    uint64_t number;
    uint64_t *order; // the numbers in the order of their answers
};

static void on_numbered(void *owner, const struct err *error, uint64_t retry, void *reply)
{
    struct numbered *one = owner;
    const struct waited *waited = reply;

    (void)retry;
    assert_null(error);
    assert_int_equal(waited->unknown_count, 1);
    assert_int_equal(waited->unknown[0], one->number);
    one->order[one->f->answers++] = one->number;
}

static void a_thousand_in_flight_are_answered_in_any_order(void **state)
{
    enum { COUNT = 1000 };
    struct fixture *f = *state;
    struct numbered *ones = xcalloc(COUNT, sizeof(*ones));
    uint64_t *order = xcalloc(COUNT, sizeof(*order));

    f->config.exchanges_max = 1400; // one party gets eight ninths of it
    f->config.parked_max = 1200;
    reopen(f);
    for (uint64_t i = 0; i < COUNT; i++) {
        struct wait wait = {.jobs = &i, .jobs_count = 1};

        ones[i] = (struct numbered){f, i, order};
        remote_call(f->remote, OP_WAIT, &wait_message, &wait, &waited_message, CALL_MS, on_numbered,
                    &ones[i]);
    }
    run_until_held(f, COUNT);
    for (uint64_t i = COUNT; i-- > 0;) {
        struct waited waited = {.unknown = &i, .unknown_count = 1};

        exchange_reply(f->held[i], &waited_message, &waited);
    }
    run_until(f, COUNT);
    for (uint64_t i = 0; i < COUNT; i++) {
        assert_int_equal(order[i], COUNT - 1 - i);
    }
    free(order);
    free(ones);
}

// --- servers that stop and start

static void a_call_made_while_the_server_is_away_waits_for_it(void **state)
{
    struct fixture *f = *state;
    char url[64];

    (void)snprintf(url, sizeof(url), "%s", service_url(f->service));
    service_close(f->service);
    remote_close(f->remote);
    struct err err = ERR_INIT;
    assert_int_equal(remote_create(&f->remote, &f->loop, url, &err), 0);
    call_status(f);
    for (int i = 0; i < 4; i++) { // at least one attempt fails
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
    assert_int_equal(f->answers, 0);
    open_service(f, url);
    run_until(f, 1);
    assert_int_equal(f->last_error, ERR_NONE);
}

static void sent_calls_end_with_the_server_and_the_next_call_finds_the_new_one(void **state)
{
    struct fixture *f = *state;
    char url[64];

    (void)snprintf(url, sizeof(url), "%s", service_url(f->service));
    for (int round = 0; round < 5; round++) {
        f->answers = f->successes = 0;
        f->held_count = f->drops = 0;
        for (int i = 0; i < 5; i++) {
            call_wait(f, CALL_MS);
        }
        run_until_held(f, 5);
        service_close(f->service);
        assert_int_equal(f->drops, 5);
        run_until(f, 5);
        assert_int_equal(f->last_error, ERR_UNREACHABLE);
        assert_non_null(strstr(f->last_text, "broke: "));
        call_status(f);
        open_service(f, url);
        run_until(f, 6);
        assert_int_equal(f->last_error, ERR_NONE);
        assert_int_equal(f->successes, 1);
    }
}

static void an_absent_server_is_reported_at_the_deadline_with_the_reason(void **state)
{
    struct fixture *f = *state;

    remote_close(f->remote);
    struct err err = ERR_INIT;
    assert_int_equal(remote_create(&f->remote, &f->loop, "tcp://127.0.0.1:1", &err), 0);
    call(f, OP_STATUS, NULL, NULL, &status_message, 100);
    run_until(f, 1);
    assert_int_equal(f->last_error, ERR_TIMED_OUT);
    assert_non_null(strstr(f->last_text, "within the deadline: Connection refused"));
}

static void an_unreachable_server_is_one_sentence(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    struct remote *nobody;

    assert_int_equal(remote_create(&nobody, &f->loop, "tcp://127.0.0.1:1", &err), 0);
    struct hello_reply hello;
    for (int i = 0; i < 3; i++) {
        err_clear(&err);
        assert_int_equal(remote_hello_sync(nobody, "kcastd", &hello, &err), ERR_UNREACHABLE);
        assert_string_equal(err.text, "no kcastd answers on tcp://127.0.0.1:1; start one, name "
                                      "another, or use --local: Connection refused");
    }
    remote_close(nobody);
}

static void host_names_are_resolved(void **state)
{
    struct fixture *f = *state;
    char long_name[201];

    memset(long_name, 'a', sizeof(long_name));
    struct err err = ERR_INIT;
    struct url at;
    remote_close(f->remote);
    service_close(f->service);
    open_service(f, "tcp://127.0.0.1:0");
    assert_int_equal(url_parse(&at, service_url(f->service), &err), 0);
    char url[400];
    (void)snprintf(url, sizeof(url), "tcp://localhost:%u", at.port);
    assert_int_equal(remote_create(&f->remote, &f->loop, url, &err), 0);
    expect_success(f); // whichever of 127.0.0.1 and ::1 comes first
    (void)snprintf(url, sizeof(url), "tcp://%.200s:%u", long_name, at.port); // not a host
    struct remote *remote;
    assert_int_equal(remote_create(&remote, &f->loop, url, &err), 0);
    struct hello_reply hello;
    assert_int_equal(remote_hello_sync(remote, "kcastd", &hello, &err), ERR_UNREACHABLE);
    assert_non_null(strstr(err.text, "is not known: "));
    remote_close(remote);
    // Closed during the lookup.
    (void)snprintf(url, sizeof(url), "tcp://localhost:%u", at.port);
    assert_int_equal(remote_create(&remote, &f->loop, url, &err), 0);
    remote_call(remote, OP_STATUS, NULL, NULL, &status_message, CALL_MS, on_answer, f);
    (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    remote_close(remote);
    assert_int_equal(f->last_error, ERR_STOPPED);
}

// --- closing

static void closing_ends_pending_calls(void **state)
{
    struct fixture *f = *state;

    call_wait(f, CALL_MS);
    run_until_held(f, 1);
    remote_close(f->remote);
    assert_int_equal(f->answers, 1);
    assert_int_equal(f->last_error, ERR_STOPPED);
    struct err err = ERR_INIT;
    assert_int_equal(remote_create(&f->remote, &f->loop, service_url(f->service), &err), 0);
}

// Each call ends exactly once, whichever side closes and at whatever moment.
static void closing_at_any_moment_ends_each_call_once(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;

    for (int round = 0; round < 600; round++) {
        f->answers = 0;
        f->held_count = 0;
        for (int i = 0; i < 12; i++) {
            if (i % 3 == 2) {
                call_wait(f, CALL_MS);
            } else {
                call_status(f);
            }
        }
        for (int i = 0; i < round % 15; i++) {
            (void)uv_run(&f->loop, UV_RUN_NOWAIT);
        }
        if (round % 2 == 0) {
            service_close(f->service);
            for (int i = 0; i < round % 4; i++) {
                (void)uv_run(&f->loop, UV_RUN_NOWAIT);
            }
            remote_close(f->remote);
            open_service(f, own_url());
        } else {
            remote_close(f->remote);
        }
        assert_int_equal(f->answers, 12);
        assert_int_equal(remote_create(&f->remote, &f->loop, service_url(f->service), &err), 0);
    }
    expect_success(f);
}

static void close_from_callback(void *owner, const struct err *error, uint64_t retry, void *reply)
{
    struct fixture *f = owner;
    struct remote *remote = f->remote;

    on_answer(owner, error, retry, reply);
    f->remote = NULL;
    remote_close(remote);
}

static void a_callback_may_close_the_remote(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;

    // The call ends by a reply, then by the service's end, then by its deadline.
    for (int round = 0; round < 3; round++) {
        f->answers = 0;
        f->held_count = 0;
        f->no_drop = round == 2;
        remote_call(f->remote, round == 0 ? OP_STATUS : OP_WAIT, NULL, NULL,
                    round == 0 ? &status_message : &waited_message, round == 2 ? 20 : CALL_MS,
                    close_from_callback, f);
        for (int i = 0; i < 3; i++) {
            call(f, OP_ACK, NULL, NULL, &waited_message, CALL_MS);
        }
        if (round == 1) {
            run_until_held(f, 3);
            service_close(f->service);
            open_service(f, own_url());
        }
        run_until(f, 4);
        assert_null(f->remote);
        assert_int_equal(remote_create(&f->remote, &f->loop, service_url(f->service), &err), 0);
    }
}

// --- addresses

static void an_open_listener_is_refused(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    struct service *open;
    struct service_config config = {
        .url = "tcp://0.0.0.0:0", .exchanges_max = 1, .parked_max = 1, .message_max = 1024};

    assert_int_equal(service_create(&open, &f->loop, &config, &err), ERR_DENIED);
    assert_non_null(strstr(err.text, "not on loopback"));
    config.url = service_url(f->service);
    err_clear(&err);
    assert_int_equal(service_create(&open, &f->loop, &config, &err), ERR_BUSY);
    assert_non_null(strstr(err.text, service_url(f->service)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(hello_agrees_on_a_version),
        TEST(a_client_of_the_future_is_refused_with_a_sentence),
        TEST(many_calls_are_answered_each_once),
        TEST(parked_requests_do_not_block_others_and_are_bounded),
        TEST(a_full_service_reads_on_when_there_is_room),
        TEST(a_deadline_ends_a_call_that_nobody_answers),
        TEST(an_error_reply_arrives_with_code_and_text),
        TEST(a_body_of_the_wrong_kind_is_refused_by_name),
        TEST(a_request_that_is_too_long_is_not_sent),
        TEST(a_call_that_cannot_be_packed_ends_by_itself),
        TEST(a_thousand_in_flight_are_answered_in_any_order),
        TEST(a_call_made_while_the_server_is_away_waits_for_it),
        TEST(sent_calls_end_with_the_server_and_the_next_call_finds_the_new_one),
        TEST(an_absent_server_is_reported_at_the_deadline_with_the_reason),
        TEST(an_unreachable_server_is_one_sentence),
        TEST(host_names_are_resolved),
        TEST(closing_ends_pending_calls),
        TEST(closing_at_any_moment_ends_each_call_once),
        TEST(a_callback_may_close_the_remote),
        TEST(an_open_listener_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
