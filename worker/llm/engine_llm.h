// The engine that asks language models (worker/llm/llm.h) and corrects their answers by their record
// (worker/outcomes/history.h), STATE/llm.db.
#ifndef WORKER_LLM_ENGINE_LLM_H
#define WORKER_LLM_ENGINE_LLM_H

#include "worker/engine.h"

extern const struct engine_ops engine_llm;

#endif
