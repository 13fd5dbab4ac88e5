// Formats numbers and results for people and for scripts. One place, so that all commands say the
// same thing in the same way. Knows messages, and nothing of runs or searches.
#ifndef CLIENT_SHOW_H
#define CLIENT_SHOW_H

#include "common/err.h"
#include "common/strbuf.h"
#include "proto/messages.h"
#include <jansson.h>
#include <stddef.h>

// Stands behind the speedup or the verdict of a result that says of itself that it is unsealed.
#define SHOW_UNSEALED " (unsealed: timed with host code in its process)"

// Writes a speedup with its interval, "2.31x [2.28, 2.35]"; "-" for NULL or NaN.
void show_speedup(const struct estimate *estimate, char *out, size_t size);
// Writes a time, "850 ms", "41.2 s", "3m20s" or "2h05m"; "-" for NaN.
void show_seconds(double seconds, char *out, size_t size);
// Writes nanoseconds with a fitting unit, "412 ns" or "1.82 ms"; "-" for NaN.
void show_ns(double ns, char *out, size_t size);

// JSON values, as new references; null where the number is NaN or the pointer NULL.
json_t *show_number(double value);
json_t *show_fact(double value); // as an integer where it is one
json_t *show_text(const char *text);
json_t *show_cause(uint64_t cause); // a word of enum job_cause; null when nothing is said
json_t *show_digest(const struct digest *digest);
json_t *show_ratio(double log2);                           // the ratio 2^log2
json_t *show_interval(const struct estimate *estimate);    // [lo, hi] as ratios
json_t *show_facts(const struct fact *fact, size_t count); // {name: value}
json_t *show_accounts(const struct accounts *seconds);     // {"queue": seconds, …}
// The object that `kcast measure --json` prints (docs/commands.md), without "candidate" and
// "problem".
json_t *show_result(const struct result *result);

// Appends the object to out as one line, and releases it.
void show_add_line(struct strbuf *out, json_t *object);
// Prints the object on stdout as one line that begins with the number of the schema, and releases
// it.
void show_print(json_t *object);
// The object with "schema" in front, as a new reference; releases the one that was given. The
// number grows when a key changes its meaning or its type; new keys do not count.
json_t *show_with_schema(json_t *object);
// {"name", "exit_code", "text"} of an error, by the tables of common/err.h.
json_t *show_error(const struct err *err);

#endif
