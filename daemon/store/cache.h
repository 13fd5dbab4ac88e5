// The result cache's two questions: which results are about the same thing, and whether a cached
// one answers a job. Pure functions; the ledger stores, and asks the second question on its own
// thread.
#ifndef DAEMON_STORE_CACHE_H
#define DAEMON_STORE_CACHE_H

#include "common/digest.h"
#include "common/err.h"
#include "common/mem.h"
#include "proto/messages.h"
#include <stdbool.h>

// Changes whenever results of the measuring method are no longer comparable with older ones.
#define CACHE_METHOD "kcast-measure-1"
#define CACHE_PRECISION_LOG2 0.0036022 // log2(1.0025): a spec's precision when it gives none
#define CACHE_CAP_S 30.0 // a spec's max_seconds when it gives none and the daemon has no other

// The key: SHA-256 of the method, device class, sandbox on or off, and the spec without what does
// not change the quantity that is measured: anchor_log2, precision_log2 and max_seconds decide when
// sampling stops, fresh whether to look here at all. `repeat` stays: it exists to tell equal specs
// apart.
struct digest cache_key(const struct job_spec *spec, const char *device_class, bool sandbox_off);

// Whether a cached result, measured under a cap of cached_cap_s, answers spec (whose cap is cap_s
// when it names none). Yes when
//   - it is no ratio (wrong, crash, timeout, …): failures are facts;
//   - its interval is no wider than the precision asked for;
//   - its interval excludes 0: it is decided, whatever the anchor now is;
//   - it is undecided, the precision asked for is not finer than the default, and the new
//     measurement may not take longer than the old one did.
bool cache_answers(const struct result *cached, double cached_cap_s, const struct job_spec *spec,
                   double cap_s);

// The two together as a ledger_adopt: spec is a packed job_spec; an accepted result gets its
// `cached` mark.
bool cache_adopt(const struct bytes *spec, double cached_cap_s, struct bytes *result);

// Packs a message; the result is empty when it cannot be packed (a defect, or larger than a message
// may be).
struct bytes cache_pack(const struct message *message, const void *value);

#endif
