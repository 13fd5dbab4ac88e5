// kcast-exec: one compilation, one measurement or one probe. Reads one packed plan from stdin,
// writes one packed report to stdout.
#include "common/file.h"
#include "common/options.h"
#include "common/version.h"
#include "exec/cgroup.h"
#include "exec/child.h"
#include "exec/compile.h"
#include "exec/measure.h"
#include "exec/probe.h"
#include "proto/all.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

// Three objects of 32 MiB and the problem.
#define PLAN_MAX ((size_t)128 << 20)

struct exec_options {
    char *cgroup;
    bool help, version;
};

static const struct option_row option_table[] = {
    {.name = "cgroup",
     .type = OPTION_TEXT,
     .offset = offsetof(struct exec_options, cgroup),
     .argument = "DIR",
     .help = "move into this control group (version 2) before anything else"},
    {.name = "help",
     .letter = 'h',
     .type = OPTION_FLAG,
     .offset = offsetof(struct exec_options, help),
     .help = "show this help"},
    {.name = "version",
     .type = OPTION_FLAG,
     .offset = offsetof(struct exec_options, version),
     .help = "show the version"},
    {.name = NULL},
};

static void print_help(void)
{
    printf("usage: kcast-exec [options] compile|measure|probe\n"
           "\n"
           "Started by kcastd. Reads one packed plan from stdin and writes one packed report to "
           "stdout.\n"
           "\n"
           "  compile   compile one source in the compile jail\n"
           "  measure   verify and time one candidate against the baseline\n"
           "  probe     try the sandbox and say what this machine can do; reads nothing\n"
           "\n");
    options_print(option_table, stdout);
}

static int read_plan(const struct message *message, void *plan, struct err *err)
{
    struct bytes bytes;
    int status = file_read_fd(&bytes, STDIN_FILENO, PLAN_MAX, "the plan on stdin", err);

    if (status == 0) {
        status = message_read(message, plan, bytes.data, bytes.len, err);
        bytes_clear(&bytes);
    }
    return status;
}

static int write_report(const struct message *message, void *report, struct err *err)
{
    struct strbuf packed = STRBUF_INIT;
    int status = message_pack(message, report, &packed, err);

    if (status == 0) {
        status = file_write_fd(STDOUT_FILENO, packed.data, packed.len, "the report", err);
    }
    strbuf_release(&packed);
    message_clear(message, report);
    return status;
}

static int run_compile(struct nursery *nursery, struct err *err)
{
    struct compile_plan plan;
    struct compile_report report;
    int status = read_plan(&compile_plan_message, &plan, err);

    if (status == 0) {
        status = compile_run(&plan, nursery, &report, err);
        message_clear(&compile_plan_message, &plan);
    }
    return status == 0 ? write_report(&compile_report_message, &report, err) : status;
}

static int run_measure(struct nursery *nursery, struct err *err)
{
    struct measure_plan plan;
    struct measure_report report;
    int status = read_plan(&measure_plan_message, &plan, err);

    if (status == 0) {
        status = measure_run(&plan, nursery, &report, err);
        message_clear(&measure_plan_message, &plan);
    }
    return status == 0 ? write_report(&measure_report_message, &report, err) : status;
}

static int run_probe(const struct child_context *context, struct err *err)
{
    struct probe_report report;
    int status = probe_run(context, &report, err);

    return status == 0 ? write_report(&probe_report_message, &report, err) : status;
}

// The nursery is forked before the plan is read: neither it nor any runner ever holds the plan's
// seed.
static int run_mode(const char *mode, struct err *err)
{
    struct child_context context;
    struct nursery nursery = {.socket = -1};
    bool compile = strcmp(mode, "compile") == 0, measure = strcmp(mode, "measure") == 0;
    unsigned needs = compile   ? CHILD_NEEDS_JAIL
                     : measure ? CHILD_NEEDS_RUNNER
                               : CHILD_NEEDS_JAIL | CHILD_NEEDS_RUNNER;
    int status;

    if (!compile && !measure && strcmp(mode, "probe") != 0) {
        return err_set(err, ERR_USAGE, "unknown mode '%s'; use compile, measure or probe", mode);
    }
    status = child_context_init(&context, needs, err);
    if (status != 0) {
        return status;
    }
    if (compile || measure) {
        status = nursery_create(&nursery, child_main, &context, err);
    }
    if (status == 0) {
        status = compile   ? run_compile(&nursery, err)
                 : measure ? run_measure(&nursery, err)
                           : run_probe(&context, err);
    }
    nursery_release(&nursery);
    child_context_release(&context);
    return status;
}

int main(int argc, char **argv)
{
    struct exec_options options = {.help = false};
    struct err err = ERR_INIT;
    char **args = NULL;
    size_t count = 0;
    int status = options_defaults(option_table, &options, &err);

    // A killed daemon leaves nothing on its devices' cores: its children die with it, theirs with
    // them.
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)signal(SIGPIPE, SIG_IGN);
    if (status == 0) {
        status = options_parse(option_table, &options, argc, argv, &args, &count, &err);
    }
    if (status == 0 && options.help) {
        print_help();
    } else if (status == 0 && options.version) {
        printf("kcast-exec %s\n", KCAST_VERSION);
    } else if (status == 0 && count != 1) {
        status = err_set(&err, ERR_USAGE, "one mode is needed: compile, measure or probe");
    } else if (status == 0) {
        status = options.cgroup ? cgroup_enter(options.cgroup, &err) : 0;
        status = status == 0 ? run_mode(args[0], &err) : status;
    }
    if (status != 0) {
        fprintf(stderr, "kcast-exec: %s\n", err.text);
    }
    free(args);
    options_release(option_table, &options);
    return status == 0 ? EXIT_OK : err_exit(err.code);
}
