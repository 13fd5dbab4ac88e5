// The configuration that a wisdom file has for a shape, or for the nearest one. Pure: no I/O.
//
// Rule: of the entries for the problem, the device class and the kernel that was asked for (else
// the kernel tuned last), the one with a shape at the smallest distance; of several the one for the
// fewest shapes, then the latest. The distance of two shapes is the square root of the sum, over
// their int parameters, of (t(a) - t(b))^2, with t(x) = sign(x) log2(1 + |x|): 1 is about twice
// the size in one parameter. Scalars do not count, but an exact match has those that were asked
// for.
#ifndef CLIENT_TUNE_WISDOM_LOOKUP_H
#define CLIENT_TUNE_WISDOM_LOOKUP_H

#include "client/tune/wisdom.h"

struct wisdom_query {
    const char *problem;       // name
    const char *shape;         // "M=300 N=200 K=100": all int parameters, scalars if one likes
    const char *device_class;  // NULL: the only one there is
    const char *kernel_digest; // NULL: of the kernel that was tuned last
};

struct wisdom_match {
    const struct wisdom_entry *entry; // the wisdom's
    size_t shape;                     // of the entry, the nearest
    double distance;                  // 0 for the same int parameters
    bool exact;
};

// ERR_NOT_FOUND when there is nothing for the problem, class or kernel, ERR_INVALID for a shape
// that cannot be read or has other parameters, ERR_USAGE when there are several classes and none
// was named. The sentence says which there are; path is the wisdom's file.
MUST_CHECK int wisdom_lookup(struct wisdom_match *ret, const struct wisdom *wisdom,
                             const struct wisdom_query *query, const char *path, struct err *err);

// The distance of two shapes with the same int parameters; NaN when they have others.
double wisdom_distance(const struct wisdom_case *a, const struct wisdom_case *b);
// "M=300 N=200 K=100"
void wisdom_case_name(const struct wisdom_case *shape, struct strbuf *out);

#endif
