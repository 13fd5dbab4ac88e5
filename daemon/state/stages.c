#include "daemon/state/stages.h"
#include "common/clock.h"
#include "common/mem.h"
#include <stdbool.h>
#include <stdlib.h>
#include <uthash.h>

struct stages {
    char *path;              // key
    uint64_t in[STAGE_AWAY]; // unfinished jobs by stage
    uint64_t ns[STAGE_COUNT];
    uint64_t since_ns; // up to when ns counts; 0: it had no unfinished job yet
    bool has_jobs;     // between stages_enter and stages_leave
    UT_hash_handle hh;
};

static void forget(struct stage_table *table, struct stages *stages)
{
    HASH_DEL(table->searches, stages);
    free(stages->path);
    free(stages);
}

void stage_table_release(struct stage_table *table)
{
    while (table->searches) {
        forget(table, table->searches);
    }
}

static struct stages *find(const struct stage_table *table, const char *path)
{
    struct stages *stages;

    HASH_FIND_STR(table->searches, path, stages);
    return stages;
}

struct stages *stages_enter(struct stage_table *table, const char *path)
{
    struct stages *stages = find(table, path);

    if (!stages) {
        stages = xcalloc(1, sizeof(*stages));
        stages->path = xstrdup(path);
        HASH_ADD_KEYPTR(hh, table->searches, stages->path, strlen(stages->path), stages);
    }
    stages->has_jobs = true;
    return stages;
}

void stages_leave(struct stage_table *table, struct stages *stages)
{
    struct stages *oldest;

    stages->has_jobs = false;
    // Behind all others, so that who left first is before those that left later.
    HASH_DEL(table->searches, stages);
    HASH_ADD_KEYPTR(hh, table->searches, stages->path, strlen(stages->path), stages);
    oldest = table->searches;
    while (HASH_COUNT(table->searches) > STAGES_SEARCHES_MAX && oldest) {
        struct stages *next = oldest->hh.next;

        if (!oldest->has_jobs) {
            forget(table, oldest);
        }
        oldest = next;
    }
}

// The stage of a job in this state; STAGE_AWAY when it is finished, or there is none.
static enum search_stage stage_of(enum job_state state)
{
    switch (state) {
    case JOB_QUEUED:
        return STAGE_QUEUED;
    case JOB_COMPILING:
        return STAGE_COMPILING;
    case JOB_READY:
        return STAGE_WAITING;
    case JOB_RUNNING:
        return STAGE_MEASURING;
    default:
        return STAGE_AWAY;
    }
}

static enum search_stage stage_now(const struct stages *stages)
{
    enum search_stage stage = STAGE_MEASURING;

    while (stage < STAGE_AWAY && stages->in[stage] == 0) {
        stage++;
    }
    return stage;
}

void stages_move(struct stages *stages, enum job_state from, enum job_state to, uint64_t now_ns)
{
    enum search_stage before = stage_of(from), after = stage_of(to);

    if (before == after) {
        return;
    }
    if (stages->since_ns != 0) {
        stages->ns[stage_now(stages)] += now_ns - stages->since_ns;
    }
    stages->since_ns = now_ns;
    if (before != STAGE_AWAY) {
        stages->in[before]--;
    }
    if (after != STAGE_AWAY) {
        stages->in[after]++;
    }
}

void stages_seconds(const struct stage_table *table, const char *path, uint64_t now_ns,
                    double ret[STAGE_COUNT])
{
    const struct stages *stages = find(table, path);

    for (size_t i = 0; i < STAGE_COUNT; i++) {
        ret[i] = stages ? clock_seconds(stages->ns[i]) : 0;
    }
    if (stages && stage_now(stages) != STAGE_AWAY) {
        ret[stage_now(stages)] += clock_seconds(now_ns - stages->since_ns);
    }
}
