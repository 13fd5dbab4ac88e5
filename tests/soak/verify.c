// Design. The clients check the daemon's answers while they work. At the end everything is checked
// once more from what they have written, without trusting their checks. The executors' log has one
// order of what ran and what clients were told, since all processes append to it.
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

struct job_entry {
    uint64_t job;
    uint64_t state;
    uint64_t hash;
    uint64_t cancel_state;
    bool accepted, refused, cancelled, cancel_answered, delivered, acknowledged;
};

// Whose job a job number is.
struct owner {
    uint64_t job;
    unsigned client, index;
};

// How often a source that nobody else has was measured.
struct run {
    char name[17];
    unsigned starts;
    bool done; // a client has its result
    UT_hash_handle hh;
};

struct verifier {
    struct soak *soak;
    struct soak_totals *totals;
    bool complete; // all clients have finished
    unsigned client;
    struct job_entry *entry;
    size_t count;
    struct owner *owner;
    size_t owner_count;
    struct run *runs;
};

// ---- journals ----

static void grow(struct verifier *verifier)
{
    verifier->entry = xgrow(verifier->entry, verifier->count, sizeof(*verifier->entry));
    memset(&verifier->entry[verifier->count++], 0, sizeof(*verifier->entry));
}

static void bad(struct verifier *verifier, unsigned index, const char *what)
{
    soak_violation(verifier->soak, "client %u, its job %u (number %llu): %s", verifier->client,
                   index, (unsigned long long)verifier->entry[index].job, what);
}

static void on_accepted(struct verifier *verifier, struct job_entry *entry, unsigned index,
                        uint64_t job)
{
    if (entry->accepted && entry->job != job) {
        bad(verifier, index, "it has two numbers");
    }
    if (!entry->accepted) {
        verifier->owner = xgrow(verifier->owner, verifier->owner_count, sizeof(*verifier->owner));
        verifier->owner[verifier->owner_count++] =
            (struct owner){.job = job, .client = verifier->client, .index = index};
    }
    entry->accepted = true;
    entry->job = job;
}

static void on_delivered(struct verifier *verifier, struct job_entry *entry, unsigned index,
                         const struct journal_line *line)
{
    if (entry->acknowledged) {
        bad(verifier, index, "it was delivered after it had been acknowledged");
    }
    if (entry->delivered && (entry->hash != line->second || entry->state != line->first)) {
        bad(verifier, index, "it was delivered twice with different content");
    }
    entry->delivered = true;
    entry->state = line->first;
    entry->hash = line->second;
}

static void on_line(void *owner, const struct journal_line *line)
{
    struct verifier *verifier = owner;

    if (line->what == 's' && line->index == verifier->count) {
        grow(verifier);
        return;
    }
    if (line->index >= verifier->count) {
        soak_violation(verifier->soak, "client %u: its journal has gaps", verifier->client);
        return;
    }
    struct job_entry *entry = &verifier->entry[line->index];
    switch (line->what) {
    case 'a':
        on_accepted(verifier, entry, line->index, line->first);
        break;
    case 'b':
        entry->refused = true;
        break;
    case 'c':
        entry->cancelled = true;
        break;
    case 'C':
        entry->cancel_answered = true;
        entry->cancel_state = line->first;
        break;
    case 'r':
        on_delivered(verifier, entry, line->index, line);
        break;
    case 'K':
        entry->acknowledged = true;
        break;
    case 'v':
        bad(verifier, line->index, line->text);
        break;
    default:
        break;
    }
}

static void count_end(struct verifier *verifier, const struct job_entry *entry, unsigned index)
{
    struct soak_totals *totals = verifier->totals;
    struct content content;

    content_make(&content, verifier->soak->seed, verifier->soak->real, verifier->client, index);
    totals->delivered++;
    totals->real += content.kind == CONTENT_REAL && entry->state == JOB_DONE;
    totals->done += entry->state == JOB_DONE;
    totals->cancelled += entry->state == JOB_CANCELLED;
    if (entry->state == JOB_BURIED) {
        totals->buried++;
        totals->buried_innocent += !content_is_killer(&content);
    }
    content_release(&content);
}

static void verify_client(struct verifier *verifier)
{
    struct soak_totals *totals = verifier->totals;

    verifier->count = 0;
    journal_read(verifier->soak->dir, verifier->client, on_line, verifier);
    totals->submitted += verifier->count;
    for (unsigned i = 0; i < verifier->count; i++) {
        const struct job_entry *entry = &verifier->entry[i];

        totals->accepted += entry->accepted;
        totals->refused += entry->refused;
        totals->acknowledged += entry->acknowledged;
        if (entry->refused && entry->accepted) {
            bad(verifier, i, "it was accepted and refused");
        } else if (!verifier->complete) {
            continue;
        } else if (!entry->refused && !entry->accepted) {
            bad(verifier, i, "it was never answered");
        } else if (entry->accepted && !entry->delivered) {
            bad(verifier, i, "it was accepted, and its end was never delivered");
        } else if (entry->accepted && !entry->acknowledged) {
            bad(verifier, i, "it was never acknowledged");
        } else if (entry->accepted) {
            count_end(verifier, entry, i);
        }
        if (entry->cancel_answered && entry->delivered && entry->cancel_state != entry->state) {
            bad(verifier, i, "its CANCEL told another end than was delivered");
        }
    }
}

static int by_job(const void *a, const void *b)
{
    const struct owner *x = a;
    const struct owner *y = b;

    return x->job < y->job ? -1 : x->job > y->job;
}

static void find_shared_numbers(struct verifier *verifier)
{
    if (verifier->owner_count == 0) {
        soak_violation(verifier->soak, "no job was accepted at all");
        return;
    }
    qsort(verifier->owner, verifier->owner_count, sizeof(*verifier->owner), by_job);
    for (size_t i = 1; i < verifier->owner_count; i++) {
        const struct owner *a = &verifier->owner[i - 1];
        const struct owner *b = &verifier->owner[i];

        if (a->job == b->job) {
            soak_violation(verifier->soak, "job %llu is both job %u of client %u and job %u of %u",
                           (unsigned long long)a->job, a->index, a->client, b->index, b->client);
        }
    }
}

// ---- the executors' log ----

static struct run *run_of(struct verifier *verifier, const char *name)
{
    struct run *run;

    HASH_FIND_STR(verifier->runs, name, run);
    if (!run) {
        run = xcalloc(1, sizeof(*run));
        (void)snprintf(run->name, sizeof(run->name), "%s", name);
        HASH_ADD_STR(verifier->runs, name, run);
    }
    return run;
}

static void on_log_line(struct verifier *verifier, const char *what, const char *name)
{
    bool begins = strcmp(what, "measure") == 0 || strcmp(what, "cuda-measure") == 0;
    bool ends = strcmp(what, "measure-end") == 0 || strcmp(what, "cuda-measure-end") == 0;

    if (!begins && !ends && strcmp(what, "done") != 0) {
        return;
    }
    struct run *run = run_of(verifier, name);
    if (strcmp(what, "done") == 0) {
        run->done = true;
        return;
    }
    run->starts += begins;
    verifier->totals->runs += begins;
    if (run->done) {
        soak_violation(verifier->soak, "candidate %s %s after its result had been delivered", name,
                       begins ? "was measured again" : "was still being measured");
    }
}

static void verify_runs(struct verifier *verifier)
{
    char *path = xasprintf("%s/%s", verifier->soak->dir, SOAK_LOG);
    FILE *file = fopen(path, "re");
    char what[32], name[32];
    struct run *run, *next;

    while (file && fscanf(file, "%31s %31s", what, name) == 2) {
        on_log_line(verifier, what, name);
    }
    if (file) {
        (void)fclose(file);
    }
    HASH_ITER (hh, verifier->runs, run, next) {
        if (run->done) {
            verifier->totals->runs_again += run->starts > 1 ? run->starts - 1 : 0;
        }
        if (run->done && run->starts == 0) {
            soak_violation(verifier->soak, "candidate %s has a result, but was never measured",
                           run->name);
        }
        HASH_DEL(verifier->runs, run);
        free(run);
    }
    free(path);
}

void soak_verify(struct soak *soak, struct soak_totals *totals)
{
    struct verifier verifier = {.soak = soak, .totals = totals, .complete = soak->violations == 0};
    // What can take a run from a job: the end of a daemon, for each of its devices, and the kill of
    // an executor. An executor that is only frozen is not lost.
    uint64_t losses =
        soak->executor_kills + (uint64_t)(soak->daemon_kills + soak->daemon_stops) * SOAK_DEVICES;

    for (verifier.client = 0; verifier.client < soak->clients; verifier.client++) {
        verify_client(&verifier);
    }
    find_shared_numbers(&verifier);
    verify_runs(&verifier);
    if (totals->runs_again > losses) {
        soak_violation(soak, "%llu measurements were done again, but only %llu can have been lost",
                       (unsigned long long)totals->runs_again, (unsigned long long)losses);
    }
    free(verifier.entry);
    free(verifier.owner);
}
