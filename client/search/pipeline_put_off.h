// Compilations that take long and are not waited for. Only the pipeline*.c files include this; the
// head of pipeline_put_off.c has the rule.
#ifndef CLIENT_SEARCH_PIPELINE_PUT_OFF_H
#define CLIENT_SEARCH_PIPELINE_PUT_OFF_H

#include "client/search/pipeline_state.h"

// Whether the candidate, whose compilation is the first that is missing, is to be put off now.
bool pipeline_puts_off(const struct pipeline *p, uint64_t id);
// Records that. Within a transaction.
MUST_CHECK int pipeline_put_off(struct pipeline *p, uint64_t id, struct err *err);
// Finds those that are put off in a log that is read again.
void pipeline_remember_late(struct pipeline *p);
// The candidate whose number the key of this one's compilation has: the one in whose stead it goes
// on, or itself.
uint64_t pipeline_compilation(const struct pipeline *p, uint64_t id);
// The reverse: the candidate that a compilation is for by now.
uint64_t pipeline_compilation_for(const struct pipeline *p, uint64_t id);
// How many of those that are put off have compiled.
uint64_t pipeline_late_compiled(const struct pipeline *p);
// Records up to so many of these as the next candidates; *ret counts them. Within a transaction.
MUST_CHECK int pipeline_record_late(struct pipeline *p, uint64_t most, uint64_t *ret,
                                    struct err *err);
// Waits for none of those that are put off any more.
void pipeline_drop_late(struct pipeline *p);

#endif
