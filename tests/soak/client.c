// Design note. Each step is a choice among what can be done with the jobs that are open. What must
// be known after a SIGKILL is in the journal before the daemon can have heard of it. A job is done
// with when its ACK was answered: until then the same key has to give the same job, and the same
// end with the same content, however often it is asked for.
#include "tests/soak/client.h"
#include "common/file.h"
#include "common/stats.h"
#include "contract/verdict.h"
#include "net/remote.h"
#include "tests/soak/content.h"
#include "tests/soak/journal.h"
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define OPEN_MAX_JOBS 6 // not acknowledged, of one client
#define CALL_MS 30000
#define PAUSE_MS 200 // at most, after an answer that was none

struct item {
    unsigned index;
    struct content content;
    bool accepted;
    uint64_t job;
    bool cancelled;  // CANCEL was sent at least once
    bool told;       // what its answer told:
    uint64_t told_state;
    bool delivered;
    uint64_t state;
    uint64_t hash;
    bool acking; // ACK was sent at least once
    bool closed; // it was answered, or the job was refused
};

struct client {
    struct client_plan plan;
    struct stats_rng rng;
    uv_loop_t loop;
    struct remote *remote;
    int journal;
    int log;
    struct item *item; // of indices first … first + count - 1
    size_t count;
    size_t size;
};

static void violation(struct client *client, const struct item *item, const char *format, ...)
    __attribute__((format(printf, 3, 4), noreturn));

static void violation(struct client *client, const struct item *item, const char *format, ...)
{
    char text[800];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    journal_add(client->journal, "v %u %s\n", item->index, text);
    _exit(SOAK_EXIT_VIOLATION);
}

static uint64_t below(struct client *client, uint64_t n)
{
    return stats_rng_below(&client->rng, n);
}

static void pause_ms(uint64_t ms)
{
    (void)usleep((useconds_t)(ms * 1000));
}

static bool stopping(const struct client *client)
{
    char path[512];

    (void)snprintf(path, sizeof(path), "%s/%s", client->plan.dir, SOAK_STOP);
    return file_exists(path);
}

// --- the journal

static struct item *add_item(struct client *client, unsigned index)
{
    struct item *item;

    if (client->count == client->size) {
        client->size = client->size ? 2 * client->size : 64;
        client->item = xrealloc(client->item, client->size, sizeof(*client->item));
    }
    item = &client->item[client->count++];
    memset(item, 0, sizeof(*item));
    item->index = index;
    return item;
}

static void on_line(void *owner, const struct journal_line *line)
{
    struct client *client = owner;
    struct item *item;

    if (line->what == 's' && line->index == client->count) {
        (void)add_item(client, line->index);
        return;
    }
    if (line->index >= client->count) {
        return;
    }
    item = &client->item[line->index];
    switch (line->what) {
    case 'a':
        item->accepted = true;
        item->job = line->first;
        break;
    case 'c':
        item->cancelled = true;
        break;
    case 'C':
        item->told = true;
        item->told_state = line->first;
        break;
    case 'r':
        item->delivered = true;
        item->state = line->first;
        item->hash = line->second;
        break;
    case 'k':
        item->acking = true;
        break;
    case 'b':
    case 'K':
        item->closed = true;
        break;
    default:
        break;
    }
}

// Everything is read; only what is open is kept at hand.
static void load(struct client *client)
{
    journal_read(client->plan.dir, client->plan.number, on_line, client);
    for (size_t i = 0; i < client->count; i++) {
        if (!client->item[i].closed) {
            content_make(&client->item[i].content, client->plan.seed, client->plan.real,
                         client->plan.number, client->item[i].index);
        }
    }
}

static size_t open_items(struct client *client, struct item *open[OPEN_MAX_JOBS])
{
    size_t count = 0;

    for (size_t i = client->count; i > 0 && count < OPEN_MAX_JOBS; i--) {
        if (!client->item[i - 1].closed) {
            open[count++] = &client->item[i - 1];
        }
    }
    return count;
}

static void close_item(struct item *item)
{
    item->closed = true;
    content_release(&item->content);
}

// --- calls

static int call(struct client *client, enum op op, const struct message *body_message,
                const void *body, const struct message *answer_message, void *reply,
                struct err *err)
{
    return remote_call_sync(client->remote, op, body_message, body, answer_message, reply, CALL_MS,
                            err);
}

// An answer that may come while things are killed: try again later. Anything else is a violation.
static void expect_passing(struct client *client, const struct item *item, const char *what,
                           const struct err *err)
{
    if (err->code != ERR_UNREACHABLE && err->code != ERR_TIMED_OUT && err->code != ERR_BUSY) {
        violation(client, item, "%s was refused with %s: %s", what, err_name((int)err->code),
                  err->text);
    }
    pause_ms(below(client, PAUSE_MS));
}

static bool put_blobs(struct client *client, const struct item *item, size_t count)
{
    const char *blob[CONTENT_BLOBS];

    content_blobs(&item->content, blob);
    for (size_t i = 0; i < count; i++) {
        struct blob_put body;
        struct empty reply;
        struct err err = ERR_INIT;

        message_init(&blob_put_message, &body);
        body.digest = digest_of(blob[i], strlen(blob[i]));
        body.data = (struct bytes){.data = (unsigned char *)(uintptr_t)blob[i],
                                   .len = strlen(blob[i])};
        if (call(client, OP_BLOB_PUT, &blob_put_message, &body, &empty_message, &reply, &err)) {
            expect_passing(client, item, "BLOB_PUT", &err);
            return false;
        }
    }
    return true;
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

static void submit(struct client *client, struct item *item)
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
        close_item(item);
        return;
    }
    if (rc != 0) {
        expect_passing(client, item, "SUBMIT", &err);
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

// The same key for something else must be refused.
static void provoke(struct client *client, struct item *item)
{
    struct job_spec spec = item->content.spec;
    struct submitted reply;
    struct err err = ERR_INIT;
    int rc;

    spec.repeat = 77;
    rc = send_submit(client, item, &spec, &reply, &err);
    if (rc == 0) {
        violation(client, item, "key %s was taken for another job, %llu", item->content.key,
                  (unsigned long long)reply.job);
    }
    if (rc != ERR_CONFLICT) {
        expect_passing(client, item, "a SUBMIT that contradicts an earlier one", &err);
    }
}

// --- what comes back

// Of everything that is said about a finished job, but for where and how long it was in the house.
static uint64_t hash_of(const struct job_info *info)
{
    struct job_info said = *info;
    struct strbuf packed = STRBUF_INIT;
    struct digest digest;
    struct err err = ERR_INIT;
    uint64_t hash;

    said.age_seconds = 0;
    said.compile_seconds = 0;
    said.device = NULL;
    said.device_class = NULL; // a result has it, too
    if (message_pack(&job_info_message, &said, &packed, &err) != 0) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
    digest = digest_of(packed.data, packed.len);
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

// Into the executors' log, so that it is plain what ran afterwards.
static void mark_done(struct client *client, const struct item *item)
{
    char name[17];
    char line[32];

    content_name(&item->content, name);
    (void)snprintf(line, sizeof(line), "done %s\n", name);
    if (write(client->log, line, strlen(line)) < 0) {
        abort();
    }
}

static void check_end(struct client *client, const struct item *item, const struct job_info *info)
{
    const char *why;

    if (!job_state_is_terminal(info->state)) {
        violation(client, item, "WAIT tells of job %llu, which is %s",
                  (unsigned long long)item->job, job_state_name(info->state));
    }
    if (strcmp(info->key, item->content.key) != 0 ||
        strcmp(info->search, item->content.search) != 0) {
        violation(client, item, "job %llu is that of key %s now", (unsigned long long)item->job,
                  info->key);
    }
    if (!content_allows(&item->content, info, &why)) {
        violation(client, item, "job %llu: %s", (unsigned long long)item->job, why);
    }
    if (info->state == JOB_CANCELLED && !item->cancelled &&
        !(item->content.budgeted && info->reason && strstr(info->reason, "BUDGET"))) {
        violation(client, item, "job %llu was cancelled, but not by its client: %s",
                  (unsigned long long)item->job, info->reason ? info->reason : "no reason");
    }
    if (item->told && item->told_state != info->state) {
        violation(client, item, "job %llu is %s, but its CANCEL was told %s",
                  (unsigned long long)item->job, job_state_name(info->state),
                  job_state_name(item->told_state));
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

// WAIT for these, which are accepted.
static void wait_for(struct client *client, struct item *const *item, size_t count, uint64_t max_ms)
{
    uint64_t job[OPEN_MAX_JOBS];
    struct wait body;
    struct waited reply;
    struct err err = ERR_INIT;

    for (size_t i = 0; i < count; i++) {
        job[i] = item[i]->job;
    }
    message_init(&wait_message, &body);
    body.jobs = job;
    body.jobs_count = count;
    body.max_ms = max_ms;
    if (call(client, OP_WAIT, &wait_message, &body, &waited_message, &reply, &err) != 0) {
        expect_passing(client, item[0], "WAIT", &err);
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

// --- CANCEL and ACK

static void cancel(struct client *client, struct item *item)
{
    struct job_ids body;
    struct job_infos reply;
    struct err err = ERR_INIT;

    if (!item->cancelled) {
        journal_add(client->journal, "c %u\n", item->index);
        item->cancelled = true;
    }
    message_init(&job_ids_message, &body);
    body.jobs = &item->job;
    body.jobs_count = 1;
    if (call(client, OP_CANCEL, &job_ids_message, &body, &job_infos_message, &reply, &err) != 0) {
        expect_passing(client, item, "CANCEL", &err);
        return;
    }
    if (reply.jobs_count != 1 || !job_state_is_terminal(reply.jobs[0].state)) {
        violation(client, item, "job %llu was cancelled and is %s afterwards",
                  (unsigned long long)item->job,
                  reply.jobs_count == 1 ? job_state_name(reply.jobs[0].state) : "unknown");
    }
    if ((item->told && item->told_state != reply.jobs[0].state) ||
        (item->delivered && item->state != reply.jobs[0].state)) {
        violation(client, item, "job %llu has another end, %s, after a second CANCEL",
                  (unsigned long long)item->job, job_state_name(reply.jobs[0].state));
    }
    if (!item->told) {
        item->told = true;
        item->told_state = reply.jobs[0].state;
        journal_add(client->journal, "C %u %llu\n", item->index,
                    (unsigned long long)item->told_state);
    }
    message_clear(&job_infos_message, &reply);
}

static void acknowledge(struct client *client, struct item *item)
{
    struct job_ids body;
    struct empty reply;
    struct err err = ERR_INIT;

    if (!item->acking) {
        journal_add(client->journal, "k %u\n", item->index);
        item->acking = true;
    }
    message_init(&job_ids_message, &body);
    body.jobs = &item->job;
    body.jobs_count = 1;
    if (call(client, OP_ACK, &job_ids_message, &body, &empty_message, &reply, &err) != 0) {
        expect_passing(client, item, "ACK", &err);
        return;
    }
    journal_add(client->journal, "K %u\n", item->index);
    close_item(item);
}

// What was acknowledged is gone for good.
static void look_for_ghost(struct client *client)
{
    struct item *item = &client->item[below(client, client->count)];
    struct wait body;
    struct waited reply;
    struct err err = ERR_INIT;

    if (!item->closed || !item->accepted) {
        return;
    }
    message_init(&wait_message, &body);
    body.jobs = &item->job;
    body.jobs_count = 1;
    if (call(client, OP_WAIT, &wait_message, &body, &waited_message, &reply, &err) != 0) {
        expect_passing(client, item, "WAIT", &err);
        return;
    }
    if (reply.unknown_count != 1) {
        violation(client, item, "job %llu was acknowledged and is there again",
                  (unsigned long long)item->job);
    }
    message_clear(&waited_message, &reply);
}

// --- steps

static void begin(struct client *client)
{
    struct item *item = add_item(client, (unsigned)client->count);

    content_make(&item->content, client->plan.seed, client->plan.real, client->plan.number,
                 item->index);
    journal_add(client->journal, "s %u\n", item->index);
    (void)put_blobs(client, item, 1);
    submit(client, item);
    if (item->accepted && below(client, 20) == 0) {
        cancel(client, item); // before it has come far
    }
}

static void wait_step(struct client *client, struct item **open, size_t count)
{
    struct item *some[OPEN_MAX_JOBS];
    size_t used = 0;

    for (size_t i = 0; i < count; i++) {
        // One that has been delivered ends the WAIT at once: only now and then.
        if (open[i]->accepted && (!open[i]->delivered || below(client, 4) == 0)) {
            some[used++] = open[i];
        }
    }
    if (used > 0) {
        wait_for(client, some, used, 200 + below(client, 1800));
    }
}

static void step_with(struct client *client, struct item *item)
{
    uint64_t at = below(client, 100);

    if (!item->accepted) {
        submit(client, item);
    } else if (item->acking) {
        acknowledge(client, item);
    } else if (at < 8) {
        submit(client, item);
    } else if (at < 10) {
        provoke(client, item);
    } else if (at < 14 || (item->delivered && at < 16)) {
        cancel(client, item);
    } else if (item->delivered && at < 75) {
        acknowledge(client, item);
    }
}

static void step(struct client *client, bool stop)
{
    struct item *open[OPEN_MAX_JOBS];
    size_t count = open_items(client, open);

    if (!stop && count < OPEN_MAX_JOBS && below(client, 3) != 0) {
        begin(client);
        return;
    }
    if (count == 0) {
        return;
    }
    if (below(client, 50) == 0) {
        look_for_ghost(client);
    }
    for (size_t i = 0; i < count; i++) {
        step_with(client, open[i]);
    }
    wait_step(client, open, open_items(client, open));
}

static void set_up(struct client *client, const struct client_plan *plan)
{
    char *log = xasprintf("%s/%s", plan->dir, SOAK_LOG);
    struct err err = ERR_INIT;

    memset(client, 0, sizeof(*client));
    client->plan = *plan;
    stats_rng_init(&client->rng, plan->seed, ((uint64_t)plan->life << 32) | plan->number);
    client->journal = journal_open(plan->dir, plan->number);
    client->log = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    free(log);
    if (client->log < 0 || uv_loop_init(&client->loop) != 0 ||
        remote_create(&client->remote, &client->loop, plan->url, &err) != 0) {
        fprintf(stderr, "soak client %u: %s\n", plan->number, err.text);
        abort();
    }
    load(client);
}

static void tear_down(struct client *client)
{
    remote_close(client->remote);
    (void)uv_run(&client->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&client->loop);
    close(client->journal);
    close(client->log);
    free(client->item);
}

int client_run(const struct client_plan *plan)
{
    struct item *open[OPEN_MAX_JOBS];
    struct client client;
    bool stop;

    (void)signal(SIGPIPE, SIG_IGN);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    set_up(&client, plan);
    while (!(stop = stopping(&client)) || open_items(&client, open) > 0) {
        step(&client, stop);
        if (!stop && plan->think_ms > 0) {
            pause_ms(below(&client, plan->think_ms));
        }
    }
    tear_down(&client);
    return 0;
}
