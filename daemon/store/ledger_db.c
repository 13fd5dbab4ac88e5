// Design note. A file that is refused is refused before anything is written. The schema's version
// and the application's mark are read first, and then the content is checked. Before all that the
// write-ahead log is looked at: one of another database would be applied, and one without its
// database deleted. Only a small file is
// checked as a whole; damage of a larger one shows when it is used.
#include "daemon/store/ledger_db.h"
#include "common/database/row_digest.h"
#include "common/database/wal.h"
#include "common/log.h"
#include "common/mem.h"
#include "daemon/store/ledger_schema.h"
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define QUICK_CHECK_MAX_BYTES ((off_t)16 << 20)
#define BUSY_MS 2000 // to wait for somebody who looks at the file with sqlite3

static const char *path_of(sqlite3 *db)
{
    const char *path = sqlite3_db_filename(db, "main");

    return path ? path : "ledger";
}

int ledger_db_failed(sqlite3 *db, struct err *err)
{
    int rc = sqlite3_errcode(db);
    enum err_code kind = ERR_SYSTEM;

    if (rc == SQLITE_FULL) {
        kind = ERR_NO_SPACE;
    } else if (rc == SQLITE_CORRUPT || rc == SQLITE_NOTADB) {
        kind = ERR_CORRUPT;
    } else if (rc == SQLITE_IOERR && sqlite3_system_errno(db) != 0) {
        return err_set_errno(err, ERR_SYSTEM, sqlite3_system_errno(db), "%s: %s", path_of(db),
                             sqlite3_errmsg(db));
    }
    return err_set(err, kind, "%s: %s", path_of(db), sqlite3_errmsg(db));
}

// Runs a statement that returns no rows.
static int run_text(sqlite3 *db, const char *text, struct err *err)
{
    return sqlite3_exec(db, text, NULL, NULL, NULL) == SQLITE_OK ? 0 : ledger_db_failed(db, err);
}

int ledger_db_number(struct sqlite3 *db, const char *text, int64_t *ret, struct err *err)
{
    sqlite3_stmt *statement = NULL;
    int rc = 0;

    if (sqlite3_prepare_v2(db, text, -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_ROW) {
        rc = ledger_db_failed(db, err);
    } else {
        *ret = sqlite3_column_int64(statement, 0);
    }
    (void)sqlite3_finalize(statement);
    return rc;
}

static int check_content(sqlite3 *db, struct err *err)
{
    struct stat info;

    if (stat(path_of(db), &info) == 0 && info.st_size > QUICK_CHECK_MAX_BYTES) {
        return 0;
    }
    sqlite3_stmt *statement = NULL;
    const char *text;
    int rc = 0;
    if (sqlite3_prepare_v2(db, "PRAGMA quick_check(1)", -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_ROW) {
        rc = ledger_db_failed(db, err);
    } else {
        text = (const char *)sqlite3_column_text(statement, 0);
        if (!text || strcmp(text, "ok") != 0) {
            rc = err_set(err, ERR_CORRUPT, "%s: damaged (%s)", path_of(db), text ? text : "?");
        }
    }
    (void)sqlite3_finalize(statement);
    return rc;
}

// Checks that the file is a ledger, is not damaged and was not written by a newer kcastd. Changes
// nothing. *ret_version is the version of its schema.
static int check_file(sqlite3 *db, int64_t *ret_version, struct err *err)
{
    int rc = ledger_db_number(db, "PRAGMA user_version", ret_version, err);
    if (rc != 0) {
        return rc;
    }
    int64_t application = 0;
    rc = ledger_db_number(db, "PRAGMA application_id", &application, err);
    if (rc != 0) {
        return rc;
    }
    int64_t tables = 0;
    rc = ledger_db_number(db, "SELECT count(*) FROM sqlite_master", &tables, err);
    if (rc != 0) {
        return rc;
    }
    if (tables > 0 && application != LEDGER_APPLICATION_ID) {
        return err_set(err, ERR_CORRUPT, "%s: a database, but not a ledger of kcastd", path_of(db));
    }
    if (*ret_version > (int64_t)ledger_migration_count) {
        return err_set(err, ERR_VERSION,
                       "%s: written by a newer kcastd (schema %lld, this one knows %zu)",
                       path_of(db), (long long)*ret_version, ledger_migration_count);
    }
    return check_content(db, err);
}

// Runs several statements, up to the first that fails. NULL is no statement.
static int run_texts(sqlite3 *db, const char *const *texts, size_t count, struct err *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < count; i++) {
        rc = texts[i] ? run_text(db, texts[i], err) : 0;
    }
    return rc;
}

static int migrate(sqlite3 *db, int64_t version, struct err *err)
{
    for (size_t i = (size_t)version; i < ledger_migration_count; i++) {
        char *mark = xasprintf("PRAGMA user_version = %zu", i + 1);
        const char *const texts[] = {"BEGIN IMMEDIATE", ledger_migration[i], mark, "COMMIT"};
        int rc = run_texts(db, texts, ARRAY_LEN(texts), err);

        free(mark);
        if (rc != 0) {
            (void)run_text(db, "ROLLBACK", NULL);
            return err_wrap(err, "migration %zu", i + 1);
        }
    }
    return 0;
}

static int set_up(sqlite3 *db, uint64_t page_max, struct err *err)
{
    int64_t version = 0;
    int rc = check_file(db, &version, err);

    if (rc != 0) {
        return rc;
    }
    char *identity = wal_identity();
    char *mark = xasprintf("PRAGMA application_id = %d; %s", LEDGER_APPLICATION_ID, identity);
    char *limit = xasprintf("PRAGMA max_page_count = %llu", (unsigned long long)page_max);
    const char *const texts[] = {version == 0 ? mark : NULL, "PRAGMA journal_mode = WAL",
                                 "PRAGMA synchronous = FULL"};
    rc = run_texts(db, texts, ARRAY_LEN(texts), err);
    if (rc == 0) {
        rc = migrate(db, version, err);
    }
    if (rc == 0 && page_max > 0) {
        rc = run_text(db, limit, err);
    }
    free(limit);
    free(mark);
    free(identity);
    return rc;
}

// Looks at the write-ahead log before SQLite does, which says nothing of what it ignores.
static int check_log(const char *path, struct err *err)
{
    struct wal_report report;
    int rc = wal_examine(&report, path, err);

    if (rc == 0 && report.state == WAL_FOREIGN) {
        rc = err_set(err, ERR_CORRUPT, "%s", report.text);
    } else if (rc == 0 && report.state == WAL_DAMAGED) {
        log_event(LOG_ERROR, "ledger-log-damaged commits=%llu lost=%llu reason=\"%s\"",
                  (unsigned long long)report.commits, (unsigned long long)report.lost_commits,
                  report.text);
    }
    return rc;
}

int ledger_db_open(struct sqlite3 **ret, const char *path, uint64_t page_max, struct err *err)
{
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    sqlite3 *db = NULL;
    int rc = check_log(path, err);

    if (rc != 0) {
        return rc;
    }
    if (sqlite3_open_v2(path, &db, flags, NULL) != SQLITE_OK) {
        rc = db ? ledger_db_failed(db, err) : err_set(err, ERR_SYSTEM, "%s: no memory", path);
    } else {
        (void)sqlite3_busy_timeout(db, BUSY_MS);
        rc = row_digest_register(db, err);
        rc = rc == 0 ? set_up(db, page_max, err) : rc;
    }
    if (rc != 0) {
        (void)sqlite3_close(db);
        return rc;
    }
    *ret = db;
    return 0;
}
