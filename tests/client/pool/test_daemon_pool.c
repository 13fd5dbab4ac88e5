// A daemon pool against daemons that invent their answers (test_fake_pool.h) and are killed, stopped,
// drained, full or of another kind; and behind names that a resolver of this test's knows. Times
// are short, and only what must happen in the end is asserted.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/pool/daemon_pool.h"
#include "client/pool/hosts.h"
#include "common/strbuf.h"
#include "tests/client/fake_daemon.h"
#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>

#define JOBS 24

// ---- names: this getaddrinfo stands before the C library's ----

static struct {
    pthread_mutex_t lock;
    char address[4][INET_ADDRSTRLEN]; // of pool.test
    size_t count;
} names = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void set_name(const char *first, const char *second)
{
    pthread_mutex_lock(&names.lock);
    names.count = 0;
    snprintf(names.address[names.count++], INET_ADDRSTRLEN, "%s", first);
    if (second) {
        snprintf(names.address[names.count++], INET_ADDRSTRLEN, "%s", second);
    }
    pthread_mutex_unlock(&names.lock);
}

// One block each, so that freeaddrinfo of the C library would do, too.
static struct addrinfo *new_info(const char *address, const char *port)
{
    struct addrinfo *info = calloc(1, sizeof(*info) + sizeof(struct sockaddr_in));
    struct sockaddr_in *in = (struct sockaddr_in *)(info + 1);
    in->sin_family = AF_INET;
    in->sin_port = htons((uint16_t)strtoul(port, NULL, 10));
    if (inet_pton(AF_INET, address, &in->sin_addr) != 1) {
        free(info);
        return NULL;
    }
    info->ai_family = AF_INET;
    info->ai_socktype = SOCK_STREAM;
    info->ai_addr = (struct sockaddr *)in;
    info->ai_addrlen = sizeof(*in);
    return info;
}

int getaddrinfo(const char *restrict host, const char *restrict port,
                const struct addrinfo *restrict hints, struct addrinfo **restrict ret)
{
    (void)hints;
    *ret = NULL;
    if (strcmp(host, "pool.test") != 0) {
        *ret = new_info(host, port);
        return *ret ? 0 : EAI_NONAME;
    }
    pthread_mutex_lock(&names.lock);
    for (size_t i = names.count; i > 0; i--) {
        struct addrinfo *info = new_info(names.address[i - 1], port);
        info->ai_next = *ret;
        *ret = info;
    }
    pthread_mutex_unlock(&names.lock);
    return *ret ? 0 : EAI_NONAME;
}

void freeaddrinfo(struct addrinfo *info)
{
    while (info) {
        struct addrinfo *next = info->ai_next;
        free(info);
        info = next;
    }
}

// ---- fixture ----

struct fixture {
    struct fake_process fake[2];
    struct session_options options;
    struct session *session;
    struct daemon_pool *daemon_pool;
    struct strbuf said; // sentences, one a line
    struct digest problem, source[2 * JOBS];
    unsigned answers[2 * JOBS]; // by job
    size_t answered;
    struct err refused; // the last error instead of an answer
    char *where[2 * JOBS];
};

static const struct fake_manner usual;

// Daemons first: they are forked, and the session's loop is to have no threads then.
static struct fixture *begin(const struct fake_manner *first, const struct fake_manner *second)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    strbuf_init(&f->said, 1 << 16);
    fake_start_as(&f->fake[0], 1, "tcp://127.0.0.1:0", first);
    fake_start_as(&f->fake[1], 2, "tcp://127.0.0.1:0", second);
    f->options.pool = xasprintf("%s, %s", f->fake[0].pool, f->fake[1].pool);
    f->options.quiet = true;
    struct err err = ERR_INIT;
    assert_int_equal(session_create(&f->session, &f->options, &err), 0);
    return f;
}

static void on_said(void *owner, const char *sentence)
{
    struct fixture *f = owner;
    strbuf_addf(&f->said, "%s\n", sentence);
}

static void open_daemon_pool_for(struct fixture *f, const char *search, uint64_t away_ms)
{
    const struct daemon_pool_times times = {
        .poll = 50, .away = away_ms, .look_up = 50, .patience = 600};
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

static void open_daemon_pool(struct fixture *f, const char *search)
{
    open_daemon_pool_for(f, search, 300);
}

static void end(struct fixture *f)
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

static void on_answer(void *owner, uint64_t tag, struct job_info *info, const struct err *error)
{
    struct fixture *f = owner;
    f->answers[tag]++;
    f->answered++;
    if (error) {
        f->refused = *error;
        return;
    }
    assert_int_equal(info->state, JOB_DONE);
    const char *where = daemon_pool_where(f->daemon_pool, info->job);
    assert_true(strcmp(where, f->options.pool) != 0);
    f->where[tag] = xstrdup(where);
    daemon_pool_ack(f->daemon_pool, info->job);
}

static void submit(struct fixture *f, size_t first, size_t last, enum job_kind kind)
{
    for (size_t i = first; i < last; i++) {
        struct job_spec spec = {.kind = kind,
                                .problem = f->problem,
                                .candidate = f->source[i],
                                .anchor_log2 = NAN,
                                .max_seconds = NAN,
                                .precision_log2 = NAN};
        char key[32];
        snprintf(key, sizeof(key), "%c%zu", kind == JOB_COMPILE ? 'c' : 'm', i);
        daemon_pool_submit(f->daemon_pool, key, &spec, i, on_answer, f, i);
    }
}

static void run_until(struct fixture *f, size_t answered)
{
    struct err err = ERR_INIT;
    while (f->answered < answered) {
        if (daemon_pool_run_once(f->daemon_pool, &err) != 0) {
            fail_msg("%s", err.text);
        }
    }
}

static void run_until_said(struct fixture *f, const char *words)
{
    struct err err = ERR_INIT;
    while (!strstr(strbuf_text(&f->said), words)) {
        if (daemon_pool_run_once(f->daemon_pool, &err) != 0) {
            fail_msg("%s", err.text);
        }
    }
}

// Each of jobs first … last - 1 was answered once.
static void expect_once(const struct fixture *f, size_t first, size_t last)
{
    for (size_t i = first; i < last; i++) {
        assert_int_equal(f->answers[i], 1);
    }
    assert_int_equal(daemon_pool_outstanding(f->daemon_pool), 0);
}

static size_t answers_of(const struct fixture *f, size_t daemon, size_t first, size_t last)
{
    size_t count = 0;
    for (size_t i = first; i < last; i++) {
        count += f->where[i] && strcmp(f->where[i], f->fake[daemon].pool) == 0;
    }
    return count;
}

static size_t said(const struct fixture *f, const char *words)
{
    size_t count = 0;
    for (const char *at = strbuf_text(&f->said); (at = strstr(at, words)); at++) {
        count++;
    }
    return count;
}

static uint64_t jobs_at(struct fixture *f, size_t daemon)
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
    uint64_t jobs = status.results_cached;
    message_clear(&status_message, &status);
    remote_close(remote);
    return jobs;
}

// ---- tests ----

static void test_shares_evenly(void **state)
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

static void test_measures_where_it_compiled(void **state)
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

static void test_killed_daemon_loses_its_jobs(void **state)
{
    (void)state;
    const struct fake_manner stuck = {.stuck = true};
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

// It is stopped before it has anything, so what it answers when it goes on is late.
static void test_silent_daemon_comes_back(void **state)
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

// The client did not run for longer than a daemon may be silent, and what it hears first is that
// one is not there: that is no reason yet to move its jobs. It was restarted, and does them.
static void test_stopped_client_moves_nothing(void **state)
{
    enum { AWAY_MS = 3000 };
    (void)state;
    const struct fake_manner stuck = {.stuck = true};
    struct fixture *f = begin(&usual, &stuck);
    open_daemon_pool_for(f, "stopped", AWAY_MS);
    submit(f, 0, JOBS, JOB_MEASURE);
    run_until(f, JOBS / 2);
    fake_stop(&f->fake[1]);
    usleep((AWAY_MS + 100) * 1000);
    struct err err = ERR_INIT;
    for (uint64_t at = uv_hrtime(); uv_hrtime() - at < UINT64_C(600000000);) {
        assert_int_equal(daemon_pool_run_once(f->daemon_pool, &err), 0); // polls fail
    }
    fake_start_as(&f->fake[1], 2, f->fake[1].pool, &usual);
    run_until(f, JOBS);
    expect_once(f, 0, JOBS);
    assert_int_equal(answers_of(f, 1, 0, JOBS), JOBS / 2);
    assert_int_equal(said(f, "go to others"), 0);
    end(f);
}

static void test_resting_devices(void **state)
{
    (void)state;
    const struct fake_manner stuck = {.stuck = true};
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

static void test_nothing_is_done_twice(void **state)
{
    (void)state;
    struct fixture *f = begin(&usual, &usual);
    open_daemon_pool(f, "again");
    submit(f, 0, JOBS, JOB_MEASURE);
    run_until(f, JOBS / 2); // the rest is left at the daemons
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

static void test_a_full_daemon(void **state)
{
    (void)state;
    const struct fake_manner full = {.full = true};
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

static void test_others_are_left_out(void **state)
{
    (void)state;
    const struct fake_manner other = {.device_class = "other cpu"}, foreign = {.foreign = true};
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

static void test_all_gone(void **state)
{
    (void)state;
    const struct fake_manner stuck = {.stuck = true};
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

// Nobody can be called without certificates: an error, whoever is named and in whatever way.
static void test_no_certificates(void **state)
{
    (void)state;
    set_name("127.0.0.1", "127.0.0.2");
    char *const pools[] = {"tls://127.0.0.1:1,tls://127.0.0.2:1", "dns+tls://pool.test:1",
                           "tcp://127.0.0.1:1,tls://127.0.0.2:1"};
    for (size_t i = 0; i < ARRAY_LEN(pools); i++) {
        struct session_options options = {.pool = pools[i],
                                          .tls_ca = "/nowhere/ca.pem",
                                          .tls_cert = "/nowhere/cert.pem",
                                          .tls_key = "/nowhere/key.pem"};
        struct session *session;
        struct err err = ERR_INIT;
        assert_int_equal(session_create(&session, &options, &err), 0);
        struct daemon_pool *daemon_pool = NULL;
        assert_true(daemon_pool_create(&daemon_pool, session, "no certificates", NULL, &err) < 0);
        assert_null(daemon_pool);
        assert_non_null(strstr(err.text, "/nowhere/ca.pem"));
        session_free(session);
    }
}

// A single daemon is waited for, with one sentence, and then no longer.
static void test_the_only_one_gone(void **state)
{
    (void)state;
    const struct fake_manner stuck = {.stuck = true};
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

// That there is no room is an answer, too, and ends what was said about a daemon that has gone.
static void test_busy_is_there(void **state)
{
    (void)state;
    const struct fake_manner stuck = {.stuck = true}, busy = {.busy = true};
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

// The name has one address, then another one beside it, then only that.
static void test_names(void **state)
{
    (void)state;
    struct fixture *f = xcalloc(1, sizeof(*f));
    strbuf_init(&f->said, 1 << 16);
    fake_start_at(&f->fake[0], 1, "tcp://127.0.0.2:0");
    char *second = xasprintf("tcp://127.0.0.3%s", strrchr(f->fake[0].pool, ':'));
    fake_start_at(&f->fake[1], 2, second);
    f->options.pool = xasprintf("dns://pool.test%s", strrchr(f->fake[0].pool, ':'));
    f->options.quiet = true;
    struct err err = ERR_INIT;
    assert_int_equal(session_create(&f->session, &f->options, &err), 0);

    set_name("127.0.0.2", NULL);
    open_daemon_pool(f, "names");
    submit(f, 0, 8, JOB_MEASURE);
    run_until(f, 8);
    assert_int_equal(answers_of(f, 0, 0, 8), 8);

    set_name("127.0.0.2", "127.0.0.3");
    size_t next = 8;
    while (answers_of(f, 1, 0, next) == 0 && next < JOBS) { // until it has been looked up
        uint64_t before = f->answered;
        submit(f, next, next + 2, JOB_MEASURE);
        run_until(f, before + 2);
        next += 2;
        for (int i = 0; i < 20; i++) {
            assert_int_equal(daemon_pool_run_once(f->daemon_pool, &err), 0);
        }
    }
    assert_true(answers_of(f, 1, 0, next) > 0);

    set_name("127.0.0.3", NULL);
    fake_stop(&f->fake[0]);
    submit(f, next, next + 8, JOB_MEASURE);
    run_until(f, next + 8);
    expect_once(f, 0, next + 8);
    free(second);
    end(f);
}

static void on_hosts(void *owner, const struct host *host, size_t count, const struct err *why)
{
    struct strbuf *all = owner;
    assert_int_equal(why->code, ERR_NONE);
    for (size_t i = 0; i < count; i++) {
        strbuf_addf(all, "%s %s\n", host[i].url, host[i].name ? host[i].name : "-");
    }
}

// Each with each name: a certificate names one of them, perhaps.
static void test_an_address_behind_two_names(void **state)
{
    (void)state;
    static const char list[] = "dns+tls://pool.test:1,dns+tls://127.0.0.2:1,tls://127.0.0.2:1,"
                               "tls://127.0.0.2:1,dns+tls://pool.test:1";
    struct strbuf all;
    strbuf_init(&all, 1 << 10);
    set_name("127.0.0.2", NULL);
    uv_loop_t loop;
    assert_int_equal(uv_loop_init(&loop), 0);
    struct hosts *hosts;
    struct err err = ERR_INIT;
    assert_int_equal(hosts_create(&hosts, list, &err), 0);
    hosts_look_up(hosts, &loop, on_hosts, &all);
    while (hosts_are_looked_up(hosts)) {
        uv_run(&loop, UV_RUN_ONCE);
    }
    assert_string_equal(strbuf_text(&all), "tls://127.0.0.2:1 pool.test\n"
                                           "tls://127.0.0.2:1 127.0.0.2\n"
                                           "tls://127.0.0.2:1 -\n");
    hosts_free(hosts);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    strbuf_release(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares_evenly),
        cmocka_unit_test(test_measures_where_it_compiled),
        cmocka_unit_test(test_killed_daemon_loses_its_jobs),
        cmocka_unit_test(test_silent_daemon_comes_back),
        cmocka_unit_test(test_stopped_client_moves_nothing),
        cmocka_unit_test(test_resting_devices),
        cmocka_unit_test(test_nothing_is_done_twice),
        cmocka_unit_test(test_a_full_daemon),
        cmocka_unit_test(test_others_are_left_out),
        cmocka_unit_test(test_all_gone),
        cmocka_unit_test(test_the_only_one_gone),
        cmocka_unit_test(test_busy_is_there),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_no_certificates),
        cmocka_unit_test(test_an_address_behind_two_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
