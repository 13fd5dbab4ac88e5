// How alike two sources are: the part of their token shingles that they share (Broder 1997, "On the
// resemblance and containment of documents"). A shingle is a run of SOURCE_SHINGLE tokens of the
// normalised source (problem/normalised_source.h), so that layout and comments do not count. The
// client uses it to find the measured candidates that are most like a new one, and proposals that
// repeat what was tried.
#ifndef PROBLEM_SOURCE_SHINGLES_H
#define PROBLEM_SOURCE_SHINGLES_H

#include <stddef.h>
#include <stdint.h>

#define SOURCE_SHINGLE 4 // tokens

struct source_shingles {
    uint64_t *hash; // of each different shingle, ascending; owned
    size_t count;
};

// The shingles of a source. A source of fewer tokens than a shingle has one of all its tokens; one
// without tokens has none. Release *ret.
void source_shingles_make(struct source_shingles *ret, const void *source, size_t len);
void source_shingles_release(struct source_shingles *shingles);
// The size of the intersection over that of the union, from 0 to 1; 1 for two empty sets.
double source_shingles_similarity(const struct source_shingles *a, const struct source_shingles *b);

#endif
