// Answers that were paid for once, by the digest of their question: STATE/answers.db. What is lost
// here only has to be paid for again, so nothing waits for the disk, and a file that cannot be used is
// made anew. One thread.
#ifndef WORKER_LLM_ANSWER_CACHE_H
#define WORKER_LLM_ANSWER_CACHE_H

#include "common/digest.h"
#include "common/err.h"
#include "proto/messages.h"

#define CACHE_ENTRIES_MAX 50000 // when there are more at the start, the oldest go

struct cache;

MUST_CHECK int cache_open(struct cache **ret, const char *path, struct err *err);
void cache_close(struct cache *cache); // NULL is fine

// Reads the answer into *ret, a struct of that message; false when there is none.
bool cache_find(struct cache *cache, const struct digest *question, const struct message *message,
                void *ret);
void cache_add(struct cache *cache, const struct digest *question, const struct message *message,
               const void *answer);

#endif
