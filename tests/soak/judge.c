// Design note. The clients look while they work; here everything is looked at once more, from what
// they have written, without trusting that they looked. The executors' log has one order for what
// ran and what clients were told, since all append to it.
#include "common/file.h"
#include "common/mem.h"
#include "proto/verdict.h"
#include "tests/soak/client.h"
#include "tests/soak/content.h"
#include "tests/soak/journal.h"
#include "tests/soak/soak.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct record {
    uint64_t job;
    uint64_t state;
    uint64_t hash;
    uint64_t told;
    bool accepted, refused, cancelled, was_told, delivered, acknowledged;
};

struct owner { // of a job's number
    uint64_t job;
    unsigned client, index;
};

struct run { // of a source that nobody else has
    char name[17];
    unsigned starts;
    bool done; // a client has its result
    UT_hash_handle hh;
};

struct judge {
    struct soak *soak;
    struct soak_account *account;
    bool complete; // all clients came to their end
    unsigned client;
    struct record *record;
    size_t count;
    struct owner *owner;
    size_t owner_count;
    struct run *runs;
};

// --- journals

static void grow(struct judge *judge)
{
    judge->record = xgrow(judge->record, judge->count, sizeof(*judge->record));
    memset(&judge->record[judge->count++], 0, sizeof(*judge->record));
}

static void bad(struct judge *judge, unsigned index, const char *what)
{
    soak_violation(judge->soak, "client %u, its job %u (number %llu): %s", judge->client, index,
                   (unsigned long long)judge->record[index].job, what);
}

static void on_accepted(struct judge *judge, struct record *record, unsigned index, uint64_t job)
{
    if (record->accepted && record->job != job) {
        bad(judge, index, "it has two numbers");
    }
    if (!record->accepted) {
        judge->owner = xgrow(judge->owner, judge->owner_count, sizeof(*judge->owner));
        judge->owner[judge->owner_count++] =
            (struct owner){.job = job, .client = judge->client, .index = index};
    }
    record->accepted = true;
    record->job = job;
}

static void on_delivered(struct judge *judge, struct record *record, unsigned index,
                         const struct journal_line *line)
{
    if (record->acknowledged) {
        bad(judge, index, "it was delivered after it had been acknowledged");
    }
    if (record->delivered && (record->hash != line->second || record->state != line->first)) {
        bad(judge, index, "it was delivered twice with different content");
    }
    record->delivered = true;
    record->state = line->first;
    record->hash = line->second;
}

static void on_line(void *owner, const struct journal_line *line)
{
    struct judge *judge = owner;

    if (line->what == 's' && line->index == judge->count) {
        grow(judge);
        return;
    }
    if (line->index >= judge->count) {
        soak_violation(judge->soak, "client %u: its journal has gaps", judge->client);
        return;
    }
    struct record *record = &judge->record[line->index];
    switch (line->what) {
    case 'a':
        on_accepted(judge, record, line->index, line->first);
        break;
    case 'b':
        record->refused = true;
        break;
    case 'c':
        record->cancelled = true;
        break;
    case 'C':
        record->was_told = true;
        record->told = line->first;
        break;
    case 'r':
        on_delivered(judge, record, line->index, line);
        break;
    case 'K':
        record->acknowledged = true;
        break;
    case 'v':
        bad(judge, line->index, line->text);
        break;
    default:
        break;
    }
}

static void count_end(struct judge *judge, const struct record *record, unsigned index)
{
    struct soak_account *account = judge->account;
    struct content content;

    content_make(&content, judge->soak->seed, judge->soak->real, judge->client, index);
    account->delivered++;
    account->real += content.kind == CONTENT_REAL && record->state == JOB_DONE;
    account->done += record->state == JOB_DONE;
    account->cancelled += record->state == JOB_CANCELLED;
    if (record->state == JOB_BURIED) {
        account->buried++;
        account->buried_innocent += !content_is_killer(&content);
    }
    content_release(&content);
}

static void judge_client(struct judge *judge)
{
    struct soak_account *account = judge->account;

    judge->count = 0;
    journal_read(judge->soak->dir, judge->client, on_line, judge);
    account->submitted += judge->count;
    for (unsigned i = 0; i < judge->count; i++) {
        const struct record *record = &judge->record[i];

        account->accepted += record->accepted;
        account->refused += record->refused;
        account->acknowledged += record->acknowledged;
        if (record->refused && record->accepted) {
            bad(judge, i, "it was accepted and refused");
        } else if (!judge->complete) {
            continue;
        } else if (!record->refused && !record->accepted) {
            bad(judge, i, "it was never answered");
        } else if (record->accepted && !record->delivered) {
            bad(judge, i, "it was accepted, and its end was never delivered");
        } else if (record->accepted && !record->acknowledged) {
            bad(judge, i, "it was never acknowledged");
        } else if (record->accepted) {
            count_end(judge, record, i);
        }
        if (record->was_told && record->delivered && record->told != record->state) {
            bad(judge, i, "its CANCEL told another end than was delivered");
        }
    }
}

static int by_job(const void *a, const void *b)
{
    const struct owner *x = a;
    const struct owner *y = b;

    return x->job < y->job ? -1 : x->job > y->job;
}

static void find_shared_numbers(struct judge *judge)
{
    if (judge->owner_count == 0) {
        soak_violation(judge->soak, "no job was accepted at all");
        return;
    }
    qsort(judge->owner, judge->owner_count, sizeof(*judge->owner), by_job);
    for (size_t i = 1; i < judge->owner_count; i++) {
        const struct owner *a = &judge->owner[i - 1];
        const struct owner *b = &judge->owner[i];

        if (a->job == b->job) {
            soak_violation(judge->soak, "job %llu is both job %u of client %u and job %u of %u",
                           (unsigned long long)a->job, a->index, a->client, b->index, b->client);
        }
    }
}

// --- the executors' log

static struct run *run_of(struct judge *judge, const char *name)
{
    struct run *run;

    HASH_FIND_STR(judge->runs, name, run);
    if (!run) {
        run = xcalloc(1, sizeof(*run));
        (void)snprintf(run->name, sizeof(run->name), "%s", name);
        HASH_ADD_STR(judge->runs, name, run);
    }
    return run;
}

static void on_log_line(struct judge *judge, const char *what, const char *name)
{
    bool begins = strcmp(what, "measure") == 0 || strcmp(what, "cuda-measure") == 0;
    bool ends = strcmp(what, "measure-end") == 0 || strcmp(what, "cuda-measure-end") == 0;

    if (!begins && !ends && strcmp(what, "done") != 0) {
        return;
    }
    struct run *run = run_of(judge, name);
    if (strcmp(what, "done") == 0) {
        run->done = true;
        return;
    }
    run->starts += begins;
    judge->account->runs += begins;
    if (run->done) {
        soak_violation(judge->soak, "candidate %s %s after its result had been delivered", name,
                       begins ? "was measured again" : "was still being measured");
    }
}

static void judge_runs(struct judge *judge)
{
    char *path = xasprintf("%s/%s", judge->soak->dir, SOAK_LOG);
    FILE *file = fopen(path, "re");
    char what[32], name[32];
    struct run *run, *next;

    while (file && fscanf(file, "%31s %31s", what, name) == 2) {
        on_log_line(judge, what, name);
    }
    if (file) {
        (void)fclose(file);
    }
    HASH_ITER (hh, judge->runs, run, next) {
        if (run->done) {
            judge->account->runs_again += run->starts > 1 ? run->starts - 1 : 0;
        }
        if (run->done && run->starts == 0) {
            soak_violation(judge->soak, "candidate %s has a result, but was never measured",
                           run->name);
        }
        HASH_DEL(judge->runs, run);
        free(run);
    }
    free(path);
}

void soak_judge(struct soak *soak, struct soak_account *account)
{
    struct judge judge = {.soak = soak, .account = account, .complete = soak->violations == 0};
    // Everything that can take a run from a job: what runs on a killed daemon's devices, and an
    // executor that is killed. A frozen one is not lost.
    uint64_t losses =
        soak->executor_kills + (uint64_t)(soak->daemon_kills + soak->daemon_stops) * SOAK_DEVICES;

    for (judge.client = 0; judge.client < soak->clients; judge.client++) {
        judge_client(&judge);
    }
    find_shared_numbers(&judge);
    judge_runs(&judge);
    if (account->runs_again > losses) {
        soak_violation(soak, "%llu measurements were done again, but only %llu can have been lost",
                       (unsigned long long)account->runs_again, (unsigned long long)losses);
    }
    free(judge.record);
    free(judge.owner);
}
