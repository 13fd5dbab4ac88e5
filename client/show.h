// Numbers and results as people and scripts read them. One place, so that all commands say the same
// thing in the same way.
#ifndef CLIENT_SHOW_H
#define CLIENT_SHOW_H

#include "common/strbuf.h"
#include "proto/messages.h"
#include <jansson.h>
#include <stddef.h>

// "2.31x [2.28, 2.35]"; "-" for NULL or NaN.
void show_speedup(const struct estimate *estimate, char *out, size_t size);
// "850 ms", "41.2 s", "3m20s", "2h05m"; "-" for NaN.
void show_seconds(double seconds, char *out, size_t size);
// "412 ns", "1.82 ms"; "-" for NaN.
void show_ns(double ns, char *out, size_t size);

// JSON values; null where the number is absent (NaN) or the pointer NULL. New references.
json_t *show_number(double value);
json_t *show_text(const char *text);
json_t *show_digest(const struct digest *digest);
json_t *show_ratio(double log2);                        // 2^log2
json_t *show_interval(const struct estimate *estimate); // [lo, hi] as ratios
json_t *show_quantiles(const struct quantiles *quantiles);
json_t *show_facts(const struct fact *fact, size_t count); // {name: value}
json_t *show_accounts(const struct accounts *seconds);     // {account: seconds}
// The object of `kcast measure --json` (docs/commands.md) without "candidate" and "problem".
json_t *show_result(const struct result *result);

// One line at the end of out; frees object.
void show_add_line(struct strbuf *out, json_t *object);
// One line on stdout; frees object.
void show_print(json_t *object);

#endif
