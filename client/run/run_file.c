// Creates, opens, checks and closes the database of a run. client/run/run.c reads and writes
// events.
//
// A run is one SQLite database with two tables: `event` (sequence, time, kind, packed message,
// digest of these) and `blob` (SHA-256, bytes). Files of before have no digests of events; they get
// them when they are opened for appending, and are read as they are. While a client drives the run
// the database is in WAL mode with synchronous=FULL, so that a commit is durable and readers do not
// block the writer. A writer that closes the run leaves a single ordinary file behind.
// application_id and user_version identify the format. Both are checked before anything else, and
// another kind of file is never written to.
//
// Two clients must not drive the same run. The writer holds a flock on the database file itself.
// This does not interfere with SQLite's own fcntl locks as long as the writer's descriptor is
// closed after SQLite's: closing any descriptor of a file drops all fcntl locks that the process
// has on it.
#include "client/run/run_file_private.h"

#include "common/database/row_digest.h"
#include "common/database/wal.h"
#include "common/file.h"
#include "common/mem.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define RUN_BUSY_MS 10000 // how long to wait for a lock that a reader holds

static const char schema[] = "CREATE TABLE event (\n"
                             "  sequence INTEGER PRIMARY KEY,\n"
                             "  at REAL NOT NULL,\n"
                             "  kind INTEGER NOT NULL,\n"
                             "  body BLOB NOT NULL,\n"
                             "  digest BLOB\n"
                             ") STRICT;\n"
                             "CREATE TABLE blob (\n"
                             "  digest BLOB PRIMARY KEY NOT NULL,\n"
                             "  data BLOB NOT NULL\n"
                             ") STRICT;\n";

static bool has_log(const struct run *run)
{
    char *log = xasprintf("%s-wal", run->path);
    bool has = file_exists(log);

    free(log);
    return has;
}

int run_fail(const struct run *run, const char *doing, struct err *err)
{
    int rc = sqlite3_errcode(run->db);
    switch (rc & 0xff) {
    case SQLITE_FULL:
        return err_set(err, ERR_NO_SPACE, "%s: the disk is full; what was recorded is kept",
                       run->path);
    case SQLITE_ERROR: // a table or column that our statements name is not there
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
        if ((rc & 0xff) == SQLITE_CANTOPEN && has_log(run)) {
            return err_set(err, ERR_SYSTEM,
                           "%s: to read its write-ahead log, %s-shm has to be made, which cannot "
                           "be done in that folder; copy the run and the log to another",
                           run->path, run->path);
        }
        if (sqlite3_system_errno(run->db) != 0) {
            return err_set_errno(err, ERR_SYSTEM, sqlite3_system_errno(run->db), "%s: %s failed",
                                 run->path, doing);
        }
        return err_set(err, ERR_SYSTEM, "%s: %s failed: %s", run->path, doing,
                       sqlite3_errmsg(run->db));
    }
}

int run_execute(struct run *run, const char *sql, const char *doing, struct err *err)
{
    if (sqlite3_exec(run->db, sql, NULL, NULL, NULL) != SQLITE_OK) {
        return run_fail(run, doing, err);
    }
    return 0;
}

// Reads the first column of the first row of a query.
static int query_u64(struct run *run, const char *sql, uint64_t *ret, struct err *err)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(run->db, sql, -1, &statement, NULL) != SQLITE_OK) {
        return run_fail(run, "reading", err);
    }
    int outcome = sqlite3_step(statement);
    if (outcome == SQLITE_ROW) {
        *ret = (uint64_t)sqlite3_column_int64(statement, 0);
    }
    sqlite3_finalize(statement);
    return outcome == SQLITE_ROW ? 0 : run_fail(run, "reading", err);
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
        // Leaves a single ordinary file. This fails harmlessly while another process reads.
        sqlite3_busy_timeout(run->db, 0);
        sqlite3_exec(run->db, "PRAGMA journal_mode=DELETE", NULL, NULL, NULL);
    }
    sqlite3_close(run->db);
    if (run->lock_fd >= 0) {
        close(run->lock_fd); // after SQLite's own descriptors, see the note at the top
    }
    free(run->warning);
    free(run->path);
    free(run);
}

const char *run_warning(const struct run *run)
{
    return run->warning;
}

uint64_t run_last(const struct run *run)
{
    return run->last;
}

// Looks at the write-ahead log before SQLite does, which says nothing of what it ignores.
static int check_log(struct run *run, struct err *err)
{
    struct wal_report report;
    int rc = wal_examine(&report, run->path, err);

    if (rc == 0 && report.state == WAL_FOREIGN) {
        rc = err_set(err, ERR_CORRUPT, "%s", report.text);
    } else if (rc == 0 && report.state == WAL_DAMAGED) {
        run->warning = xstrdup(report.text);
    }
    return rc;
}

// Opens the database and, for writers, takes the lock first. flags are those of open(2).
static int open_file(struct run **ret, const char *path, bool write, int flags, struct err *err)
{
    struct run *run = xcalloc(1, sizeof(*run));
    run->path = xstrdup(path);
    run->lock_fd = -1;
    struct stat status;
    int rc = check_log(run, err);
    if (rc != 0) {
        goto out;
    }
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
                      : run_fail(run, "opening", err);
        goto out;
    }
    sqlite3_extended_result_codes(run->db, 1);
    sqlite3_busy_timeout(run->db, RUN_BUSY_MS);
    rc = row_digest_register(run->db, err);
    if (rc != 0) {
        goto out;
    }
    run->has_digests = true; // check_format says otherwise of an old file
    *ret = run;
    run = NULL;
out:
    run_close(run);
    return rc;
}

// Begins a log. Setting the version, although it is as it was, puts the first page into it, which
// says whose log it is.
static int begin_log(struct run *run, const char *doing, struct err *err)
{
    char *sql =
        xasprintf("PRAGMA synchronous=FULL; PRAGMA journal_mode=WAL; PRAGMA user_version=%d",
                  run->has_digests ? RUN_FORMAT : RUN_FORMAT_OLD);
    int rc = run_execute(run, sql, doing, err);

    free(sql);
    return rc;
}

int run_create(struct run **ret, const char *path, struct err *err)
{
    struct run *run = NULL;
    int rc = open_file(&run, path, true, O_CREAT | O_EXCL, err);
    if (rc != 0) {
        return rc;
    }
    char *identity = wal_identity();
    char *sql =
        xasprintf("BEGIN IMMEDIATE; PRAGMA application_id=%d; PRAGMA user_version=%d; %s %s COMMIT",
                  RUN_APPLICATION_ID, RUN_FORMAT, schema, identity);
    rc = run_execute(run, sql, "creating", err);
    if (rc == 0) {
        rc = begin_log(run, "creating", err);
    }
    if (rc != 0) {
        run_close(run);
        (void)unlink(path); // O_EXCL created it above, and nothing is recorded in it
    } else {
        *ret = run;
    }
    free(sql);
    free(identity);
    return rc;
}

int run_create_in_memory(struct run **ret, struct err *err)
{
    struct run *run = xcalloc(1, sizeof(*run));
    run->path = xstrdup("a run in memory");
    run->lock_fd = -1;
    int rc = sqlite3_open(":memory:", &run->db) == SQLITE_OK
                 ? row_digest_register(run->db, err)
                 : err_set(err, ERR_SYSTEM, "no memory for a run");
    run->has_digests = true;
    rc = rc == 0 ? run_execute(run, schema, "creating", err) : rc;
    if (rc != 0) {
        run_close(run);
        return rc;
    }
    *ret = run;
    return 0;
}

// Checks the format that the file says it has and, when events are to be appended, that none is
// missing.
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
    if (format != RUN_FORMAT && format != RUN_FORMAT_OLD) {
        return err_set(err, ERR_VERSION, "%s has format %llu, this kcast knows format %d",
                       run->path, (unsigned long long)format, RUN_FORMAT);
    }
    run->has_digests = format == RUN_FORMAT;
    rc = query_u64(run, "SELECT coalesce(max(sequence), 0) FROM event", &run->last, err);
    if (rc != 0) {
        return rc;
    }
    run->last_committed = run->last;
    rc = query_u64(run, "SELECT count(*) FROM event", &count, err);
    if (rc != 0) {
        return rc;
    }
    if (run->lock_fd >= 0 && count != run->last) {
        return err_set(err, ERR_CORRUPT, "%s: %llu of %llu events are missing", run->path,
                       (unsigned long long)(run->last - count), (unsigned long long)run->last);
    }
    return 0;
}

// Gives the events of a file of before their digests.
static int add_digests(struct run *run, struct err *err)
{
    char *sql = xasprintf("ALTER TABLE event ADD COLUMN digest BLOB;"
                          "UPDATE event SET digest = " RUN_EVENT_DIGEST ";"
                          "PRAGMA user_version=%d",
                          RUN_FORMAT);
    int rc = run_begin(run, err);

    if (rc == 0) {
        rc = run_execute(run, sql, "adding digests", err);
    }
    if (rc == 0) {
        rc = run_commit(run, err);
    }
    free(sql);
    run->has_digests = rc == 0;
    return rc; // run_close takes back what is not committed
}

int run_damaged(const struct run *run, uint64_t sequence, struct err *err)
{
    return err_set(err, ERR_CORRUPT,
                   "%s: event %llu is damaged: it is not as it was written, so it is not used",
                   run->path, (unsigned long long)sequence);
}

// Checks that all events are as they were written.
static int check_events(struct run *run, struct err *err)
{
    uint64_t first = 0;

    if (!run->has_digests) {
        return 0;
    }
    int rc = query_u64(run,
                       "SELECT coalesce(min(sequence), 0) FROM event"
                       " WHERE digest IS NOT " RUN_EVENT_DIGEST,
                       &first, err);
    return rc == 0 && first > 0 ? run_damaged(run, first, err) : rc;
}

int run_need_events(const struct run *run, struct err *err)
{
    return run->last > 0
               ? 0
               : err_set(err, ERR_CORRUPT,
                         "%s holds no events; if it was copied while its search ran, or after that "
                         "was killed, copy %s-wal as well",
                         run->path, run->path);
}

int run_open(struct run **ret, const char *path, struct err *err)
{
    struct run *run = NULL;
    // A reader looks first, because a file that is damaged or of another version must not be
    // changed, not even its journal mode.
    int rc = run_open_read(&run, path, err);
    rc = rc == 0 ? check_events(run, err) : rc;
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
    rc = begin_log(run, "opening", err);
    if (rc == 0 && !run->has_digests) {
        rc = add_digests(run, err);
    }
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
