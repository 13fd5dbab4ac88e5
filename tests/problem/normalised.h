// How normalised texts are compared, for the tests of both languages.
#ifndef TESTS_PROBLEM_NORMALISED_H
#define TESTS_PROBLEM_NORMALISED_H

#include "problem/normalised_source.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the headers above.
#include <cmocka.h>
#include <string.h>

static inline bool same(const char *a, const char *b)
{
    struct digest x = source_normalised_digest(a, strlen(a)),
                  y = source_normalised_digest(b, strlen(b));

    return digest_equal(&x, &y);
}

static inline void assert_normalised(const char *source, const char *expected)
{
    struct strbuf out = STRBUF_INIT;

    source_normalise(&out, source, strlen(source));
    assert_string_equal(strbuf_text(&out), expected);
    strbuf_release(&out);
}

#endif
