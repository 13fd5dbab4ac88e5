// The engine that learns from outcomes alone: from features of the compiled candidate, parameters
// of its template and facts about the device. Needs no network and no model file. Its state is
// STATE/worker.db (worker/outcomes/outcome_store.h).
#ifndef WORKER_MODEL_ENGINE_STATIC_H
#define WORKER_MODEL_ENGINE_STATIC_H

#include "worker/engine.h"

extern const struct engine_ops engine_static;

#endif
