// Chooses which language model writes the next candidates, by how much the candidates that it wrote
// before have improved, for their price: a bandit (common/bandit.h). There is one per worker, for
// all searches. It starts from the endpoints' weights whenever the worker starts. Endpoints that
// serve the same model are one option. Owned by struct llm.
#ifndef WORKER_LLM_MODEL_CHOICE_H
#define WORKER_LLM_MODEL_CHOICE_H

#include "common/digest.h"
#include "proto/messages.h"
#include "worker/endpoint/endpoint.h"
#include <stdbool.h>
#include <stddef.h>

#define MODEL_CHOICE_TOKEN_PRICE 1e-6 // assumed for a token without a price

struct model_choice;

// Copies what it needs. The weight of a model is that of its endpoints together, relative to the
// mean.
struct model_choice *model_choice_create(const struct endpoint_config *config, size_t count);
void model_choice_free(struct model_choice *choice); // NULL is fine

// The model that is to be asked first; valid until model_choice_free. The digest of the question
// serves as the random number. Each choice must be followed by one model_choice_add.
const char *model_choice_next(struct model_choice *choice, const struct digest *question);

// Adds what became of a choice. model answered, or was asked last and did not answer; NULL: no
// model was asked. cost is in the currency of the prices; where it is 0, tokens are paid at
// MODEL_CHOICE_TOKEN_PRICE. A question without an answer costs at least as much as the mean
// question, so that failing does not make a model look cheap.
void model_choice_add(struct model_choice *choice, const char *chosen, const char *model,
                      bool answered, double cost, uint64_t tokens);

// Learns from outcomes by how much the candidates of a model improved on the incumbent. An outcome
// whose key was seen before, and one of an unknown model, change nothing.
void model_choice_observe(struct model_choice *choice, const struct observe *observe);

// Sets in *info what is known of the model.
void model_choice_status(const struct model_choice *choice, const char *model,
                         struct endpoint_info *info);

#endif
