// A cache of the answers of language models, by the digest of the question, in STATE/answers.db. An
// answer that is lost only has to be paid for again: nothing waits for the disk, and a file that
// cannot be used is deleted and made anew. Owned by struct llm. One thread.
#ifndef WORKER_LLM_ANSWER_CACHE_H
#define WORKER_LLM_ANSWER_CACHE_H

#include "common/digest.h"
#include "common/err.h"
#include "proto/messages.h"

#define ANSWER_CACHE_ENTRIES_MAX 50000 // when a file with more is opened, the oldest are deleted

struct answer_cache;

// ERR_SYSTEM when the file can neither be opened nor made anew.
MUST_CHECK int answer_cache_open(struct answer_cache **ret, const char *path, struct err *err);
void answer_cache_close(struct answer_cache *cache); // NULL is fine

// Reads the answer to a question into *ret, a struct of that message, which the caller clears.
// False when there is none; *ret is then unchanged.
bool answer_cache_find(struct answer_cache *cache, const struct digest *question,
                       const struct message *message, void *ret);
// Adds an answer. The first answer to a question stays. Failures are ignored.
void answer_cache_add(struct answer_cache *cache, const struct digest *question,
                      const struct message *message, const void *answer);

#endif
