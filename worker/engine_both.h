// The engine that asks language models and learns from outcomes how far to trust them: a
// combination of engine llm and engine static. It knows the two only through struct engine_ops.
#ifndef WORKER_ENGINE_BOTH_H
#define WORKER_ENGINE_BOTH_H

#include "worker/engine.h"

extern const struct engine_ops engine_both;

#endif
