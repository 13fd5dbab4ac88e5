// The generators of one search, as --generator names them: "tunable", "pool:a.jsonl,pool:b.jsonl",
// "tunable,llm", "exec:./propose.py". A generator's number is its index in the list, from 0; each
// RUN_PROPOSED event records it. Called by commands that begin a search, by the search itself, and
// by reports. It knows nothing of what the generators' candidates came to.
#ifndef CLIENT_PROPOSE_GENERATOR_LIST_H
#define CLIENT_PROPOSE_GENERATOR_LIST_H

#include "client/propose/generator.h"
#include "client/run/run.h"
#include "common/err.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <stddef.h>

#define GENERATOR_LIST_MAX RUN_GENERATORS_MAX

// Owns everything in it.
struct generator_list {
    char *names; // as given
    size_t count;
    char *kind[GENERATOR_LIST_MAX];                  // as for generator_read
    struct bytes text[GENERATOR_LIST_MAX];           // empty before generator_list_read
    struct generator *generator[GENERATOR_LIST_MAX]; // NULL before generator_list_create
};

// Splits the names. A comma separates only where a kind follows, so that paths may contain commas.
// names NULL gives an empty list. ERR_USAGE for more than GENERATOR_LIST_MAX generators and for the
// same one twice. On failure *ret is empty.
MUST_CHECK int generator_list_parse(struct generator_list *ret, const char *names, struct err *err);
void generator_list_release(struct generator_list *list); // a zeroed list is fine

// Makes a list of the generator "tunable" alone, with a copy of this text.
void generator_list_tunable(struct generator_list *ret, const struct bytes *text);

// Reads the text of each generator for this problem. Errors are generator_read's.
MUST_CHECK int generator_list_read(struct generator_list *list, const struct problem_dir *dir,
                                   struct err *err);
// Creates the generators from their texts. template_path names the text of "tunable" in errors,
// which are generator_create's.
MUST_CHECK int generator_list_create(struct generator_list *list, const char *template_path,
                                     struct err *err);
// How many points the generators have together. 0 when one that asks is among them, because its
// candidates have no end.
size_t generator_list_points(const struct generator_list *list);
// Whether these names, as for generator_list_parse, have a generator that asks among them.
bool generator_list_asks(const char *names);

// The field of RUN_STARTED that names the blob with a generator's text. NULL for a generator
// that asks, and for files for which *started has no room. *started was prepared by
// generator_list_reserve or read from a run file.
struct digest *generator_list_slot(const struct generator_list *list, struct run_started *started,
                                   size_t number);
// Gives *started room for the texts of all generators of files. message_clear frees it.
void generator_list_reserve(const struct generator_list *list, struct run_started *started);

#endif
