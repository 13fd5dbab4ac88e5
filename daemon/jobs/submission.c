// Design note. A SUBMIT is checked in the order in which a client can correct what is wrong: the
// message itself, the key, the limits, the blobs, the problem, and whether a device runs problems
// of this language. A known key is answered at once, whatever the limits are.
//
// After the checks the job is added to the job table and then written to the ledger. It is
// `journalled` once the ledger has it. A second SUBMIT of the same key that comes in between finds
// the job and posts a barrier to the ledger, which comes back after the first insertion: then
// either the job is journalled, or it is gone and the second SUBMIT is refused like the first.
#include "daemon/jobs/submission.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/printable.h"
#include "daemon/jobs/budgets.h"
#include "daemon/jobs/completion.h"
#include "daemon/jobs/lifecycle.h"
#include "daemon/jobs/wait.h"
#include "daemon/run/job_cache.h"
#include "daemon/run/setup.h"
#include "daemon/sched/account.h"
#include "daemon/state/counters.h"
#include "daemon/state/job_table.h"
#include "daemon/store/blob.h"
#include "daemon/store/cache.h"
#include "daemon/store/ledger.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define RETRY_AFTER_MS 1000    // told to a caller that a limit refuses
#define MAX_SECONDS_MAX 3600.0 // largest max_seconds of a job
#define LOG2_MAX 64.0          // largest absolute value of anchor_log2

struct submissions {
    const struct daemon_parts *parts;
    struct submission *under_way;        // list
    struct log_limit refused[ERR_COUNT]; // limits the log lines about refusals, by error code
};

struct submission {
    struct submissions *submissions;
    submission_done *done;
    void *owner;
    const char *tenant;     // not owned
    struct submit submit;   // the message
    struct bytes packed;    // its specification, packed
    struct digest spec;     // submission_spec_digest
    struct setup *setup;    // held from the reading of the problem to the end
    struct setup_wait read; // while the problem is read
    uint64_t job;           // number of the job, once there is one
    bool cancelled;         // its search was cancelled before there was a job
    struct submission *prev;
    struct submission *next;
};

struct submissions *submissions_create(const struct daemon_parts *parts)
{
    struct submissions *submissions = xcalloc(1, sizeof(*submissions));

    submissions->parts = parts;
    return submissions;
}

void submissions_free(struct submissions *submissions)
{
    free(submissions);
}

// Calls `done` and frees the submission.
static void finish(struct submission *submission, const struct submission_end *end)
{
    DL_DELETE(submission->submissions->under_way, submission);
    submission->done(submission->owner, end);
    setup_release(submission->setup);
    message_clear(&submit_message, &submission->submit);
    bytes_clear(&submission->packed);
    free(submission);
}

static void refuse(struct submission *submission, const struct err *err, uint64_t retry_after_ms)
{
    const struct submit *submit = &submission->submit;
    uint64_t untold;

    if (log_limit_passes(&submission->submissions->refused[err_index(err->code)], uv_hrtime(),
                         &untold)) {
        log_event(LOG_NOTICE,
                  "submit-refused tenant=%s search=%s key=%s code=%s reason=\"%s\" untold=%llu",
                  submission->tenant, submit->search, submit->key, err_name((int)err->code),
                  err->text, (unsigned long long)untold);
    }
    finish(submission, &(struct submission_end){.error = err, .retry_after_ms = retry_after_ms});
}

static void answer_with(struct submission *submission, const struct job *job, bool duplicate)
{
    finish(submission, &(struct submission_end){.job = job, .duplicate = duplicate});
}

static bool out_of_range(double x, double low, double high)
{
    return !isnan(x) && !(x >= low && x <= high);
}

static int check(const struct submit *submit, const struct daemon_parts *parts, struct err *err)
{
    const struct job_spec *spec = submit->spec;

    if (submit->search[0] == '\0' || submit->key[0] == '\0') {
        return err_set(err, ERR_INVALID, "search and key must not be empty");
    }
    if (printable_check("the name of a search", submit->search, err) != 0 ||
        printable_check("the key of a job", submit->key, err) != 0) {
        return ERR_INVALID;
    }
    if (spec->kind != JOB_COMPILE && spec->kind != JOB_MEASURE) {
        return err_set(err, ERR_INVALID, "a job of kind %llu", (unsigned long long)spec->kind);
    }
    if (spec->kind == JOB_MEASURE &&
        (digest_is_zero(&spec->reference) || digest_is_zero(&spec->baseline))) {
        return err_set(err, ERR_INVALID, "to measure takes a reference and a baseline");
    }
    if (spec->unsealed && parts->limits.no_unsealed) {
        return err_set(err, ERR_DENIED,
                       "this daemon lets no candidate run unsealed (kcastd --no-unsealed); submit "
                       "it without --unsealed");
    }
    if (out_of_range(spec->anchor_log2, -LOG2_MAX, LOG2_MAX) ||
        out_of_range(spec->precision_log2, 1e-6, 1) ||
        out_of_range(spec->max_seconds, 1e-3, MAX_SECONDS_MAX)) {
        return err_set(err, ERR_INVALID, "anchor, precision or max_seconds out of range");
    }
    if (submit->queue_class >= QUEUE_CLASS_COUNT) {
        return err_set(err, ERR_INVALID, "a queue class of %llu",
                       (unsigned long long)submit->queue_class);
    }
    if (budgets_check(submit->weight, submit->budget_seconds, NAN, err) != 0) {
        return ERR_INVALID;
    }
    struct device_class *device_class;
    return spec->device_class
               ? devices_choose(&device_class, parts->devices, spec->device_class, NULL, err)
               : 0;
}

// Refuses a measurement whose budget is used up. Compilations take no device time and need none.
static int check_budget(const struct submission *submission, struct err *err)
{
    const struct submit *submit = &submission->submit;
    const struct job_table *jobs = submission->submissions->parts->jobs;
    const struct account *exhausted =
        submit->spec->kind == JOB_MEASURE
            ? account_exhausted(job_table_account(jobs, submission->tenant, submit->search))
            : NULL;

    if (!exhausted) {
        return 0;
    }
    char *sentence = account_sentence(exhausted);
    (void)err_set(err, ERR_BUDGET, "%s", sentence);
    free(sentence);
    return ERR_BUDGET;
}

static int check_limits(const struct submission *submission, struct err *err)
{
    const struct daemon_parts *parts = submission->submissions->parts;
    const char *name = submission->submit.search;
    const struct search *search = job_table_find_search(parts->jobs, submission->tenant, name);

    if (!job_table_have_room(parts->jobs, submission->tenant, parts->limits.jobs_max)) {
        return err_set(err, ERR_BUSY,
                       "%zu of at most %zu jobs are here already, and tenant %s has its part of "
                       "them; acknowledge results or wait",
                       job_table_count(parts->jobs), parts->limits.jobs_max, submission->tenant);
    }
    if (search && search->unfinished >= parts->limits.queue_max) {
        return err_set(err, ERR_BUSY, "search %s has %zu unfinished jobs already", name,
                       parts->limits.queue_max);
    }
    return check_budget(submission, err);
}

// --- known keys

static void on_barrier(void *owner, const struct err *error, struct bytes *answer, size_t count)
{
    struct submission *submission = owner;
    const struct job *job = job_table_find(submission->submissions->parts->jobs, submission->job);

    (void)error;
    (void)answer;
    (void)count;
    if (job) {
        answer_with(submission, job, true);
        return;
    }
    struct err err = ERR_INIT;
    (void)err_set(&err, ERR_NO_SPACE, "the ledger could not take the job");
    refuse(submission, &err, 0);
}

// Answers the SUBMIT when its key is known. Returns false when the key is new.
static bool answer_known(struct submission *submission)
{
    const struct daemon_parts *parts = submission->submissions->parts;
    const struct submit *submit = &submission->submit;
    const struct job *job =
        job_table_find_key(parts->jobs, submission->tenant, submit->search, submit->key);

    if (!job) {
        return false;
    }
    struct err err = ERR_INIT;
    if (!digest_equal(&job->spec, &submission->spec)) {
        (void)err_set(&err, ERR_CONFLICT, "search %s used key %s for something else",
                      submit->search, submit->key);
        refuse(submission, &err, 0);
    } else if (job->journalled) {
        answer_with(submission, job, true);
    } else {
        submission->job = job->id;
        ledger_barrier(parts->ledger, on_barrier, submission);
    }
    return true;
}

// --- new keys

struct digest submission_spec_digest(const struct job_spec *spec)
{
    struct job_spec what = *spec; // shares the texts; never cleared

    what.features_only = false;
    what.no_machine_code = false;
    struct bytes packed = cache_pack(&job_spec_message, &what);
    struct digest digest = digest_of(packed.data, packed.len);
    bytes_clear(&packed);
    return digest;
}

void submission_apply_spec(const struct daemon_parts *parts, struct job *job,
                           const struct job_spec *spec)
{
    job->kind = (uint8_t)spec->kind;
    job->candidate = spec->candidate;
    job->anchor_log2 = spec->anchor_log2;
    job->precision_log2 = spec->precision_log2;
    job->max_launches = spec->max_launches;
    job->max_seconds = spec->max_seconds;
    job->repeat = spec->repeat;
    job->fresh = spec->fresh;
    job->features_only = spec->features_only;
    job->no_machine_code = spec->no_machine_code;
    job->unsealed = spec->unsealed;
    job->submitted_ns = clock_now_ns(parts->clock);
    job->setup = setup_acquire(parts->setups, &spec->problem, &spec->reference, &spec->baseline,
                               spec->device_class);
}

static void on_journalled(void *owner, const struct err *error, struct bytes *answer, size_t count)
{
    struct submission *submission = owner;
    const struct daemon_parts *parts = submission->submissions->parts;
    struct job *job = job_table_find(parts->jobs, submission->job);

    if (error) {
        waits_wake(parts->waits, job); // its number may be known from a STATUS
        setup_release(job->setup);
        job_table_remove(parts->jobs, job);
        refuse(submission, error, 0);
        return;
    }
    job->journalled = true;
    log_event(LOG_INFO, "job-submitted job=%llu tenant=%s search=%s key=%s kind=%s problem=%s",
              (unsigned long long)job->id, job->search->tenant, job->search->name, job->key,
              job->kind == JOB_MEASURE ? "measure" : "compile", job->setup->name);
    if (count > 0 && answer[0].data) {
        complete_at_once(parts->completions, job, &answer[0]);
    } else if (job->cancel_requested) {
        lifecycle_cancel(parts->lifecycle, job, JOB_CAUSE_CLIENT, "cancelled by its client");
    } else {
        lifecycle_admit(parts->lifecycle, job);
    }
    answer_with(submission, job, false);
}

// Takes over the weight and the budget that the SUBMIT gives its search. They are posted to the
// ledger before the job is.
static void set_account(const struct daemon_parts *parts, struct account *account,
                        const struct submit *submit)
{
    double weight = submit->weight;
    double limit_s = isnan(account->limit_s) ? submit->budget_seconds : (double)NAN;

    if (isnan(weight) || !(fabs(weight - account->weight) > 0)) {
        weight = NAN;
    }
    if (!isnan(weight) || !isnan(limit_s)) {
        account_set(account, weight, limit_s, NAN, clock_seconds(clock_now_ns(parts->clock)));
        ledger_keep_account(parts->ledger, account, NULL, NULL);
    }
}

static void journal(struct submission *submission)
{
    const struct daemon_parts *parts = submission->submissions->parts;
    const struct submit *submit = &submission->submit;
    struct ledger_job row = {
        .id = ledger_next_job(parts->ledger),
        .tenant = submission->tenant,
        .search = submit->search,
        .key = submit->key,
        .spec = submission->packed,
        .priority = submit->priority,
        .wanted_class = submit->queue_class,
        .state = JOB_QUEUED,
    };
    struct job *job = job_table_add(parts->jobs, row.id, submission->tenant, submit->search,
                                    submit->key, JOB_QUEUED);
    bool use_cache = submit->spec->kind == JOB_MEASURE && !submit->spec->fresh;

    submission->job = row.id;
    job->spec = submission->spec;
    job->priority = submit->priority;
    job->wanted_class = (uint8_t)submit->queue_class;
    job->cancel_requested = submission->cancelled;
    set_account(parts, job->search->account, submit);
    // Not of callers who plan nothing: their searches are counted when they use a device.
    if (submit->planned > 0 || !isnan(submit->planned_seconds)) {
        struct counters_search *counted =
            counters_search(parts->counters, submission->tenant, submit->search);
        counted->planned = submit->planned;
        counted->planned_seconds = submit->planned_seconds;
    }
    submission_apply_spec(parts, job, submit->spec);
    job->device_class = job->setup->device_class;
    struct digest key;
    if (use_cache) {
        key = job_cache_key(job, parts->limits.sandbox_off);
    }
    ledger_submit(parts->ledger, &row, use_cache ? &key : NULL, use_cache ? cache_adopt : NULL,
                  on_journalled, submission);
}

// Continues when the problem has been read. `lost` says why it could not be read, or is NULL.
static void with_problem(struct submission *submission, const char *lost)
{
    struct err err = ERR_INIT;

    if (lost) {
        (void)err_set(&err, ERR_SYSTEM, "%s", lost);
    } else if (submission->setup->defect) {
        (void)err_set(&err, ERR_INVALID, "%s", submission->setup->defect);
    } else if (submission->setup->no_class) {
        (void)err_set(&err, ERR_NOT_FOUND, "%s", submission->setup->no_class);
    } else if (answer_known(submission)) {
        return; // another SUBMIT of the same key was faster
    } else if (check_limits(submission, &err) == 0) {
        journal(submission);
        return;
    }
    refuse(submission, &err, err.code == ERR_BUSY ? RETRY_AFTER_MS : 0);
}

static void on_problem_read(struct setup_wait *wait, const char *lost)
{
    with_problem(wait->owner, lost);
}

static void on_blobs_checked(void *owner, const struct digest *missing, size_t count)
{
    struct submission *submission = owner;
    const struct daemon_parts *parts = submission->submissions->parts;
    const struct job_spec *spec = submission->submit.spec;
    struct strbuf list = STRBUF_INIT;

    for (size_t i = 0; i < count; i++) {
        char hex[DIGEST_HEX_LEN + 1];

        digest_hex(&missing[i], hex);
        strbuf_addf(&list, " %s", hex);
    }
    struct err err = ERR_INIT;
    if (count > 0) {
        (void)err_set(&err, ERR_NEED_BLOB, "send first:%s", strbuf_text(&list));
        strbuf_release(&list);
        refuse(submission, &err, 0);
        return;
    }
    submission->setup = setup_acquire(parts->setups, &spec->problem, &spec->reference,
                                      &spec->baseline, spec->device_class);
    submission->read.on_done = on_problem_read;
    submission->read.owner = submission;
    if (setup_read(submission->setup, &submission->read)) {
        with_problem(submission, NULL);
    }
}

static void check_blobs(struct submission *submission)
{
    const struct job_spec *spec = submission->submit.spec;
    const struct digest *digest[] = {&spec->problem, &spec->reference, &spec->baseline,
                                     &spec->candidate};
    struct digest given[ARRAY_LEN(digest)];
    size_t count = 0;

    for (size_t i = 0; i < ARRAY_LEN(digest); i++) {
        if (!digest_is_zero(digest[i])) {
            given[count++] = *digest[i];
        }
    }
    const struct blob_caller caller = {.tenant = submission->tenant, .name = submission->tenant};
    blob_check(submission->submissions->parts->blobs, &caller, given, count, on_blobs_checked,
               submission);
}

void submission_start(struct submissions *submissions, const char *tenant,
                      struct submit *submit_taken, submission_done *done, void *owner)
{
    const struct daemon_parts *parts = submissions->parts;
    struct submission *submission = xcalloc(1, sizeof(*submission));
    const struct job_spec *spec = submit_taken->spec;

    DL_APPEND(submissions->under_way, submission);
    submission->submissions = submissions;
    submission->done = done;
    submission->owner = owner;
    submission->tenant = tenant;
    submission->submit = *submit_taken;
    memset(submit_taken, 0, sizeof(*submit_taken));
    submission->packed = cache_pack(&job_spec_message, spec);
    submission->spec = submission_spec_digest(spec);
    struct err err = ERR_INIT;
    if (check(&submission->submit, parts, &err) != 0) {
        refuse(submission, &err, 0);
        return;
    }
    if (answer_known(submission)) {
        return;
    }
    if (check_limits(submission, &err) != 0) {
        refuse(submission, &err, err.code == ERR_BUSY ? RETRY_AFTER_MS : 0);
        return;
    }
    check_blobs(submission);
}

void submissions_cancel(struct submissions *submissions, const char *tenant, const char *search)
{
    struct submission *submission;

    DL_FOREACH (submissions->under_way, submission) {
        submission->cancelled |= strcmp(submission->tenant, tenant) == 0 &&
                                 strcmp(submission->submit.search, search) == 0;
    }
}
