// Jobs of a daemon pool that are cancelled, one by one or at the end of a session, and those that
// are submitted again afterwards.
#include "tests/client/pool/daemon_pool_fixture.h"

static const struct fake_behaviour stuck = {.stuck = true};

// Opens a pool of the first daemon alone, or of both.
static void open_pool_of(struct fixture *f, size_t daemons, const char *search)
{
    if (daemons > 1) {
        open_daemon_pool(f, search);
        return;
    }
    f->options.pool[strcspn(f->options.pool, ",")] = '\0';
    struct err err = ERR_INIT;
    assert_int_equal(daemon_pool_create(&f->daemon_pool, f->session, search, NULL, &err), 0);
    daemon_pool_add_blob(f->daemon_pool, "{}", 2, &f->problem);
    for (size_t i = 0; i < ARRAY_LEN(f->source); i++) {
        daemon_pool_add_blob(f->daemon_pool, &i, sizeof(i), &f->source[i]);
    }
}

static struct fixture *begin_with(size_t daemons, const struct fake_behaviour *behaviour,
                                  const char *search)
{
    struct fixture *f = begin(behaviour, behaviour);
    open_pool_of(f, daemons, search);
    return f;
}

static bool anybody_has(struct fixture *f, size_t daemons, char *search, const char *key)
{
    bool has = false;
    for (size_t i = 0; i < daemons; i++) {
        has |= has_job(f, i, search, key);
    }
    return has;
}

static void cancel_some(size_t daemons)
{
    char search[] = "some";
    struct fixture *f = begin_with(daemons, &stuck, search);
    submit(f, 0, 4, JOB_MEASURE); // which do not end by themselves
    submit(f, 4, 8, JOB_COMPILE);
    run_until(f, 4);
    while (!anybody_has(f, daemons, search, "m0") || !anybody_has(f, daemons, search, "m3")) {
    }
    assert_int_equal(daemon_pool_outstanding(f->daemon_pool), 4);
    cancel(f, "m0");
    cancel(f, "m3");
    assert_int_equal(daemon_pool_outstanding(f->daemon_pool), 2);
    cancel(f, "m0");  // is cancelled
    cancel(f, "c5");  // is over
    cancel(f, "m77"); // never was
    assert_int_equal(daemon_pool_outstanding(f->daemon_pool), 2);
    while (anybody_has(f, daemons, search, "m0") || anybody_has(f, daemons, search, "m3")) {
    }
    submit(f, 8, 12, JOB_COMPILE); // the others go on
    run_until(f, 8);
    assert_true(anybody_has(f, daemons, search, "m1") && anybody_has(f, daemons, search, "m2"));
    assert_true(anybody_has(f, daemons, search, "c5"));
    cancel(f, "m1");
    cancel(f, "m2");
    assert_int_equal(daemon_pool_outstanding(f->daemon_pool), 0);
    struct err err = ERR_INIT;
    assert_int_equal(daemon_pool_drain(f->daemon_pool, &err), 0);
    while (anybody_has(f, daemons, search, "m1") || anybody_has(f, daemons, search, "m2")) {
    }
    for (size_t i = 0; i < 12; i++) {
        assert_int_equal(f->answers[i], i < 4 ? 0 : 1);
    }
    assert_int_equal(f->refused.code, ERR_NONE);
    end(f);
}

static void a_cancelled_job_ends_at_its_daemon_and_brings_no_answer(void **state)
{
    (void)state;
    cancel_some(1);
    cancel_some(2);
}

// Nothing was sent yet, so that the daemon never hears of it.
static void a_job_that_was_just_submitted_can_be_cancelled(void **state)
{
    (void)state;
    struct fixture *f = begin_with(2, &usual, "early");
    submit(f, 0, 6, JOB_MEASURE);
    cancel(f, "m2");
    cancel(f, "m5");
    assert_int_equal(daemon_pool_outstanding(f->daemon_pool), 4);
    run_until(f, 4);
    assert_int_equal(f->answers[2] + f->answers[5], 0);
    assert_int_equal(jobs_at(f, 0) + jobs_at(f, 1), 4);
    end(f);
}

// A job that two daemons have is cancelled at both.
static void a_job_that_went_to_another_daemon_is_cancelled_at_both(void **state)
{
    (void)state;
    char search[] = "both";
    struct fixture *f = begin_with(2, &stuck, search);
    submit(f, 0, 2, JOB_MEASURE);
    while (!anybody_has(f, 2, search, "m0") || !anybody_has(f, 2, search, "m1")) {
    }
    const char *key = has_job(f, 0, search, "m0") ? "m0" : "m1";
    kill(f->fake[0].pid, SIGUSR2); // its devices rest, so that its job goes to the other as well
    while (!has_job(f, 1, search, key)) {
    }
    assert_true(has_job(f, 0, search, key));
    cancel(f, key);
    assert_int_equal(daemon_pool_outstanding(f->daemon_pool), 1);
    while (has_job(f, 0, search, key) || has_job(f, 1, search, key)) {
    }
    assert_int_equal(f->answered, 0);
    end(f);
}

static void a_job_that_waits_for_a_daemon_can_be_cancelled(void **state)
{
    (void)state;
    struct fixture *f = begin(&usual, &usual);
    f->clock.monotonic_ns = ahead_ns;
    open_daemon_pool_times(
        f, "waits",
        (struct daemon_pool_times){.poll = 50, .away = 300, .look_up = 50, .patience = UINT32_MAX});
    fake_stop(&f->fake[0]);
    fake_stop(&f->fake[1]);
    struct err err = ERR_INIT;
    while (said(f, "going on without it") < 2) {
        assert_int_equal(daemon_pool_run_once(f->daemon_pool, &err), 0);
    }
    submit(f, 0, 3, JOB_MEASURE);
    assert_int_equal(daemon_pool_outstanding(f->daemon_pool), 3);
    cancel(f, "m1");
    assert_int_equal(daemon_pool_outstanding(f->daemon_pool), 2);
    fake_start_at(&f->fake[0], 1, f->fake[0].pool);
    run_until(f, 2);
    assert_int_equal(f->answers[0] + f->answers[2], 2);
    assert_int_equal(daemon_pool_outstanding(f->daemon_pool), 0);
    assert_int_equal(jobs_at(f, 0), 2);
    fake_start_at(&f->fake[1], 1, f->fake[1].pool); // which end() stops
    end(f);
}

static void wait_for_four(struct fixture *f, size_t daemons, char *search)
{
    for (size_t i = 0; i < 4; i++) {
        char key[32];
        snprintf(key, sizeof(key), "m%zu", i);
        while (!anybody_has(f, daemons, search, key)) {
        }
    }
}

// What a session has cancelled, when it was not wanted any more, a later one may want again.
static void begin_again(size_t daemons)
{
    char search[] = "again";
    struct fixture *f = begin_with(daemons, &stuck, search);
    submit(f, 0, 4, JOB_MEASURE);
    wait_for_four(f, daemons, search);
    cancel(f, "m0");
    daemon_pool_cancel_all(f->daemon_pool);
    assert_false(anybody_has(f, daemons, search, "m3"));
    daemon_pool_close(f->daemon_pool);
    f->daemon_pool = NULL;
    open_pool_of(f, daemons, search);
    submit(f, 0, 4, JOB_MEASURE);
    wait_for_four(f, daemons, search);
    assert_int_equal(f->answered, 0); // no daemon says that it has cancelled it
    assert_int_equal(daemon_pool_outstanding(f->daemon_pool), 4);
    end(f);
}

static void a_job_that_an_earlier_session_cancelled_is_submitted_anew(void **state)
{
    (void)state;
    begin_again(1);
    begin_again(2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cancelled_job_ends_at_its_daemon_and_brings_no_answer),
        cmocka_unit_test(a_job_that_was_just_submitted_can_be_cancelled),
        cmocka_unit_test(a_job_that_went_to_another_daemon_is_cancelled_at_both),
        cmocka_unit_test(a_job_that_waits_for_a_daemon_can_be_cancelled),
        cmocka_unit_test(a_job_that_an_earlier_session_cancelled_is_submitted_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
