// What the soak test submits: which job a client's Nth one is follows from the seed alone, so that
// a client that was killed knows it again, and so does who judges in the end.
#ifndef TESTS_SOAK_CONTENT_H
#define TESTS_SOAK_CONTENT_H

#include "proto/messages.h"
#include <stdbool.h>
#include <stdint.h>

enum content_kind {
    CONTENT_RATIO,       // measured, with a ratio that only this one has
    CONTENT_POOL,        // the same for several clients: the result cache answers
    CONTENT_REFUSED,     // does not compile
    CONTENT_JUDGED,      // a verdict that is no ratio
    CONTENT_KILLER,      // ends its executor, in one of several ways
    CONTENT_JAIL_KILLER, // ends its compiler
    CONTENT_HANG,        // does not end
    CONTENT_COMPILE,     // is only compiled
    CONTENT_REAL,        // by the real kcast-exec
};

struct content {
    enum content_kind kind;
    bool unique;   // nobody else has this source, and no cache answers
    bool budgeted; // of a search with a budget
    char *source;  // malloc'd
    char search[32];
    char key[32];
    double log2;      // RATIO, POOL: what is measured
    uint64_t verdict; // RATIO, POOL, REFUSED, JUDGED: what comes out
    struct job_spec spec;
    uint64_t priority;
    uint64_t queue_class;
    double budget_seconds; // NaN: none
};

// real: there may be jobs for the real kcast-exec.
void content_make(struct content *ret, uint64_t seed, bool real, unsigned client, unsigned index);
void content_release(struct content *content);

// The blobs that a spec names.
#define CONTENT_BLOBS 4
void content_blobs(const struct content *content, const char *blob[CONTENT_BLOBS]);

// Whether a job may have this end, as far as its content goes; else the sentence in *why.
bool content_allows(const struct content *content, const struct job_info *info, const char **why);
// An end that is the candidate's own fault, and no one else's.
bool content_is_killer(const struct content *content);
// First 16 hex digits of the source's digest, as the fake executor's log has them.
void content_name(const struct content *content, char name[17]);

#endif
