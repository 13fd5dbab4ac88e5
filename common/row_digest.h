// The SQL function row_digest(VALUE, …): the SHA-256 of its arguments, by which a row of a SQLite
// table says that it is as it was written. SQLite itself sees damage of a file's structure, but not
// a bit that has changed within a value. The ledger and run files store the digest in a column of
// its own, over the table's name, the row's key and everything that the row is believed in; a row
// that was moved under another key does not match either. Each connection registers the function.
#ifndef COMMON_ROW_DIGEST_H
#define COMMON_ROW_DIGEST_H

#include "common/err.h"

struct sqlite3;

// Adds row_digest to a connection. Its value is a blob of DIGEST_LEN bytes. An argument counts with
// its type and its length, so that NULL, '' and x'' differ, and so do 1 and 1.0. ERR_SYSTEM when
// there is no memory.
MUST_CHECK int row_digest_register(struct sqlite3 *db, struct err *err);

#endif
