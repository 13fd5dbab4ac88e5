#include "tests/support/daemon/executor_runs.h"
#include "common/digest.h"
#include "common/file.h"
#include "daemon/run/executors.h"
#include "proto/messages.h"
#include "tests/support/program.h"
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

int runs_set_up(void **state)
{
    struct runs_fixture *f = calloc(1, sizeof(*f));
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

void runs_open_executors(struct runs_fixture *f)
{
    char *path = program_support_path("fake_exec");
    struct err err = ERR_INIT;

    if (executors_create(&f->executors, &f->loop, path, NULL, NULL, &err) != 0) {
        fail_msg("%s", err.text);
    }
    free(path);
}

int runs_tear_down(void **state)
{
    struct runs_fixture *f = *state;
    char *command[] = {(char *)"rm", (char *)"-rf", f->dir, NULL};
    uv_process_options_t options = {.file = "rm", .args = command};

    if (f->executors) {
        executors_stop(f->executors);
        while (executors_count(f->executors) > 0) {
            (void)uv_run(&f->loop, UV_RUN_ONCE);
        }
        executors_free(f->executors);
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

struct bytes runs_pack(const struct message *message, const void *value)
{
    struct strbuf packed = STRBUF_INIT;

    assert_int_equal(message_pack(message, value, &packed, NULL), 0);
    return strbuf_detach_bytes(&packed);
}

struct bytes runs_plan_of(const char *words, bool cuda)
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
        plan.candidate = runs_pack(&cuda_object_message, &object);
    }
    packed = runs_pack(&measure_plan_message, &plan);
    if (cuda) {
        bytes_clear(&plan.candidate);
    }
    free(text);
    return packed;
}

void runs_on_end(void *owner, struct executor_end *end)
{
    struct executor_run *run = owner;

    run->end = *end;
    memset(&end->outcome, 0, sizeof(end->outcome));
    run->ended = true;
    run->executor = NULL;
    run->fixture->pending--;
}

bool runs_is_last(void *owner, const struct bytes *outcome)
{
    (void)owner;
    struct measure_outcome read;
    assert_int_equal(
        message_read(&measure_outcome_message, &read, outcome->data, outcome->len, NULL), 0);
    bool last = read.retire;
    message_clear(&measure_outcome_message, &read);
    return last;
}

struct executor_config runs_cuda_config(const char *search)
{
    return (struct executor_config){
        .mode = "cuda-measure",
        .argument = "GPU-1",
        .keep = search,
        .outcome_max = (size_t)1 << 20,
        .deadline_ms = PROGRAM_LIMIT_MS,
        .grace_ms = 100,
        .read = runs_is_last,
        .on_end = runs_on_end,
    };
}

void runs_begin(struct runs_fixture *f, struct executor_run *run, struct executor_config config,
                const char *words)
{
    struct bytes plan = runs_plan_of(words, config.keep);

    *run = (struct executor_run){.fixture = f};
    config.owner = run;
    f->pending++;
    struct err err = ERR_INIT;
    if (executor_start(&run->executor, f->executors, &config, &plan, &err) != 0) {
        fail_msg("%s", err.text);
    }
    assert_null(plan.data);
    assert_false(run->ended);
}

void runs_wait_for(struct runs_fixture *f)
{
    while (f->pending > 0) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
}

void runs_ask(struct runs_fixture *f, struct executor_run *run, struct executor_config config,
              const char *words)
{
    runs_begin(f, run, config, words);
    runs_wait_for(f);
}

void runs_teller(struct executor_run *run, int *ret_pid, unsigned *ret_answered)
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

int runs_pid_of(struct runs_fixture *f, struct executor_config config, unsigned answered)
{
    struct executor_run run;

    runs_ask(f, &run, config, "//! tell\n");
    unsigned said;
    int pid;
    runs_teller(&run, &pid, &said);
    assert_int_equal(said, answered);
    return pid;
}

void runs_expect_lost(struct runs_fixture *f, struct executor_config config, const char *words,
                      const char *text)
{
    struct executor_run run;

    runs_ask(f, &run, config, words);
    assert_false(run.end.ok);
    assert_null(run.end.outcome.data);
    if (!strstr(run.end.reason, text)) {
        fail_msg("%s", run.end.reason);
    }
}

size_t runs_starts(const struct runs_fixture *f, const char *mode)
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

void runs_until_started(struct runs_fixture *f, const char *mode, size_t count)
{
    while (runs_starts(f, mode) < count) {
        (void)uv_run(&f->loop, UV_RUN_NOWAIT);
        executors_tick(f->executors);
    }
    assert_int_equal(runs_starts(f, mode), count);
}
