// The engine that learns from outcomes alone: features of the compiled candidate, parameters of its
// template, the device. Needs no network and no model file. Its state is STATE/worker.db.
#ifndef WORKER_MODEL_ENGINE_STATIC_H
#define WORKER_MODEL_ENGINE_STATIC_H

#include "worker/engine.h"

extern const struct engine_ops engine_static;

#endif
