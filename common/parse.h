// Numbers from text. The whole text must be the number: no blanks, no locale, no octal. Used for
// command lines, configuration files and manifests. `what` names the thing in the error sentence.
// On failure (ERR_INVALID) *ret is unchanged.
#ifndef COMMON_PARSE_H
#define COMMON_PARSE_H

#include "common/err.h"
#include <stddef.h>
#include <stdint.h>

// A decimal integer within [min, max].
MUST_CHECK int parse_u64(uint64_t *ret, const char *text, uint64_t min, uint64_t max,
                         const char *what, struct err *err);
// The same, with a minus sign for negative numbers.
MUST_CHECK int parse_i64(int64_t *ret, const char *text, int64_t min, int64_t max, const char *what,
                         struct err *err);
// A finite decimal number within [min, max].
MUST_CHECK int parse_f64(double *ret, const char *text, double min, double max, const char *what,
                         struct err *err);
// A duration such as "90", "90s", "250ms", "5m" or "1h30m", in nanoseconds. A bare number is
// seconds. Several parts go from large units to small ones, and each has its unit.
MUST_CHECK int parse_duration(uint64_t *ret_ns, const char *text, const char *what,
                              struct err *err);
// A size such as "65536", "64K", "16M" or "2G", in bytes. K, M, G and T are powers of 1024.
MUST_CHECK int parse_size(uint64_t *ret, const char *text, const char *what, struct err *err);

#endif
