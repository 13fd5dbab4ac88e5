// Runs of kcast-exec, in processes of their own and in processes that stay.
#include "common/digest.h"
#include "common/file.h"
#include "daemon/run/executors.h"
#include "proto/messages.h"
#include "tests/support/program.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    uv_loop_t loop;
    struct executors *pool;
    char *dir;
    char *log; // of the fake executor
    unsigned pending;
};

struct run {
    struct fixture *fixture;
    struct executor *executor;
    struct executor_end end;
    bool ended;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    char dir[] = "/tmp/kcast-executor-XXXXXX";

    f->dir = strdup(mkdtemp(dir));
    f->log = xasprintf("%s/log", f->dir);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)setenv("KCAST_FAKE_LOG", f->log, 1);
    (void)unsetenv("KCAST_FAKE_START");
    (void)uv_loop_init(&f->loop);
    *state = f;
    return 0;
}

static void open_pool(struct fixture *f)
{
    char *path = program_support_path("fake_exec");
    struct err err = ERR_INIT;

    if (executor_pool_create(&f->pool, &f->loop, path, NULL, &err) != 0) {
        fail_msg("%s", err.text);
    }
    free(path);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    char *command[] = {(char *)"rm", (char *)"-rf", f->dir, NULL};
    uv_process_options_t options = {.file = "rm", .args = command};

    if (f->pool) {
        executor_pool_stop(f->pool);
        while (executor_pool_count(f->pool) > 0) {
            (void)uv_run(&f->loop, UV_RUN_ONCE);
        }
        executor_pool_free(f->pool);
    }
    uv_process_t process;
    (void)uv_spawn(&f->loop, &process, &options);
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    uv_close((uv_handle_t *)&process, NULL);
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    free(f->log);
    free(f->dir);
    free(f);
    return 0;
}

static struct bytes pack(const struct message *message, const void *value)
{
    struct strbuf packed = STRBUF_INIT;

    assert_int_equal(message_pack(message, value, &packed, NULL), 0);
    return strbuf_detach_bytes(&packed);
}

// A plan whose candidate says these words.
static struct bytes plan_of(const char *words, bool cuda)
{
    struct measure_plan plan;
    struct cuda_variant variant = {.cubin = {0}};
    struct cuda_object object = {.variants = &variant, .variants_count = 1};
    char *text = xasprintf("OBJ%s", words);
    struct bytes source = {(unsigned char *)text, strlen(text)}, packed;

    message_init(&measure_plan_message, &plan);
    plan.problem = plan.reference = plan.baseline = plan.candidate = source;
    variant.cubin = object.source = source;
    object.target = text;
    if (cuda) {
        plan.candidate = pack(&cuda_object_message, &object);
    }
    packed = pack(&measure_plan_message, &plan);
    if (cuda) {
        bytes_clear(&plan.candidate);
    }
    free(text);
    return packed;
}

static void on_end(void *owner, struct executor_end *end)
{
    struct run *run = owner;

    run->end = *end;
    memset(&end->outcome, 0, sizeof(end->outcome));
    run->ended = true;
    run->executor = NULL;
    run->fixture->pending--;
}

static bool is_last(void *owner, const struct bytes *outcome)
{
    (void)owner;
    struct measure_outcome read;
    assert_int_equal(
        message_read(&measure_outcome_message, &read, outcome->data, outcome->len, NULL), 0);
    bool last = read.retire;
    message_clear(&measure_outcome_message, &read);
    return last;
}

static struct executor_config cuda_config(const char *search)
{
    return (struct executor_config){
        .mode = "cuda-measure",
        .argument = "GPU-1",
        .keep = search,
        .outcome_max = (size_t)1 << 20,
        .deadline_ms = PROGRAM_LIMIT_MS,
        .grace_ms = 100,
        .read = is_last,
        .on_end = on_end,
    };
}

static void begin(struct fixture *f, struct run *run, struct executor_config config,
                  const char *words)
{
    struct bytes plan = plan_of(words, config.keep);

    *run = (struct run){.fixture = f};
    config.owner = run;
    f->pending++;
    struct err err = ERR_INIT;
    if (executor_start(&run->executor, f->pool, &config, &plan, &err) != 0) {
        fail_msg("%s", err.text);
    }
    assert_null(plan.data);
    assert_false(run->ended);
}

static void wait_for(struct fixture *f)
{
    while (f->pending > 0) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
}

static void ask(struct fixture *f, struct run *run, struct executor_config config,
                const char *words)
{
    begin(f, run, config, words);
    wait_for(f);
}

// What the process that answered says about itself: its pid, and how many it had answered before.
static void teller(struct run *run, int *ret_pid, unsigned *ret_answered)
{
    if (!run->end.ok) {
        fail_msg("%s", run->end.reason);
    }
    struct measure_outcome outcome;
    assert_int_equal(message_read(&measure_outcome_message, &outcome, run->end.outcome.data,
                                  run->end.outcome.len, NULL),
                     0);
    assert_int_equal(
        sscanf(outcome.result->reason, "uuid=GPU-1 pid=%d answered=%u", ret_pid, ret_answered), 2);
    message_clear(&measure_outcome_message, &outcome);
    bytes_clear(&run->end.outcome);
}

static int pid_of(struct fixture *f, struct executor_config config, unsigned answered)
{
    struct run run;

    ask(f, &run, config, "//! tell\n");
    unsigned said;
    int pid;
    teller(&run, &pid, &said);
    assert_int_equal(said, answered);
    return pid;
}

static void expect_lost(struct fixture *f, struct executor_config config, const char *words,
                        const char *text)
{
    struct run run;

    ask(f, &run, config, words);
    assert_false(run.end.ok);
    assert_null(run.end.outcome.data);
    if (!strstr(run.end.reason, text)) {
        fail_msg("%s", run.end.reason);
    }
}

// Lines of the fake's log about starts of this mode.
static size_t starts(const struct fixture *f, const char *mode)
{
    struct digest digest = digest_of(mode, strlen(mode));
    char hex[DIGEST_HEX_LEN + 1];

    digest_hex(&digest, hex);
    char *line = xasprintf("cuda-start %.16s\n", hex);
    struct bytes text = {0};
    size_t count = 0;
    if (file_read(&text, f->log, (size_t)1 << 20, NULL) == 0) {
        for (const char *at = (char *)text.data; (at = strstr(at, line)); at++) {
            count++;
        }
    }
    free(line);
    bytes_clear(&text);
    return count;
}

static void until_started(struct fixture *f, const char *mode, size_t count)
{
    while (starts(f, mode) < count) {
        (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(starts(f, mode), count);
}

static void one_plan_has_a_process_of_its_own(void **state)
{
    struct fixture *f = *state;
    struct executor_config config = cuda_config(NULL);

    open_pool(f);
    config.mode = "measure";
    config.argument = NULL;
    struct run run;
    ask(f, &run, config, "int x;\n");
    assert_true(run.end.ok);
    assert_true(run.end.outcome.len > 0);
    bytes_clear(&run.end.outcome);
    assert_int_equal(executor_pool_count(f->pool), 0);
    expect_lost(f, config, "//! run-exit 3\n", "exit code 3: the reason is on the last line");
    config.deadline_ms = 20;
    expect_lost(f, config, "//! run-deaf\n", "deadline");
}

static void a_process_that_stays_answers_its_group(void **state)
{
    struct fixture *f = *state;
    struct executor_config other = cuda_config("other");

    open_pool(f);
    int pid = pid_of(f, cuda_config("search"), 0);
    assert_int_equal(executor_pool_count(f->pool), 1);
    assert_int_equal(pid_of(f, cuda_config("search"), 1), pid);
    assert_int_equal(pid_of(f, cuda_config("search"), 2), pid);
    assert_int_not_equal(pid_of(f, other, 0), pid);
    assert_int_equal(pid_of(f, cuda_config("search"), 3), pid);
}

static void what_must_be_fresh_gets_a_new_process_that_stays(void **state)
{
    struct fixture *f = *state;
    struct executor_config fresh = cuda_config("search");
    int pid, second;

    open_pool(f);
    fresh.fresh = true;
    pid = pid_of(f, cuda_config("search"), 0);
    second = pid_of(f, fresh, 0);
    assert_int_not_equal(second, pid);
    assert_int_equal(pid_of(f, cuda_config("search"), 1), second);
    while (program_alive(pid)) { // one is enough
        (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    }
}

static void unused_processes_are_used_first_and_replaced(void **state)
{
    struct fixture *f = *state;
    struct executor_config config = cuda_config("search");

    open_pool(f);
    executors_prestart(f->pool, &config, 1);
    until_started(f, "cuda-measure", 1);
    (void)pid_of(f, config, 0);
    until_started(f, "cuda-measure", 2); // the next spare
    (void)pid_of(f, cuda_config("other"), 0);
    until_started(f, "cuda-measure", 3);
    assert_int_equal(executor_pool_count(f->pool), 3);
    assert_int_equal(starts(f, "cuda-measure"), 3);
}

static void processes_for_all_count_as_unused_themselves(void **state)
{
    struct fixture *f = *state;
    struct executor_config config = cuda_config("");

    open_pool(f);
    executors_prestart(f->pool, &config, 2);
    (void)pid_of(f, config, 0);
    (void)pid_of(f, config, 1);
    executor_pool_tick(f->pool);
    assert_int_equal(executor_pool_count(f->pool), 2);
}

static void the_group_used_longest_ago_makes_room(void **state)
{
    static const char *const search[] = {"a", "b", "c", "d", "e"};
    struct fixture *f = *state;

    open_pool(f);
    int pid[5];
    for (size_t i = 0; i < 4; i++) {
        pid[i] = pid_of(f, cuda_config(search[i]), 0);
    }
    assert_int_equal(pid_of(f, cuda_config("a"), 1), pid[0]);
    pid[4] = pid_of(f, cuda_config("e"), 0);
    while (program_alive(pid[1])) { // b
        (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(pid_of(f, cuda_config("a"), 2), pid[0]);
    assert_int_equal(pid_of(f, cuda_config("e"), 1), pid[4]);
    assert_int_equal(pid_of(f, cuda_config("c"), 1), pid[2]);
    assert_int_not_equal(pid_of(f, cuda_config("b"), 0), pid[1]);
}

static void a_run_that_goes_wrong_takes_its_process_along(void **state)
{
    struct fixture *f = *state;
    struct executor_config brief = cuda_config("search");

    open_pool(f);
    int pid = pid_of(f, brief, 0);
    expect_lost(f, brief, "//! run-exit 9\n", "exit code 9: the reason is on the last line");
    assert_int_equal(executor_pool_count(f->pool), 0);
    assert_false(program_alive(pid));
    expect_lost(f, brief, "//! run-crash\n", "signal 11");
    expect_lost(f, brief, "//! run-garbage\n", "bytes a report may have");
    expect_lost(f, brief, "//! run-flood\n", "bytes a report may have");
    expect_lost(f, brief, "//! run-empty\n", "ended without a report");
    brief.deadline_ms = 50;
    expect_lost(f, brief, "//! run-hang\n", "did not answer within its deadline");
    expect_lost(f, brief, "//! run-deaf\n", "did not answer within its deadline");
    brief.deadline_ms = PROGRAM_LIMIT_MS;
    (void)pid_of(f, brief, 0);
}

static void a_process_that_talks_unasked_is_ended(void **state)
{
    struct fixture *f = *state;

    open_pool(f);
    struct run run;
    ask(f, &run, cuda_config("search"), "//! run-late\n");
    if (run.end.ok) { // whether both came at once is up to the kernel
        bytes_clear(&run.end.outcome);
    } else {
        assert_non_null(strstr(run.end.reason, "went on after its report"));
    }
    while (executor_pool_count(f->pool) > 0) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
    (void)pid_of(f, cuda_config("search"), 0);
}

static void a_retired_process_is_gone_before_its_outcome_is_told(void **state)
{
    struct fixture *f = *state;

    open_pool(f);
    struct run run;
    ask(f, &run, cuda_config("search"), "//! tell\n//! retire\n");
    int pid = 0;
    unsigned answered;
    teller(&run, &pid, &answered);
    assert_false(program_alive(pid));
    ask(f, &run, cuda_config("search"), "//! tell\n//! retire-deaf\n");
    teller(&run, &pid, &answered);
    assert_int_equal(answered, 0);
    assert_false(program_alive(pid));
    assert_int_equal(executor_pool_count(f->pool), 0);
}

static void stopping_a_run_ends_its_process(void **state)
{
    struct fixture *f = *state;

    open_pool(f);
    (void)pid_of(f, cuda_config("search"), 0);
    struct run run;
    begin(f, &run, cuda_config("search"), "//! run-hang\n");
    executor_stop(run.executor);
    executor_stop(run.executor);
    assert_false(run.ended);
    wait_for(f);
    assert_true(run.end.stopped);
    assert_false(run.end.ok);
    assert_int_equal(executor_pool_count(f->pool), 0);
}

static void one_that_does_not_start_is_a_lost_run(void **state)
{
    struct fixture *f = *state;

    (void)setenv("KCAST_FAKE_START", "crash", 1);
    open_pool(f);
    expect_lost(f, cuda_config("search"), "int x;\n", "exit code 9: fake-exec: it does not start");
}

static void one_that_begins_with_anything_else_is_killed(void **state)
{
    struct fixture *f = *state;

    (void)setenv("KCAST_FAKE_START", "garbage", 1);
    open_pool(f);
    expect_lost(f, cuda_config("search"), "int x;\n", "did not begin with an empty frame");
}

static void an_unused_process_that_does_not_start_is_tried_again_later(void **state)
{
    struct fixture *f = *state;
    struct executor_config config = cuda_config("search");
    char *start = xasprintf("once %s/started", f->dir);

    (void)setenv("KCAST_FAKE_START", start, 1);
    open_pool(f);
    executors_prestart(f->pool, &config, 1);
    while (executor_pool_count(f->pool) > 0) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
    executor_pool_tick(f->pool);
    assert_int_equal(executor_pool_count(f->pool), 0); // not at once
    assert_int_equal(starts(f, "cuda-measure"), 1);
    while (executor_pool_count(f->pool) == 0) {
        (void)uv_run(&f->loop, UV_RUN_NOWAIT);
        executor_pool_tick(f->pool);
    }
    (void)pid_of(f, config, 0);
    free(start);
}

static void when_stopped_nothing_stays(void **state)
{
    struct fixture *f = *state;
    struct executor_config config = cuda_config("search");

    open_pool(f);
    executors_prestart(f->pool, &config, 2);
    struct run run;
    begin(f, &run, config, "//! tell\n");
    executor_pool_stop(f->pool);
    wait_for(f);
    assert_true(run.end.ok);
    bytes_clear(&run.end.outcome);
    while (executor_pool_count(f->pool) > 0) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
}

// A run that counts how often and where its report is read.
struct reading {
    struct run run; // first: on_end gets it
    pthread_t loop_thread;
    atomic_uint here, elsewhere;
    bool last; // what to say
};

static bool count_reading(void *owner, const struct bytes *outcome)
{
    struct reading *reading = owner;

    assert_true(outcome->len > 0);
    if (pthread_equal(pthread_self(), reading->loop_thread)) {
        reading->here++;
    } else {
        reading->elsewhere++;
    }
    return reading->last;
}

static struct executor_config compile_config(bool stays)
{
    return (struct executor_config){
        .mode = stays ? "cuda-compile" : "compile",
        .keep = stays ? "" : NULL,
        .outcome_max = (size_t)8 << 20,
        .deadline_ms = PROGRAM_LIMIT_MS,
        .grace_ms = PROGRAM_LIMIT_MS,
        .read = count_reading,
        .on_end = on_end,
    };
}

static void start_reading(struct fixture *f, struct reading *reading, bool stays, bool last,
                          const char *source)
{
    struct executor_config config = compile_config(stays);

    *reading = (struct reading){.run = {.fixture = f}, .loop_thread = pthread_self(), .last = last};
    struct compile_plan plan;
    message_init(&compile_plan_message, &plan);
    plan.source = (struct bytes){(unsigned char *)(uintptr_t)source, strlen(source)};
    plan.header = plan.glue = plan.name = (char *)(uintptr_t) "x";
    plan.language = stays ? (char *)(uintptr_t) "cuda" : NULL;
    plan.max_seconds = 1;
    plan.max_memory = plan.max_output = 1;
    struct bytes packed = pack(&compile_plan_message, &plan);
    config.owner = reading;
    f->pending++;
    struct err err = ERR_INIT;
    if (executor_start(&reading->run.executor, f->pool, &config, &packed, &err) != 0) {
        fail_msg("%s", err.text);
    }
}

static void a_outcome_is_read_once_and_a_long_one_beside_the_loop(void **state)
{
    struct fixture *f = *state;

    open_pool(f);
    for (unsigned i = 0; i < 8; i++) {
        bool stays = (i & 1) != 0;
        bool last = (i & 2) != 0;
        bool is_long = (i & 4) != 0;
        struct reading reading;

        start_reading(f, &reading, stays, last, is_long ? "//! pad 1\n" : "int a;\n");
        wait_for(f);
        if (!reading.run.end.ok) {
            fail_msg("%s", reading.run.end.reason);
        }
        assert_int_equal(reading.run.end.outcome.len > EXECUTOR_READ_HERE, is_long);
        assert_int_equal(reading.here, is_long ? 0 : 1);
        assert_int_equal(reading.elsewhere, is_long ? 1 : 0);
        assert_int_equal(executor_pool_count(f->pool), stays && !last ? 1 : 0);
        bytes_clear(&reading.run.end.outcome);
        if (stays && !last) { // so that the next one has a new process
            executor_pool_kill(f->pool);
            while (executor_pool_count(f->pool) > 0) {
                (void)uv_run(&f->loop, UV_RUN_ONCE);
            }
        }
    }
}

// Whatever comes first, the report or the signal: it ends once, and nothing of it is left.
static void a_run_that_is_read_can_be_stopped(void **state)
{
    struct fixture *f = *state;

    open_pool(f);
    for (unsigned i = 0; i < 2; i++) {
        struct reading reading;

        start_reading(f, &reading, i == 1, false, "//! pad 4\n");
        while (f->pending > 0 && reading.elsewhere == 0) {
            (void)uv_run(&f->loop, UV_RUN_ONCE);
        }
        if (f->pending > 0) {
            executor_stop(reading.run.executor);
            executor_stop(reading.run.executor);
        }
        wait_for(f);
        assert_int_equal(reading.here + reading.elsewhere, 1);
        bytes_clear(&reading.run.end.outcome);
    }
}

// Nothing may be opened any more until the old limit is back.
static struct rlimit take_descriptors(void)
{
    int fd = dup(STDERR_FILENO);

    assert_true(fd >= 0);
    close(fd);
    struct rlimit old;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    struct rlimit none = (struct rlimit){.rlim_cur = (rlim_t)fd, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    return old;
}

static void expect_no_start(struct fixture *f, struct executor_config config, unsigned held)
{
    struct bytes plan = plan_of("", config.keep);
    struct rlimit old = take_descriptors();
    struct executor *executor = NULL;
    struct err err = ERR_INIT;
    int rc = executor_start(&executor, f->pool, &config, &plan, &err);

    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_not_equal(rc, 0);
    assert_null(executor);
    assert_null(plan.data);
    assert_non_null(strstr(err.text, "too many open files"));
    assert_int_equal(executor_pool_held(f->pool), held);
}

static void tick(struct fixture *f, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        executor_pool_tick(f->pool);
    }
}

static void starts_that_fail_are_spread_out(void **state)
{
    struct fixture *f = *state;
    struct executor_config config = cuda_config("search");
    struct executor_config alone = config;

    open_pool(f);
    alone.mode = "measure";
    alone.argument = alone.keep = NULL;
    assert_int_equal(executor_pool_held(f->pool), 0);
    expect_no_start(f, config, 1);
    expect_no_start(f, alone, 1); // at the same time: the same misfortune
    unsigned longest = 1;
    for (; longest < 64; longest *= 2) {
        tick(f, longest);
        assert_int_equal(executor_pool_held(f->pool), 0);
        expect_no_start(f, longest % 3 == 1 ? alone : config, 2 * longest);
    }
    tick(f, 64);
    expect_no_start(f, config, 64); // and no longer
    tick(f, 63);
    assert_int_equal(executor_pool_held(f->pool), 1);
    tick(f, 1);
    (void)pid_of(f, config, 0); // and it works again
    assert_int_equal(executor_pool_held(f->pool), 0);
    config.fresh = true;
    expect_no_start(f, config, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(one_plan_has_a_process_of_its_own),
        TEST(a_process_that_stays_answers_its_group),
        TEST(what_must_be_fresh_gets_a_new_process_that_stays),
        TEST(unused_processes_are_used_first_and_replaced),
        TEST(processes_for_all_count_as_unused_themselves),
        TEST(the_group_used_longest_ago_makes_room),
        TEST(a_run_that_goes_wrong_takes_its_process_along),
        TEST(a_process_that_talks_unasked_is_ended),
        TEST(a_outcome_is_read_once_and_a_long_one_beside_the_loop),
        TEST(a_run_that_is_read_can_be_stopped),
        TEST(starts_that_fail_are_spread_out),
        TEST(a_retired_process_is_gone_before_its_outcome_is_told),
        TEST(stopping_a_run_ends_its_process),
        TEST(one_that_does_not_start_is_a_lost_run),
        TEST(one_that_begins_with_anything_else_is_killed),
        TEST(an_unused_process_that_does_not_start_is_tried_again_later),
        TEST(when_stopped_nothing_stays),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
