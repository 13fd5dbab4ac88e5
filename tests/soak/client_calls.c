// Design. What must be known after a SIGKILL is written to the journal before the daemon can have
// heard of it. What the daemon promises is written as soon as its answer is there.
#include "common/strbuf.h"
#include "proto/verdict.h"
#include "tests/soak/client_state.h"
#include "tests/soak/connect.h"
#include "tests/soak/journal.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CALL_MS 30000
#define PAUSE_MS 200 // longest pause after a call that failed for a passing reason

static void violation(struct client *client, const struct item *item, const char *format, ...)
    __attribute__((format(printf, 3, 4), noreturn));

static void violation(struct client *client, const struct item *item, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    char text[800];
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    journal_add(client->journal, "v %u %s\n", item->index, text);
    _exit(SOAK_EXIT_VIOLATION);
}

// ---- calls ----

static int call(struct client *client, enum op op, const struct message *body_message,
                const void *body, const struct message *answer_message, void *reply,
                struct err *err)
{
    return remote_call_sync(client->remote, op, body_message, body, answer_message, reply, CALL_MS,
                            err);
}

// Accepts errors that are expected while processes are killed, and pauses. Any other error is a
// violation.
static void expect_transient(struct client *client, const struct item *item, const char *what,
                             const struct err *err)
{
    if (err->code != ERR_UNREACHABLE && err->code != ERR_TIMED_OUT && err->code != ERR_BUSY) {
        violation(client, item, "%s was refused with %s: %s", what, err_name((int)err->code),
                  err->text);
    }
    (void)usleep((useconds_t)(1000 * client_below(client, PAUSE_MS)));
}

static bool put_blobs(struct client *client, const struct item *item, size_t count)
{
    const char *blob[CONTENT_BLOBS];

    content_blobs(&item->content, blob);
    for (size_t i = 0; i < count; i++) {
        struct blob_put body;

        message_init(&blob_put_message, &body);
        body.digest = digest_of(blob[i], strlen(blob[i]));
        body.data =
            (struct bytes){.data = (unsigned char *)(uintptr_t)blob[i], .len = strlen(blob[i])};
        struct empty reply;
        struct err err = ERR_INIT;
        if (call(client, OP_BLOB_PUT, &blob_put_message, &body, &empty_message, &reply, &err)) {
            expect_transient(client, item, "BLOB_PUT", &err);
            return false;
        }
    }
    return true;
}

void client_put_source(struct client *client, const struct item *item)
{
    (void)put_blobs(client, item, 1);
}

static int send_submit(struct client *client, struct item *item, struct job_spec *spec,
                       struct submitted *reply, struct err *err)
{
    struct submit body;

    message_init(&submit_message, &body);
    body.search = item->content.search;
    body.key = item->content.key;
    body.spec = spec;
    body.priority = item->content.priority;
    body.queue_class = item->content.queue_class;
    body.budget_seconds = item->content.budget_seconds;
    return call(client, OP_SUBMIT, &submit_message, &body, &submitted_message, reply, err);
}

void client_submit(struct client *client, struct item *item)
{
    struct submitted reply;
    struct err err = ERR_INIT;
    int rc = send_submit(client, item, &item->content.spec, &reply, &err);

    if (rc == ERR_NEED_BLOB && !item->accepted) {
        if (!put_blobs(client, item, CONTENT_BLOBS)) {
            return;
        }
        err_clear(&err);
        rc = send_submit(client, item, &item->content.spec, &reply, &err);
    }
    if (rc == ERR_BUDGET && item->content.budgeted && !item->accepted) {
        journal_add(client->journal, "b %u\n", item->index);
        client_close_item(item);
        return;
    }
    if (rc != 0) {
        expect_transient(client, item, "SUBMIT", &err);
        return;
    }
    if (item->accepted && (reply.job != item->job || !reply.duplicate)) {
        violation(client, item, "key %s was job %llu and is job %llu now", item->content.key,
                  (unsigned long long)item->job, (unsigned long long)reply.job);
    }
    if (!item->accepted) {
        item->accepted = true;
        item->job = reply.job;
        journal_add(client->journal, "a %u %llu\n", item->index, (unsigned long long)reply.job);
    }
    message_clear(&submitted_message, &reply);
}

// Submits another job with the same key, which must be refused.
void client_reuse_key(struct client *client, struct item *item)
{
    struct job_spec spec = item->content.spec;

    spec.repeat = 77;
    struct submitted reply;
    struct err err = ERR_INIT;
    int rc = send_submit(client, item, &spec, &reply, &err);
    if (rc == 0) {
        violation(client, item, "key %s was taken for another job, %llu", item->content.key,
                  (unsigned long long)reply.job);
    }
    if (rc != ERR_CONFLICT) {
        expect_transient(client, item, "a SUBMIT that contradicts an earlier one", &err);
    }
}

// ---- what comes back ----

// A hash of everything that is said about a finished job, except where it ran and how long it took.
static uint64_t hash_of(const struct job_info *info)
{
    struct job_info said = *info;

    said.age_seconds = 0;
    said.ages = NULL;
    said.compile_seconds = 0;
    said.device = NULL;
    said.device_class = NULL; // the result names it, too
    struct strbuf packed = STRBUF_INIT;
    struct err err = ERR_INIT;
    if (message_pack(&job_info_message, &said, &packed, &err) != 0) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
    struct digest digest = digest_of(packed.data, packed.len);
    uint64_t hash;
    memcpy(&hash, digest.byte, sizeof(hash));
    if (getenv("KCAST_SOAK_TELL")) {
        struct strbuf text = STRBUF_INIT;

        message_json(&job_info_message, &said, &text);
        fprintf(stderr, "%016llx %s\n", (unsigned long long)hash, strbuf_text(&text));
        strbuf_release(&text);
    }
    strbuf_release(&packed);
    return hash;
}

// Writes to the executors' log that the result was delivered, so that a later run can be detected.
static void mark_done(struct client *client, const struct item *item)
{
    char name[17];

    content_name(&item->content, name);
    char line[32];
    (void)snprintf(line, sizeof(line), "done %s\n", name);
    if (write(client->log, line, strlen(line)) < 0) {
        abort();
    }
}

static void check_end(struct client *client, const struct item *item, const struct job_info *info)
{
    if (!job_state_is_terminal(info->state)) {
        violation(client, item, "WAIT tells of job %llu, which is %s",
                  (unsigned long long)item->job, job_state_name(info->state));
    }
    if (strcmp(info->key, item->content.key) != 0 ||
        strcmp(info->search, item->content.search) != 0 ||
        strcmp(info->tenant, soak_tenant_name(soak_url_is_tls(client->plan.url),
                                              client->plan.number % SOAK_TENANTS)) != 0) {
        violation(client, item, "job %llu is that of key %s now", (unsigned long long)item->job,
                  info->key);
    }
    const char *why;
    if (!content_allows(&item->content, info, &why)) {
        violation(client, item, "job %llu: %s", (unsigned long long)item->job, why);
    }
    if (info->state == JOB_CANCELLED && !item->cancelled &&
        !(item->content.budgeted && info->reason && strstr(info->reason, "BUDGET"))) {
        violation(client, item, "job %llu was cancelled, but not by its client: %s",
                  (unsigned long long)item->job, info->reason ? info->reason : "no reason");
    }
    if (item->cancel_answered && item->cancel_state != info->state) {
        violation(client, item, "job %llu is %s, but its CANCEL was told %s",
                  (unsigned long long)item->job, job_state_name(info->state),
                  job_state_name(item->cancel_state));
    }
}

static void deliver(struct client *client, struct item *item, const struct job_info *info)
{
    uint64_t hash = hash_of(info);

    check_end(client, item, info);
    if (item->delivered) {
        if (hash != item->hash || info->state != item->state) {
            violation(client, item, "job %llu was delivered twice with different content (%s, %s)",
                      (unsigned long long)item->job, job_state_name(item->state),
                      job_state_name(info->state));
        }
        return;
    }
    if (info->state == JOB_DONE && item->content.unique) {
        mark_done(client, item);
    }
    item->delivered = true;
    item->state = info->state;
    item->hash = hash;
    journal_add(client->journal, "r %u %llu %llx %s\n", item->index,
                (unsigned long long)info->state, (unsigned long long)hash,
                info->reason ? info->reason : "");
}

void client_wait(struct client *client, struct item *const *item, size_t count, uint64_t max_ms)
{
    uint64_t job[OPEN_MAX_JOBS];

    for (size_t i = 0; i < count; i++) {
        job[i] = item[i]->job;
    }
    struct wait body;
    message_init(&wait_message, &body);
    body.jobs = job;
    body.jobs_count = count;
    body.max_ms = max_ms;
    struct waited reply;
    struct err err = ERR_INIT;
    if (call(client, OP_WAIT, &wait_message, &body, &waited_message, &reply, &err) != 0) {
        expect_transient(client, item[0], "WAIT", &err);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < reply.unknown_count; k++) {
            if (reply.unknown[k] == item[i]->job && !item[i]->acking) {
                violation(client, item[i], "job %llu was accepted and is unknown now",
                          (unsigned long long)item[i]->job);
            }
        }
        for (size_t k = 0; k < reply.jobs_count; k++) {
            if (reply.jobs[k].job == item[i]->job) {
                deliver(client, item[i], &reply.jobs[k]);
            }
        }
    }
    message_clear(&waited_message, &reply);
}

// ---- CANCEL and ACK ----

void client_cancel(struct client *client, struct item *item)
{
    if (!item->cancelled) {
        journal_add(client->journal, "c %u\n", item->index);
        item->cancelled = true;
    }
    struct job_ids body;
    message_init(&job_ids_message, &body);
    body.jobs = &item->job;
    body.jobs_count = 1;
    struct job_infos reply;
    struct err err = ERR_INIT;
    if (call(client, OP_CANCEL, &job_ids_message, &body, &job_infos_message, &reply, &err) != 0) {
        expect_transient(client, item, "CANCEL", &err);
        return;
    }
    if (reply.jobs_count != 1 || !job_state_is_terminal(reply.jobs[0].state)) {
        violation(client, item, "job %llu was cancelled and is %s afterwards",
                  (unsigned long long)item->job,
                  reply.jobs_count == 1 ? job_state_name(reply.jobs[0].state) : "unknown");
    }
    if ((item->cancel_answered && item->cancel_state != reply.jobs[0].state) ||
        (item->delivered && item->state != reply.jobs[0].state)) {
        violation(client, item, "job %llu has another end, %s, after a second CANCEL",
                  (unsigned long long)item->job, job_state_name(reply.jobs[0].state));
    }
    if (!item->cancel_answered) {
        item->cancel_answered = true;
        item->cancel_state = reply.jobs[0].state;
        journal_add(client->journal, "C %u %llu\n", item->index,
                    (unsigned long long)item->cancel_state);
    }
    message_clear(&job_infos_message, &reply);
}

void client_acknowledge(struct client *client, struct item *item)
{
    if (!item->acking) {
        journal_add(client->journal, "k %u\n", item->index);
        item->acking = true;
    }
    struct job_ids body;
    message_init(&job_ids_message, &body);
    body.jobs = &item->job;
    body.jobs_count = 1;
    struct empty reply;
    struct err err = ERR_INIT;
    if (call(client, OP_ACK, &job_ids_message, &body, &empty_message, &reply, &err) != 0) {
        expect_transient(client, item, "ACK", &err);
        return;
    }
    journal_add(client->journal, "K %u\n", item->index);
    client_close_item(item);
}

// Checks that a job that was acknowledged is unknown.
void client_expect_gone(struct client *client, struct item *item)
{
    struct wait body;

    message_init(&wait_message, &body);
    body.jobs = &item->job;
    body.jobs_count = 1;
    struct waited reply;
    struct err err = ERR_INIT;
    if (call(client, OP_WAIT, &wait_message, &body, &waited_message, &reply, &err) != 0) {
        expect_transient(client, item, "WAIT", &err);
        return;
    }
    if (reply.unknown_count != 1) {
        violation(client, item, "job %llu was acknowledged and is there again",
                  (unsigned long long)item->job);
    }
    message_clear(&waited_message, &reply);
}
