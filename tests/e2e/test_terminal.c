// Whatever a daemon, a worker or a file says, kcast prints nothing that a terminal obeys: every
// subcommand is run against a service whose replies have such bytes in all their texts, with
// arguments of such bytes, and with files that hold them.
#include "common/file.h"
#include "common/printable.h"
#include "net/rpc/service.h"
#include "proto/message_field.h"
#include "proto/messages.h"
#include "tests/support/program.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// Clears the screen; C1 CSI; DEL; right-to-left override; a line of its own.
#define HOSTILE "a\x1b[2J\xc2\x9b[1m\x7f\xe2\x80\xae\nkcast: b"
#define HOSTILE_ARGUMENT "a\x1b[2J\xc2\x9b[1m\x7f\xe2\x80\xae\xff"

// ---- a service that says hostile things ----

struct liar {
    pthread_t thread;
    uv_loop_t loop;
    uv_async_t stop;
    struct service *service;
    const char *program; // what it says that it is
    char *url;
    _Atomic bool fails; // answers with errors
};

static void fill(const struct message *message, void *value, int depth);

static void fill_array(const struct field *field, void *value, int depth)
{
    size_t size = field_element_size(field);
    char *element = xcalloc(1, size);

    if (field->type == FIELD_list) {
        fill(field->sub, element, depth + 1);
    } else if (field->type == FIELD_texts) {
        *(char **)(void *)element = xstrdup(HOSTILE);
    } else if (field->type == FIELD_f64s) {
        *(double *)(void *)element = 0.5;
    } else if (field->type == FIELD_u64s) {
        *(uint64_t *)(void *)element = 1;
    }
    field_set_pointer(field, value, element, 1);
}

// Makes every field present: numbers are 1, lists have one element, texts are hostile.
static void fill(const struct message *message, void *value, int depth)
{
    size_t count;
    const struct field *field = message->fields(&count);

    message_init(message, value);
    for (size_t i = 0; i < count; i++) {
        void *at = (char *)value + field[i].offset;

        switch (field[i].type) {
        case FIELD_u64:
            *(uint64_t *)at = 1;
            break;
        case FIELD_i64:
            *(int64_t *)at = 1;
            break;
        case FIELD_f64:
            *(double *)at = 0.5;
            break;
        case FIELD_text:
            *(char **)at = xstrndup(HOSTILE, field[i].max);
            break;
        case FIELD_one:
            if (depth < 8) {
                void *sub = xcalloc(1, field[i].sub->size);

                fill(field[i].sub, sub, depth + 1);
                field_set_pointer(&field[i], value, sub, 0);
            }
            break;
        case FIELD_f64s:
        case FIELD_u64s:
        case FIELD_texts:
        case FIELD_list:
            if (depth < 8) {
                fill_array(&field[i], value, depth);
            }
            break;
        case FIELD_flag:
        case FIELD_bytes:
        case FIELD_digest:
        case FIELD_digests: // BLOB_HAVE misses nothing then
            break;
        }
    }
}

static const struct message *reply_of(uint64_t op)
{
    switch (op) {
#define X(number, id, request, reply, text)                                                        \
    case number:                                                                                   \
        return &reply##_message;
        DAEMON_OPS(X)
        WORKER_OPS(X)
#undef X
    default:
        return NULL;
    }
}

static void on_request(void *owner, struct exchange *exchange, const struct request *request)
{
    static const char *const features[] = {"compile", "measure", "cpu", "model", HOSTILE};
    const struct liar *liar = owner;
    const struct message *message = reply_of(request->op);

    if (request->op == OP_HELLO) {
        const struct worker_abilities abilities = {.engine = (char *)(uintptr_t)HOSTILE};

        exchange_hello(exchange, request, liar->program, features, ARRAY_LEN(features), 1000,
                       &abilities);
    } else if (liar->fails || !message) {
        struct err err = ERR_INIT;

        (void)err_set(&err, ERR_DENIED, "%s", HOSTILE);
        exchange_fail(exchange, &err);
    } else {
        void *value = xcalloc(1, message->size + 1);

        fill(message, value, 0);
        exchange_reply(exchange, message, value);
        message_clear(message, value);
        free(value);
    }
}

static void on_stop(uv_async_t *stop)
{
    struct liar *liar = stop->data;

    service_close(liar->service);
    uv_close((uv_handle_t *)stop, NULL);
}

static void *serve(void *argument)
{
    struct liar *liar = argument;

    (void)uv_run(&liar->loop, UV_RUN_DEFAULT);
    return NULL;
}

static void liar_start(struct liar *liar, const char *program)
{
    struct service_config config = {.url = "tcp://127.0.0.1:0",
                                    .exchanges_max = 64,
                                    .parked_max = 32,
                                    .message_max = (size_t)16 << 20,
                                    .epoch = 1,
                                    .on_request = on_request,
                                    .owner = liar};
    struct err err = ERR_INIT;

    liar->program = program;
    assert_int_equal(uv_loop_init(&liar->loop), 0);
    assert_int_equal(service_create(&liar->service, &liar->loop, &config, &err), 0);
    liar->url = xstrdup(service_url(liar->service));
    assert_int_equal(uv_async_init(&liar->loop, &liar->stop, on_stop), 0);
    liar->stop.data = liar;
    assert_int_equal(pthread_create(&liar->thread, NULL, serve, liar), 0);
}

static void liar_stop(struct liar *liar)
{
    assert_int_equal(uv_async_send(&liar->stop), 0);
    assert_int_equal(pthread_join(liar->thread, NULL), 0);
    assert_int_equal(uv_loop_close(&liar->loop), 0);
    free(liar->url);
}

// ---- running kcast ----

struct fixture {
    struct liar daemon, worker;
    struct program program;
    char *kcast, *dir;
    bool escaped; // the last run has printed hostile text, escaped
};

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    (void)signal(SIGPIPE, SIG_IGN);
    liar_start(&f->daemon, "kcastd");
    liar_start(&f->worker, "kcast-worker");
    program_init(&f->program);
    f->kcast = program_path("kcast");
    assert_int_equal(file_make_temp_dir(&f->dir, "kcast-terminal", NULL), 0);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    liar_stop(&f->daemon);
    liar_stop(&f->worker);
    program_release(&f->program);
    assert_int_equal(file_remove_tree(f->dir, NULL), 0);
    free(f->kcast);
    free(f->dir);
    free(f);
    return 0;
}

// Fails when the text has anything but printable characters, newlines and tabs.
static void check_text(struct fixture *f, const char *command, const char *what, const char *text)
{
    size_t len = strlen(text);

    for (size_t at = 0, step; at < len; at += step) {
        const unsigned char *here = (const unsigned char *)text + at;

        step = *here == '\n' || *here == '\t' ? 1 : printable_length(here, len - at);
        if (step == 0) {
            struct strbuf shown = STRBUF_INIT;

            printable_add(&shown, text, len < 2000 ? len : 2000);
            fail_msg("kcast %s prints byte 0x%02x to %s: %s", command, *here, what,
                     strbuf_text(&shown));
        }
    }
    if (strstr(text, "\nkcast: b")) {
        fail_msg("kcast %s lets a value begin a line of %s: %s", command, what, text);
    }
    f->escaped |= strstr(text, "\\x1b[2J") || strstr(text, "\\u001B[2J") || strstr(text, "a?[2J");
}

// Runs kcast with these arguments, until NULL, and checks what it prints.
static int run(struct fixture *f, const char *const *arguments)
{
    const char *argv[24] = {f->kcast};
    size_t count = 1;

    for (; arguments[count - 1]; count++) {
        argv[count] = arguments[count - 1];
    }
    f->escaped = false;
    program_start(&f->program, argv,
                  (const char *const[]){"KCAST_TOKEN_FILE=", "TERM=xterm", NULL});
    int code = program_wait(&f->program);
    char *out = program_output(&f->program), *log = program_log(&f->program);
    check_text(f, arguments[0], "stdout", out);
    check_text(f, arguments[0], "stderr", log);
    free(out);
    free(log);
    return code;
}

#define RUN(...) run(f, (const char *const[]){__VA_ARGS__, NULL})

// ---- the tests ----

static const struct {
    const char *argument[4];
    bool shows; // texts of the reply are part of the output
} commands[] = {
    {{"status"}, true},
    {{"jobs"}, true},
    {{"job", "1"}, true},
    {{"top"}, true},
    {{"budget"}, true},
    {{"budget", "set", "team", "60"}, false},
    {{"cancel", "1"}, false},
    {{"drain", "cpu0"}, false},
    {{"undrain", "cpu0"}, false},
    {{"quarantine", "cpu0"}, false},
    {{"probe", "cpu0"}, true},
    {{"measure", "problems/cpu/scan", "problems/cpu/scan/baseline.c"}, false},
    {{"forecast", "problems/cpu/scan", "problems/cpu/scan/baseline.c"}, false},
};

static void replies_are_escaped(void **state)
{
    struct fixture *f = *state;

    for (size_t fails = 0; fails < 2; fails++) {
        f->daemon.fails = f->worker.fails = fails == 1;
        for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
            const char *const *c = commands[i].argument;

            for (size_t json = 0; json < 2; json++) {
                const char *arguments[10] = {"--pool", f->daemon.url, "--worker", f->worker.url};
                size_t count = 4;

                if (json) {
                    arguments[count++] = "--json";
                }
                for (size_t k = 0; k < 4 && c[k]; k++) {
                    arguments[count++] = c[k];
                }
                (void)run(f, arguments);
                if ((commands[i].shows || fails) && !f->escaped) {
                    char *out = program_output(&f->program), *log = program_log(&f->program);

                    fail_msg("kcast %s shows nothing of the reply: %s%s", c[0], out, log);
                }
            }
        }
    }
}

static void arguments_are_escaped(void **state)
{
    static const char *const names[] = {
        "search", "resume",  "tune",    "wisdom",        "measure", "forecast", "report",
        "export", "import",  "replay",  "eval",          "status",  "jobs",     "job",
        "cancel", "drain",   "undrain", "quarantine",    "probe",   "top",      "token",
        "budget", "problem", "tls",     HOSTILE_ARGUMENT};
    struct fixture *f = *state;
    char *before = getcwd(NULL, 0);

    assert_int_equal(chdir(f->dir), 0); // some commands make files with the names that they get
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        (void)RUN("--pool", f->daemon.url, "--no-worker", names[i], HOSTILE_ARGUMENT);
        (void)RUN("--pool", f->daemon.url, "--no-worker", names[i], HOSTILE_ARGUMENT,
                  HOSTILE_ARGUMENT);
        (void)RUN("--pool", f->daemon.url, "--no-worker", names[i], "--" HOSTILE_ARGUMENT);
        (void)RUN("--pool", HOSTILE_ARGUMENT, names[i], "x");
    }
    (void)RUN("problem", "check", HOSTILE_ARGUMENT);
    assert_true(f->escaped);
    (void)RUN("problem", "list", HOSTILE_ARGUMENT);
    (void)RUN("problem", "new", HOSTILE_ARGUMENT);
    (void)RUN("token", "add", HOSTILE_ARGUMENT, "--tokens", HOSTILE_ARGUMENT);
    (void)RUN("tls", "init", f->dir, "--hosts", HOSTILE_ARGUMENT);
    assert_true(f->escaped);
    assert_int_equal(chdir(before), 0);
    free(before);
}

static char *put(struct fixture *f, const char *name, const char *text)
{
    char *path = xasprintf("%s/%s", f->dir, name);

    assert_int_equal(file_replace(path, text, strlen(text), false, NULL), 0);
    return path;
}

static void files_are_escaped(void **state)
{
    struct fixture *f = *state;
    // Engines of forecasts for eval; a space and a run that are none; names that no reader takes.
    char *rows = put(f, "rows",
                     "{\"engine\":\"a\\u001b[2J\\u009b\\u202e\",\"p_improves\":0.5,\"improves\":1,"
                     "\"p_correct\":0.5,\"correct\":1,\"log2\":0.1,\"mean_log2\":0.2}\n");
    char *space = put(f, "a\x1b[2J\xc2\x9b.space", HOSTILE);
    char *wisdom = put(f, "wisdom.json", "{\"kernelcast\":\"a\x1b[2J\"}\n");
    char *pool =
        put(f, "pool.jsonl", "{\"name\":\"a\\u001b[2J\\u009b\\u202e\",\"source\":\"int x;\"}\n");
    char *problem = xasprintf("%s/problem", f->dir);

    assert_int_equal(file_make_dirs(problem, NULL), 0);
    char *json = put(f, "problem/problem.json",
                     "{\"title\":\"a\\u001b[2J\\u009b\\u202e\","
                     "\"a\\u001b[2J\\u009b\\u202e\":1}\n");
    (void)RUN("eval", rows);
    (void)RUN("eval", space);
    (void)RUN("report", space);
    assert_true(f->escaped);
    (void)RUN("export", space);
    (void)RUN("replay", space);
    (void)RUN("import", space, "-o", space);
    (void)RUN("wisdom", wisdom, "--problem", "scan");
    (void)RUN("problem", "check", problem);
    (void)RUN("problem", "list", problem);
    char *generator = xasprintf("pool:%s", pool);
    assert_int_not_equal(RUN("--no-worker", "--pool", f->daemon.url, "search", "problems/cpu/scan",
                             "--generator", generator),
                         0);
    assert_true(f->escaped);
    free(generator);
    free(rows);
    free(space);
    free(wisdom);
    free(pool);
    free(json);
    free(problem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(replies_are_escaped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(arguments_are_escaped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(files_are_escaped, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
