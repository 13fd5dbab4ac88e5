// The program kcastd: options, signals and exit codes. Makes one daemon and runs the loop until it
// has ended.
#include "common/clock.h"
#include "common/file.h"
#include "common/heartbeat.h"
#include "common/log.h"
#include "common/options.h"
#include "common/parent.h"
#include "common/printable.h"
#include "common/ready.h"
#include "common/state_dir.h"
#include "common/strbuf.h"
#include "common/version.h"
#include "common/wrap.h"
#include "daemon/daemon.h"
#include "daemon/run/orphans.h"
#include "net/rpc/service.h"
#include <errno.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The options, as option_table fills them.
struct settings {
    char *config;
    char *listen;
    struct identity_files files;
    char *http;
    char *devices;
    char *state;
    char *sandbox;
    char *share_processes;
    char *exec;
    char *log_level;
    char *log_format;
    char *python;
    uint64_t compile_jobs;
    uint64_t compile_ns;
    uint64_t slack_ns;
    uint64_t grace_ns;
    uint64_t queue_max;
    uint64_t jobs_max;
    uint64_t cache_max;
    uint64_t blobs_max;
    uint64_t blobs_share;
    bool parent_death;
    bool share_gpus;
    bool pageable_gpus;
    bool no_unsealed;
    bool help;
    bool version;
};

#define AT(field) offsetof(struct settings, field)
#define ORPHANS_MS 1000 // for what children have left behind to die, at the end of the program

static const struct option_row option_table[] = {
    {"config", 'c', OPTION_TEXT, AT(config), "FILE", NULL, 0, 0, NULL,
     "read options from the [kcastd] section of this INI file first"},
    {"listen", 'l', OPTION_TEXT, AT(listen), "URL", KCAST_DEFAULT_POOL, 0, 0, NULL,
     "where to serve: tcp:// on loopback only, tls:// (or tls+tcp://) anywhere; port 0 picks a "
     "free one"},
    IDENTITY_OPTION_ROWS(AT(files)),
    {"http", 0, OPTION_TEXT, AT(http), "ADDRESS", "", 0, 0, NULL,
     "serve /metrics, /healthz and /status.json there, 127.0.0.1:7412 for example; loopback only,"
     " port 0 picks a free one; default: not at all"},
    {"devices", 'd', OPTION_TEXT, AT(devices), "SPEC", "auto", 0, 0, NULL,
     "any of cpu, cpu:N, cuda and cuda:N,M joined by +, or auto: all GPUs there are, and cores: "
     "all but"
     " one, at most four"},
    {"state", 's', OPTION_TEXT, AT(state), "DIR", NULL, 0, 0, NULL,
     "ledger and blobs; default: $STATE_DIRECTORY, else $XDG_STATE_HOME/kernelcast/kcastd, else for"
     " root /var/lib/kernelcast and for others ~/.local/state/kernelcast/kcastd"},
    {"sandbox", 0, OPTION_CHOICE, AT(sandbox), "WHETHER", "on", 0, 0, "on|off",
     "off runs candidates unprotected: for development only"},
    {"compile-jobs", 'j', OPTION_U64, AT(compile_jobs), "N", "0", 0, 64, NULL,
     "compilations at once; 0: one per processor that is no device, less two for each GPU and one"
     " for the daemon where there are GPUs, but more than half of them"},
    {"compile-time", 0, OPTION_DURATION, AT(compile_ns), "TIME", "60s", 0, 0, NULL,
     "processor time that one compilation may use; it may last ten times as long, and then the"
     " host is blamed"},
    {"python", 0, OPTION_TEXT, AT(python), "PROGRAM", "python3", 0, 0, NULL,
     "interpreter with PyTorch, and with Triton for candidates that use it, that records candidates"
     " in Python for GPUs"},
    {"share-gpus", 0, OPTION_FLAG, AT(share_gpus), NULL, NULL, 0, 0, NULL,
     "measure although other programs use the GPUs; else a GPU waits until they have gone"},
    {"pageable-gpus", 0, OPTION_FLAG, AT(pageable_gpus), NULL, NULL, 0, 0, NULL,
     "use GPUs whose kernels can read the memory of kcast-exec, too; a candidate may then read how"
     " it is judged"},
    {"no-unsealed", 0, OPTION_FLAG, AT(no_unsealed), NULL, NULL, 0, 0, NULL,
     "refuse jobs that would have a candidate's host code run while it is measured; else it does"
     " when a job asks for it (docs/security.md)"},
    {"share-processes", 0, OPTION_CHOICE, AT(share_processes), "WHO", "tenant", 0, 0,
     "all|tenant|search",
     "whose candidates may be measured by one process of a GPU, one after the other: what a GPU"
     " keeps between them is not all cleared (docs/security.md)"},
    {"exec", 0, OPTION_TEXT, AT(exec), "PATH", NULL, 0, 0, NULL,
     "kcast-exec; default: beside kcastd, else in ../libexec/kernelcast"},
    {"exec-slack", 0, OPTION_DURATION, AT(slack_ns), "TIME", "120s", 0, 0, NULL,
     "by how much kcast-exec may exceed the time that its plan allows before it is killed"},
    {"exec-grace", 0, OPTION_DURATION, AT(grace_ns), "TIME", "2s", 0, 0, NULL,
     "how long it may take to end after SIGTERM"},
    {"queue-max", 0, OPTION_U64, AT(queue_max), "N", "4096", 1, 1000000, NULL,
     "unfinished jobs of one search"},
    {"jobs-max", 0, OPTION_U64, AT(jobs_max), "N", "200000", 1, 10000000, NULL,
     "jobs altogether, finished ones that are not acknowledged included"},
    {"cache-max", 0, OPTION_U64, AT(cache_max), "N", "500000", 1, 1000000000, NULL,
     "results that answer equal jobs, and compilations, that the ledger keeps of each; the oldest "
     "go"},
    {"blobs-max", 0, OPTION_SIZE, AT(blobs_max), "SIZE", "20G", 1 << 20, 0, NULL,
     "room on the disk for sources, problems and objects; what was used longest ago goes, but not "
     "within an hour and not while a job needs it; what then finds no room is refused"},
    {"blobs-share", 0, OPTION_U64, AT(blobs_share), "PERCENT", "50", 1, 100, NULL,
     "part of --blobs-max that the sources of one tenant may take"},
    {"log-level", 0, OPTION_CHOICE, AT(log_level), "LEVEL", "info", 0, 0,
     "error|warning|notice|info|debug", "least important events that are logged"},
    {"log-format", 0, OPTION_CHOICE, AT(log_format), "FORMAT", "text", 0, 0, "text|json",
     "text is event key=value, json one object per line"},
    {"parent-death", 0, OPTION_FLAG, AT(parent_death), NULL, NULL, 0, 0, NULL,
     "stop when the process that started it has gone"},
    {"help", 'h', OPTION_FLAG, AT(help), NULL, NULL, 0, 0, NULL, "show this and end"},
    {"version", 'V', OPTION_FLAG, AT(version), NULL, NULL, 0, 0, NULL, "show the version and end"},
    {0},
};

// What the callbacks of the loop share.
struct program {
    uv_loop_t loop;
    uv_signal_t terminate;
    uv_signal_t interrupt;
    uv_signal_t hangup;
    uv_signal_t user1;
    struct heartbeat heartbeat;
    bool beating; // heartbeat has been started
    struct daemon *daemon;
    struct settings *settings; // the settings in force
    int argc;
    char **argv;
    unsigned signals; // number of SIGTERM and SIGINT so far
    struct err error; // why the daemon could not start or go on
};

static int failed(const struct err *err)
{
    // This sentence is for the person or the service manager that started the program.
    printable_printf(stderr, "kcastd: %s\n", err->text);
    return err_exit((int)err->code);
}

// --- settings

// Reads the command line twice when it names a file by --config, because the options of the file
// are overridden by those of the command line.
static int read_settings(struct settings *settings, int argc, char **argv, struct err *err)
{
    char **args = NULL;
    size_t count = 0;
    int rc = options_defaults(option_table, settings, err);

    rc = rc == 0 ? options_parse(option_table, settings, argc, argv, &args, &count, err) : rc;
    if (rc == 0 && count > 0) {
        rc = err_set(err, ERR_USAGE, "%s: kcastd takes options only; see --help", args[0]);
    }
    free(args);
    if (rc != 0 || !settings->config || settings->help || settings->version) {
        return rc;
    }
    char *config = xstrdup(settings->config);
    rc = options_defaults(option_table, settings, err);
    rc = rc == 0 ? options_read_ini(option_table, settings, config, "kcastd", err) : rc;
    args = NULL;
    rc = rc == 0 ? options_parse(option_table, settings, argc, argv, &args, &count, err) : rc;
    free(args);
    free(config);
    return rc;
}

static uint64_t fault_pages(void)
{
#ifdef KCAST_FAULTS
    const char *pages = getenv("KCASTD_LEDGER_PAGES");

    return pages ? strtoull(pages, NULL, 10) : 0;
#else
    return 0;
#endif
}

// --- the daemon's life

static void close_signals(struct program *program)
{
    uv_close((uv_handle_t *)&program->terminate, NULL);
    uv_close((uv_handle_t *)&program->interrupt, NULL);
    uv_close((uv_handle_t *)&program->hangup, NULL);
    uv_close((uv_handle_t *)&program->user1, NULL);
    if (program->beating) {
        heartbeat_stop(&program->heartbeat);
    }
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct program *program = handle->data;

    log_event(LOG_NOTICE, "signal number=%d", number);
    if (program->signals++ > 0) {
        daemon_kill_children(program->daemon);
        _exit(EXIT_INTERRUPTED);
    }
    ready_notify("STOPPING=1");
    daemon_stop(program->daemon);
}

// A batch system or an orchestrator sends SIGUSR1 some time before it takes the host back.
static void on_stop_when_idle(uv_signal_t *handle, int number)
{
    struct program *program = handle->data;

    log_event(LOG_NOTICE, "vacating signal=%d", number);
    daemon_stop_when_idle(program->daemon);
}

// Returns whether a change of this option takes effect without a restart.
static bool can_reload(const char *name)
{
    static const char *const names[] = {"log-level", "queue-max", "jobs-max"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

// Applies the options that can change while the daemon runs and logs those that need a restart.
static void take_changes(struct program *program, struct settings *fresh)
{
    struct settings *settings = program->settings;
    struct strbuf changed = STRBUF_INIT;
    struct strbuf later = STRBUF_INIT;

    for (const struct option_row *row = option_table; row->name; row++) {
        if (!options_same(row, settings, fresh)) {
            struct strbuf *list = can_reload(row->name) ? &changed : &later;

            strbuf_addf(list, "%s%s", list->len > 0 ? " " : "", row->name);
        }
    }
    char *level = settings->log_level;
    settings->log_level = fresh->log_level;
    fresh->log_level = level;
    settings->queue_max = fresh->queue_max;
    settings->jobs_max = fresh->jobs_max;
    log_set_level(log_level_of(settings->log_level));
    daemon_limit(program->daemon, settings->queue_max, settings->jobs_max);
    log_event(LOG_NOTICE, "reloaded changed=\"%s\" needs_restart=\"%s\"", strbuf_text(&changed),
              strbuf_text(&later));
    strbuf_release(&changed);
    strbuf_release(&later);
}

// Fills options that were not given with what configure() chose at the start, so that they do not
// count as changes.
static void fill_defaults(struct settings *settings, const struct settings *running)
{
    char **own[] = {&settings->state, &settings->exec};
    char *const chosen[] = {running->state, running->exec};

    for (size_t i = 0; i < ARRAY_LEN(own); i++) {
        if (!*own[i] || !(*own[i])[0]) {
            free(*own[i]);
            *own[i] = chosen[i] ? xstrdup(chosen[i]) : NULL;
        }
    }
}

static void on_hangup(uv_signal_t *handle, int number)
{
    struct program *program = handle->data;

    log_event(LOG_NOTICE, "signal number=%d", number);
    heartbeat_reloading();
    struct settings fresh = {0};
    struct err err = ERR_INIT;
    if (read_settings(&fresh, program->argc, program->argv, &err) != 0) {
        log_event(LOG_ERROR, "reload-failed reason=\"%s\"", err.text);
    } else {
        fill_defaults(&fresh, program->settings);
        take_changes(program, &fresh);
    }
    daemon_reload(program->daemon);
    options_release(option_table, &fresh);
    ready_notify("READY=1");
}

static void on_ready(void *owner, const char *url)
{
    struct program *program = owner;

    ready_notify("READY=1\nSTATUS=listening on %s\nMAINPID=%d", url, (int)getpid());
    program->heartbeat.describe = daemon_describe;
    program->heartbeat.owner = program->daemon;
    heartbeat_start(&program->heartbeat, &program->loop);
    program->beating = true;
}

static void on_end(void *owner, const struct err *error)
{
    struct program *program = owner;

    if (error) {
        program->error = *error;
    }
    close_signals(program);
}

static void open_signals(struct program *program)
{
    const struct {
        uv_signal_t *handle;
        uv_signal_cb callback;
        int number;
    } row[] = {
        {&program->terminate, on_signal, SIGTERM},
        {&program->interrupt, on_signal, SIGINT},
        {&program->hangup, on_hangup, SIGHUP},
        {&program->user1, on_stop_when_idle, SIGUSR1},
    };

    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        (void)uv_signal_init(&program->loop, row[i].handle);
        row[i].handle->data = program;
        (void)uv_signal_start(row[i].handle, row[i].callback, row[i].number);
    }
}

static int run(struct daemon_config *config, struct settings *settings, int argc, char **argv)
{
    struct program program = {.error = ERR_INIT, .settings = settings, .argc = argc, .argv = argv};

    if (uv_loop_init(&program.loop) != 0) {
        (void)err_set(&program.error, ERR_SYSTEM, "no event loop");
        return failed(&program.error);
    }
    config->on_ready = on_ready;
    config->on_end = on_end;
    config->owner = &program;
    open_signals(&program); // before the daemon has anything that a signal would leave behind
    if (daemon_start(&program.daemon, &program.loop, config, &program.error) != 0) {
        close_signals(&program);
    }
    (void)uv_run(&program.loop, UV_RUN_DEFAULT);
    daemon_free(program.daemon);
    (void)uv_run(&program.loop, UV_RUN_DEFAULT);
    orphans_end(ORPHANS_MS);
    int rc = EXIT_OK;
    if (program.error.code != ERR_NONE) {
        rc = failed(&program.error);
    }
    (void)uv_loop_close(&program.loop);
    return rc;
}

static size_t wanted_cores(const struct device_spec *device_spec)
{
    return !device_spec->cpus           ? 0
           : device_spec->cpu_count > 0 ? device_spec->cpu_count
                                        : CORES_AUTO;
}

static enum share_processes share_processes_of(const char *name)
{
    return strcmp(name, "all") == 0      ? SHARE_PROCESSES_ALL
           : strcmp(name, "search") == 0 ? SHARE_PROCESSES_SEARCH
                                         : SHARE_PROCESSES_TENANT;
}

static int configure(struct daemon_config *config, struct settings *settings, struct err *err)
{
    int rc = 0;
    if (!settings->state || !settings->state[0]) {
        free(settings->state);
        settings->state = NULL;
        rc = state_dir_default(&settings->state, "kcastd", "/var/lib/kernelcast", err);
    }
    if (rc != 0) {
        return rc;
    }
    if (!settings->exec || !settings->exec[0]) {
        free(settings->exec);
        settings->exec = NULL;
        rc = file_own_program(&settings->exec, "kcast-exec", err);
        if (rc != 0) {
            return rc;
        }
    }
    if (settings->parent_death) {
        rc = parent_follow(err);
    }
    // Before any thread is started, so that all threads stay off the cores that are devices.
    rc = rc == 0 ? device_spec_parse(&config->device_spec, settings->devices, err) : rc;
    rc = rc == 0 ? cores_plan(&config->cores, wanted_cores(&config->device_spec), err) : rc;
    rc = rc == 0 ? cores_settle(&config->cores, err) : rc;
    config->listen = settings->listen;
    config->files = settings->files;
    if (settings->files.key) {
        identity_protect_process();
    }
    config->http = settings->http;
    config->state_dir = settings->state;
    config->exec_path = settings->exec;
    config->python = settings->python;
    config->compile_jobs = settings->compile_jobs;
    config->compile_seconds = settings->compile_ns > NS_PER_S ? settings->compile_ns / NS_PER_S : 1;
    config->queue_max = settings->queue_max;
    config->jobs_max = settings->jobs_max;
    config->slack_ms = settings->slack_ns / NS_PER_MS;
    config->grace_ms = settings->grace_ns / NS_PER_MS;
    config->cache_max = settings->cache_max;
    config->blobs_max = settings->blobs_max;
    config->blobs_share = settings->blobs_share;
    config->page_max = fault_pages();
    config->share_gpus = settings->share_gpus;
    config->no_unsealed = settings->no_unsealed;
    config->device_spec.pageable = settings->pageable_gpus;
    config->share_processes = share_processes_of(settings->share_processes);
    config->sandbox_off = strcmp(settings->sandbox, "off") == 0;
    return rc;
}

int main(int argc, char **argv)
{
    file_open_standard();
    (void)signal(SIGPIPE, SIG_IGN);
    // Executors must not inherit files that the parent process has left open.
    (void)close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
    service_raise_file_limit();
    mem_reuse_buffers();
    struct settings settings = {0};
    struct daemon_config config = {0};
    struct err err = ERR_INIT;
    int rc;
    if (read_settings(&settings, argc, argv, &err) != 0) {
        rc = failed(&err);
    } else if (settings.help) {
        wrap_print(stdout, "usage: kcastd [OPTION…]\n\nServes devices to kcast.\n\noptions:\n");
        options_print(option_table, stdout);
        options_print_exit_codes(stdout);
        rc = file_flush_stdout(&err) == 0 ? EXIT_OK : failed(&err);
    } else if (settings.version) {
        printable_printf(stdout, "kcastd %s\n", KCAST_VERSION);
        rc = file_flush_stdout(&err) == 0 ? EXIT_OK : failed(&err);
    } else {
        log_init("kcastd", log_level_of(settings.log_level));
        if (strcmp(settings.log_format, "json") == 0) {
            log_use_json();
        }
        rc = configure(&config, &settings, &err) == 0 ? run(&config, &settings, argc, argv)
                                                      : failed(&err);
    }
    options_release(option_table, &settings);
    return rc;
}
