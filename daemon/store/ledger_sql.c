// Design note. ledger.c has the design of the ledger. Statements are prepared once, from one table,
// and found by their index. The tables of jobs and of the caches have modules of their own.
#include "daemon/store/ledger_sql.h"
#include "daemon/store/ledger_account.h"
#include "daemon/store/ledger_cache.h"
#include "daemon/store/ledger_damage.h"
#include "daemon/store/ledger_db.h"
#include "daemon/store/ledger_jobs.h"
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum statement {
    SQL_BEGIN,
    SQL_COMMIT,
    SQL_ROLLBACK,
    SQL_ORDER,
    SQL_DROP_ORDER,
    SQL_KEEP_ACCOUNT,
    SQL_COUNT,
};

static const char *const sql_text[SQL_COUNT] = {
    [SQL_BEGIN] = "BEGIN IMMEDIATE",
    [SQL_COMMIT] = "COMMIT",
    [SQL_ROLLBACK] = "ROLLBACK",
    [SQL_ORDER] = LEDGER_ORDER_KEEP,
    [SQL_DROP_ORDER] = "DELETE FROM device_order WHERE device = ? AND kind = ?",
    [SQL_KEEP_ACCOUNT] = LEDGER_ACCOUNT_KEEP,
};

struct ledger_sql {
    sqlite3 *db;
    sqlite3_stmt *statement[SQL_COUNT];
    struct ledger_damage damage;
    struct ledger_jobs *jobs;
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
    if (rc != 0) {
        goto out;
    }
    sql->damage =
        (struct ledger_damage){.db = sql->db, .path = sqlite3_db_filename(sql->db, "main")};
    rc = prepare_all(sql, err);
    if (rc != 0) {
        goto out;
    }
    rc = ledger_jobs_open(&sql->jobs, &sql->damage, err);
    if (rc != 0) {
        goto out;
    }
    rc = ledger_caches_open(&sql->caches, &sql->damage, err);
    if (rc != 0) {
        goto out;
    }
    *ret = sql;
    sql = NULL;
out:
    ledger_sql_close(sql);
    return rc;
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
    ledger_jobs_close(sql->jobs);
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

int ledger_sql_next_job(struct ledger_sql *sql, uint64_t *ret, struct err *err)
{
    return ledger_jobs_next(sql->jobs, ret, err);
}

uint64_t ledger_sql_damaged(const struct ledger_sql *sql)
{
    return sql->damage.rows_found;
}

uint64_t ledger_sql_results(const struct ledger_sql *sql)
{
    return ledger_cache_count(sql->caches, LEDGER_CACHE_RESULT);
}

int ledger_sql_load(struct ledger_sql *sql,
                    int (*visit)(void *owner, const struct ledger_job *job, struct err *err),
                    void *owner, struct err *err)
{
    return ledger_jobs_load(sql->jobs, visit, owner, err);
}

int ledger_sql_load_accounts(struct ledger_sql *sql, int64_t forget_before_s,
                             void (*visit)(void *owner, const struct ledger_account *row),
                             void *owner, struct err *err)
{
    return ledger_accounts_load(&sql->damage, forget_before_s, visit, owner, err);
}

int ledger_sql_load_orders(struct ledger_sql *sql,
                           void (*visit)(void *owner, const char *device, uint64_t kind,
                                         const char *reason),
                           void *owner, struct err *err)
{
    return ledger_orders_load(&sql->damage, visit, owner, err);
}

static struct bytes *make_answer(struct ledger_op *op, size_t count)
{
    op->answer = count > 0 ? xcalloc(count, sizeof(*op->answer)) : NULL;
    op->answer_count = count;
    return op->answer;
}

// Notes the use of an entry. It decides only how long the entry is kept.
static int use(struct ledger_sql *sql, enum ledger_cache_kind kind, const struct digest *key,
               struct err *err)
{
    struct err defect = ERR_INIT;
    int rc = ledger_cache_use(sql->caches, kind, key, &defect);

    return rc == 0 || rc == ERR_CORRUPT ? 0 : err_set(err, defect.code, "%s", defect.text);
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
    return use(sql, LEDGER_CACHE_RESULT, &op->digest, err);
}

// answer[0] is the compilation with the key of the operation.
static int read_compiled(struct ledger_sql *sql, struct ledger_op *op, struct err *err)
{
    struct bytes *found = make_answer(op, 1);
    int rc = ledger_cache_find(sql->caches, LEDGER_CACHE_COMPILED, &op->digest, found, NULL, err);

    if (rc != 0 || !found->data) {
        return rc;
    }
    return use(sql, LEDGER_CACHE_COMPILED, &op->digest, err);
}

static int run_submit(struct ledger_sql *sql, struct ledger_op *op, struct err *err)
{
    int rc = read_cached(sql, op, err);

    return rc != 0 ? rc : ledger_jobs_insert(sql->jobs, op, &op->answer[0], err);
}

// Keeps what the operation has in a cache. Where the cache's table is so damaged that this cannot
// be done, it goes without: the end of a job must not wait for it.
static int keep(struct ledger_sql *sql, enum ledger_cache_kind kind, const struct ledger_op *op,
                struct err *err)
{
    struct err defect = ERR_INIT;
    int rc = ledger_cache_keep(sql->caches, kind, &op->digest, op->now_s, op->cap_s, &op->bytes,
                               &defect);

    if (rc == ERR_CORRUPT) {
        ledger_damage_tell(&sql->damage, kind == LEDGER_CACHE_RESULT ? "result" : "compiled",
                           "a new one", defect.text);
        return 0;
    }
    return rc == 0 ? 0 : err_set(err, defect.code, "%s", defect.text);
}

static int run_finish(struct ledger_sql *sql, struct ledger_op *op, struct err *err)
{
    int rc = ledger_jobs_finish(sql->jobs, op, err);

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
            rc = ledger_jobs_result(sql->jobs, op->ids[i], &answer[i], err);
        } else {
            rc = ledger_jobs_forget(sql->jobs, op->ids[i], err);
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
        return ledger_jobs_move(sql->jobs, op, err);
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
