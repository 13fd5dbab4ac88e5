// The two caches in the ledger's file: results by what was measured, compilations by what was
// compiled. Each keeps at most as many entries as it is told, and the one that was used, written or
// written anew longest ago goes first. Belongs to ledger_sql.c, which calls it on the ledger's
// thread and owns the transactions; nobody else includes it.
#ifndef DAEMON_STORE_LEDGER_CACHE_H
#define DAEMON_STORE_LEDGER_CACHE_H

#include "common/digest.h"
#include "common/err.h"
#include "common/mem.h"
#include <stdbool.h>
#include <stdint.h>

struct sqlite3;
struct ledger_caches;

enum ledger_cache_kind { LEDGER_CACHE_RESULT, LEDGER_CACHE_COMPILED, LEDGER_CACHE_COUNT };

// db has the newest schema and outlives the caches. On failure nothing is left behind.
MUST_CHECK int ledger_caches_open(struct ledger_caches **ret, struct sqlite3 *db, struct err *err);
void ledger_caches_close(struct ledger_caches *caches); // NULL is fine
// Each cache has at most so many entries from its next new one on; 0: any number. A new entry has
// at most a thousand old ones go, so that no transaction takes long after the limit was lowered.
void ledger_caches_limit(struct ledger_caches *caches, uint64_t entries);
uint64_t ledger_cache_count(const struct ledger_caches *caches, enum ledger_cache_kind kind);

// Around the operations of one batch. write: a transaction has begun, and the uses that were noted
// since the last one are written with it. Uses are order alone, so those that are noted when the
// process ends, or whose transaction fails, are lost.
MUST_CHECK int ledger_caches_begin(struct ledger_caches *caches, bool write, struct err *err);
// committed: what the batch did stays; else the caches are as they were before it.
void ledger_caches_end(struct ledger_caches *caches, bool committed);

// *ret: the entry's value, empty when there is none; the caller frees it. *ret_cap_s (may be NULL)
// is what a result was kept with. Does not count as a use.
MUST_CHECK int ledger_cache_find(struct ledger_caches *caches, enum ledger_cache_kind kind,
                                 const struct digest *key, struct bytes *ret, double *ret_cap_s,
                                 struct err *err);
// The entry was of use now. In a batch that writes it is written at once, else with the next one.
MUST_CHECK int ledger_cache_use(struct ledger_caches *caches, enum ledger_cache_kind kind,
                                const struct digest *key, struct err *err);
// Adds the entry or writes it anew, and deletes those that are too many. cap_s counts for results.
MUST_CHECK int ledger_cache_keep(struct ledger_caches *caches, enum ledger_cache_kind kind,
                                 const struct digest *key, int64_t now_s, double cap_s,
                                 const struct bytes *value, struct err *err);
MUST_CHECK int ledger_cache_drop(struct ledger_caches *caches, enum ledger_cache_kind kind,
                                 const struct digest *key, struct err *err);

#endif
