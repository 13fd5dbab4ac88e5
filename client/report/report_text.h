// Text for reports: markup that cannot break out of its element, and numbers as people write them.
// Pure.
#ifndef CLIENT_REPORT_REPORT_TEXT_H
#define CLIENT_REPORT_REPORT_TEXT_H

#include "common/strbuf.h"
#include <stddef.h>
#include <stdint.h>

// The length (1 to 4) of the UTF-8 character at text[0 .. len), or 0 when there is no valid one
// there (overlong forms, surrogates and what lies beyond U+10FFFF are invalid). len > 0.
size_t text_utf8_length(const char *text, size_t len);

// Appends text with every invalid byte replaced by U+FFFD, and NUL too: what a JSON writer accepts.
void text_add_utf8(struct strbuf *out, const char *text, size_t len);

// Appends text for HTML and SVG, in elements and in quoted attributes: & < > " ' as entities,
// control characters (but tab and newline) and invalid UTF-8 as U+FFFD. text_add_markup takes a
// string, NULL adds nothing.
void text_add_markup(struct strbuf *out, const char *text);
void text_add_markup_bytes(struct strbuf *out, const char *text, size_t len);

// "1,234,567"
void text_add_count(struct strbuf *out, uint64_t count);
// A speedup from its log2, three significant digits: "2.84×", "0.912×", "1,240×"; "–" when it is
// not finite.
void text_add_speedup(struct strbuf *out, double log2_speedup);
// "0.42 s", "8.1 s", "74 s", "12 min", "3.4 h", "2.1 days"; "–" when it is not finite or negative.
void text_add_seconds(struct strbuf *out, double seconds);
// "812 ns", "3.41 µs", "12.0 ms"
void text_add_nanoseconds(struct strbuf *out, double ns);
// A share of 1 as "12 %", "1.4 %"; "–" when it is not finite.
void text_add_percent(struct strbuf *out, double share);
// "2026-11-21 03:25 UTC"; "–" for 0 and what is no time.
void text_add_time(struct strbuf *out, double seconds_since_1970);

#endif
