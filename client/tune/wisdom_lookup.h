// The configuration that a wisdom file has for a shape, or for the nearest shape. Called by `kcast
// wisdom`. Does no I/O.
//
// Entries are considered when they are for the problem, the device class and the kernel that were
// asked for; if no kernel was, for the kernel that was tuned last. The entry with a shape at the
// smallest distance is taken; of several an exact match, then the one for the fewest shapes, then
// the latest. The distance of two shapes is the square root of the sum, over their int parameters,
// of (t(a) - t(b))^2 with t(x) = sign(x) log2(1 + |x|), so that a distance of 1 is about a factor
// of two in one parameter. Scalars do not count for the distance, but an exact match has the
// scalars that were asked for.
#ifndef CLIENT_TUNE_WISDOM_LOOKUP_H
#define CLIENT_TUNE_WISDOM_LOOKUP_H

#include "client/tune/wisdom.h"

struct wisdom_query {
    const char *problem;       // name
    const char *shape;         // such as "M=300 N=200 K=100": all int parameters, optional scalars
    const char *device_class;  // NULL: the only one that the problem has entries for
    const char *kernel_digest; // NULL: that of the kernel that was tuned last
};

struct wisdom_match {
    const struct wisdom_entry *entry; // belongs to the wisdom
    size_t shape;                     // index of the entry's nearest shape
    double distance;                  // 0 for the same int parameters
    bool exact;                       // the distance is 0 and the scalars are those asked for
};

// Finds the configuration. ERR_NOT_FOUND when there is none for the problem, class or kernel;
// ERR_INVALID for a shape that cannot be parsed or has other parameters; ERR_USAGE when there are
// several classes and none was named. The sentence says which there are. path is the wisdom file's,
// for sentences.
MUST_CHECK int wisdom_lookup(struct wisdom_match *ret, const struct wisdom *wisdom,
                             const struct wisdom_query *query, const char *path, struct err *err);

// The distance of two shapes with the same int parameters. NaN when their parameters differ.
double wisdom_distance(const struct wisdom_case *a, const struct wisdom_case *b);
// Appends the shape as text, such as "M=300 N=200 K=100".
void wisdom_case_name(const struct wisdom_case *shape, struct strbuf *out);

#endif
