// What the soak test submits. Which job a client's Nth one is follows from the seed alone. So a
// client that was killed can make it again, and so can the check at the end.
#ifndef TESTS_SOAK_CONTENT_H
#define TESTS_SOAK_CONTENT_H

#include "proto/messages.h"
#include <stdbool.h>
#include <stdint.h>

enum content_kind {
    CONTENT_RATIO,       // measured, with a ratio that only this candidate has
    CONTENT_POOL,        // a source that several clients share: the result cache answers
    CONTENT_REFUSED,     // does not compile
    CONTENT_VERDICT,     // has a verdict that is not a ratio
    CONTENT_KILLER,      // ends its executor, in one of several ways
    CONTENT_JAIL_KILLER, // ends its compiler
    CONTENT_HANG,        // does not end
    CONTENT_COMPILE,     // is only compiled
    CONTENT_REAL,        // measured by the real kcast-exec
};

struct content {
    enum content_kind kind;
    bool unique;   // nobody else has this source, and no cache answers
    bool budgeted; // its search has a budget
    char *source;  // owned
    char search[32];
    char key[32];
    double log2;      // RATIO, POOL: what is measured
    uint64_t verdict; // RATIO, POOL, REFUSED, VERDICT: the expected verdict
    struct job_spec spec;
    uint64_t priority;
    uint64_t queue_class;
    double budget_seconds; // NaN: no budget
};

// Makes job `index` of this client. `real` allows jobs for the real kcast-exec.
void content_make(struct content *ret, uint64_t seed, bool real, unsigned client, unsigned index);
void content_release(struct content *content);

// The blobs that a spec names. They belong to the content.
#define CONTENT_BLOBS 4
void content_blobs(const struct content *content, const char *blob[CONTENT_BLOBS]);

// Whether a job with this content may end like this. When not, *why is the reason.
bool content_allows(const struct content *content, const struct job_info *info, const char **why);
// Whether the candidate ends or blocks its executor by itself.
bool content_is_killer(const struct content *content);
// The first 16 hex digits of the source's digest, as in the fake executor's log.
void content_name(const struct content *content, char name[17]);

#endif
