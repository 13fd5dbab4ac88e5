// What commands that wait say on stderr, here a file and so no terminal, while two daemons are
// drained and their measurements never end.
#include "client/pool/job_progress.h"
#include "tests/client/pool/daemon_pool_fixture.h"

static const struct fake_behaviour stuck = {.stuck = true};

struct told {
    struct fixture *f;
    struct clock clock; // of the progress; moves when a test says so
    FILE *out;
    char *text;
    size_t len;
    struct job_progress *job_progress;
};

static void begin_telling(struct told *told, const char *search, bool quiet)
{
    *told = (struct told){.f = begin(&stuck, &stuck)};
    told->f->options.quiet = quiet;
    open_daemon_pool(told->f, search);
    clock_fake_init(&told->clock, NS_PER_S);
    told->out = open_memstream(&told->text, &told->len);
    told->job_progress = job_progress_create(told->f->session, told->f->daemon_pool, "measured",
                                             told->out, &told->clock);
}

static void end_telling(struct told *told)
{
    job_progress_free(told->job_progress);
    end(told->f);
    fclose(told->out);
    free(told->text);
}

static void drain(const struct fixture *f)
{
    kill(f->fake[0].pid, SIGUSR2);
    kill(f->fake[1].pid, SIGUSR2);
}

static size_t times_told(const struct told *told, const char *words)
{
    size_t count = 0;

    fflush(told->out);
    for (const char *at = told->text; (at = strstr(at, words)); at++) {
        count++;
    }
    return count;
}

static void run_until_told(const struct told *told, const char *words)
{
    struct err err = ERR_INIT;

    while (times_told(told, words) == 0) {
        if (daemon_pool_run_once(told->f->daemon_pool, &err) != 0) {
            fail_msg("%s", err.text);
        }
    }
}

static void a_reason_is_told_at_once_and_a_line_every_half_a_minute(void **state)
{
    (void)state;
    struct told told;
    begin_telling(&told, "drained", false);
    submit(told.f, 0, 2, JOB_MEASURE);
    job_progress_set(told.job_progress, "measured", 0, 2);
    drain(told.f);
    run_until_told(&told, "kcast: waiting: tcp://");
    assert_int_equal(times_told(&told, "cpu0 is draining\n"), 1);
    assert_int_equal(times_told(&told, "measured"), 0);
    clock_fake_advance(&told.clock, 30 * NS_PER_S);
    run_until_told(&told, "kcast: measured 0 of 2, 30.0 s, waiting: tcp://");
    job_progress_set(told.job_progress, "measured", 1, 2);
    clock_fake_advance(&told.clock, 30 * NS_PER_S);
    run_until_told(&told, "kcast: measured 1 of 2, 60.0 s, waiting: tcp://");
    assert_int_equal(times_told(&told, "kcast: waiting:"), 1);
    assert_int_equal(times_told(&told, "kcast: measured"), 2);
    end_telling(&told);
}

static void what_the_pool_says_is_told_as_well(void **state)
{
    (void)state;
    struct told told;
    begin_telling(&told, "gone", false);
    submit(told.f, 0, 2, JOB_MEASURE);
    while (jobs_at(told.f, 1) < 1) {
        struct err err = ERR_INIT;
        assert_int_equal(daemon_pool_run_once(told.f->daemon_pool, &err), 0);
    }
    kill(told.f->fake[1].pid, SIGKILL);
    run_until_told(&told, "1 of its 1 jobs go to others");
    assert_int_equal(told.f->said.len, 0);
    end_telling(&told);
}

static void nothing_is_told_with_quiet(void **state)
{
    (void)state;
    struct told told;
    begin_telling(&told, "quiet", true);
    submit(told.f, 0, 2, JOB_MEASURE);
    drain(told.f);
    clock_fake_advance(&told.clock, 60 * NS_PER_S);
    char *why = NULL;
    while (!why) {
        struct err err = ERR_INIT;
        assert_int_equal(daemon_pool_run_once(told.f->daemon_pool, &err), 0);
        why = daemon_pool_waiting(told.f->daemon_pool);
    }
    free(why);
    assert_int_equal(times_told(&told, "\n"), 0);
    end_telling(&told);
}

static bool is_drained(const struct fixture *f, size_t daemon)
{
    struct remote *remote;
    struct err err = ERR_INIT;
    assert_int_equal(remote_create(&remote, session_loop(f->session), f->fake[daemon].pool, &err),
                     0);
    struct status_request request = {0};
    struct status status;
    assert_int_equal(remote_call_sync(remote, OP_STATUS, &status_request_message, &request,
                                      &status_message, &status, 10000, &err),
                     0);
    bool drained = strcmp(status.devices[0].state, "draining") == 0;
    message_clear(&status_message, &status);
    remote_close(remote);
    return drained;
}

// All devices are known to be drained, which is no reason for a compilation to wait.
static void compilations_wait_for_no_device(void **state)
{
    (void)state;
    struct fixture *f = begin(&stuck, &stuck);
    drain(f);
    while (!is_drained(f, 0) || !is_drained(f, 1)) {
    }
    open_daemon_pool_still(f, "compile");
    submit(f, 0, 1, JOB_COMPILE);
    assert_null(daemon_pool_waiting(f->daemon_pool));
    submit(f, 1, 2, JOB_MEASURE);
    char *why = daemon_pool_waiting(f->daemon_pool);
    assert_non_null(why);
    free(why);
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reason_is_told_at_once_and_a_line_every_half_a_minute),
        cmocka_unit_test(what_the_pool_says_is_told_as_well),
        cmocka_unit_test(nothing_is_told_with_quiet),
        cmocka_unit_test(compilations_wait_for_no_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
