// The engine that asks language models (worker/llm/llm.h) and recalibrates their forecasts by what
// was measured (worker/outcomes/history.h). Its state is STATE/llm.db and STATE/answers.db.
#ifndef WORKER_LLM_ENGINE_LLM_H
#define WORKER_LLM_ENGINE_LLM_H

#include "worker/engine.h"

extern const struct engine_ops engine_llm;

#endif
