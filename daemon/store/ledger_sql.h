// The ledger's SQL: prepared statements, and how batches of operations are carried out with them.
// Called by ledger.c alone, by one thread at a time.
#ifndef DAEMON_STORE_LEDGER_SQL_H
#define DAEMON_STORE_LEDGER_SQL_H

#include "daemon/store/ledger.h"
#include <stdbool.h>

enum ledger_op_kind {
    LEDGER_SUBMIT,
    LEDGER_MOVE,
    LEDGER_FINISH,
    LEDGER_FORGET,
    LEDGER_READ_RESULTS,
    LEDGER_READ_CACHED,
    LEDGER_READ_COMPILED,
    LEDGER_KEEP_COMPILED,
    LEDGER_DROP_COMPILED,
    LEDGER_KEEP_ACCOUNT,
    LEDGER_ORDER,
    LEDGER_DROP_ORDER,
    LEDGER_BARRIER,
};

// One operation, with copies of everything it needs. The kind decides which fields are used: they
// are the arguments of the function of ledger.h that posts it.
struct ledger_op {
    struct ledger_op *next;
    enum ledger_op_kind kind;
    ledger_done *done;
    void *owner;
    int64_t now_s;  // wall clock when it was posted
    uint64_t id;    // number of the job
    uint64_t state; // state of the job, or kind of the order
    uint64_t attempt;
    uint64_t priority;
    uint64_t wanted_class;
    struct ledger_account account; // its texts are the fields key and search below
    double cap_s;
    char *tenant;
    char *search;
    char *key; // key of the job, or device of the order
    char *reason;
    uint64_t cause;       // of the job's end
    struct bytes bytes;   // spec, result or compiled
    struct digest digest; // key in a cache; zero: none
    ledger_adopt *adopt;
    uint64_t *ids;
    size_t id_count;
    // The answer.
    struct err *error; // NULL: it was carried out and committed
    struct bytes *answer;
    size_t answer_count;
};

struct ledger_sql;

const char *ledger_op_name(enum ledger_op_kind kind);
bool ledger_op_writes(enum ledger_op_kind kind); // whether it needs a transaction
// Empties the answer.
void ledger_op_reset(struct ledger_op *op);

MUST_CHECK int ledger_sql_open(struct ledger_sql **ret, const char *path, uint64_t page_max,
                               struct err *err);
void ledger_sql_close(struct ledger_sql *sql);                   // NULL is fine
void ledger_sql_limit(struct ledger_sql *sql, uint64_t entries); // as ledger_limit
// Sets *ret to the number for the next new job, which is above every number ever used.
MUST_CHECK int ledger_sql_next_job(struct ledger_sql *sql, uint64_t *ret, struct err *err);
uint64_t ledger_sql_results(const struct ledger_sql *sql); // committed entries of the result cache
uint64_t ledger_sql_damaged(const struct ledger_sql *sql); // damaged rows that were found so far
MUST_CHECK int ledger_sql_load(struct ledger_sql *sql,
                               int (*visit)(void *owner, const struct ledger_job *job,
                                            struct err *err),
                               void *owner, struct err *err);
// Deletes accounts of searches that were written before forget_before_s, and visits the others.
MUST_CHECK int ledger_sql_load_accounts(struct ledger_sql *sql, int64_t forget_before_s,
                                        void (*visit)(void *owner,
                                                      const struct ledger_account *row),
                                        void *owner, struct err *err);
MUST_CHECK int ledger_sql_load_orders(struct ledger_sql *sql,
                                      void (*visit)(void *owner, const char *device, uint64_t kind,
                                                    const char *reason),
                                      void *owner, struct err *err);
// Carries out a list of operations and commits. Each operation gets its answer.
void ledger_sql_run(struct ledger_sql *sql, struct ledger_op *ops);

#endif
