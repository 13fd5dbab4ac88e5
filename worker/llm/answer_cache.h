// Answers that were paid for once, by the digest of their question: STATE/answers.db. What is lost
// here only has to be paid for again, so nothing waits for the disk, and a file that cannot be used is
// made anew. One thread.
#ifndef WORKER_LLM_ANSWER_CACHE_H
#define WORKER_LLM_ANSWER_CACHE_H

#include "common/digest.h"
#include "common/err.h"
#include "proto/messages.h"

#define ANSWER_CACHE_ENTRIES_MAX 50000 // when there are more at the start, the oldest go

struct answer_cache;

MUST_CHECK int answer_cache_open(struct answer_cache **ret, const char *path, struct err *err);
void answer_cache_close(struct answer_cache *cache); // NULL is fine

// Reads the answer into *ret, a struct of that message; false when there is none.
bool answer_cache_find(struct answer_cache *cache, const struct digest *question, const struct message *message,
                void *ret);
void answer_cache_add(struct answer_cache *cache, const struct digest *question, const struct message *message,
               const void *answer);

#endif
