// Design note. ledger.c has the design of the ledger. Statements are prepared once, from one table,
// and found by their index. Numbers on the wire are unsigned and those of SQLite are signed; the 64
// bits are stored as they are.
#include "daemon/store/ledger_sql.h"
#include "daemon/store/ledger_account.h"
#include "daemon/store/ledger_cache.h"
#include "daemon/store/ledger_db.h"
#include "proto/verdict.h"
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum statement {
    SQL_BEGIN,
    SQL_COMMIT,
    SQL_ROLLBACK,
    SQL_INSERT_JOB,
    SQL_MOVE_JOB,
    SQL_FINISH_JOB,
    SQL_FORGET_JOB,
    SQL_JOB_RESULT,
    SQL_ORDER,
    SQL_DROP_ORDER,
    SQL_LOAD_ORDERS,
    SQL_LOAD_JOBS,
    SQL_NEXT_JOB,
    SQL_KEEP_ACCOUNT,
    SQL_FORGET_ACCOUNTS,
    SQL_LOAD_ACCOUNTS,
    SQL_COUNT,
};

static const char *const sql_text[SQL_COUNT] = {
    [SQL_BEGIN] = "BEGIN IMMEDIATE",
    [SQL_COMMIT] = "COMMIT",
    [SQL_ROLLBACK] = "ROLLBACK",
    [SQL_INSERT_JOB] = "INSERT INTO job (id, search, key, spec, priority, state, attempt,"
                       " submitted_at, finished_at, result, tenant, class)"
                       " VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
    [SQL_MOVE_JOB] = "UPDATE job SET state = ?2, attempt = ?3 WHERE id = ?1 AND finished_at = 0",
    // A job that has ended stays as it ended.
    [SQL_FINISH_JOB] = "UPDATE job SET state = ?2, attempt = ?3, reason = ?4, finished_at = ?5,"
                       " result = ?6, cause = ?7 WHERE id = ?1 AND finished_at = 0",
    [SQL_FORGET_JOB] = "DELETE FROM job WHERE id = ?",
    [SQL_JOB_RESULT] = "SELECT result FROM job WHERE id = ?",
    [SQL_ORDER] = "INSERT OR REPLACE INTO device_order (device, kind, reason, created_at)"
                  " VALUES (?,?,?,?)",
    [SQL_DROP_ORDER] = "DELETE FROM device_order WHERE device = ? AND kind = ?",
    [SQL_LOAD_ORDERS] = "SELECT device, kind, reason FROM device_order",
    [SQL_LOAD_JOBS] = "SELECT id, search, key, spec, priority, state, attempt, reason, finished_at,"
                      " tenant, class, cause FROM job ORDER BY id",
    [SQL_NEXT_JOB] = "SELECT 1 + ifnull((SELECT seq FROM sqlite_sequence WHERE name = 'job'), 0)",
    [SQL_KEEP_ACCOUNT] = "INSERT OR REPLACE INTO account (tenant, search, weight, limit_s,"
                         " per_hour_s, used_s, tokens_s, at) VALUES (?,?,?,?,?,?,?,?)",
    [SQL_FORGET_ACCOUNTS] = "DELETE FROM account WHERE search <> '' AND at < ?",
    [SQL_LOAD_ACCOUNTS] = "SELECT tenant, search, weight, limit_s, per_hour_s, used_s, tokens_s, at"
                          " FROM account ORDER BY tenant, search",
};

struct ledger_sql {
    sqlite3 *db;
    sqlite3_stmt *statement[SQL_COUNT];
    struct ledger_caches *caches;
    uint64_t commits; // counted for KCASTD_DIE_AT
    const char *die_at;
};

static int prepare_all(struct ledger_sql *sql, struct err *err)
{
    for (size_t i = 0; i < SQL_COUNT; i++) {
        if (sqlite3_prepare_v3(sql->db, sql_text[i], -1, SQLITE_PREPARE_PERSISTENT,
                               &sql->statement[i], NULL) != SQLITE_OK) {
            return ledger_db_failed(sql->db, err);
        }
    }
    return 0;
}

int ledger_sql_open(struct ledger_sql **ret, const char *path, uint64_t page_max, struct err *err)
{
    struct ledger_sql *sql = xcalloc(1, sizeof(*sql));
    int rc = ledger_db_open(&sql->db, path, page_max, err);

#ifdef KCAST_FAULTS
    sql->die_at = getenv("KCASTD_DIE_AT");
#endif
    if (rc == 0) {
        rc = prepare_all(sql, err);
    }
    if (rc == 0) {
        rc = ledger_caches_open(&sql->caches, sql->db, err);
    }
    if (rc != 0) {
        ledger_sql_close(sql);
        return rc;
    }
    *ret = sql;
    return 0;
}

void ledger_sql_close(struct ledger_sql *sql)
{
    if (!sql) {
        return;
    }
    for (size_t i = 0; i < SQL_COUNT; i++) {
        (void)sqlite3_finalize(sql->statement[i]);
    }
    ledger_caches_close(sql->caches);
    (void)sqlite3_close(sql->db);
    free(sql);
}

void ledger_sql_limit(struct ledger_sql *sql, uint64_t entries)
{
    ledger_caches_limit(sql->caches, entries);
}

// Runs a statement whose rows are not needed.
static int step_done(struct ledger_sql *sql, enum statement number, struct err *err)
{
    sqlite3_stmt *statement = sql->statement[number];
    int code = sqlite3_step(statement);
    int rc = code == SQLITE_DONE || code == SQLITE_ROW ? 0 : ledger_db_failed(sql->db, err);

    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement);
    return rc;
}

static void bind_u64(sqlite3_stmt *statement, int index, uint64_t value)
{
    (void)sqlite3_bind_int64(statement, index, (sqlite3_int64)value);
}

static void bind_text(sqlite3_stmt *statement, int index, const char *text)
{
    (void)sqlite3_bind_text(statement, index, text, -1, SQLITE_STATIC);
}

static void bind_blob(sqlite3_stmt *statement, int index, const void *data, size_t len)
{
    (void)sqlite3_bind_blob64(statement, index, data, len, SQLITE_STATIC);
}

static struct bytes column_bytes(sqlite3_stmt *statement, int column)
{
    const void *data = sqlite3_column_blob(statement, column);
    int len = sqlite3_column_bytes(statement, column);

    return data && len > 0 ? bytes_copy(data, (size_t)len) : (struct bytes){0};
}

int ledger_sql_next_job(struct ledger_sql *sql, uint64_t *ret, struct err *err)
{
    int64_t next = 0;
    int rc = ledger_db_number(sql->db, sql_text[SQL_NEXT_JOB], &next, err);

    if (rc == 0) {
        *ret = (uint64_t)next;
    }
    return rc;
}

uint64_t ledger_sql_results(const struct ledger_sql *sql)
{
    return ledger_cache_count(sql->caches, LEDGER_CACHE_RESULT);
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

int ledger_sql_load(struct ledger_sql *sql,
                    int (*visit)(void *owner, const struct ledger_job *job, struct err *err),
                    void *owner, struct err *err)
{
    sqlite3_stmt *row = sql->statement[SQL_LOAD_JOBS];
    int rc = 0;
    int code;

    while (rc == 0 && (code = sqlite3_step(row)) != SQLITE_DONE) {
        if (code == SQLITE_ROW) {
            struct ledger_job job = job_of_row(row);

            rc = visit(owner, &job, err);
        } else {
            rc = ledger_db_failed(sql->db, err);
        }
    }
    (void)sqlite3_reset(row);
    return rc;
}

int ledger_sql_load_accounts(struct ledger_sql *sql, int64_t forget_before_s,
                             void (*visit)(void *owner, const struct ledger_account *row),
                             void *owner, struct err *err)
{
    sqlite3_stmt *row = sql->statement[SQL_LOAD_ACCOUNTS];

    (void)sqlite3_bind_int64(sql->statement[SQL_FORGET_ACCOUNTS], 1, forget_before_s);
    int rc = step_done(sql, SQL_FORGET_ACCOUNTS, err);
    int code = SQLITE_DONE;
    while (rc == 0 && (code = sqlite3_step(row)) == SQLITE_ROW) {
        struct ledger_account account = ledger_account_of_row(row);

        visit(owner, &account);
    }
    if (rc == 0 && code != SQLITE_DONE) {
        rc = ledger_db_failed(sql->db, err);
    }
    (void)sqlite3_reset(row);
    return rc;
}

int ledger_sql_load_orders(struct ledger_sql *sql,
                           void (*visit)(void *owner, const char *device, uint64_t kind,
                                         const char *reason),
                           void *owner, struct err *err)
{
    sqlite3_stmt *row = sql->statement[SQL_LOAD_ORDERS];
    int rc = 0;
    int code;

    while (rc == 0 && (code = sqlite3_step(row)) != SQLITE_DONE) {
        if (code == SQLITE_ROW) {
            visit(owner, (const char *)sqlite3_column_text(row, 0),
                  (uint64_t)sqlite3_column_int64(row, 1),
                  (const char *)sqlite3_column_text(row, 2));
        } else {
            rc = ledger_db_failed(sql->db, err);
        }
    }
    (void)sqlite3_reset(row);
    return rc;
}

static struct bytes *make_answer(struct ledger_op *op, size_t count)
{
    op->answer = count > 0 ? xcalloc(count, sizeof(*op->answer)) : NULL;
    op->answer_count = count;
    return op->answer;
}

// Sets *ret to the packed result of a job; leaves it alone when there is none.
static int find_job_result(struct ledger_sql *sql, uint64_t id, struct bytes *ret, struct err *err)
{
    sqlite3_stmt *statement = sql->statement[SQL_JOB_RESULT];

    bind_u64(statement, 1, id);
    int code = sqlite3_step(statement);
    int rc = 0;
    if (code == SQLITE_ROW) {
        *ret = column_bytes(statement, 0);
    } else if (code != SQLITE_DONE) {
        rc = ledger_db_failed(sql->db, err);
    }
    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement);
    return rc;
}

// answer[0] is the cached result that answers the spec of the operation.
static int read_cached(struct ledger_sql *sql, struct ledger_op *op, struct err *err)
{
    struct bytes *cached = make_answer(op, 1);

    if (!op->adopt) {
        return 0;
    }
    double cap = 0;
    int rc = ledger_cache_find(sql->caches, LEDGER_CACHE_RESULT, &op->digest, cached, &cap, err);
    if (rc != 0 || !cached->data) {
        return rc;
    }
    if (!op->adopt(&op->bytes, cap, cached)) {
        bytes_clear(cached);
        return 0;
    }
    return ledger_cache_use(sql->caches, LEDGER_CACHE_RESULT, &op->digest, err);
}

// answer[0] is the compilation with the key of the operation.
static int read_compiled(struct ledger_sql *sql, struct ledger_op *op, struct err *err)
{
    struct bytes *found = make_answer(op, 1);
    int rc = ledger_cache_find(sql->caches, LEDGER_CACHE_COMPILED, &op->digest, found, NULL, err);

    if (rc != 0 || !found->data) {
        return rc;
    }
    return ledger_cache_use(sql->caches, LEDGER_CACHE_COMPILED, &op->digest, err);
}

static int run_submit(struct ledger_sql *sql, struct ledger_op *op, struct err *err)
{
    sqlite3_stmt *insert = sql->statement[SQL_INSERT_JOB];
    int rc = read_cached(sql, op, err);

    if (rc != 0) {
        return rc;
    }
    const struct bytes *cached = &op->answer[0];
    bool done = cached->data;
    bind_u64(insert, 1, op->id);
    bind_text(insert, 2, op->search);
    bind_text(insert, 3, op->key);
    bind_blob(insert, 4, op->bytes.data, op->bytes.len);
    bind_u64(insert, 5, op->priority);
    bind_u64(insert, 6, done ? (uint64_t)JOB_DONE : op->state);
    bind_u64(insert, 7, op->attempt);
    (void)sqlite3_bind_int64(insert, 8, op->now_s);
    (void)sqlite3_bind_int64(insert, 9, done ? op->now_s : 0);
    if (done) {
        bind_blob(insert, 10, cached->data, cached->len);
    }
    bind_text(insert, 11, op->tenant);
    bind_u64(insert, 12, op->wanted_class);
    return step_done(sql, SQL_INSERT_JOB, err);
}

static int keep(struct ledger_sql *sql, enum ledger_cache_kind kind, const struct ledger_op *op,
                struct err *err)
{
    return ledger_cache_keep(sql->caches, kind, &op->digest, op->now_s, op->cap_s, &op->bytes, err);
}

static int run_finish(struct ledger_sql *sql, struct ledger_op *op, struct err *err)
{
    sqlite3_stmt *finish = sql->statement[SQL_FINISH_JOB];

    bind_u64(finish, 1, op->id);
    bind_u64(finish, 2, op->state);
    bind_u64(finish, 3, op->attempt);
    bind_text(finish, 4, op->reason);
    (void)sqlite3_bind_int64(finish, 5, op->now_s);
    if (op->bytes.data) {
        bind_blob(finish, 6, op->bytes.data, op->bytes.len);
    }
    bind_u64(finish, 7, op->cause);
    int rc = step_done(sql, SQL_FINISH_JOB, err);
    if (rc == 0 && op->bytes.data && !digest_is_zero(&op->digest)) {
        rc = keep(sql, LEDGER_CACHE_RESULT, op, err);
    }
    return rc;
}

static int run_ids(struct ledger_sql *sql, struct ledger_op *op, struct err *err)
{
    bool read = op->kind == LEDGER_READ_RESULTS;
    struct bytes *answer = read ? make_answer(op, op->id_count) : NULL;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < op->id_count; i++) {
        if (read) {
            rc = find_job_result(sql, op->ids[i], &answer[i], err);
        } else {
            bind_u64(sql->statement[SQL_FORGET_JOB], 1, op->ids[i]);
            rc = step_done(sql, SQL_FORGET_JOB, err);
        }
    }
    return rc;
}

static int run_order(struct ledger_sql *sql, struct ledger_op *op, struct err *err)
{
    enum statement number = op->kind == LEDGER_ORDER ? SQL_ORDER : SQL_DROP_ORDER;
    sqlite3_stmt *statement = sql->statement[number];

    bind_text(statement, 1, op->key);
    bind_u64(statement, 2, op->state);
    if (number == SQL_ORDER) {
        bind_text(statement, 3, op->reason);
        (void)sqlite3_bind_int64(statement, 4, op->now_s);
    }
    return step_done(sql, number, err);
}

static int run_op(struct ledger_sql *sql, struct ledger_op *op, struct err *err)
{
    switch (op->kind) {
    case LEDGER_SUBMIT:
        return run_submit(sql, op, err);
    case LEDGER_MOVE:
        bind_u64(sql->statement[SQL_MOVE_JOB], 1, op->id);
        bind_u64(sql->statement[SQL_MOVE_JOB], 2, op->state);
        bind_u64(sql->statement[SQL_MOVE_JOB], 3, op->attempt);
        return step_done(sql, SQL_MOVE_JOB, err);
    case LEDGER_FINISH:
        return run_finish(sql, op, err);
    case LEDGER_FORGET:
    case LEDGER_READ_RESULTS:
        return run_ids(sql, op, err);
    case LEDGER_READ_CACHED:
        return read_cached(sql, op, err);
    case LEDGER_READ_COMPILED:
        return read_compiled(sql, op, err);
    case LEDGER_KEEP_COMPILED:
        return keep(sql, LEDGER_CACHE_COMPILED, op, err);
    case LEDGER_DROP_COMPILED:
        return ledger_cache_drop(sql->caches, LEDGER_CACHE_COMPILED, &op->digest, err);
    case LEDGER_KEEP_ACCOUNT:
        ledger_account_bind(sql->statement[SQL_KEEP_ACCOUNT], &op->account);
        return step_done(sql, SQL_KEEP_ACCOUNT, err);
    case LEDGER_ORDER:
    case LEDGER_DROP_ORDER:
        return run_order(sql, op, err);
    case LEDGER_BARRIER:
        return 0;
    }
    return err_set(err, ERR_INTERNAL, "operation %d", (int)op->kind);
}

// Kills this process at the commit that a test has chosen.
static void die_if_asked(const struct ledger_sql *sql, const char *when)
{
    size_t len = strlen(when);

    if (sql->die_at && strncmp(sql->die_at, when, len) == 0 && sql->die_at[len] == ':' &&
        strtoull(sql->die_at + len + 1, NULL, 10) == sql->commits) {
        (void)kill(getpid(), SIGKILL);
        (void)pause();
    }
}

static int commit(struct ledger_sql *sql, struct err *err)
{
    sql->commits++;
    die_if_asked(sql, "before");
    int rc = step_done(sql, SQL_COMMIT, err);
    die_if_asked(sql, "after");
    return rc;
}

// As run_together, but a failure is not taken back.
static int run_transaction(struct ledger_sql *sql, struct ledger_op *first,
                           const struct ledger_op *end, bool write, struct err *err)
{
    int rc = write ? step_done(sql, SQL_BEGIN, err) : 0;
    rc = rc == 0 ? ledger_caches_begin(sql->caches, write, err) : rc;
    for (struct ledger_op *op = first; rc == 0 && op != end; op = op->next) {
        rc = run_op(sql, op, err);
    }
    return rc == 0 && write ? commit(sql, err) : rc;
}

// Carries out the operations from first up to end in one transaction, all or none. On failure every
// answer is empty again.
static int run_together(struct ledger_sql *sql, struct ledger_op *first,
                        const struct ledger_op *end, bool write, struct err *err)
{
    int rc = run_transaction(sql, first, end, write, err);
    ledger_caches_end(sql->caches, rc == 0);
    if (rc == 0) {
        return 0;
    }
    if (!sqlite3_get_autocommit(sql->db)) {
        (void)step_done(sql, SQL_ROLLBACK, NULL);
    }
    for (struct ledger_op *op = first; op != end; op = op->next) {
        ledger_op_reset(op);
    }
    return rc;
}

void ledger_sql_run(struct ledger_sql *sql, struct ledger_op *ops)
{
    bool write = false;

    for (const struct ledger_op *op = ops; op; op = op->next) {
        write = write || ledger_op_writes(op->kind);
    }
    if (run_together(sql, ops, NULL, write, NULL) == 0) {
        return;
    }
    for (struct ledger_op *op = ops; op; op = op->next) {
        struct err err = ERR_INIT;

        if (run_together(sql, op, op->next, ledger_op_writes(op->kind), &err) != 0) {
            op->error = xmemdup(&err, sizeof(err));
        }
    }
}
