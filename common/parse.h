// Numbers from text, independent of locale, whole string or nothing. `what` names the thing in the error sentence.
#ifndef COMMON_PARSE_H
#define COMMON_PARSE_H

#include "common/err.h"
#include <stddef.h>
#include <stdint.h>

MUST_CHECK int parse_u64(uint64_t *ret, const char *text, uint64_t min, uint64_t max,
                         const char *what, struct err *err);
MUST_CHECK int parse_i64(int64_t *ret, const char *text, int64_t min, int64_t max, const char *what,
                         struct err *err);
// Finite numbers only.
MUST_CHECK int parse_f64(double *ret, const char *text, double min, double max, const char *what,
                         struct err *err);
// "90", "90s", "250ms", "5m", "2h" into nanoseconds; a bare number is seconds.
MUST_CHECK int parse_duration(uint64_t *ret_ns, const char *text, const char *what,
                              struct err *err);
// "65536", "64K", "16M", "2G" (powers of 1024) into bytes.
MUST_CHECK int parse_size(uint64_t *ret, const char *text, const char *what, struct err *err);

#endif
