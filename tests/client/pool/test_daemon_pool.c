// A daemon pool whose daemons are killed, stopped, drained, full, or cannot be used.
#include "client/pool/job_client.h"
#include "tests/client/pool/daemon_pool_fixture.h"

static void jobs_are_spread_evenly(void **state)
{
    (void)state;
    struct fixture *f = begin(&usual, &usual);
    open_daemon_pool(f, "share");
    submit(f, 0, JOBS, JOB_MEASURE);
    run_until(f, JOBS);
    expect_once(f, 0, JOBS);
    assert_int_equal(answers_of(f, 0, 0, JOBS), JOBS / 2);
    assert_int_equal(answers_of(f, 1, 0, JOBS), JOBS / 2);
    assert_string_equal(strbuf_text(&f->said), "");
    end(f);
}

static void candidates_are_measured_where_they_were_compiled(void **state)
{
    (void)state;
    struct fixture *f = begin(&usual, &usual);
    open_daemon_pool(f, "near");
    submit(f, 0, JOBS, JOB_COMPILE);
    run_until(f, JOBS);
    char *compiled[JOBS];
    memcpy(compiled, f->where, sizeof(compiled));
    memset(f->where, 0, sizeof(compiled));
    submit(f, 0, JOBS, JOB_MEASURE);
    run_until(f, 2 * JOBS);
    for (size_t i = 0; i < JOBS; i++) {
        assert_string_equal(f->where[i], compiled[i]);
        free(compiled[i]);
    }
    end(f);
}

static void jobs_of_a_killed_daemon_go_to_the_other(void **state)
{
    (void)state;
    const struct fake_behaviour stuck = {.stuck = true};
    struct fixture *f = begin(&usual, &stuck);
    open_daemon_pool(f, "killed");
    submit(f, 0, JOBS, JOB_MEASURE);
    run_until(f, JOBS / 2);
    kill(f->fake[1].pid, SIGKILL);
    run_until(f, JOBS);
    expect_once(f, 0, JOBS);
    assert_int_equal(answers_of(f, 0, 0, JOBS), JOBS);
    assert_int_equal(said(f, "12 of its 12 jobs go to others"), 1);
    end(f);
}

// The daemon is stopped before it has a job, so that its answers are late when it goes on.
static void silent_daemon_loses_its_jobs_and_is_used_again(void **state)
{
    (void)state;
    struct fixture *f = begin(&usual, &usual);
    open_daemon_pool(f, "silent");
    kill(f->fake[1].pid, SIGSTOP);
    submit(f, 0, JOBS, JOB_MEASURE);
    run_until(f, JOBS);
    expect_once(f, 0, JOBS);
    assert_int_equal(answers_of(f, 0, 0, JOBS), JOBS);
    kill(f->fake[1].pid, SIGCONT);
    run_until_said(f, "answers and takes jobs");
    submit(f, JOBS, 2 * JOBS, JOB_MEASURE);
    run_until(f, 2 * JOBS);
    expect_once(f, 0, 2 * JOBS);
    assert_true(answers_of(f, 1, JOBS, 2 * JOBS) > 0);
    end(f);
}

// The client did not run for longer than a daemon may be silent, and then a daemon does not answer
// at first. Its jobs are not moved yet. The daemon was restarted and does them.
static void client_that_was_stopped_moves_no_jobs(void **state)
{
    enum { AWAY_MS = 3000 };
    (void)state;
    const struct fake_behaviour stuck = {.stuck = true};
    struct fixture *f = begin(&usual, &stuck);
    open_daemon_pool_for(f, "stopped", AWAY_MS);
    submit(f, 0, JOBS, JOB_MEASURE);
    run_until(f, JOBS / 2);
    fake_stop(&f->fake[1]);
    f->clock.fake_ns += (AWAY_MS + 100) * NS_PER_MS;
    struct err err = ERR_INIT;
    for (int turn = 0; turn < 10; turn++) { // in which polls fail, but not for so long
        assert_int_equal(daemon_pool_run_once(f->daemon_pool, &err), 0);
    }
    fake_start_as(&f->fake[1], 2, f->fake[1].pool, &usual);
    run_until(f, JOBS);
    expect_once(f, 0, JOBS);
    assert_int_equal(answers_of(f, 1, 0, JOBS), JOBS / 2);
    assert_int_equal(said(f, "go to others"), 0);
    end(f);
}

static void jobs_of_a_drained_daemon_go_to_the_other(void **state)
{
    (void)state;
    const struct fake_behaviour stuck = {.stuck = true};
    struct fixture *f = begin(&usual, &stuck);
    open_daemon_pool(f, "rest");
    submit(f, 0, JOBS, JOB_MEASURE);
    run_until(f, JOBS / 2);
    kill(f->fake[1].pid, SIGUSR2);
    run_until(f, JOBS);
    expect_once(f, 0, JOBS);
    assert_int_equal(said(f, "rest; 12 of its jobs go to others"), 1);
    submit(f, JOBS, JOBS + 4, JOB_MEASURE);
    run_until(f, JOBS + 4);
    assert_int_equal(answers_of(f, 0, JOBS, JOBS + 4), 4);
    end(f);
}

static void jobs_of_an_earlier_session_are_not_done_twice(void **state)
{
    (void)state;
    struct fixture *f = begin(&usual, &usual);
    open_daemon_pool(f, "again");
    submit(f, 0, JOBS, JOB_MEASURE);
    run_until(f, JOBS / 2); // the other jobs are left at the daemons
    daemon_pool_close(f->daemon_pool);
    uint64_t first = jobs_at(f, 0), second = jobs_at(f, 1);
    assert_int_equal(first + second, JOBS);
    memset(f->answers, 0, sizeof(f->answers));
    f->answered = 0;
    for (size_t i = 0; i < JOBS; i++) {
        free(f->where[i]);
        f->where[i] = NULL;
    }
    open_daemon_pool(f, "again");
    for (size_t i = JOBS; i > 0;
         i--) { // in another order, so that load alone would place otherwise
        submit(f, i - 1, i, JOB_MEASURE);
    }
    run_until(f, JOBS);
    expect_once(f, 0, JOBS);
    assert_int_equal(jobs_at(f, 0), first);
    assert_int_equal(jobs_at(f, 1), second);
    end(f);
}

static void job_that_one_daemon_refuses_goes_to_the_other(void **state)
{
    (void)state;
    const struct fake_behaviour full = {.full = true};
    struct fixture *f = begin(&full, &usual);
    open_daemon_pool(f, "full");
    submit(f, 0, JOBS, JOB_MEASURE);
    run_until(f, JOBS);
    expect_once(f, 0, JOBS);
    assert_int_equal(f->refused.code, ERR_NONE);
    assert_int_equal(answers_of(f, 1, 0, JOBS), JOBS);
    end(f);

    f = begin(&full, &full);
    open_daemon_pool(f, "all full");
    submit(f, 0, 1, JOB_MEASURE);
    run_until(f, 1);
    expect_once(f, 0, 1);
    assert_int_equal(f->refused.code, ERR_NO_SPACE);
    end(f);
}

static void result_that_cannot_be_true_is_asked_of_another_daemon(void **state)
{
    (void)state;
    const struct fake_behaviour lies = {.lies = true};
    struct fixture *f = begin(&lies, &usual);
    open_daemon_pool(f, "one lies");
    submit(f, 0, JOBS, JOB_MEASURE);
    run_until(f, JOBS);
    expect_once(f, 0, JOBS);
    assert_int_equal(f->refused.code, ERR_NONE);
    assert_int_equal(answers_of(f, 1, 0, JOBS), JOBS);
    end(f);

    f = begin(&lies, &lies);
    open_daemon_pool(f, "both lie");
    submit(f, 0, 1, JOB_MEASURE);
    run_until(f, 1);
    expect_once(f, 0, 1);
    assert_int_equal(f->refused.code, ERR_PROTOCOL);
    assert_non_null(strstr(f->refused.text, "cannot be true: verdict inconclusive"));
    end(f);
}

static void daemons_of_another_version_or_class_are_left_out(void **state)
{
    (void)state;
    const struct fake_behaviour other = {.device_class = "other cpu"}, foreign = {.foreign = true};
    struct fixture *f = begin(&usual, &other);
    open_daemon_pool(f, "class");
    assert_int_equal(said(f, "has no device of class \"" FAKE_CLASS "\"; it is left out"), 1);
    submit(f, 0, JOBS, JOB_MEASURE);
    run_until(f, JOBS);
    assert_int_equal(answers_of(f, 0, 0, JOBS), JOBS);
    end(f);

    f = begin(&foreign, &usual);
    open_daemon_pool(f, "version");
    submit(f, 0, JOBS, JOB_MEASURE);
    run_until(f, JOBS);
    assert_int_equal(answers_of(f, 1, 0, JOBS), JOBS);
    end(f);
}

static void pool_gives_up_when_all_daemons_are_gone(void **state)
{
    (void)state;
    const struct fake_behaviour stuck = {.stuck = true};
    struct fixture *f = begin(&stuck, &stuck);
    open_daemon_pool(f, "gone");
    submit(f, 0, 4, JOB_MEASURE);
    kill(f->fake[0].pid, SIGKILL);
    kill(f->fake[1].pid, SIGKILL);
    struct err err = ERR_INIT;
    assert_int_equal(daemon_pool_drain(f->daemon_pool, &err), ERR_UNREACHABLE);
    assert_non_null(strstr(err.text, "none of the daemons of --pool is there any more"));
    assert_int_equal(f->answered, 0);
    end(f);

    f = xcalloc(1, sizeof(*f));
    char nobody[] = "tcp://127.0.0.1:1,tcp://127.0.0.2:1";
    f->options.pool = nobody;
    assert_int_equal(session_create(&f->session, &f->options, &err), 0);
    err_clear(&err);
    assert_int_equal(daemon_pool_create(&f->daemon_pool, f->session, "nobody", NULL, &err),
                     ERR_UNREACHABLE);
    session_free(f->session);
    free(f);
}

// A single daemon is waited for, with one sentence, until the pool gives up.
static void single_daemon_that_is_gone_is_waited_for_and_given_up(void **state)
{
    (void)state;
    const struct fake_behaviour stuck = {.stuck = true};
    struct fixture *f = begin(&stuck, &usual);
    f->options.pool[strcspn(f->options.pool, ",")] = '\0';
    const struct daemon_pool_times times = {.patience = 3000};
    struct err err = ERR_INIT;
    assert_int_equal(daemon_pool_create(&f->daemon_pool, f->session, "only", &times, &err), 0);
    daemon_pool_set_notice(f->daemon_pool, on_said, f);
    daemon_pool_add_blob(f->daemon_pool, "{}", 2, &f->problem);
    daemon_pool_add_blob(f->daemon_pool, "source", 6, &f->source[0]);
    submit(f, 0, 1, JOB_MEASURE);
    kill(f->fake[0].pid, SIGKILL);
    assert_int_equal(daemon_pool_drain(f->daemon_pool, &err), ERR_TIMED_OUT);
    assert_non_null(strstr(err.text, "Connection refused"));
    assert_int_equal(said(f, "; waiting for it to come back"), 1);
    assert_int_equal(f->answered, 0);
    end(f);
}

// ERR_BUSY is an answer, too, so it ends an outage.
static void busy_daemon_counts_as_answering(void **state)
{
    (void)state;
    const struct fake_behaviour stuck = {.stuck = true}, busy = {.busy = true};
    struct fixture *f = xcalloc(1, sizeof(*f));
    strbuf_init(&f->said, 1 << 16);
    fake_start_as(&f->fake[0], 1, "tcp://127.0.0.2:0", &stuck);
    f->options.pool = xstrdup(f->fake[0].pool);
    f->options.quiet = true;
    struct err err = ERR_INIT;
    assert_int_equal(session_create(&f->session, &f->options, &err), 0);
    assert_int_equal(daemon_pool_create(&f->daemon_pool, f->session, "busy", NULL, &err), 0);
    daemon_pool_set_notice(f->daemon_pool, on_said, f);
    daemon_pool_add_blob(f->daemon_pool, "{}", 2, &f->problem);
    daemon_pool_add_blob(f->daemon_pool, "source", 6, &f->source[0]);
    submit(f, 0, 1, JOB_MEASURE);
    fake_stop(&f->fake[0]);
    run_until_said(f, "; waiting for it to come back");
    fake_start_as(&f->fake[1], 1, f->options.pool, &busy);
    run_until_said(f, "the daemon answers again");
    assert_int_equal(f->answered, 0);
    daemon_pool_close(f->daemon_pool);
    session_free(f->session);
    fake_stop(&f->fake[1]);
    strbuf_release(&f->said);
    free(f->options.pool);
    free(f);
}

// The sentence is for people; a daemon that tells no cause is not guessed at.
static void over_budget_is_what_the_cause_says(void **state)
{
    (void)state;
    struct job_info info;
    message_init(&job_info_message, &info);
    info.state = JOB_CANCELLED;
    info.cause = JOB_CAUSE_BUDGET;
    info.reason = (char *)(uintptr_t) "search s has used its device-seconds";
    assert_true(job_client_is_over_budget(&info));
    info.reason = NULL;
    assert_true(job_client_is_over_budget(&info));
    info.cause = JOB_CAUSE_CLIENT;
    info.reason = (char *)(uintptr_t) "BUDGET: no longer mine";
    assert_false(job_client_is_over_budget(&info));
    info.cause = JOB_CAUSE_NONE;
    assert_false(job_client_is_over_budget(&info));
}

#define SOON_NS (5 * NS_PER_S) // within which a daemon that comes is to be used

// Lets the time pass within which a daemon is to be found, and no more.
static void pass_time(struct fixture *f)
{
    clock_fake_advance(&f->clock, SOON_NS);
}

static void daemon_that_starts_later_takes_over_what_waits(void **state)
{
    (void)state;
    const struct fake_behaviour stuck = {.stuck = true};
    struct fixture *f = begin(&stuck, &usual);
    fake_stop(&f->fake[1]);
    open_daemon_pool_still(f, "later");
    submit(f, 0, 6, JOB_MEASURE);
    while (jobs_at(f, 0) < 6) {
        struct err err = ERR_INIT;
        assert_int_equal(daemon_pool_run_once(f->daemon_pool, &err), 0);
    }
    assert_int_equal(f->answered, 0);
    fake_start_at(&f->fake[1], 2, f->fake[1].pool);
    pass_time(f);
    run_until(f, 2); // what the first daemon would have come to last
    assert_int_equal(f->answers[5] + f->answers[4], 2);
    submit(f, 6, 10, JOB_MEASURE);
    run_until(f, 6); // it has the least work, so the new jobs are its own
    assert_int_equal(answers_of(f, 1, 4, 10), 6);
    assert_int_equal(said(f, "answers and takes jobs"), 1);
    end(f);
}

static void daemon_that_gets_the_right_devices_is_used(void **state)
{
    (void)state;
    const struct fake_behaviour another = {.device_class = "another"};
    struct fixture *f = begin(&usual, &another);
    open_daemon_pool_still(f, "right");
    assert_int_equal(said(f, "it is left out"), 1);
    fake_stop(&f->fake[1]);
    fake_start_at(&f->fake[1], 2, f->fake[1].pool);
    pass_time(f);
    run_until_said(f, "answers and takes jobs");
    submit(f, 0, JOBS, JOB_MEASURE);
    run_until(f, JOBS);
    assert_int_equal(answers_of(f, 1, 0, JOBS), JOBS / 2);
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_are_spread_evenly),
        cmocka_unit_test(daemon_that_starts_later_takes_over_what_waits),
        cmocka_unit_test(daemon_that_gets_the_right_devices_is_used),
        cmocka_unit_test(candidates_are_measured_where_they_were_compiled),
        cmocka_unit_test(jobs_of_a_killed_daemon_go_to_the_other),
        cmocka_unit_test(silent_daemon_loses_its_jobs_and_is_used_again),
        cmocka_unit_test(client_that_was_stopped_moves_no_jobs),
        cmocka_unit_test(jobs_of_a_drained_daemon_go_to_the_other),
        cmocka_unit_test(jobs_of_an_earlier_session_are_not_done_twice),
        cmocka_unit_test(job_that_one_daemon_refuses_goes_to_the_other),
        cmocka_unit_test(result_that_cannot_be_true_is_asked_of_another_daemon),
        cmocka_unit_test(daemons_of_another_version_or_class_are_left_out),
        cmocka_unit_test(pool_gives_up_when_all_daemons_are_gone),
        cmocka_unit_test(single_daemon_that_is_gone_is_waited_for_and_given_up),
        cmocka_unit_test(busy_daemon_counts_as_answering),
        cmocka_unit_test(over_budget_is_what_the_cause_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
