// The generators of one search, as --generator names them: "tunable", "pool:a.jsonl,pool:b.jsonl",
// "tunable,llm". A generator's number is its place in the list, from 0; run_proposed has it.
#ifndef CLIENT_PROPOSE_GENERATOR_LIST_H
#define CLIENT_PROPOSE_GENERATOR_LIST_H

#include "client/propose/generator.h"
#include "common/err.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <stddef.h>

#define GENERATOR_LIST_MAX 4

struct generator_list {
    char *names; // as given; its own
    size_t count;
    char *kind[GENERATOR_LIST_MAX];                  // as for generator_read; its own
    struct bytes text[GENERATOR_LIST_MAX];           // its own; empty before it is read
    struct generator *generator[GENERATOR_LIST_MAX]; // NULL before generator_list_create
};

// Takes the names apart; a comma separates only where a kind follows, so that paths may have some.
// NULL is an empty list. ERR_USAGE for more than GENERATOR_LIST_MAX and for the same one twice. On
// failure *ret is empty.
MUST_CHECK int generator_list_parse(struct generator_list *ret, const char *names, struct err *err);
void generator_list_release(struct generator_list *list); // a zeroed one is fine

// A list of the generator "tunable" alone, with this text, which is copied.
void generator_list_tunable(struct generator_list *ret, const struct bytes *text);

// Reads the texts for this problem; errors are generator_read's.
MUST_CHECK int generator_list_read(struct generator_list *list, const struct problem_dir *dir,
                                   struct err *err);
// Makes the generators of the texts. template_path names that of "tunable" in errors, which are
// generator_create's.
MUST_CHECK int generator_list_create(struct generator_list *list, const char *template_path,
                                     struct err *err);
// Candidates that all points together are; 0 when a language model is among the generators.
size_t generator_list_points(const struct generator_list *list);
// The number of the one that asks the worker; the list's count when none does.
size_t generator_list_llm_index(const struct generator_list *list);
// The same without a list: whether one of these names asks.
bool generator_list_has_llm(const char *names);

// Where RUN_STARTED names the text of a generator; NULL: it has none, or (a file that is not one)
// there is no place. Of *started, which generator_list_reserve has prepared, or which was read.
struct digest *generator_list_slot(const struct generator_list *list, struct run_started *started,
                                   size_t number);
void generator_list_reserve(const struct generator_list *list, struct run_started *started);

#endif
