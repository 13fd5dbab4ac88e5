// Text for reports: markup that cannot break out of its element, and numbers in a form for people.
// It does no I/O. The pages of client/report and client/eval use it, and all that write text from
// other people's files.
#ifndef CLIENT_REPORT_REPORT_TEXT_H
#define CLIENT_REPORT_REPORT_TEXT_H

#include "common/strbuf.h"
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

// Appends the text with every invalid byte and every NUL replaced by U+FFFD, so that JSON writers
// accept it.
void text_add_utf8(struct strbuf *out, const char *text, size_t len);
// The same as a JSON string; a new reference.
json_t *text_json(const char *text, size_t len);

// Appends text for HTML and SVG, for elements and for quoted attributes. The characters & < > " '
// become entities. What is not printable (common/printable.h) becomes U+FFFD, except tabs and
// newlines. text_add_markup takes a string; NULL adds nothing.
void text_add_markup(struct strbuf *out, const char *text);
void text_add_markup_bytes(struct strbuf *out, const char *text, size_t len);

// Appends a count with separators: "1,234,567".
void text_add_count(struct strbuf *out, uint64_t count);
// Appends a speedup from its log2, with three significant digits: "2.84×", "0.912×", "1,240×". It
// is "–" when it is not finite.
void text_add_speedup(struct strbuf *out, double log2_speedup);
// Appends a duration: "0.42 s", "8.1 s", "74 s", "12 min", "3.4 h", "2.1 days". It is "–" when it
// is not finite or negative.
void text_add_seconds(struct strbuf *out, double seconds);
// Appends a time of a launch: "812 ns", "3.41 µs", "12.0 ms".
void text_add_nanoseconds(struct strbuf *out, double ns);
// Appends a share of 1 in percent: "12 %", "1.4 %". It is "–" when it is not finite.
void text_add_percent(struct strbuf *out, double share);
// Appends a time of day: "2026-11-21 03:25 UTC". It is "–" for 0 and for what is not a time.
void text_add_time(struct strbuf *out, double seconds_since_1970);

#endif
