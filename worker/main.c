// kcast-worker, the program that makes forecasts. Reads options, locks the state directory and runs
// the loop until SIGTERM or SIGINT. SIGHUP reads the log level, certificates and tokens again.
#include "common/clock.h"
#include "common/err.h"
#include "common/exit.h"
#include "common/file.h"
#include "common/heartbeat.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/options.h"
#include "common/parent.h"
#include "common/printable.h"
#include "common/ready.h"
#include "common/state_dir.h"
#include "common/version.h"
#include "common/wrap.h"
#include "net/rpc/service.h"
#include "worker/engine.h"
#include "worker/llm/llm_settings.h"
#include "worker/try.h"
#include "worker/worker.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#define THREADS_MAX 256
#define THREADS_DEFAULT_MAX 8 // more gain nothing with batches of at most 256 candidates
#define THREADS_BESIDE 4      // of libuv's pool for everything but forecasts; libuv's own default

struct settings {
    char *config, *listen, *engine, *state, *log_level;
    struct identity_files files;
    char *log_format, *http;
    uint64_t threads;
    bool recalibrate_static, parent_death, try, help, version;
    struct llm_settings llm;
};

#define ROW(field) offsetof(struct settings, field)
static const struct option_row option_table[] = {
    {"config", 'c', OPTION_TEXT, ROW(config), "FILE", NULL, 0, 0, NULL,
     "read [worker] of this INI file first, and its sections [endpoint NAME]"},
    {"listen", 'l', OPTION_TEXT, ROW(listen), "URL", KCAST_DEFAULT_WORKER, 0, 0, NULL,
     "address to listen on: tcp:// on loopback only, tls:// (or tls+tcp://) anywhere; port 0 takes "
     "a free one"},
    IDENTITY_OPTION_ROWS(ROW(files)),
    {"http", 0, OPTION_TEXT, ROW(http), "ADDRESS", "", 0, 0, NULL,
     "serve /metrics, /healthz and /status.json there, 127.0.0.1:7413 for example; loopback only,"
     " port 0 picks a free one; default: not at all"},
    {"engine", 'e', OPTION_CHOICE, ROW(engine), "NAME", "static", 0, 0, engine_choices,
     "what makes the forecasts"},
    {"state", 's', OPTION_TEXT, ROW(state), "DIR", NULL, 0, 0, NULL,
     "what was learnt; default: $STATE_DIRECTORY, else $XDG_STATE_HOME/kernelcast/worker, else for"
     " root /var/lib/kernelcast/worker and for others ~/.local/state/kernelcast/worker"},
    {"threads", 't', OPTION_U64, ROW(threads), "N", "0", 0, THREADS_MAX, NULL,
     "on which the static model makes forecasts, beside the one that learns; 0: one for each "
     "processor that it may use, at most 8"},
    {"recalibrate-static", 0, OPTION_FLAG, ROW(recalibrate_static), NULL, NULL, 0, 0, NULL,
     "correct the static model's forecasts by its own record, as language models' are; "
     "docs/measuring.md "
     "says why this is not the default"},
    {"endpoint", 'E', OPTION_TEXT, ROW(llm.endpoint), "URL[*WEIGHT],…", NULL, 0, 0, NULL,
     "OpenAI-compatible endpoints of --engine llm and both: https://host/v1; for other interfaces, "
     "or several keys, see the sections below"},
    {"model", 'm', OPTION_TEXT, ROW(llm.model), "NAME", NULL, 0, 0, NULL, "the model to ask there"},
    {"key-file", 0, OPTION_TEXT, ROW(llm.key_file), "FILE", NULL, 0, 0, NULL,
     "holds their key, readable by its owner only; default: $KCAST_LLM_KEY, or none"},
    {"ca-file", 0, OPTION_TEXT, ROW(llm.ca_file), "FILE", NULL, 0, 0, NULL,
     "certificates to trust instead of the system's"},
    {"samples", 0, OPTION_U64, ROW(llm.samples), "K", "1", 1, LLM_SAMPLES_MAX, NULL,
     "answers per candidate, pooled"},
    {"temperature", 0, OPTION_F64, ROW(llm.temperature), "T", "0.7", 0, 2, NULL,
     "of the model's answers"},
    {"max-tokens", 0, OPTION_U64, ROW(llm.max_tokens), "N", "4096", 16, 1000000, NULL,
     "of one answer, thoughts included"},
    {"llm-deadline", 0, OPTION_DURATION, ROW(llm.deadline_ns), "TIME", "120s", 0, 0, NULL,
     "of one question, with its retries"},
    {"llm-at-once", 0, OPTION_U64, ROW(llm.at_once), "N", "256", 1, 100000, NULL,
     "requests at once to one endpoint, at most; fewer while it refuses"},
    {"requests-per-minute", 0, OPTION_F64, ROW(llm.requests_per_minute), "N", "0", 0, 1e9, NULL,
     "to one endpoint; 0: no limit but its own"},
    {"tokens-per-minute", 0, OPTION_F64, ROW(llm.tokens_per_minute), "N", "0", 0, 1e12, NULL,
     "the same for tokens, estimated beforehand"},
    {"price-input", 0, OPTION_F64, ROW(llm.price_input), "PRICE", "0", 0, 1e6, NULL,
     "of a million input tokens, in any currency"},
    {"price-cached", 0, OPTION_F64, ROW(llm.price_cached), "PRICE", "0", 0, 1e6, NULL,
     "of a million input tokens that the endpoint had kept"},
    {"price-output", 0, OPTION_F64, ROW(llm.price_output), "PRICE", "0", 0, 1e6, NULL,
     "of a million output tokens"},
    {"search-tokens", 0, OPTION_F64, ROW(llm.limits.search.tokens), "N", "0", 0, 1e15, NULL,
     "that one search may use; then its candidates are measured; 0: no limit"},
    {"search-cost", 0, OPTION_F64, ROW(llm.limits.search.cost), "COST", "0", 0, 1e9, NULL,
     "that one search may cause, likewise"},
    {"day-tokens", 0, OPTION_F64, ROW(llm.limits.day.tokens), "N", "0", 0, 1e15, NULL,
     "that all searches of a day (UTC) may use, likewise"},
    {"day-cost", 0, OPTION_F64, ROW(llm.limits.day.cost), "COST", "0", 0, 1e9, NULL,
     "that all searches of a day may cause, likewise"},
    {"worker-tokens", 0, OPTION_F64, ROW(llm.limits.worker.tokens), "N", "0", 0, 1e15, NULL,
     "that may be used in all with this --state, likewise"},
    {"worker-cost", 0, OPTION_F64, ROW(llm.limits.worker.cost), "COST", "0", 0, 1e9, NULL,
     "that may be caused in all with this --state, likewise"},
    {"try", 0, OPTION_FLAG, ROW(try), NULL, NULL, 0, 0, NULL,
     "ask a real question of every endpoint, print how it was asked, what that took and what came, "
     "and exit"},
    {"log-level", 0, OPTION_CHOICE, ROW(log_level), "LEVEL", "info", 0, 0,
     "error|warning|notice|info|debug", "what is logged on stderr"},
    {"log-format", 0, OPTION_CHOICE, ROW(log_format), "FORMAT", "text", 0, 0, "text|json",
     "text is event key=value, json one object per line"},
    {"parent-death", 0, OPTION_FLAG, ROW(parent_death), NULL, NULL, 0, 0, NULL,
     "stop when the parent process ends"},
    {"help", 'h', OPTION_FLAG, ROW(help), NULL, NULL, 0, 0, NULL, "show this and exit"},
    {"version", 'V', OPTION_FLAG, ROW(version), NULL, NULL, 0, 0, NULL,
     "show the version and exit"},
    {.name = NULL},
};

struct program {
    struct settings settings;
    uv_loop_t loop;
    uv_signal_t signals[3]; // SIGTERM, SIGINT, SIGHUP
    struct heartbeat heartbeat;
    int argc;
    char **argv;
    struct worker *worker;
    int lock_fd;
};

// Reads the options of the command line, which override those of the configuration file.
static int read_settings(struct settings *settings, int argc, char **argv, struct err *err)
{
    char **args = NULL;
    size_t count = 0;
    int rc = options_defaults(option_table, settings, err);
    for (int pass = 0; rc == 0 && pass < 2; pass++) {
        // The first pass finds --config, the second overrides what the file says.
        rc = options_parse(option_table, settings, argc, argv, &args, &count, err);
        if (rc == 0 && count > 0) {
            rc = err_set(err, ERR_USAGE, "%.100s: kcast-worker takes options only; see --help",
                         args[0]);
        }
        free(args);
        args = NULL;
        if (rc < 0 || !settings->config) {
            break;
        }
        if (pass == 0) {
            const struct options_group endpoints = {.prefix = "endpoint",
                                                    .table = endpoint_section_table,
                                                    .open = endpoint_sections_open,
                                                    .owner = &settings->llm.sections};
            rc = options_read_ini_groups(option_table, settings, settings->config, "worker",
                                         &endpoints, err);
        }
    }
    return rc;
}

static void release_settings(struct settings *settings)
{
    options_release(option_table, settings);
    endpoint_sections_release(&settings->llm.sections);
}

static int lock_state_dir(struct program *program, struct err *err)
{
    int rc = file_make_dirs(program->settings.state, err);
    if (rc < 0) {
        return rc;
    }
    char *path = xasprintf("%s/lock", program->settings.state);
    rc = file_lock(&program->lock_fd, path, err);
    free(path);
    return rc == ERR_BUSY ? err_wrap(err, "another kcast-worker uses %s", program->settings.state)
                          : rc;
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct program *program = handle->data;
    if (!program->worker) {
        return;
    }
    log_event(LOG_NOTICE, "stopping signal=%d", number);
    ready_notify("STOPPING=1");
    worker_close(program->worker);
    program->worker = NULL;
    for (size_t i = 0; i < ARRAY_LEN(program->signals); i++) {
        uv_close((uv_handle_t *)&program->signals[i], NULL);
    }
    heartbeat_stop(&program->heartbeat);
}

// Reloads. Only the log level, the certificates and the tokens can change while the worker runs.
static void on_hangup(uv_signal_t *handle, int number)
{
    struct program *program = handle->data;
    log_event(LOG_NOTICE, "signal number=%d", number);
    heartbeat_reloading();
    struct settings fresh = {0};
    struct err err = ERR_INIT;
    if (read_settings(&fresh, program->argc, program->argv, &err) == 0) {
        log_set_level(log_level_of(fresh.log_level));
        log_event(LOG_NOTICE, "reloaded log_level=%s", fresh.log_level);
    } else {
        log_event(LOG_ERROR, "reload-failed reason=\"%s\"", err.text);
    }
    release_settings(&fresh);
    if (program->worker) {
        worker_reload(program->worker);
    }
    ready_notify("READY=1");
}

// Returns how many threads make forecasts, and gives libuv's pool room for them, which it reads
// from the environment when it is first used.
static unsigned choose_threads(uint64_t wanted)
{
    unsigned processors = uv_available_parallelism();
    unsigned most = processors < THREADS_DEFAULT_MAX ? processors : THREADS_DEFAULT_MAX;
    unsigned threads = wanted > 0 ? (unsigned)wanted : most;
    char pool[16];
    snprintf(pool, sizeof(pool), "%u", threads + THREADS_BESIDE);
    (void)setenv("UV_THREADPOOL_SIZE", pool, 1);
    return threads;
}

static int start(struct program *program, struct err *err)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
    const struct settings *settings = &program->settings;
    int rc = lock_state_dir(program, err);
    if (rc < 0) {
        return rc;
    }
    struct llm_config llm;
    rc = llm_settings_read(&llm, &settings->llm, err);
    if (rc < 0) {
        return rc;
    }
    struct worker_config config = {
        .loop = &program->loop,
        .clock = &clock_system,
        .url = settings->listen,
        .files = settings->files,
        .http = settings->http,
        .state_dir = settings->state,
        .ops = engine_find(settings->engine),
        .llm = &llm,
        .recalibrate_static = settings->recalibrate_static,
        .threads = choose_threads(settings->threads),
    };
    rc = worker_create(&program->worker, &config, err);
    llm_settings_release(&llm);
    if (rc < 0) {
        return rc;
    }
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        uv_signal_init(&program->loop, &program->signals[i]);
        program->signals[i].data = program;
        uv_signal_start(&program->signals[i], numbers[i] == SIGHUP ? on_hangup : on_signal,
                        numbers[i]);
    }
    if (worker_http(program->worker)) {
        log_event(LOG_INFO, "http url=%s", worker_http(program->worker));
    }
    log_event(LOG_NOTICE, "listening url=%s engine=%s state=%s pid=%ld",
              worker_url(program->worker), settings->engine, settings->state, (long)getpid());
    ready_notify("READY=1\nSTATUS=listening on %s", worker_url(program->worker));
    heartbeat_start(&program->heartbeat, &program->loop);
    return 0;
}

// Does what --try says instead of serving.
static int try_engine(struct program *program, struct err *err)
{
    const struct settings *settings = &program->settings;
    int rc = lock_state_dir(program, err);
    if (rc < 0) {
        return rc;
    }
    struct llm_config llm;
    rc = llm_settings_read(&llm, &settings->llm, err);
    if (rc < 0) {
        return rc;
    }
    const struct engine_config config = {
        .loop = &program->loop,
        .state_dir = settings->state,
        .llm = &llm,
        .recalibrate_static = settings->recalibrate_static,
        .threads = choose_threads(settings->threads),
    };
    rc = worker_try(engine_find(settings->engine), &config, stdout, err);
    llm_settings_release(&llm);
    return rc;
}

static int run(struct program *program, struct err *err)
{
    program->lock_fd = -1;
    signal(SIGPIPE, SIG_IGN);
    service_raise_file_limit();
    if (program->settings.files.key) {
        identity_protect_process();
    }
    log_init("kcast-worker", log_level_of(program->settings.log_level));
    if (strcmp(program->settings.log_format, "json") == 0) {
        log_use_json();
    }
    uv_loop_init(&program->loop);
    int rc = program->settings.parent_death ? parent_follow(err) : 0;
    if (rc == 0 && !program->settings.state) {
        rc = state_dir_default(&program->settings.state, "worker", "/var/lib/kernelcast/worker",
                               err);
    }
    if (rc == 0) {
        rc = program->settings.try ? try_engine(program, err) : start(program, err);
    }
    uv_run(&program->loop, UV_RUN_DEFAULT); // after a failure: closes the handles that were opened
    uv_loop_close(&program->loop);
    if (program->lock_fd >= 0) {
        close(program->lock_fd);
    }
    return rc;
}

static void print_help(void)
{
    wrap_print(stdout,
               "usage: kcast-worker [OPTION…]\n\n"
               "Forecasts how fast candidates will be, and learns from how fast they were.\n\n"
               "options:\n");
    options_print(option_table, stdout);
    wrap_print(stdout,
               "\nsections [endpoint NAME] of the configuration file, one for each endpoint, "
               "with these keys:\n");
    options_print_keys(endpoint_section_table, stdout);
    options_print_exit_codes(stdout);
}

int main(int argc, char **argv)
{
    struct program program = {.lock_fd = -1, .argc = argc, .argv = argv};
    struct err err = ERR_INIT;
    file_open_standard();
    mem_reuse_buffers();
    int rc = read_settings(&program.settings, argc, argv, &err);
    if (rc == 0 && program.settings.help) {
        print_help();
        rc = file_flush_stdout(&err);
    } else if (rc == 0 && program.settings.version) {
        printable_printf(stdout, "kcast-worker %s\n", KCAST_VERSION);
        rc = file_flush_stdout(&err);
    } else if (rc == 0) {
        rc = run(&program, &err);
    }
    if (rc < 0) {
        printable_printf(stderr, "kcast-worker: %s\n", err.text);
    }
    release_settings(&program.settings);
    return rc < 0 ? err_exit(rc) : EXIT_OK;
}
