// Design note. A step has so many points; looking at a job costs one, and a row costs ROW_POINTS.
// Between steps a cursor of the job table remembers the place, and is moved on when its job goes.
#include "daemon/jobs/listing.h"
#include "daemon/jobs/answer.h"
#include "daemon/state/job_table.h"
#include <stdlib.h>
#include <string.h>

#define STEP_POINTS 4096
#define ROW_POINTS 32

enum stage { NAMED, OF_SEARCH, ALL, COMPLETE };

struct listing {
    const struct daemon_parts *parts;
    struct caller caller;
    uint64_t *ids; // named jobs
    size_t id_count;
    size_t next_id; // index of the next one to look at
    char *search;   // NULL: not asked for
    bool all;
    enum stage stage;
    struct job_cursor cursor; // in OF_SEARCH and ALL
    struct job_info *rows;
    size_t count;
};

static int compare_ids(const void *a, const void *b)
{
    const uint64_t *left = a;
    const uint64_t *right = b;

    return (*left > *right) - (*left < *right);
}

size_t listing_unique(uint64_t *ids, size_t count)
{
    uint64_t *sorted = xmemdup(ids, count * sizeof(*ids));
    bool *seen = xcalloc(count + 1, sizeof(*seen));
    size_t kept = 0;
    size_t different = 0;

    qsort(sorted, count, sizeof(*sorted), compare_ids);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || sorted[i] != sorted[i - 1]) {
            sorted[different++] = sorted[i];
        }
    }
    for (size_t i = 0; i < count; i++) {
        const uint64_t *found = bsearch(&ids[i], sorted, different, sizeof(*sorted), compare_ids);
        size_t at = (size_t)(found - sorted);

        if (!seen[at]) {
            seen[at] = true;
            ids[kept++] = ids[i];
        }
    }
    free(seen);
    free(sorted);
    return kept;
}

struct listing *listing_create(const struct daemon_parts *parts, const struct caller *caller,
                               const struct status_request *request)
{
    struct listing *listing = xcalloc(1, sizeof(*listing));

    listing->parts = parts;
    listing->caller = *caller;
    if (request->jobs_count > 0) {
        listing->ids = xmemdup(request->jobs, request->jobs_count * sizeof(*request->jobs));
        listing->id_count = listing_unique(listing->ids, request->jobs_count);
    }
    listing->search = request->search ? xstrdup(request->search) : NULL;
    listing->all = request->all;
    return listing;
}

bool listing_is_short(const struct listing *listing)
{
    return !listing->search && !listing->all &&
           listing->id_count < STEP_POINTS / (ROW_POINTS + 1) - 1;
}

static void add(struct listing *listing, const struct job *job)
{
    listing->rows = xgrow(listing->rows, listing->count, sizeof(*listing->rows));
    answer_info(&listing->rows[listing->count++], job);
}

// Begins the next stage.
static void begin_next(struct listing *listing)
{
    const struct job_table *jobs = listing->parts->jobs;
    // A search is named within the caller's tenant, also by an administrator.
    const struct search *search =
        listing->stage == NAMED && listing->search
            ? job_table_find_search(jobs, listing->caller.tenant, listing->search)
            : NULL;

    job_cursor_end(&listing->cursor);
    listing->stage++;
    if (listing->stage == OF_SEARCH && search) {
        job_cursor_begin(&listing->cursor, listing->parts->jobs, search);
    } else if (listing->stage == ALL && listing->all) {
        job_cursor_begin(&listing->cursor, listing->parts->jobs, NULL);
    }
}

// Returns the next job to look at; NULL when the stage has none left.
static const struct job *next_job(struct listing *listing, bool *ret_end)
{
    const struct job *job;

    *ret_end = false;
    if (listing->stage == NAMED) {
        *ret_end = listing->next_id == listing->id_count;
        return *ret_end ? NULL
                        : job_table_find(listing->parts->jobs, listing->ids[listing->next_id++]);
    }
    job = job_cursor_next(&listing->cursor);
    *ret_end = !job;
    return job;
}

static bool is_wanted(const struct listing *listing, const struct job *job)
{
    return job && caller_owns(&listing->caller, job->search->tenant) &&
           (listing->stage != ALL || !job_state_is_terminal(job->state));
}

// Cuts the reasons of a long list.
static void shorten(struct listing *listing)
{
    for (size_t i = 0; i < listing->count && listing->count > LISTING_FULL_REASONS; i++) {
        char *reason = listing->rows[i].reason;

        if (reason && strlen(reason) > LISTING_REASON_SHORT) {
            size_t len = LISTING_REASON_SHORT;

            while (len > 0 && ((unsigned char)reason[len] & 0xc0) == 0x80) {
                len--; // not in the middle of a character
            }
            reason[len] = '\0';
        }
    }
}

bool listing_step(struct listing *listing)
{
    size_t points = 0;

    while (listing->stage != COMPLETE && points < STEP_POINTS) {
        bool end;
        const struct job *job = next_job(listing, &end);

        points++;
        if (end) {
            begin_next(listing);
        } else if (is_wanted(listing, job)) {
            add(listing, job);
            points += ROW_POINTS;
        }
        if (listing->count == LISTING_ROWS_MAX && listing->stage != COMPLETE) {
            job_cursor_end(&listing->cursor);
            listing->stage = COMPLETE;
        }
    }
    if (listing->stage == COMPLETE) {
        shorten(listing);
    }
    return listing->stage == COMPLETE;
}

void listing_take(struct listing *listing, struct job_info **ret, size_t *ret_count)
{
    *ret = listing->rows;
    *ret_count = listing->count;
    listing->rows = NULL;
    listing->count = 0;
}

void listing_free(struct listing *listing)
{
    if (!listing) {
        return;
    }
    job_cursor_end(&listing->cursor);
    for (size_t i = 0; i < listing->count; i++) {
        message_clear(&job_info_message, &listing->rows[i]);
    }
    free(listing->rows);
    free(listing->ids);
    free(listing->search);
    free(listing);
}
