// Design note. There are two actors. The loop thread posts operations to a list under a lock. The
// ledger's thread takes the whole list, carries it out and posts it back through the mailbox as one
// mail, in order. That is the group commit: whatever was posted while the last commit was being
// synced shares the next one.
//
// A batch that contains a write runs in one transaction. If any of its operations fails (a full
// disk), the transaction is rolled back, and every operation is tried again in a transaction of its
// own. So an operation that fails does not harm the others: deleting still works when inserting
// does not. An operation fills its answer only while it is carried out, and the answer is emptied
// before the operation is tried again.
//
// The loop's thread uses SQLite only before the ledger's thread exists (open, load) and after it
// has been joined (close). Everything that an operation needs is copied into it.
//
// A build with KCAST_FAULTS can be made to fail by tests: KCASTD_DIE_AT=before:N or after:N kills
// the process at the N-th commit.
#include "daemon/store/ledger.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mailbox.h"
#include "daemon/sched/account.h"
#include "daemon/store/ledger_sql.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DAY_S (24 * 3600)

struct ledger {
    struct ledger_sql *sql; // used by the ledger's thread alone while that runs
    uint64_t next_job;      // number of the next new job
    uint64_t results;       // entries of the result cache after the last batch
    uint64_t bytes;         // of the files after the last batch
    uint64_t damaged;       // damaged rows that were found until the end of the last batch
    char *path;
    uv_thread_t thread;
    bool started;
    uv_mutex_t lock;          // guards posted, last and closing
    uv_cond_t more;           // posted or closing has changed
    struct ledger_op *posted; // oldest first
    struct ledger_op *last;
    bool closing; // the thread ends when it has carried out what was posted
    struct mailbox *mailbox;
};

// A batch on its way back to the loop thread.
struct batch {
    struct mail mail;
    struct ledger *ledger;
    struct ledger_op *ops;
    uint64_t results; // in the result cache afterwards
    uint64_t bytes;   // of the ledger's files afterwards
    uint64_t damaged; // damaged rows that were found so far
};

static uint64_t bytes_of(const char *path, const char *suffix)
{
    char *name = xasprintf("%s%s", path, suffix);
    struct stat info;
    uint64_t bytes = stat(name, &info) == 0 ? (uint64_t)info.st_size : 0;

    free(name);
    return bytes;
}

static uint64_t bytes_of_files(const char *path)
{
    return bytes_of(path, "") + bytes_of(path, "-wal");
}

int ledger_open(struct ledger **ret, const char *path, uint64_t page_max, struct err *err)
{
    struct ledger *ledger = xcalloc(1, sizeof(*ledger));
    int rc = ledger_sql_open(&ledger->sql, path, page_max, err);

    if (rc == 0) {
        rc = ledger_sql_next_job(ledger->sql, &ledger->next_job, err);
    }
    if (rc != 0) {
        ledger_sql_close(ledger->sql);
        free(ledger);
        return rc;
    }
    ledger->path = xstrdup(path);
    ledger->results = ledger_sql_results(ledger->sql);
    ledger->bytes = bytes_of_files(path);
    *ret = ledger;
    return 0;
}

int ledger_load(struct ledger *ledger,
                int (*visit)(void *owner, const struct ledger_job *job, struct err *err),
                void *owner, struct err *err)
{
    return ledger_sql_load(ledger->sql, visit, owner, err);
}

int ledger_load_accounts(struct ledger *ledger,
                         void (*visit)(void *owner, const struct ledger_account *row), void *owner,
                         struct err *err)
{
    int64_t now_s = clock_wall_ns(&clock_system) / (int64_t)NS_PER_S;

    return ledger_sql_load_accounts(ledger->sql, now_s - LEDGER_ACCOUNT_DAYS * DAY_S, visit, owner,
                                    err);
}

int ledger_load_orders(struct ledger *ledger,
                       void (*visit)(void *owner, const char *device, uint64_t kind,
                                     const char *reason),
                       void *owner, struct err *err)
{
    return ledger_sql_load_orders(ledger->sql, visit, owner, err);
}

uint64_t ledger_next_job(struct ledger *ledger)
{
    return ledger->next_job++;
}

void ledger_limit(struct ledger *ledger, uint64_t entries)
{
    ledger_sql_limit(ledger->sql, entries);
}

uint64_t ledger_results(const struct ledger *ledger)
{
    return ledger->results;
}

uint64_t ledger_bytes(const struct ledger *ledger)
{
    return ledger->bytes;
}

uint64_t ledger_damaged(const struct ledger *ledger)
{
    return ledger->damaged;
}

static void op_free(struct ledger_op *op)
{
    ledger_op_reset(op);
    free(op->tenant);
    free(op->search);
    free(op->key);
    free(op->reason);
    bytes_clear(&op->bytes);
    free(op->ids);
    free(op);
}

// Called on the loop thread.
static void deliver_batch(struct mail *mail)
{
    struct batch *batch = (struct batch *)mail;
    struct ledger_op *op = batch->ops;

    batch->ledger->results = batch->results;
    batch->ledger->bytes = batch->bytes;
    batch->ledger->damaged = batch->damaged;
    while (op) {
        struct ledger_op *next = op->next;

        if (op->error) {
            log_event(LOG_ERROR, "ledger-failed op=%s job=%llu reason=\"%s\"",
                      ledger_op_name(op->kind), (unsigned long long)op->id, op->error->text);
        }
        if (op->done) {
            op->done(op->owner, op->error, op->answer, op->answer_count);
        }
        op_free(op);
        op = next;
    }
    free(batch);
}

static void ledger_thread(void *data)
{
    struct ledger *ledger = data;

    for (;;) {
        uv_mutex_lock(&ledger->lock);
        while (!ledger->posted && !ledger->closing) {
            uv_cond_wait(&ledger->more, &ledger->lock);
        }
        struct ledger_op *ops = ledger->posted;
        ledger->posted = NULL;
        ledger->last = NULL;
        uv_mutex_unlock(&ledger->lock);
        if (!ops) {
            return;
        }
        ledger_sql_run(ledger->sql, ops);
        struct batch *batch = xcalloc(1, sizeof(*batch));
        batch->mail.deliver = deliver_batch;
        batch->ledger = ledger;
        batch->ops = ops;
        batch->results = ledger_sql_results(ledger->sql);
        batch->bytes = bytes_of_files(ledger->path);
        batch->damaged = ledger_sql_damaged(ledger->sql);
        // The mailbox outlives this thread.
        (void)mailbox_post(ledger->mailbox, &batch->mail);
    }
}

int ledger_start(struct ledger *ledger, uv_loop_t *loop, struct err *err)
{
    ledger->damaged = ledger_sql_damaged(ledger->sql); // while it was loaded
    int rc = mailbox_create(&ledger->mailbox, loop, err);
    if (rc != 0) {
        return rc;
    }
    if (uv_mutex_init(&ledger->lock) != 0 || uv_cond_init(&ledger->more) != 0) {
        return err_set(err, ERR_SYSTEM, "ledger: no lock");
    }
    rc = uv_thread_create(&ledger->thread, ledger_thread, ledger);
    if (rc != 0) {
        return err_set(err, ERR_SYSTEM, "ledger: %s", uv_strerror(rc));
    }
    ledger->started = true;
    return 0;
}

void ledger_close(struct ledger *ledger)
{
    if (!ledger) {
        return;
    }
    if (ledger->started) {
        uv_mutex_lock(&ledger->lock);
        ledger->closing = true;
        uv_cond_signal(&ledger->more);
        uv_mutex_unlock(&ledger->lock);
        (void)uv_thread_join(&ledger->thread);
        uv_cond_destroy(&ledger->more);
        uv_mutex_destroy(&ledger->lock);
    }
    mailbox_close(ledger->mailbox); // delivers what is there
    ledger_sql_close(ledger->sql);
    free(ledger->path);
    free(ledger);
}

static struct ledger_op *new_op(enum ledger_op_kind kind, uint64_t id, ledger_done *done,
                                void *owner)
{
    struct ledger_op *op = xcalloc(1, sizeof(*op));

    op->kind = kind;
    op->id = id;
    op->done = done;
    op->owner = owner;
    op->now_s = clock_wall_ns(&clock_system) / (int64_t)NS_PER_S;
    return op;
}

static void post(struct ledger *ledger, struct ledger_op *op)
{
    uv_mutex_lock(&ledger->lock);
    if (ledger->last) {
        ledger->last->next = op;
    } else {
        ledger->posted = op;
    }
    ledger->last = op;
    uv_cond_signal(&ledger->more);
    uv_mutex_unlock(&ledger->lock);
}

void ledger_submit(struct ledger *ledger, const struct ledger_job *job,
                   const struct digest *cache_key, ledger_adopt *adopt, ledger_done *done,
                   void *owner)
{
    struct ledger_op *op = new_op(LEDGER_SUBMIT, job->id, done, owner);

    op->tenant = xstrdup(job->tenant);
    op->search = xstrdup(job->search);
    op->key = xstrdup(job->key);
    op->bytes = bytes_copy(job->spec.data, job->spec.len);
    op->priority = job->priority;
    op->state = job->state;
    op->attempt = job->attempt;
    op->wanted_class = job->wanted_class;
    if (cache_key) {
        op->digest = *cache_key;
        op->adopt = adopt;
    }
    post(ledger, op);
}

void ledger_read_cached(struct ledger *ledger, const struct digest *cache_key,
                        const struct bytes *spec, ledger_adopt *adopt, ledger_done *done,
                        void *owner)
{
    struct ledger_op *op = new_op(LEDGER_READ_CACHED, 0, done, owner);

    op->bytes = bytes_copy(spec->data, spec->len);
    op->digest = *cache_key;
    op->adopt = adopt;
    post(ledger, op);
}

void ledger_move(struct ledger *ledger, uint64_t job, uint64_t state, uint64_t attempt,
                 ledger_done *done, void *owner)
{
    struct ledger_op *op = new_op(LEDGER_MOVE, job, done, owner);

    op->state = state;
    op->attempt = attempt;
    post(ledger, op);
}

void ledger_finish(struct ledger *ledger, const struct ledger_end *end, ledger_done *done,
                   void *owner)
{
    struct ledger_op *op = new_op(LEDGER_FINISH, end->job, done, owner);

    op->state = end->state;
    op->attempt = end->attempt;
    op->reason = end->reason ? xstrdup(end->reason) : NULL;
    op->cause = end->cause;
    if (end->result) {
        op->bytes = bytes_copy(end->result->data, end->result->len);
    }
    if (end->cache_key) {
        op->digest = *end->cache_key;
        op->cap_s = end->cap_s;
    }
    post(ledger, op);
}

static void post_ids(struct ledger *ledger, struct ledger_op *op, const uint64_t *ids, size_t count)
{
    op->ids = count > 0 ? xmemdup(ids, count * sizeof(*ids)) : NULL;
    op->id_count = count;
    post(ledger, op);
}

void ledger_forget(struct ledger *ledger, const uint64_t *jobs, size_t count, ledger_done *done,
                   void *owner)
{
    post_ids(ledger, new_op(LEDGER_FORGET, 0, done, owner), jobs, count);
}

void ledger_read_results(struct ledger *ledger, const uint64_t *jobs, size_t count,
                         ledger_done *done, void *owner)
{
    post_ids(ledger, new_op(LEDGER_READ_RESULTS, 0, done, owner), jobs, count);
}

void ledger_read_compiled(struct ledger *ledger, const struct digest *key, ledger_done *done,
                          void *owner)
{
    struct ledger_op *op = new_op(LEDGER_READ_COMPILED, 0, done, owner);

    op->digest = *key;
    post(ledger, op);
}

void ledger_keep_compiled(struct ledger *ledger, const struct digest *key,
                          const struct bytes *compiled, ledger_done *done, void *owner)
{
    struct ledger_op *op = new_op(LEDGER_KEEP_COMPILED, 0, done, owner);

    op->digest = *key;
    op->bytes = bytes_copy(compiled->data, compiled->len);
    post(ledger, op);
}

void ledger_drop_compiled(struct ledger *ledger, const struct digest *key)
{
    struct ledger_op *op = new_op(LEDGER_DROP_COMPILED, 0, NULL, NULL);

    op->digest = *key;
    post(ledger, op);
}

void ledger_keep_account(struct ledger *ledger, const struct account *account, ledger_done *done,
                         void *owner)
{
    struct ledger_op *op = new_op(LEDGER_KEEP_ACCOUNT, 0, done, owner);

    op->key = xstrdup(account->tenant ? account->tenant->name : account->name);
    op->search = xstrdup(account->tenant ? account->name : "");
    op->account = (struct ledger_account){
        .tenant = op->key,
        .search = op->search,
        .weight = account->weight,
        .limit_s = account->limit_s,
        .per_hour_s = account->per_hour_s,
        .used_s = account->used_s,
        .tokens_s = account->tokens_s,
        .at_s = op->now_s,
    };
    post(ledger, op);
}

static struct ledger_op *new_order(enum ledger_op_kind op_kind, const char *device,
                                   enum ledger_order_kind kind, ledger_done *done, void *owner)
{
    struct ledger_op *op = new_op(op_kind, 0, done, owner);

    op->key = xstrdup(device);
    op->state = kind;
    return op;
}

void ledger_order(struct ledger *ledger, const char *device, enum ledger_order_kind kind,
                  const char *reason, ledger_done *done, void *owner)
{
    struct ledger_op *op = new_order(LEDGER_ORDER, device, kind, done, owner);

    op->reason = reason ? xstrdup(reason) : NULL;
    post(ledger, op);
}

void ledger_drop_order(struct ledger *ledger, const char *device, enum ledger_order_kind kind,
                       ledger_done *done, void *owner)
{
    post(ledger, new_order(LEDGER_DROP_ORDER, device, kind, done, owner));
}

void ledger_barrier(struct ledger *ledger, ledger_done *done, void *owner)
{
    post(ledger, new_op(LEDGER_BARRIER, 0, done, owner));
}
