// Callers who are let in and send more than is good for others.
#include "net/rpc/service_state.h"
#include "tests/net/fixture.h"

#define SPIN_NS UINT64_C(1000000) // that a request takes where time counts

// A service whose STATUS takes SPIN_NS of the loop's time.
struct flood {
    struct fixture *f;
    size_t served;
};

static void on_slow_request(void *owner, struct exchange *exchange, const struct request *request)
{
    struct flood *flood = owner;
    uint64_t start_ns = uv_hrtime();

    while (request->op == OP_STATUS && uv_hrtime() - start_ns < SPIN_NS) {
    }
    flood->served++;
    on_request(flood->f, exchange, request);
}

static struct flood open_slow(struct fixture *f)
{
    f->config.on_request = on_slow_request;
    return (struct flood){.f = f};
}

static int raw_caller(struct fixture *f)
{
    int fd = raw_connect(f);

    raw_greet(f, fd);
    raw_expect_greeting(f, fd);
    return fd;
}

static void send_many(struct fixture *f, int fd, size_t count)
{
    struct strbuf bytes = STRBUF_INIT;

    for (size_t id = 1; id <= count; id++) {
        add_request(&bytes, OP_STATUS, (uint32_t)id);
    }
    raw_send(f, fd, bytes.data, bytes.len);
    strbuf_release(&bytes);
}

// All of them arrive in one piece, and another caller's request after them.
static void requests_of_one_connection_do_not_delay_another(void **state)
{
    enum { COUNT = 300 };
    struct fixture *f = *state;
    struct flood flood = open_slow(f);

    f->config.owner = &flood;
    f->config.exchanges_max = 1000;
    f->config.on_refusal = NULL;
    reopen(f);
    int attacker = raw_caller(f);
    int other = raw_caller(f);
    send_many(f, attacker, COUNT);
    raw_request(f, other, OP_STATUS, 7);
    assert_int_equal(raw_reply(f, other), 7);
    assert_true(flood.served < COUNT / 4);
    for (uint32_t id = 1; id <= COUNT; id++) { // nothing is lost
        assert_int_equal(raw_reply(f, attacker), id);
    }
    close(attacker);
    close(other);
}

static void many_connections_do_not_delay_another(void **state)
{
    enum { CALLERS = 20, COUNT = 20 };
    struct fixture *f = *state;
    struct flood flood = open_slow(f);

    f->config.owner = &flood;
    f->config.exchanges_max = 1000;
    f->config.on_refusal = NULL;
    reopen(f);
    int attacker[CALLERS];
    for (size_t i = 0; i < CALLERS; i++) {
        attacker[i] = raw_caller(f);
    }
    int other = raw_caller(f);
    for (size_t i = 0; i < CALLERS; i++) {
        send_many(f, attacker[i], COUNT);
    }
    raw_request(f, other, OP_STATUS, 7);
    assert_int_equal(raw_reply(f, other), 7);
    assert_true(flood.served < (size_t)CALLERS * COUNT / 4);
    for (size_t i = 0; i < CALLERS; i++) {
        close(attacker[i]);
    }
    close(other);
}

// Bytes of replies that callers leave unread are bounded in all. Who has most is closed, and who
// reads is served.
static void unread_replies_are_bounded_in_all(void **state)
{
    enum { CALLERS = 40 };
    struct fixture *f = *state;
    int fd[CALLERS];

    f->config.exchanges_max = 64;
    reopen(f);
    size_t most = 0;
    for (size_t i = 0; i < CALLERS; i++) {
        fd[i] = raw_caller(f);
        for (uint32_t id = 1; id <= 4; id++) {
            raw_request(f, fd[i], OP_BLOB_HAVE, id);
        }
        for (int turn = 0; turn < 20; turn++) {
            (void)uv_run(&f->loop, UV_RUN_NOWAIT);
            most = f->service->unsent > most ? f->service->unsent : most;
        }
    }
    assert_true(most > BLOB_LEN);
    assert_true(most <= SERVICE_ALL_UNSENT_MAX);
    expect_success(f);
    assert_string_equal(f->refusal, "too many replies wait, and it reads the fewest");
    for (size_t i = 0; i < CALLERS; i++) {
        close(fd[i]);
    }
    while (f->service->unsent > 0) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
}

// Large frames that begin to arrive hold memory. It is bounded, whoever waits for room is not lost,
// and small requests pass.
static void frames_that_arrive_are_bounded_in_all(void **state)
{
    enum { CALLERS = 40 };
    // 2 MiB after the header.
    static const unsigned char head[] = {0, 0, 0, 0, 0, 0x20, 0, 4, 0x80, 0, 0, 1};
    struct fixture *f = *state;
    size_t part = ((size_t)2 << 20) - 1;
    char *zeroes = xcalloc(1, part);
    int fd[CALLERS];

    f->config.message_max = (size_t)4 << 20;
    reopen(f);
    for (size_t i = 0; i < CALLERS; i++) {
        fd[i] = raw_caller(f);
        raw_send(f, fd[i], head, sizeof(head));
        size_t sent = 0;
        for (int stuck = 0; sent < part && stuck < 50;) {
            ssize_t now = send(fd[i], zeroes, part - sent, MSG_NOSIGNAL | MSG_DONTWAIT);

            stuck = now > 0 ? 0 : stuck + 1;
            sent += now > 0 ? (size_t)now : 0;
            (void)uv_run(&f->loop, UV_RUN_NOWAIT);
        }
        assert_true(f->service->incoming <= SERVICE_INCOMING_MAX);
    }
    assert_non_null(f->service->blocked);
    expect_success(f);
    for (size_t i = 0; i < CALLERS; i++) {
        close(fd[i]);
    }
    while (f->service->incoming > 0) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
    expect_success(f);
    free(zeroes);
}

// Parked requests of one caller leave places for those of another.
static void parked_requests_leave_room_for_others(void **state)
{
    enum { PARKED = 18 };
    struct fixture *f = *state;

    f->config.exchanges_max = 64;
    f->config.parked_max = PARKED;
    reopen(f);
    int attacker = raw_caller(f);
    for (uint32_t id = 1; id <= PARKED; id++) {
        raw_request(f, attacker, OP_WAIT, id);
    }
    (void)raw_reply(f, attacker); // one of them was answered at once
    size_t held = f->held_count;
    assert_true(held < PARKED);
    call_wait(f, CALL_MS);
    run_until_held(f, held + 1);
    assert_int_equal(f->answers, 0);
    close(attacker);
}

static void on_later(void *owner)
{
    answer_held(owner, 0);
}

// Work that a request has left is done in a later turn, and not at all when the service closes.
static void later_work_is_done_or_forgotten(void **state)
{
    struct fixture *f = *state;
    int fd = raw_caller(f);

    raw_request(f, fd, OP_ACK, 5);
    run_until_held(f, 1);
    exchange_later(f->held[0], on_later, f);
    assert_int_equal(raw_reply(f, fd), 5);
    f->held_count = 0;
    raw_request(f, fd, OP_ACK, 6);
    raw_request(f, fd, OP_ACK, 7);
    run_until_held(f, 2);
    exchange_later(f->held[0], on_later, f);
    close(fd);
    for (int i = 0; i < 10; i++) { // its answer goes nowhere
        (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    }
    f->held[0] = f->held[1];
    exchange_later(f->held[0], on_later, f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(requests_of_one_connection_do_not_delay_another),
        TEST(many_connections_do_not_delay_another),
        TEST(unread_replies_are_bounded_in_all),
        TEST(frames_that_arrive_are_bounded_in_all),
        TEST(parked_requests_leave_room_for_others),
        TEST(later_work_is_done_or_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
