// Texts of strangers and named numbers inside prompts. Called by the writers of prompts.
#ifndef WORKER_PROMPT_PROMPT_QUOTE_H
#define WORKER_PROMPT_PROMPT_QUOTE_H

#include "common/strbuf.h"
#include "proto/messages.h"

// All functions append to out.

// Quotes at most max bytes of data between lines that carry the first 16 digits of its digest, so
// that no text can end its own quote. what: a few words of our own. Bytes that are no printable
// ASCII are shown as '?'; the prompt says how many bytes were left out.
void prompt_quote(struct strbuf *out, const char *what, const void *data, size_t len, size_t max);
// Quotes lines between marks that are always the same, so that a list that has grown begins like it
// did before. No line may begin with "====", nor be left empty by a stranger: the writer begins
// each.
void prompt_quote_list(struct strbuf *out, const char *what, const char *lines);
// A line with named numbers, or nothing when there are none.
void prompt_facts(struct strbuf *out, const char *what, const struct fact *fact, size_t count);
// A Markdown text without its HTML comments, which are for people only: they list, for example, a
// template's deliberate mistakes. A comment that never ends goes to the end of the text.
void prompt_without_comments(struct strbuf *out, const void *data, size_t len);
// " (by case 1.9, 2.4, ?)" for speedups in the order of the benchmark cases, or nothing.
void prompt_case_speedups(struct strbuf *out, const double *log2, size_t count);

#endif
