// Reads and writes the events and blobs of a run file. client/run/run_file.c creates and opens the
// file.
//
// In builds with -DKCAST_FAULTS the environment variable KCAST_DIE_AT makes the process send itself
// a signal. `event:N` kills it just after event N has become durable, `before:N` just before that.
// `interrupt:N` and `pause:N` send SIGINT and SIGSTOP after event N. The tests try every N.
#include "client/run/run.h"

#include "client/run/run_file_private.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef KCAST_FAULTS
#include <signal.h>
#include <stdio.h>
#endif

#define RUN_BODY_MAX ((size_t)16 << 20) // bytes of one packed event

const struct message *run_event_message(uint64_t kind)
{
    switch (kind) {
#define X(number, id, message, text)                                                               \
    case number:                                                                                   \
        return &message##_message;
        RUN_EVENTS(X)
#undef X
    default:
        return NULL;
    }
}

const char *run_event_name(uint64_t kind)
{
    switch (kind) {
#define X(number, id, message, text)                                                               \
    case number:                                                                                   \
        return &(#message)[sizeof("run_") - 1];
        RUN_EVENTS(X)
#undef X
    default:
        return "unknown";
    }
}

static int prepare(struct run *run, sqlite3_stmt **statement, const char *sql, struct err *err)
{
    if (*statement) {
        sqlite3_reset(*statement);
        return 0;
    }
    if (sqlite3_prepare_v3(run->db, sql, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL) !=
        SQLITE_OK) {
        return run_fail(run, "preparing a statement", err);
    }
    return 0;
}

// Carries out KCAST_DIE_AT, in test builds only. Events from + 1 … to have just become durable, or
// are about to.
static void maybe_die(bool durable, uint64_t from, uint64_t to)
{
#ifdef KCAST_FAULTS
    static const struct {
        const char *word;
        bool durable;
        int signal;
    } faults[] = {{"event", true, SIGKILL},
                  {"before", false, SIGKILL},
                  {"interrupt", true, SIGINT},
                  {"pause", true, SIGSTOP}};
    const char *wish = getenv("KCAST_DIE_AT");
    char word[16];
    unsigned long long number = 0;
    if (!wish || sscanf(wish, "%15[a-z]:%llu", word, &number) != 2 || number <= from ||
        number > to) {
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        if (strcmp(word, faults[i].word) == 0 && durable == faults[i].durable) {
            raise(faults[i].signal);
        }
    }
#else
    (void)durable;
    (void)from;
    (void)to;
#endif
}

int run_begin(struct run *run, struct err *err)
{
    int rc = run_execute(run, "BEGIN IMMEDIATE", "beginning a record", err);
    run->in_transaction = rc == 0;
    return rc;
}

int run_commit(struct run *run, struct err *err)
{
    maybe_die(false, run->last_committed, run->last);
    int rc = run_execute(run, "COMMIT", "recording", err);
    if (rc != 0) {
        run_rollback(run);
        return rc;
    }
    run->in_transaction = false;
    maybe_die(true, run->last_committed, run->last);
    run->last_committed = run->last;
    return 0;
}

void run_rollback(struct run *run)
{
    if (run->in_transaction) {
        // Some failures, such as a full disk, have rolled the transaction back already. This
        // statement then fails without consequence.
        sqlite3_exec(run->db, "ROLLBACK", NULL, NULL, NULL);
        run->in_transaction = false;
        run->last = run->last_committed;
    }
}

// Inserts a row inside the open transaction.
static int insert_event(struct run *run, enum run_event_kind kind, const struct strbuf *packed,
                        struct err *err)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int rc = prepare(run, &run->append,
                     "INSERT INTO event (sequence, at, kind, body, digest) VALUES (?1, ?2, ?3, ?4,"
                     " row_digest('event', ?1, ?2, ?3, ?4))",
                     err);
    if (rc != 0) {
        return rc;
    }
    sqlite3_bind_int64(run->append, 1, (sqlite3_int64)run->last + 1);
    sqlite3_bind_double(run->append, 2, (double)now.tv_sec + (double)now.tv_nsec * 1e-9);
    sqlite3_bind_int64(run->append, 3, (sqlite3_int64)kind);
    sqlite3_bind_blob64(run->append, 4, packed->data ? packed->data : "", packed->len,
                        SQLITE_STATIC);
    if (sqlite3_step(run->append) != SQLITE_DONE) {
        rc = run_fail(run, "recording", err);
    } else {
        run->last++;
    }
    sqlite3_reset(run->append);
    sqlite3_clear_bindings(run->append);
    return rc;
}

int run_append(struct run *run, enum run_event_kind kind, const void *body, uint64_t *ret_sequence,
               struct err *err)
{
    const struct message *message = run_event_message(kind);
    struct strbuf packed;
    strbuf_init(&packed, RUN_BODY_MAX);
    bool own = !run->in_transaction;
    int rc = message_pack(message, body, &packed, err);
    if (rc != 0) {
        goto out;
    }
    if (packed.truncated) {
        rc = err_set(err, ERR_LIMIT, "%s: an event `%s` is larger than %zu bytes", run->path,
                     run_event_name(kind), RUN_BODY_MAX);
    }
    if (rc != 0) {
        goto out;
    }
    if (own) {
        rc = run_begin(run, err);
    }
    if (rc != 0) {
        goto out;
    }
    rc = insert_event(run, kind, &packed, err);
out:
    if (own && run->in_transaction) {
        if (rc == 0) {
            rc = run_commit(run, err);
        } else {
            run_rollback(run);
        }
    }
    if (rc == 0 && ret_sequence) {
        *ret_sequence = run->last;
    }
    strbuf_release(&packed);
    return rc;
}

// Decodes the current row of statement and hands it to visit.
static int visit_row(struct run *run, sqlite3_stmt *statement,
                     int (*visit)(void *owner, struct run_event *event, struct err *err),
                     void *owner, struct err *err)
{
    struct run_event event = {
        .sequence = (uint64_t)sqlite3_column_int64(statement, 0),
        .at = sqlite3_column_double(statement, 1),
        .kind = (enum run_event_kind)sqlite3_column_int64(statement, 2),
        .message = run_event_message((uint64_t)sqlite3_column_int64(statement, 2)),
    };
    unsigned long long sequence = event.sequence;
    if (sqlite3_column_int(statement, 4) == 0) {
        return run_damaged(run, event.sequence, err);
    }
    if (!event.message) {
        return err_set(err, ERR_CORRUPT, "%s: event %llu is of an unknown kind", run->path,
                       sequence);
    }
    event.body = xcalloc(1, event.message->size);
    const void *data = sqlite3_column_blob(statement, 3);
    int rc = message_read(event.message, event.body, data,
                          (size_t)sqlite3_column_bytes(statement, 3), err);
    if (rc != 0) {
        if (err) {
            err->code = ERR_CORRUPT; // the bytes came from a disk, not from the network
        }
        rc = ERR_CORRUPT;
        err_wrap(err, "%s: event %llu", run->path, sequence);
    } else {
        rc = visit(owner, &event, err);
        if (rc == ERR_CORRUPT) {
            err_wrap(err, "%s", run->path);
        }
        message_clear(event.message, event.body);
    }
    free(event.body);
    return rc;
}

int run_replay(struct run *run, uint64_t after,
               int (*visit)(void *owner, struct run_event *event, struct err *err), void *owner,
               struct err *err)
{
    static const char text[] = "SELECT sequence, at, kind, body, digest IS " RUN_EVENT_DIGEST
                               " FROM event WHERE sequence > ? ORDER BY sequence";
    static const char old_text[] = "SELECT sequence, at, kind, body, 1"
                                   " FROM event WHERE sequence > ? ORDER BY sequence";
    sqlite3_stmt *statement = NULL;
    int rc = prepare(run, &statement, run->has_digests ? text : old_text, err);
    if (rc != 0) {
        return rc;
    }
    sqlite3_bind_int64(statement, 1, (sqlite3_int64)after);
    int outcome = SQLITE_ROW;
    uint64_t expected = after + 1;
    while (rc == 0 && (outcome = sqlite3_step(statement)) == SQLITE_ROW) {
        if ((uint64_t)sqlite3_column_int64(statement, 0) != expected) {
            rc = err_set(err, ERR_CORRUPT, "%s: event %llu is missing", run->path,
                         (unsigned long long)expected);
        } else {
            rc = visit_row(run, statement, visit, owner, err);
            expected++;
        }
    }
    if (rc == 0 && outcome != SQLITE_DONE) {
        rc = run_fail(run, "reading", err);
    }
    sqlite3_finalize(statement);
    return rc;
}

int run_put_blob(struct run *run, const void *data, size_t len, struct digest *ret, struct err *err)
{
    struct digest digest = digest_of(data, len);
    int rc = prepare(run, &run->put,
                     "INSERT INTO blob (digest, data) VALUES (?, ?) ON CONFLICT DO UPDATE"
                     " SET data = excluded.data WHERE data IS NOT excluded.data",
                     err); // which makes a damaged one whole
    if (rc != 0) {
        return rc;
    }
    sqlite3_bind_blob(run->put, 1, digest.byte, DIGEST_LEN, SQLITE_STATIC);
    sqlite3_bind_blob64(run->put, 2, len == 0 ? "" : data, len, SQLITE_STATIC);
    if (sqlite3_step(run->put) != SQLITE_DONE) {
        rc = run_fail(run, "recording a source", err);
    }
    sqlite3_reset(run->put);
    sqlite3_clear_bindings(run->put);
    if (rc == 0 && ret) {
        *ret = digest;
    }
    return rc;
}

int run_get_blob(struct run *run, const struct digest *digest, struct bytes *ret, struct err *err)
{
    int rc = prepare(run, &run->get, "SELECT data FROM blob WHERE digest = ?", err);
    if (rc != 0) {
        return rc;
    }
    sqlite3_bind_blob(run->get, 1, digest->byte, DIGEST_LEN, SQLITE_STATIC);
    int outcome = sqlite3_step(run->get);
    char hex[DIGEST_HEX_LEN + 1];
    digest_hex(digest, hex);
    if (outcome == SQLITE_ROW) {
        size_t len = (size_t)sqlite3_column_bytes(run->get, 0);
        const void *data = sqlite3_column_blob(run->get, 0);
        struct digest found = digest_of(data, len);
        if (digest_equal(&found, digest)) {
            *ret = bytes_copy(data, len);
        } else {
            rc = err_set(err, ERR_CORRUPT, "%s: blob %.12s is damaged", run->path, hex);
        }
    } else if (outcome == SQLITE_DONE) {
        rc = err_set(err, ERR_NOT_FOUND, "%s: blob %.12s is missing", run->path, hex);
    } else {
        rc = run_fail(run, "reading a source", err);
    }
    sqlite3_reset(run->get);
    return rc;
}
