// The two questions of the result cache: which results are about the same thing, and whether a
// cached result answers a job. Pure functions. The ledger stores the results and asks the second
// question on its own thread.
#ifndef DAEMON_STORE_CACHE_H
#define DAEMON_STORE_CACHE_H

#include "common/digest.h"
#include "common/err.h"
#include "common/mem.h"
#include "proto/messages.h"
#include <stdbool.h>

// Changes whenever results of the measuring method can no longer be compared with older ones: since
// 2 tensors of a GPU begin at pages, which makes some kernels faster; since 3 those of a core
// do not begin at the same place within a page; since 4 the driver loads all of a GPU's code at
// once, without which of two equal kernels one seemed slower, and short launches are shorter; since
// 5 a superblock begins with half a block that does not count.
#define CACHE_METHOD "kcast-measure-5"
#define CACHE_PRECISION_LOG2 0.0036022 // log2(1.0025): the precision of a spec that gives none
#define CACHE_CAP_S 30.0 // seconds: max_seconds when neither a spec nor the daemon gives one

// The key is the SHA-256 of the method, the device class, sandbox on or off, and the spec without
// the fields that do not change the measured quantity. anchor_log2, precision_log2 and max_seconds
// decide when sampling stops; fresh decides whether to look into the cache at all, features_only
// and no_machine_code how much is compiled. `repeat` stays in the key, because it exists to tell
// equal specs apart.
struct digest cache_key(const struct job_spec *spec, const char *device_class, bool sandbox_off);

// Whether a cached result, measured under a cap of cached_cap_s seconds, answers spec, whose cap is
// cap_s when it gives none. It does when
//   - it is no ratio (wrong, crash, …), because failures are facts;
//   - it is a timeout, and the new measurement may not take longer than the old one did;
//   - its interval is no wider than the precision asked for;
//   - its interval excludes 0, so that it is decided whatever the anchor is now;
//   - it is EQUIVALENT, and would be with the precision asked for;
//   - it is undecided, the precision asked for is not finer than the default, and the new
//     measurement may not take longer than the old one did.
bool cache_answers(const struct result *cached, double cached_cap_s, const struct job_spec *spec,
                   double cap_s);

// Does cache_answers for a packed job_spec and a packed result, as the ledger_adopt of ledger.h. A
// result that is about something else, or whose parts disagree (result_check), is not accepted. One
// that is accepted gets its `cached` mark.
bool cache_adopt(const struct bytes *spec, double cached_cap_s, struct bytes *result);

// Packs a message. The result is empty when that is impossible: a defect, or more bytes than a
// message may have.
struct bytes cache_pack(const struct message *message, const void *value);

#endif
