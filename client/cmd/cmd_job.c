// kcast job: shows everything about one job, in whatever state it is. A finished job is not
// acknowledged by that.
#include "client/cmd/tables/job_list.h"
#include "client/command.h"
#include "client/pool/daemons.h"
#include "client/session.h"
#include "client/show.h"
#include "common/printable.h"
#include "proto/verdict.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALL_MS 10000

static json_t *compiled_object(const struct compiled *compiled)
{
    if (!compiled) {
        return json_null();
    }
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "verdict",
                     show_text(verdict_name(compiled->verdict)), "reason",
                     show_text(compiled->reason), "log", show_text(compiled->log), "toolchain",
                     show_text(compiled->toolchain), "seconds", show_number(compiled->seconds),
                     "features", show_facts(compiled->features, compiled->features_count));
}

static void print_json(const struct job_info *job)
{
    show_print(json_pack(
        "{s:I, s:s, s:s, s:o, s:o, s:o, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, "
        "s:o, s:o, s:b, s:o, s:o}",
        "job", (json_int_t)job->job, "state", job_state_name(job->state), "kind",
        job->kind == JOB_COMPILE ? "compile" : "measure", "tenant", show_text(job->tenant),
        "search", show_text(job->search), "key", show_text(job->key), "attempt",
        (json_int_t)job->attempt, "priority", (json_int_t)job->priority, "device",
        show_text(job->device), "class", show_text(job->device_class), "reason",
        show_text(job->reason), "cause", show_cause(job->cause), "age_seconds",
        show_number(job->age_seconds), "compile_seconds", show_number(job->compile_seconds),
        "problem", show_digest(&job->problem), "candidate", show_digest(&job->candidate), "cached",
        (int)job->cached, "result", job->result ? show_result(job->result) : json_null(),
        "compiled", compiled_object(job->compiled)));
}

static void line(const char *name, const char *text)
{
    if (text && text[0] != '\0') {
        printable_printf(stdout, "  %-12s %s\n", name, text);
    }
}

static void seconds_line(const char *name, double seconds)
{
    char text[32];
    if (!isnan(seconds)) {
        show_seconds(seconds, text, sizeof(text));
        line(name, text);
    }
}

static void digest_line(const char *name, const struct digest *digest)
{
    char hex[DIGEST_HEX_LEN + 1];
    if (!digest_is_zero(digest)) {
        digest_hex(digest, hex);
        line(name, hex);
    }
}

static void print_compiled(const struct compiled *compiled)
{
    line("compiler", compiled->toolchain);
    if (compiled->verdict != VERDICT_NONE) {
        line("refused", compiled->reason);
    }
    if (compiled->log && compiled->log[0] != '\0') {
        printable_printf(stdout, "  the compiler said\n");
        // Indented, so that no line of the log looks like one of ours.
        for (const char *text = compiled->log; *text != '\0';) {
            size_t len = strcspn(text, "\n");
            printable_printf(stdout, "    %.*s\n", (int)len, text);
            text += text[len] == '\n' ? len + 1 : len;
        }
    }
}

static void print_accounts(const struct accounts *seconds)
{
    const struct {
        const char *name;
        double value;
    } row[] = {
        {"waited", seconds->queue},  {"compiling", seconds->compile}, {"starting", seconds->start},
        {"inputs", seconds->inputs}, {"verifying", seconds->verify},  {"timing", seconds->time},
        {"process", seconds->wait},  {"device", seconds->held},
    };
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        seconds_line(row[i].name, row[i].value);
    }
}

static void print_result(const struct result *result)
{
    line("verdict", verdict_name(result->verdict));
    line("because", result->reason);
    char speedup[64];
    if (result->speedup) {
        show_speedup(result->speedup, speedup, sizeof(speedup));
        line("speedup", speedup);
    }
    for (size_t i = 0; i < result->cases_count; i++) {
        show_speedup(result->cases[i].speedup, speedup, sizeof(speedup));
        printable_printf(stdout, "    %-32s %s\n", result->cases[i].params, speedup);
    }
    if (result->control) {
        show_speedup(result->control, speedup, sizeof(speedup));
        line("control", speedup);
    }
    line("measured on", result->device);
    if (result->seconds) {
        print_accounts(result->seconds);
    }
    line("printed", result->output_tail);
    if (result->compiled) {
        print_compiled(result->compiled);
    }
}

static void print_human(const struct job_info *job)
{
    printable_printf(stdout, "job %llu of search %s, key %s: %s\n", (unsigned long long)job->job,
                     job->search ? job->search : "?", job->key ? job->key : "?",
                     job_state_name(job->state));
    line("tenant", job->tenant);
    line("kind", job->kind == JOB_COMPILE ? "compile" : "measure");
    line("reason", job->reason);
    line("cause", job->cause != JOB_CAUSE_NONE ? job_cause_name(job->cause) : NULL);
    line("device", job->device);
    line("class", job->device_class);
    printable_printf(stdout, "  %-12s %llu executors lost, priority %llu%s\n", "attempts",
                     (unsigned long long)job->attempt, (unsigned long long)job->priority,
                     job->cached ? ", answered from the cache" : "");
    seconds_line("age", job->age_seconds);
    digest_line("problem", &job->problem);
    digest_line("candidate", &job->candidate);
    if (job->result) {
        print_result(job->result);
    } else if (job->compiled) {
        print_compiled(job->compiled);
    }
}

// Shows the job with its result when it is finished, and its present state when it is not.
static int ask(struct remote *daemon, uint64_t id, bool json, struct err *err)
{
    struct wait wait = {.jobs = &id, .jobs_count = 1};
    struct status_request request = {.jobs = &id, .jobs_count = 1};
    struct waited waited;
    int rc = remote_call_sync(daemon, OP_WAIT, &wait_message, &wait, &waited_message, &waited,
                              CALL_MS, err);
    if (rc != 0) {
        return rc;
    }
    if (waited.jobs_count > 0) {
        json ? print_json(&waited.jobs[0]) : print_human(&waited.jobs[0]);
        message_clear(&waited_message, &waited);
        return 0;
    }
    message_clear(&waited_message, &waited);
    struct status status;
    rc = remote_call_sync(daemon, OP_STATUS, &status_request_message, &request, &status_message,
                          &status, CALL_MS, err);
    if (rc != 0) {
        return rc;
    }
    if (status.jobs_count > 0) {
        json ? print_json(&status.jobs[0]) : print_human(&status.jobs[0]);
    } else {
        rc = err_set(err, ERR_NOT_FOUND,
                     "no job %llu at %s: it never was, or its result has been fetched",
                     (unsigned long long)id, remote_url(daemon));
    }
    message_clear(&status_message, &status);
    return rc;
}

static int run_job(struct session *session, const void *own, char **argument, size_t count,
                   struct err *err)
{
    (void)own;
    int rc = job_list_check(argument, count, err);
    if (rc != 0) {
        return err_exit(rc);
    }
    struct daemons daemons;
    rc = daemons_connect(&daemons, session, err);
    if (rc != 0) {
        return err_exit(rc);
    }
    struct job_ids *ids = NULL;
    rc = job_list_sort(&ids, &daemons, argument, count, err);
    for (size_t i = 0; i < daemons.count && rc == 0; i++) {
        if (ids[i].jobs_count > 0) {
            rc = ask(daemons.link[i].remote, ids[i].jobs[0], session_options(session)->json, err);
        }
    }
    job_list_free(ids, daemons.count);
    daemons_release(&daemons);
    return rc == 0 ? EXIT_OK : err_exit(rc);
}

const struct command cmd_job = {
    .name = "job",
    .arguments = "JOB",
    .help = "Show everything about one job; with several daemons HOST:PORT/JOB",
    .argument_min = 1,
    .argument_max = 1,
    .run = run_job,
};
