// Design note. Numbers on the wire are unsigned and those of SQLite are signed; the 64 bits are
// stored as they are. A step of a job gives its row a new digest only if the old one matches, so
// that no step hides damage that was there before it.
#include "daemon/store/ledger_jobs.h"
#include "daemon/store/ledger_damage.h"
#include "daemon/store/ledger_db.h"
#include "daemon/store/ledger_schema.h"
#include "daemon/store/ledger_sql.h"
#include "proto/verdict.h"
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

enum statement { INSERT, MOVE, FINISH, FORGET, RESULT, LOAD, STATEMENT_COUNT };

#define NEXT_DIGEST(state, attempt, reason, finished_at, result, cause)                            \
    " digest = CASE WHEN digest IS " LEDGER_JOB_DIGEST " THEN " LEDGER_JOB_DIGEST_OF(              \
        state, attempt, reason, finished_at, result, cause) " ELSE digest END"

static const char *const text[STATEMENT_COUNT] = {
    [INSERT] = "INSERT INTO job (id, tenant, search, key, spec, priority, class, submitted_at,"
               " state, attempt, finished_at, result, digest)"
               " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12,"
               " row_digest('job', ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, NULL, ?11, ?12, 0))",
    [MOVE] = "UPDATE job SET state = ?2, attempt = ?3," NEXT_DIGEST(
        "?2", "?3", "reason", "finished_at", "result",
        "cause") " WHERE id = ?1 AND finished_at = 0",
    // A job that has ended stays as it ended.
    [FINISH] = "UPDATE job SET state = ?2, attempt = ?3, reason = ?4, finished_at = ?5,"
               " result = ?6, cause = ?7," NEXT_DIGEST("?2", "?3", "?4", "?5", "?6",
                                                       "?7") " WHERE id = ?1 AND finished_at = 0",
    [FORGET] = "DELETE FROM job WHERE id = ?1",
    [RESULT] = "SELECT result, digest IS " LEDGER_JOB_DIGEST " FROM job WHERE id = ?1",
    [LOAD] = "SELECT id, search, key, spec, priority, state, attempt, reason, finished_at, tenant,"
             " class, cause, digest IS " LEDGER_JOB_DIGEST " FROM job ORDER BY id",
};

// SQLite's own count has no digest. The newest job that is as it was written says how much it must
// be at least.
static const char next_text[] =
    "SELECT 1 + max(ifnull((SELECT seq FROM sqlite_sequence WHERE name = 'job'), 0),"
    " ifnull((SELECT id FROM job WHERE digest IS " LEDGER_JOB_DIGEST
    " ORDER BY id DESC LIMIT 1), 0))";
#define NUMBER_MAX ((int64_t)1 << 62) // nobody has ever had so many jobs

struct ledger_jobs {
    sqlite3 *db;                  // the caller's
    struct ledger_damage *damage; // the caller's
    sqlite3_stmt *statement[STATEMENT_COUNT];
};

int ledger_jobs_open(struct ledger_jobs **ret, struct ledger_damage *damage, struct err *err)
{
    struct ledger_jobs *jobs = xcalloc(1, sizeof(*jobs));

    jobs->db = damage->db;
    jobs->damage = damage;
    for (size_t i = 0; i < STATEMENT_COUNT; i++) {
        if (sqlite3_prepare_v3(jobs->db, text[i], -1, SQLITE_PREPARE_PERSISTENT,
                               &jobs->statement[i], NULL) != SQLITE_OK) {
            int rc = ledger_db_failed(jobs->db, err);

            ledger_jobs_close(jobs);
            return rc;
        }
    }
    *ret = jobs;
    return 0;
}

void ledger_jobs_close(struct ledger_jobs *jobs)
{
    if (!jobs) {
        return;
    }
    for (size_t i = 0; i < STATEMENT_COUNT; i++) {
        (void)sqlite3_finalize(jobs->statement[i]);
    }
    free(jobs);
}

int ledger_jobs_next(struct ledger_jobs *jobs, uint64_t *ret, struct err *err)
{
    int64_t next = 0;
    int rc = ledger_db_number(jobs->db, next_text, &next, err);

    if (rc == 0 && (next <= 0 || next > NUMBER_MAX)) {
        rc = err_set(err, ERR_CORRUPT, "%s: damaged (the next job would have number %lld)",
                     jobs->damage->path, (long long)next);
    }
    if (rc == 0) {
        *ret = (uint64_t)next;
    }
    return rc;
}

static void bind_u64(sqlite3_stmt *statement, int index, uint64_t value)
{
    (void)sqlite3_bind_int64(statement, index, (sqlite3_int64)value);
}

static void bind_text(sqlite3_stmt *statement, int index, const char *value)
{
    (void)sqlite3_bind_text(statement, index, value, -1, SQLITE_STATIC);
}

static void bind_bytes(sqlite3_stmt *statement, int index, const struct bytes *value)
{
    (void)sqlite3_bind_blob64(statement, index, value->data, value->len, SQLITE_STATIC);
}

// Runs a statement whose rows are not needed.
static int run(struct ledger_jobs *jobs, enum statement number, struct err *err)
{
    sqlite3_stmt *statement = jobs->statement[number];
    int code = ledger_damage_step(jobs->damage, "job", statement);
    int rc = code == SQLITE_DONE ? 0 : ledger_db_failed(jobs->db, err);

    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement);
    return rc;
}

static struct ledger_job job_of_row(sqlite3_stmt *row)
{
    return (struct ledger_job){
        .id = (uint64_t)sqlite3_column_int64(row, 0),
        .search = (const char *)sqlite3_column_text(row, 1),
        .key = (const char *)sqlite3_column_text(row, 2),
        .spec = {.data = (unsigned char *)(uintptr_t)sqlite3_column_blob(row, 3),
                 .len = (size_t)sqlite3_column_bytes(row, 3)},
        .priority = (uint64_t)sqlite3_column_int64(row, 4),
        .state = (uint64_t)sqlite3_column_int64(row, 5),
        .attempt = (uint64_t)sqlite3_column_int64(row, 6),
        .reason = (const char *)sqlite3_column_text(row, 7),
        .finished_s = sqlite3_column_int64(row, 8),
        .tenant = (const char *)sqlite3_column_text(row, 9),
        .wanted_class = (uint64_t)sqlite3_column_int64(row, 10),
        .cause = (uint64_t)sqlite3_column_int64(row, 11),
    };
}

static void remove_damaged(struct ledger_jobs *jobs, int64_t id)
{
    char name[32];

    (void)snprintf(name, sizeof(name), "%lld", (long long)id);
    ledger_damage_remove(jobs->damage, "job", id, name,
                         "whoever waits for this job is told that it is unknown and submits it "
                         "again");
}

int ledger_jobs_load(struct ledger_jobs *jobs,
                     int (*visit)(void *owner, const struct ledger_job *job, struct err *err),
                     void *owner, struct err *err)
{
    sqlite3_stmt *row = jobs->statement[LOAD];
    int64_t *damaged = NULL;
    size_t damaged_count = 0;
    int rc = 0;
    int code;

    while (rc == 0 && (code = sqlite3_step(row)) != SQLITE_DONE) {
        if (code != SQLITE_ROW) {
            rc = ledger_db_failed(jobs->db, err);
        } else if (sqlite3_column_int(row, 12) == 0) {
            damaged = xgrow(damaged, damaged_count, sizeof(*damaged));
            damaged[damaged_count++] = sqlite3_column_int64(row, 0);
        } else {
            struct ledger_job job = job_of_row(row);

            rc = visit(owner, &job, err);
        }
    }
    (void)sqlite3_reset(row);
    for (size_t i = 0; i < damaged_count; i++) {
        remove_damaged(jobs, damaged[i]);
    }
    free(damaged);
    return rc;
}

int ledger_jobs_insert(struct ledger_jobs *jobs, const struct ledger_op *op,
                       const struct bytes *cached, struct err *err)
{
    sqlite3_stmt *insert = jobs->statement[INSERT];
    bool done = cached->data;

    bind_u64(insert, 1, op->id);
    bind_text(insert, 2, op->tenant);
    bind_text(insert, 3, op->search);
    bind_text(insert, 4, op->key);
    bind_bytes(insert, 5, &op->bytes);
    bind_u64(insert, 6, op->priority);
    bind_u64(insert, 7, op->wanted_class);
    (void)sqlite3_bind_int64(insert, 8, op->now_s);
    bind_u64(insert, 9, done ? (uint64_t)JOB_DONE : op->state);
    bind_u64(insert, 10, op->attempt);
    (void)sqlite3_bind_int64(insert, 11, done ? op->now_s : 0);
    if (done) {
        bind_bytes(insert, 12, cached);
    }
    return run(jobs, INSERT, err);
}

int ledger_jobs_move(struct ledger_jobs *jobs, const struct ledger_op *op, struct err *err)
{
    sqlite3_stmt *move = jobs->statement[MOVE];

    bind_u64(move, 1, op->id);
    bind_u64(move, 2, op->state);
    bind_u64(move, 3, op->attempt);
    return run(jobs, MOVE, err);
}

int ledger_jobs_finish(struct ledger_jobs *jobs, const struct ledger_op *op, struct err *err)
{
    sqlite3_stmt *finish = jobs->statement[FINISH];

    bind_u64(finish, 1, op->id);
    bind_u64(finish, 2, op->state);
    bind_u64(finish, 3, op->attempt);
    bind_text(finish, 4, op->reason);
    (void)sqlite3_bind_int64(finish, 5, op->now_s);
    if (op->bytes.data) {
        bind_bytes(finish, 6, &op->bytes);
    }
    bind_u64(finish, 7, op->cause);
    return run(jobs, FINISH, err);
}

int ledger_jobs_forget(struct ledger_jobs *jobs, uint64_t id, struct err *err)
{
    bind_u64(jobs->statement[FORGET], 1, id);
    return run(jobs, FORGET, err);
}

int ledger_jobs_result(struct ledger_jobs *jobs, uint64_t id, struct bytes *ret, struct err *err)
{
    sqlite3_stmt *statement = jobs->statement[RESULT];

    bind_u64(statement, 1, id);
    int code = sqlite3_step(statement);
    bool damaged = code == SQLITE_ROW && sqlite3_column_int(statement, 1) == 0;
    int rc = 0;
    if (code == SQLITE_ROW && !damaged) {
        const void *data = sqlite3_column_blob(statement, 0);
        int len = sqlite3_column_bytes(statement, 0);

        *ret = data && len > 0 ? bytes_copy(data, (size_t)len) : (struct bytes){0};
    } else if (code != SQLITE_ROW && code != SQLITE_DONE) {
        rc = ledger_db_failed(jobs->db, err);
    }
    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement);
    if (damaged) {
        remove_damaged(jobs, (int64_t)id);
    }
    return rc;
}
