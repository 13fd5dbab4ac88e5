// The engine that asks language models (worker/llm.h) and corrects their answers by their record
// (worker/record.h), STATE/llm.db.
#ifndef WORKER_ENGINE_LLM_H
#define WORKER_ENGINE_LLM_H

#include "worker/engine.h"

extern const struct engine_ops engine_llm;

#endif
