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

#define MODEL_CHOICE_TOKEN_PRICE 1e-6 // of a token without a price

struct model_choice;

// Copies what it needs. The weight of a model is that of its endpoints together, relative to the
// mean.
struct model_choice *model_choice_create(const struct endpoint_config *config, size_t count);
void model_choice_free(struct model_choice *writers); // NULL is fine

// The model that is to be asked first; valid until model_choice_free. The key of the question decides
// what is left to chance. Each choice is followed by one model_choice_record.
const char *model_choice_choose(struct model_choice *writers, const struct digest *question);
// What became of it: model answered, or was asked last without an answer; NULL: none was asked.
// cost in the currency of the prices; where that is 0, tokens are paid at MODEL_CHOICE_TOKEN_PRICE. What
// failed costs as much as the mean question at least, so that failing does not make a model look
// cheap.
void model_choice_record(struct model_choice *writers, const char *chosen, const char *model, bool answered,
                   double cost, uint64_t tokens);
// Learns from outcomes: by how much candidates of a model raised the incumbent. An outcome with a
// key that was told before, and one of a model that is not here (any more), change nothing.
void model_choice_observe(struct model_choice *writers, const struct observe *observe);
// Fills what is known of the model into info.
void model_choice_status(const struct model_choice *writers, const char *model, struct endpoint_info *info);

#endif
