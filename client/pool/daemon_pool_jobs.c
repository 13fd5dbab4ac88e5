// Decides which daemon gets which job.
//
// A job is submitted to one member, and to another one when the first stays away, takes no jobs or
// refuses it. Each of these is a submission. The first submission that brings an outcome ends the
// job. The others are detached from it and cancelled at their daemons, and what they still bring is
// acknowledged. A member is given the same job only once, so a job has at most as many submissions
// as there are members. A job that all members have refused ends with the last refusal.
#include "client/pool/daemon_pool_state.h"

#include "common/mem.h"
#include "proto/verdict.h"
#include <stdlib.h>
#include <string.h>

#define TAKE_OVER 2.0 // jobs per device that a member which has come gets from others, at most

static job_client_callback on_outcome;

static uint64_t bit(const struct member *member)
{
    return UINT64_C(1) << member->index;
}

// ---- locations ----

static struct job_location *find_location(struct job_location **table, const char *name, bool add)
{
    struct job_location *location;
    HASH_FIND_STR(*table, name, location);
    if (!location && add) {
        location = xcalloc(1, sizeof(*location));
        location->name = xstrdup(name);
        HASH_ADD_KEYPTR(hh, *table, location->name, strlen(location->name), location);
    }
    return location;
}

static void free_locations(struct job_location **table)
{
    struct job_location *location, *next;
    HASH_ITER (hh, *table, location, next) {
        HASH_DEL(*table, location);
        free(location->name);
        free(location);
    }
}

void daemon_pool_forget_locations(struct daemon_pool *daemon_pool)
{
    free_locations(&daemon_pool->key);
    free_locations(&daemon_pool->compiled);
}

void daemon_pool_learn_keys(struct member *member, const struct status *status)
{
    for (size_t i = 0; i < status->jobs_count; i++) {
        const struct job_info *job = &status->jobs[i];
        // A job that was cancelled, or had no budget left, is submitted anew, wherever that is.
        if (!job->key || job->state == JOB_CANCELLED) {
            continue;
        }
        struct job_location *location = find_location(&member->daemon_pool->key, job->key, true);
        if (!location->member || (job->state == JOB_DONE && !location->done)) {
            location->member = member;
            location->done = job->state == JOB_DONE;
        }
    }
}

// ---- choosing ----

static double load(const struct member *member)
{
    return (double)(member->submissions + 1) / (double)(member->devices > 0 ? member->devices : 1);
}

static bool can_take(const struct member *member, const struct daemon_pool_job *job)
{
    return member->state == MEMBER_ACTIVE && member->client && !job_client_error(member->client) &&
           (job->tried & bit(member)) == 0;
}

static void source_name(const struct job_spec *spec, char name[static DIGEST_HEX_LEN + 1])
{
    digest_hex(&spec->candidate, name);
}

// Finds the member with the least work per device. A member whose devices take no jobs now is
// better than none, because its daemon's queue waits for them.
static struct member *least_loaded(const struct daemon_pool *daemon_pool,
                                   const struct daemon_pool_job *job)
{
    struct member *best = NULL;
    for (size_t i = 0; i < daemon_pool->count; i++) {
        struct member *member = daemon_pool->member[i];
        bool fits = can_take(member, job) && member->listed;
        if (fits && (!best || (best->devices == 0 && member->devices > 0) ||
                     ((member->devices > 0 || best->devices == 0) && load(member) < load(best)))) {
            best = member;
        }
    }
    return best;
}

// Chooses the member that knows the job; else the one that compiled its candidate, unless that has
// more than one job per device more than the least loaded one; else the least loaded one.
static struct member *choose(struct daemon_pool *daemon_pool, const struct daemon_pool_job *job)
{
    const struct job_location *location = find_location(&daemon_pool->key, job->key, false);
    if (location && can_take(location->member, job)) {
        return location->member;
    }
    struct member *best = least_loaded(daemon_pool, job);
    if (!best || job->spec.kind != JOB_MEASURE) {
        return best;
    }
    char source[DIGEST_HEX_LEN + 1];
    source_name(&job->spec, source);
    location = find_location(&daemon_pool->compiled, source, false);
    bool near = location && location->member->listed && location->member->devices > 0 &&
                can_take(location->member, job) && load(location->member) <= load(best) + 1;
    return near ? location->member : best;
}

static void submit_to(struct member *member, struct daemon_pool_job *job)
{
    struct daemon_pool *daemon_pool = member->daemon_pool;
    struct submission *submission = xcalloc(1, sizeof(*submission));
    submission->member = member;
    submission->job = job;
    DL_APPEND(daemon_pool->submission, submission);
    member->submissions++;
    job->tried |= bit(member);
    submission->sent = job_client_submit(member->client, job->key, &job->spec, job->priority,
                                         on_outcome, submission, 0);
}

static bool is_submitted(const struct daemon_pool *daemon_pool, const struct daemon_pool_job *job)
{
    const struct submission *submission;
    DL_FOREACH (daemon_pool->submission, submission) {
        if (submission->job == job && submission->member->state == MEMBER_ACTIVE) {
            return true;
        }
    }
    return false;
}

static bool submit_to_best(struct daemon_pool *daemon_pool, struct daemon_pool_job *job)
{
    struct member *member = choose(daemon_pool, job);
    if (member) {
        submit_to(member, job);
    }
    return member;
}

void daemon_pool_assign(struct daemon_pool *daemon_pool, struct daemon_pool_job *job)
{
    (void)submit_to_best(daemon_pool, job);
}

void daemon_pool_assign_waiting(struct daemon_pool *daemon_pool)
{
    struct daemon_pool_job *job;
    DL_FOREACH (daemon_pool->job, job) {
        if (!is_submitted(daemon_pool, job)) {
            (void)submit_to_best(daemon_pool, job);
        }
    }
}

// ---- outcomes ----

static void free_submission(struct daemon_pool *daemon_pool, struct submission *submission)
{
    if (submission->job) {
        submission->member->submissions--;
    }
    DL_DELETE(daemon_pool->submission, submission);
    free(submission);
}

static void free_job(struct daemon_pool_job *job)
{
    message_clear(&job_spec_message, &job->spec);
    free(job->key);
    free(job);
}

// Detaches the job's submissions, whose outcomes nobody wants any more.
static void detach_submissions(struct daemon_pool *daemon_pool, const struct daemon_pool_job *job)
{
    struct submission *submission;
    DL_FOREACH (daemon_pool->submission, submission) {
        if (submission->job == job) {
            submission->job = NULL;
            submission->drop = true;
            submission->member->submissions--;
        }
    }
}

// Cancels detached submissions. The list is searched from the start each time, because abandoning
// one may free it and others.
static void drop_submissions(struct daemon_pool *daemon_pool)
{
    struct submission *submission;
    do {
        DL_FOREACH (daemon_pool->submission, submission) {
            if (submission->drop) {
                break;
            }
        }
        if (submission) {
            submission->drop = false;
            job_client_abandon(submission->member->client, submission->sent);
        }
    } while (submission);
}

// Takes a job out of the pool, which frees nothing of it.
static void take_out(struct daemon_pool *daemon_pool, struct daemon_pool_job *job)
{
    detach_submissions(daemon_pool, job);
    DL_DELETE(daemon_pool->job, job);
    daemon_pool->job_count--;
}

// Ends a job. Its owner records the outcome before any other daemon is told to forget the job.
static void finish(struct daemon_pool *daemon_pool, struct daemon_pool_job *job, struct job_ref ref,
                   struct job_info *info, const struct err *error)
{
    take_out(daemon_pool, job);
    job->callback(job->owner, job->tag, ref, info, error);
    free_job(job);
    drop_submissions(daemon_pool);
}

void daemon_pool_drop(struct daemon_pool *daemon_pool, struct daemon_pool_job *job)
{
    take_out(daemon_pool, job);
    free_job(job);
    drop_submissions(daemon_pool);
}

// A refusal, by a full disk or a limit, is one daemon's. The job goes to others if there are any.
static void on_refusal(struct daemon_pool *daemon_pool, struct daemon_pool_job *job,
                       const struct err *error)
{
    job->error = *error;
    if (!submit_to_best(daemon_pool, job) && !is_submitted(daemon_pool, job)) {
        struct err last = job->error;
        finish(daemon_pool, job, (struct job_ref){0}, NULL, &last);
    }
}

static void on_outcome(void *owner, uint64_t tag, struct job_info *info, const struct err *error)
{
    struct submission *submission = owner;
    struct member *member = submission->member;
    struct daemon_pool *daemon_pool = member->daemon_pool;
    struct daemon_pool_job *job = submission->job;
    (void)tag;
    free_submission(daemon_pool, submission);
    if (daemon_pool->closing) {
        return;
    }
    if (!job) {
        if (info) {
            job_client_ack(member->client, info->job);
        }
    } else if (error) {
        on_refusal(daemon_pool, job, error);
    } else {
        if (info->compiled) {
            char source[DIGEST_HEX_LEN + 1];
            source_name(&job->spec, source);
            find_location(&daemon_pool->compiled, source, true)->member = member;
        }
        finish(daemon_pool, job, (struct job_ref){.member = member->index, .job = info->job}, info,
               NULL);
    }
}

void daemon_pool_forget_jobs(struct daemon_pool *daemon_pool)
{
    while (daemon_pool->job) {
        struct daemon_pool_job *job = daemon_pool->job;
        take_out(daemon_pool, job);
        free_job(job);
    }
}

void daemon_pool_forget_submissions(struct daemon_pool *daemon_pool)
{
    while (daemon_pool->submission) {
        free_submission(daemon_pool, daemon_pool->submission);
    }
}

// ---- members that fail ----

// Whether the job runs on a device of the member.
static bool runs_at(const struct member *member, const struct submission *submission)
{
    uint64_t number = job_client_job_number(submission->sent);
    for (size_t i = 0; i < member->status.devices_count && number != 0; i++) {
        if (member->status.devices[i].job == number) {
            return true;
        }
    }
    return false;
}

// Whether another active member with devices has the job, too.
static bool is_submitted_elsewhere(const struct member *member, const struct daemon_pool_job *job)
{
    const struct submission *submission;
    DL_FOREACH (member->daemon_pool->submission, submission) {
        const struct member *other = submission->member;
        if (submission->job == job && other != member && other->state == MEMBER_ACTIVE &&
            other->devices > 0) {
            return true;
        }
    }
    return false;
}

// The loop also meets the submissions that it appends; they belong to other members.
size_t daemon_pool_resubmit(struct member *member, bool waiting_only)
{
    struct daemon_pool *daemon_pool = member->daemon_pool;
    struct submission *submission;
    size_t count = 0;
    DL_FOREACH (daemon_pool->submission, submission) {
        struct daemon_pool_job *job = submission->member == member ? submission->job : NULL;
        if (!job || is_submitted_elsewhere(member, job) ||
            (waiting_only && (job->spec.kind != JOB_MEASURE || runs_at(member, submission)))) {
            continue;
        }
        struct member *other = choose(daemon_pool, job);
        if (other && (!waiting_only || other->devices > 0)) {
            submit_to(other, job);
            count++;
        }
    }
    return count;
}

// The latest ones are taken, as the others would come to them last. They stay there, too: whoever
// is first has measured them.
void daemon_pool_take_over(struct member *member)
{
    struct daemon_pool *daemon_pool = member->daemon_pool;
    struct submission *submission = daemon_pool->submission ? daemon_pool->submission->prev : NULL;
    bool more = submission;
    while (more && load(member) <= TAKE_OVER) {
        struct daemon_pool_job *job = submission->job;
        const struct member *other = submission->member;
        more = submission != daemon_pool->submission;
        if (job && job->spec.kind == JOB_MEASURE && load(other) > load(member) + 1 &&
            can_take(member, job) && !runs_at(other, submission)) {
            submit_to(member, job);
        }
        submission = submission->prev;
    }
}

void daemon_pool_fail_submissions(struct member *member, const struct err *error)
{
    struct daemon_pool *daemon_pool = member->daemon_pool;
    struct submission *submission;
    do {
        DL_FOREACH (daemon_pool->submission, submission) {
            if (submission->member == member && submission->job) {
                break;
            }
        }
        if (submission) {
            struct daemon_pool_job *job = submission->job;
            submission->job = NULL;
            member->submissions--;
            on_refusal(daemon_pool, job, error); // may end the job, and begin or end others
        }
    } while (submission);
}
