// An independent look at a SQLite database's write-ahead log, before SQLite opens the database.
// SQLite uses the frames of the log up to the first one that does not verify and silently ignores
// what follows, which a crash in the middle of a write makes necessary. It ignores committed work
// in the same way when a bit of the log has changed, and applies the log of another database. Here
// it is found out which of these it will be. The format is that of sqlite.org/fileformat2.html.
#ifndef COMMON_DATABASE_WAL_H
#define COMMON_DATABASE_WAL_H

#include "common/err.h"
#include <stddef.h>
#include <stdint.h>

enum wal_state {
    WAL_NONE,    // there is no log, or nothing in it
    WAL_WHOLE,   // everything that was committed will be used
    WAL_DAMAGED, // committed frames will be ignored
    WAL_FOREIGN, // it is another database's, or its own database is not there
};

struct wal_report {
    enum wal_state state;
    uint64_t frames;       // of the log's newest generation, older ones left out
    uint64_t used;         // of these, what SQLite will use: verified, up to the last commit
    uint64_t commits;      // transactions that end within the used frames
    uint64_t lost_commits; // transactions that end within the others, as far as that can be told
    char text[512];        // a sentence about DAMAGED and FOREIGN that names the file; else empty
};

// What is read of the database and of its log, for wal_examine_bytes.
struct wal_bytes {
    const unsigned char *database; // the beginning of the database: at least 100 bytes, or none
    size_t database_len;
    const unsigned char *log; // all of the log
    size_t log_len;
};

// Returns SQL that gives a database that is new, and has no log yet, a number of its own, by which
// its log is told from those of others of its kind. The caller frees it.
char *wal_identity(void);
// Looks at the log of the database at this path, "<path>-wal". ERR_SYSTEM when one of the files is
// there and cannot be read.
MUST_CHECK int wal_examine(struct wal_report *ret, const char *path, struct err *err);
// The same for files in memory; path is for the sentence.
void wal_examine_bytes(struct wal_report *ret, const char *path, const struct wal_bytes *bytes);

#endif
