// What the tests of the daemon pool share: a pool of two daemons that invent their answers
// (tests/client/fake_daemon.h). Times are short, and only what must happen in the end is asserted.
#ifndef TESTS_CLIENT_POOL_DAEMON_POOL_FIXTURE_H
#define TESTS_CLIENT_POOL_DAEMON_POOL_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/pool/daemon_pool.h"
#include "common/clock.h"
#include "common/strbuf.h"
#include "tests/client/fake_daemon.h"

#define JOBS 24

struct fixture {
    struct clock clock; // the system's clock, ahead by fake_ns
    struct fake_process fake[2];
    struct session_options options;
    struct session *session;
    struct daemon_pool *daemon_pool;
    struct strbuf said; // the pool's sentences, one a line
    struct digest problem, source[2 * JOBS];
    unsigned answers[2 * JOBS]; // number of answers of each job
    size_t answered;
    struct err refused; // the last error instead of an answer
    char *where[2 * JOBS];
};

static const struct fake_behaviour usual;

static inline uint64_t ahead_ns(const struct clock *clock)
{
    return clock_now_ns(&clock_system) + clock->fake_ns;
}

// Starts the daemons before the session, because they are forked and the loop may have no threads
// then.
static inline struct fixture *begin(const struct fake_behaviour *first,
                                    const struct fake_behaviour *second)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    strbuf_init(&f->said, 1 << 16);
    fake_start_as(&f->fake[0], 1, own_url(), first);
    fake_start_as(&f->fake[1], 2, own_url(), second);
    f->options.pool = xasprintf("%s, %s", f->fake[0].pool, f->fake[1].pool);
    f->options.quiet = true;
    struct err err = ERR_INIT;
    assert_int_equal(session_create(&f->session, &f->options, &err), 0);
    return f;
}

static inline void on_said(void *owner, const char *sentence)
{
    struct fixture *f = owner;
    strbuf_addf(&f->said, "%s\n", sentence);
}

static inline void open_daemon_pool_times(struct fixture *f, const char *search,
                                          struct daemon_pool_times times)
{
    times.clock = &f->clock;
    struct err err = ERR_INIT;
    if (daemon_pool_create(&f->daemon_pool, f->session, search, &times, &err) != 0) {
        fail_msg("%s", err.text);
    }
    daemon_pool_set_notice(f->daemon_pool, on_said, f);
    struct problem problem = {.language = "c"};
    struct device_info device = {0};
    if (daemon_pool_choose(f->daemon_pool, NULL, &problem, &device, NULL, &err) != 0) {
        fail_msg("%s", err.text);
    }
    assert_string_equal(daemon_pool_class(f->daemon_pool), FAKE_CLASS);
    message_clear(&device_info_message, &device);
    daemon_pool_add_blob(f->daemon_pool, "{}", 2, &f->problem);
    for (size_t i = 0; i < ARRAY_LEN(f->source); i++) {
        char *text = xasprintf("#define A 4\n#define B 4\n#define C %zu\n", i);
        daemon_pool_add_blob(f->daemon_pool, text, strlen(text), &f->source[i]);
        free(text);
    }
}

static inline void open_daemon_pool_for(struct fixture *f, const char *search, uint64_t away_ms)
{
    f->clock.monotonic_ns = ahead_ns;
    open_daemon_pool_times(
        f, search,
        (struct daemon_pool_times){.poll = 50, .away = away_ms, .look_up = 50, .patience = 600});
}

// The times are the defaults, and time stands still but for what a test adds to f->clock.fake_ns.
static inline void open_daemon_pool_still(struct fixture *f, const char *search)
{
    clock_fake_init(&f->clock, NS_PER_S);
    open_daemon_pool_times(f, search, (struct daemon_pool_times){0});
}

static inline void open_daemon_pool(struct fixture *f, const char *search)
{
    open_daemon_pool_for(f, search, 300);
}

static inline void end(struct fixture *f)
{
    daemon_pool_close(f->daemon_pool);
    session_free(f->session);
    for (size_t i = 0; i < ARRAY_LEN(f->where); i++) {
        free(f->where[i]);
    }
    fake_stop(&f->fake[0]);
    fake_stop(&f->fake[1]);
    strbuf_release(&f->said);
    free(f->options.pool);
    free(f);
}

static inline void on_answer(void *owner, uint64_t tag, struct job_ref ref, struct job_info *info,
                             const struct err *error)
{
    struct fixture *f = owner;
    f->answers[tag]++;
    f->answered++;
    if (error) {
        f->refused = *error;
        return;
    }
    assert_int_equal(info->state, JOB_DONE);
    struct job_service *jobs = daemon_pool_jobs(f->daemon_pool);
    const char *where = jobs->where(jobs, ref);
    assert_int_equal(ref.job, info->job);
    assert_in_range(ref.job, 1, 4 * JOBS); // the daemon numbers its jobs from 1
    assert_true(!where || strcmp(where, f->options.pool) != 0); // a single daemon has no name
    f->where[tag] = where ? xstrdup(where) : NULL;
    jobs->ack(jobs, ref);
}

static inline void submit(struct fixture *f, size_t first, size_t last, enum job_kind kind)
{
    struct job_service *jobs = daemon_pool_jobs(f->daemon_pool);
    for (size_t i = first; i < last; i++) {
        struct job_spec spec = {.kind = kind,
                                .problem = f->problem,
                                .candidate = f->source[i],
                                .anchor_log2 = NAN,
                                .max_seconds = NAN,
                                .precision_log2 = NAN};
        char key[32];
        snprintf(key, sizeof(key), "%c%zu", kind == JOB_COMPILE ? 'c' : 'm', i);
        jobs->submit(jobs, key, &spec, i, on_answer, f, i);
    }
}

static inline void run_until(struct fixture *f, size_t answered)
{
    struct err err = ERR_INIT;
    while (f->answered < answered) {
        if (daemon_pool_run_once(f->daemon_pool, &err) != 0) {
            fail_msg("%s", err.text);
        }
    }
}

static inline void run_until_said(struct fixture *f, const char *words)
{
    struct err err = ERR_INIT;
    while (!strstr(strbuf_text(&f->said), words)) {
        if (daemon_pool_run_once(f->daemon_pool, &err) != 0) {
            fail_msg("%s", err.text);
        }
    }
}

// Checks that each of jobs first … last - 1 was answered once.
static inline void expect_once(const struct fixture *f, size_t first, size_t last)
{
    for (size_t i = first; i < last; i++) {
        assert_int_equal(f->answers[i], 1);
    }
    assert_int_equal(daemon_pool_outstanding(f->daemon_pool), 0);
}

static inline size_t answers_of(const struct fixture *f, size_t daemon, size_t first, size_t last)
{
    size_t count = 0;
    for (size_t i = first; i < last; i++) {
        count += f->where[i] && strcmp(f->where[i], f->fake[daemon].pool) == 0;
    }
    return count;
}

static inline size_t said(const struct fixture *f, const char *words)
{
    size_t count = 0;
    for (const char *at = strbuf_text(&f->said); (at = strstr(at, words)); at++) {
        count++;
    }
    return count;
}

// Asks a daemon for its status, and for the jobs of the search unless that is NULL. The pool does
// what it can meanwhile. The caller clears it.
static inline void status_at(struct fixture *f, size_t daemon, char *search, struct status *ret)
{
    struct remote *remote;
    struct err err = ERR_INIT;
    assert_int_equal(remote_create(&remote, session_loop(f->session), f->fake[daemon].pool, &err),
                     0);
    struct status_request request = {.search = search};
    assert_int_equal(remote_call_sync(remote, OP_STATUS, &status_request_message, &request,
                                      &status_message, ret, 10000, &err),
                     0);
    remote_close(remote);
}

static inline uint64_t jobs_at(struct fixture *f, size_t daemon)
{
    struct status status;
    status_at(f, daemon, NULL, &status);
    uint64_t jobs = status.results_cached;
    message_clear(&status_message, &status);
    return jobs;
}

// Whether the daemon has the job and has not cancelled it.
static inline bool has_job(struct fixture *f, size_t daemon, char *search, const char *key)
{
    struct status status;
    bool has = false;
    status_at(f, daemon, search, &status);
    for (size_t i = 0; i < status.jobs_count; i++) {
        has |=
            strcmp(status.jobs[i].key, key) == 0 && status.jobs[i].state != (uint64_t)JOB_CANCELLED;
    }
    message_clear(&status_message, &status);
    return has;
}

static inline void cancel(struct fixture *f, const char *key)
{
    struct job_service *jobs = daemon_pool_jobs(f->daemon_pool);
    jobs->cancel(jobs, key);
}

#endif
