// The two caches in the ledger's file: results by what was measured, and compilations by what was
// compiled. Each keeps a limited number of entries; the one that was used or written longest ago is
// deleted first. Called by ledger_sql.c alone, on the ledger's thread. Begins and ends no
// transactions.
#ifndef DAEMON_STORE_LEDGER_CACHE_H
#define DAEMON_STORE_LEDGER_CACHE_H

#include "common/digest.h"
#include "common/err.h"
#include "common/mem.h"
#include <stdbool.h>
#include <stdint.h>

struct ledger_damage;
struct ledger_caches;

enum ledger_cache_kind { LEDGER_CACHE_RESULT, LEDGER_CACHE_COMPILED, LEDGER_CACHE_COUNT };

// damage has the connection, with the newest schema, and outlives the caches. On failure (as
// ledger_db_failed) nothing is left behind.
MUST_CHECK int ledger_caches_open(struct ledger_caches **ret, struct ledger_damage *damage,
                                  struct err *err);
void ledger_caches_close(struct ledger_caches *caches); // NULL is fine
// From its next new entry on each cache has at most this many entries; 0: any number. A new entry
// pushes at most a thousand old ones out, so that no transaction takes long after the limit was
// lowered.
void ledger_caches_limit(struct ledger_caches *caches, uint64_t entries);
uint64_t ledger_cache_count(const struct ledger_caches *caches, enum ledger_cache_kind kind);

// Begins a batch of operations. write: a transaction has begun, and the uses that were noted since
// the last one are written with it. A use only decides which entry is deleted first, so noted uses
// may be lost when the process ends or the transaction fails.
MUST_CHECK int ledger_caches_begin(struct ledger_caches *caches, bool write, struct err *err);
// Ends the batch. committed: what the batch did stays; otherwise the caches are as they were before
// it.
void ledger_caches_end(struct ledger_caches *caches, bool committed);

// Sets *ret to the value of the entry, empty when there is none; the caller frees it. *ret_cap_s
// (may be NULL) is the cap with which a result was kept. Does not count as a use.
// An entry that is not as it was written is told and deleted, and then there is none.
MUST_CHECK int ledger_cache_find(struct ledger_caches *caches, enum ledger_cache_kind kind,
                                 const struct digest *key, struct bytes *ret, double *ret_cap_s,
                                 struct err *err);
// The entry has been used. In a batch that writes this is written at once, otherwise with the next
// such batch.
MUST_CHECK int ledger_cache_use(struct ledger_caches *caches, enum ledger_cache_kind kind,
                                const struct digest *key, struct err *err);
// Adds the entry or replaces it, and deletes entries that are too many. cap_s is stored for results
// alone.
MUST_CHECK int ledger_cache_keep(struct ledger_caches *caches, enum ledger_cache_kind kind,
                                 const struct digest *key, int64_t now_s, double cap_s,
                                 const struct bytes *value, struct err *err);
MUST_CHECK int ledger_cache_drop(struct ledger_caches *caches, enum ledger_cache_kind kind,
                                 const struct digest *key, struct err *err);

#endif
