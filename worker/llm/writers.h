// Which model writes the next candidates, by what those it wrote before have brought for their
// price (common/bandit.h says how, and after whom). One per worker, for all searches; it begins
// anew with the worker, with the endpoints' weights. Endpoints that have the same model are one
// writer.
#ifndef WORKER_LLM_WRITERS_H
#define WORKER_LLM_WRITERS_H

#include "common/digest.h"
#include "proto/messages.h"
#include "worker/llm/endpoint.h"
#include <stdbool.h>
#include <stddef.h>

#define WRITERS_TOKEN_PRICE 1e-6 // of a token without a price

struct writers;

// Copies what it needs. The weight of a model is that of its endpoints together, relative to the
// mean.
struct writers *writers_create(const struct endpoint_config *config, size_t count);
void writers_free(struct writers *writers); // NULL is fine

// The model that is to be asked first; valid until writers_free. The key of the question decides
// what is left to chance. Each choice is followed by one writers_asked.
const char *writers_choose(struct writers *writers, const struct digest *question);
// What became of it: model answered, or was asked last without an answer; NULL: none was asked.
// cost in the currency of the prices; where that is 0, tokens are paid at WRITERS_TOKEN_PRICE. What
// failed costs as much as the mean question at least, so that failing does not make a model look
// cheap.
void writers_asked(struct writers *writers, const char *chosen, const char *model, bool answered,
                   double cost, uint64_t tokens);
// Learns from outcomes: by how much candidates of a model raised the incumbent. An outcome with a
// key that was told before, and one of a model that is not here (any more), change nothing.
void writers_tell(struct writers *writers, const struct observe *observe);
// Fills what is known of the model into info.
void writers_status(const struct writers *writers, const char *model, struct endpoint_info *info);

#endif
