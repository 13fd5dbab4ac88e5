// The run file.
//
// One SQLite database with two tables: `event` (sequence, time, kind, packed message) and `blob`
// (SHA-256, bytes). It is in WAL mode with synchronous=FULL while a client drives the run, so that
// a commit is durable and readers are not in the way; a writer that closes it leaves a single
// ordinary file behind. application_id and user_version tell what it is: both are looked at before
// anything else, and a file that is something else is never written to.
//
// Two clients must not drive one run. The writer holds a flock on the database file itself, which
// does not interfere with SQLite's own (fcntl) locks as long as its descriptor is closed after
// SQLite's: closing any descriptor of a file drops all fcntl locks that the process has on it.
//
// With -DKCAST_FAULTS the environment variable KCAST_DIE_AT sends the process a signal: `event:N`
// kills it just after event N is durable, `before:N` when it is about to become so; `interrupt:N`
// and `pause:N` send SIGINT and SIGSTOP after event N. The tests go through every N.
#include "client/run/run.h"

#include "common/mem.h"
#include "common/strbuf.h"
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#ifdef KCAST_FAULTS
#include <signal.h>
#include <stdio.h>
#endif

#define RUN_BODY_MAX ((size_t)16 << 20) // bytes of one packed event
#define RUN_BUSY_MS 10000               // how long a reader's checkpoint may keep us waiting

struct run {
    sqlite3 *db;
    char *path;
    int lock_fd;             // holds the flock; -1 for readers
    bool in_transaction;     // between run_begin and run_commit
    uint64_t last;           // sequence of the last event appended
    uint64_t last_committed; // the same, before the open transaction
    sqlite3_stmt *append;    // prepared on first use
    sqlite3_stmt *put;
    sqlite3_stmt *get;
};

static const char schema[] = "CREATE TABLE event (\n"
                             "  sequence INTEGER PRIMARY KEY,\n"
                             "  at REAL NOT NULL,\n"
                             "  kind INTEGER NOT NULL,\n"
                             "  body BLOB NOT NULL\n"
                             ") STRICT;\n"
                             "CREATE TABLE blob (\n"
                             "  digest BLOB PRIMARY KEY NOT NULL,\n"
                             "  data BLOB NOT NULL\n"
                             ") STRICT;\n";

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

// The error for the database's last failure.
static int fail(const struct run *run, const char *doing, struct err *err)
{
    int rc = sqlite3_errcode(run->db);
    switch (rc & 0xff) {
    case SQLITE_FULL:
        return err_set(err, ERR_NO_SPACE, "%s: the disk is full; what was recorded is kept",
                       run->path);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return err_set(err, ERR_CORRUPT, "%s: the file is damaged or no run file (%s)", run->path,
                       sqlite3_errmsg(run->db));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return err_set(err, ERR_BUSY, "%s: another process keeps the file locked", run->path);
    case SQLITE_TOOBIG:
        return err_set(err, ERR_LIMIT, "%s: too large for a run file", run->path);
    default:
        if (sqlite3_system_errno(run->db) != 0) {
            return err_set_errno(err, ERR_SYSTEM, sqlite3_system_errno(run->db), "%s: %s failed",
                                 run->path, doing);
        }
        return err_set(err, ERR_SYSTEM, "%s: %s failed: %s", run->path, doing,
                       sqlite3_errmsg(run->db));
    }
}

static int execute(struct run *run, const char *sql, const char *doing, struct err *err)
{
    if (sqlite3_exec(run->db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        return fail(run, doing, err);
    }
    return 0;
}

// First column of the first row.
static int query_u64(struct run *run, const char *sql, uint64_t *ret, struct err *err)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(run->db, sql, -1, &statement, NULL) != SQLITE_OK) {
        return fail(run, "reading", err);
    }
    int outcome = sqlite3_step(statement);
    if (outcome == SQLITE_ROW) {
        *ret = (uint64_t)sqlite3_column_int64(statement, 0);
    }
    sqlite3_finalize(statement);
    return outcome == SQLITE_ROW ? 0 : fail(run, "reading", err);
}

static int prepare(struct run *run, sqlite3_stmt **statement, const char *sql, struct err *err)
{
    if (*statement) {
        sqlite3_reset(*statement);
        return 0;
    }
    if (sqlite3_prepare_v3(run->db, sql, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL) !=
        SQLITE_OK) {
        return fail(run, "preparing a statement", err);
    }
    return 0;
}

void run_close(struct run *run)
{
    if (!run) {
        return;
    }
    run_rollback(run);
    sqlite3_finalize(run->append);
    sqlite3_finalize(run->put);
    sqlite3_finalize(run->get);
    if (run->db && run->lock_fd >= 0) {
        // Leaves one ordinary file; fails harmlessly while somebody reads.
        sqlite3_busy_timeout(run->db, 0);
        sqlite3_exec(run->db, "PRAGMA journal_mode=DELETE", NULL, NULL, NULL);
    }
    sqlite3_close(run->db);
    if (run->lock_fd >= 0) {
        close(run->lock_fd); // after SQLite's own descriptors, see the note on top
    }
    free(run->path);
    free(run);
}

// Opens path and, for writers, takes the lock. flags are of open(2).
static int open_file(struct run **ret, const char *path, bool write, int flags, struct err *err)
{
    struct run *run = xcalloc(1, sizeof(*run));
    run->path = xstrdup(path);
    run->lock_fd = -1;
    int rc = 0;
    struct stat status;
    if (write) {
        run->lock_fd = open(path, flags | O_RDWR | O_CLOEXEC | O_NOCTTY, 0666);
        if (run->lock_fd < 0) {
            rc = errno == EEXIST ? err_set(err, ERR_CONFLICT,
                                           "%s exists already; choose another file "
                                           "with --run, or go on with `kcast resume %s`",
                                           path, path)
                 : errno == ENOENT && (flags & O_CREAT) == 0
                     ? err_set(err, ERR_NOT_FOUND, "%s: there is no such run file", path)
                     : err_set_errno(err, ERR_SYSTEM, errno, "cannot open %s", path);
            goto out;
        }
        if (flock(run->lock_fd, LOCK_EX | LOCK_NB) != 0) {
            rc = errno == EWOULDBLOCK
                     ? err_set(err, ERR_BUSY, "%s: another kcast is driving this run now", path)
                     : err_set_errno(err, ERR_SYSTEM, errno, "cannot lock %s", path);
            goto out;
        }
    } else if (stat(path, &status) != 0) {
        rc = errno == ENOENT ? err_set(err, ERR_NOT_FOUND, "%s: there is no such run file", path)
                             : err_set_errno(err, ERR_SYSTEM, errno, "cannot open %s", path);
        goto out;
    }
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
        rc = err_set(err, ERR_INVALID, "%s is no regular file, so it is no run file", path);
        goto out;
    }
    if (sqlite3_open_v2(path, &run->db, write ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY,
                        NULL) != SQLITE_OK) {
        rc = !run->db ? err_set(err, ERR_SYSTEM, "%s: out of memory", path)
                      : fail(run, "opening", err);
        goto out;
    }
    sqlite3_extended_result_codes(run->db, 1);
    sqlite3_busy_timeout(run->db, RUN_BUSY_MS);
    *ret = run;
    run = NULL;
out:
    run_close(run);
    return rc;
}

int run_create(struct run **ret, const char *path, struct err *err)
{
    struct run *run = NULL;
    int rc = open_file(&run, path, true, O_CREAT | O_EXCL, err);
    if (rc != 0) {
        return rc;
    }
    char *sql = NULL;
    sql = xasprintf("BEGIN IMMEDIATE; PRAGMA application_id=%d; PRAGMA user_version=%d; %s COMMIT",
                    RUN_APPLICATION_ID, RUN_FORMAT, schema);
    rc = execute(run, sql, "creating", err);
    if (rc == 0) {
        rc = execute(run, "PRAGMA synchronous=FULL; PRAGMA journal_mode=WAL", "creating", err);
    }
    if (rc != 0) {
        run_close(run);
        (void)unlink(path); // made by O_EXCL above, and nothing was recorded in it
    } else {
        *ret = run;
    }
    free(sql);
    return rc;
}

int run_create_in_memory(struct run **ret, struct err *err)
{
    struct run *run = xcalloc(1, sizeof(*run));
    run->path = xstrdup("a run in memory");
    run->lock_fd = -1;
    int rc = 0;
    if (sqlite3_open(":memory:", &run->db) != SQLITE_OK) {
        rc = err_set(err, ERR_SYSTEM, "no memory for a run");
    }
    if (rc == 0) {
        rc = execute(run, schema, "creating", err);
    }
    if (rc != 0) {
        run_close(run);
        return rc;
    }
    *ret = run;
    return 0;
}

// Looks at what the file says it is, then at the numbering of its events.
static int check_format(struct run *run, struct err *err)
{
    uint64_t application = 0, format = 0, count = 0;
    int rc = query_u64(run, "PRAGMA application_id", &application, err);
    if (rc == 0) {
        rc = query_u64(run, "PRAGMA user_version", &format, err);
    }
    if (rc != 0) {
        return rc;
    }
    if (application != RUN_APPLICATION_ID) {
        return err_set(err, ERR_CORRUPT, "%s is no run file of kcast", run->path);
    }
    if (format != RUN_FORMAT) {
        return err_set(err, ERR_VERSION, "%s has format %llu, this kcast knows format %d",
                       run->path, (unsigned long long)format, RUN_FORMAT);
    }
    rc = query_u64(run, "SELECT coalesce(max(sequence), 0) FROM event", &run->last, err);
    if (rc == 0) {
        rc = query_u64(run, "SELECT count(*) FROM event", &count, err);
    }
    if (rc == 0 && count != run->last) {
        rc = err_set(err, ERR_CORRUPT, "%s: %llu of %llu events are missing", run->path,
                     (unsigned long long)(run->last - count), (unsigned long long)run->last);
    }
    run->last_committed = run->last;
    return rc;
}

int run_open(struct run **ret, const char *path, struct err *err)
{
    struct run *run = NULL;
    // Looked at through a reader first: a file of another version must not be touched, not even its
    // journal mode.
    int rc = run_open_read(&run, path, err);
    run_close(run);
    run = NULL;
    if (rc != 0) {
        goto out;
    }
    rc = open_file(&run, path, true, 0, err);
    if (rc != 0) {
        goto out;
    }
    rc = check_format(run, err);
    if (rc != 0) {
        goto out;
    }
    rc = execute(run, "PRAGMA synchronous=FULL; PRAGMA journal_mode=WAL", "opening", err);
    if (rc != 0) {
        goto out;
    }
    *ret = run;
    run = NULL;
out:
    run_close(run);
    return rc;
}

int run_open_read(struct run **ret, const char *path, struct err *err)
{
    struct run *run = NULL;
    int rc = open_file(&run, path, false, 0, err);
    if (rc == 0) {
        rc = check_format(run, err);
    }
    if (rc == 0) {
        *ret = run;
        run = NULL;
    }
    run_close(run);
    return rc;
}

// KCAST_DIE_AT, in test builds only. Events from + 1 … to are about to be durable, or have just
// become so.
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
    int rc = execute(run, "BEGIN IMMEDIATE", "beginning a record", err);
    run->in_transaction = rc == 0;
    return rc;
}

int run_commit(struct run *run, struct err *err)
{
    maybe_die(false, run->last_committed, run->last);
    int rc = execute(run, "COMMIT", "recording", err);
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
        // Some failures (a full disk) have rolled it back already; then this one is an error
        // without consequence.
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
                     "INSERT INTO event (sequence, at, kind, body) VALUES (?, ?, ?, ?)", err);
    if (rc != 0) {
        return rc;
    }
    sqlite3_bind_int64(run->append, 1, (sqlite3_int64)run->last + 1);
    sqlite3_bind_double(run->append, 2, (double)now.tv_sec + (double)now.tv_nsec * 1e-9);
    sqlite3_bind_int64(run->append, 3, (sqlite3_int64)kind);
    sqlite3_bind_blob64(run->append, 4, packed->data ? packed->data : "", packed->len,
                        SQLITE_STATIC);
    if (sqlite3_step(run->append) != SQLITE_DONE) {
        rc = fail(run, "recording", err);
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
            err->code = ERR_CORRUPT; // it came from a disk, not from a peer
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
    sqlite3_stmt *statement = NULL;
    int rc = prepare(
        run, &statement,
        "SELECT sequence, at, kind, body FROM event WHERE sequence > ? ORDER BY sequence", err);
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
        rc = fail(run, "reading", err);
    }
    sqlite3_finalize(statement);
    return rc;
}

int run_put_blob(struct run *run, const void *data, size_t len, struct digest *ret, struct err *err)
{
    struct digest digest = digest_of(data, len);
    int rc = prepare(run, &run->put,
                     "INSERT INTO blob (digest, data) VALUES (?, ?) ON CONFLICT DO NOTHING", err);
    if (rc != 0) {
        return rc;
    }
    sqlite3_bind_blob(run->put, 1, digest.byte, DIGEST_LEN, SQLITE_STATIC);
    sqlite3_bind_blob64(run->put, 2, len == 0 ? "" : data, len, SQLITE_STATIC);
    if (sqlite3_step(run->put) != SQLITE_DONE) {
        rc = fail(run, "recording a source", err);
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
        rc = err_set(err, ERR_CORRUPT, "%s: blob %.12s is missing", run->path, hex);
    } else {
        rc = fail(run, "reading a source", err);
    }
    sqlite3_reset(run->get);
    return rc;
}
