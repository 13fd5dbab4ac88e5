// Language models and the static model together: what models say is a feature, which the static model
// learns to trust or not.
#ifndef WORKER_ENGINE_BOTH_H
#define WORKER_ENGINE_BOTH_H

#include "worker/engine.h"

extern const struct engine_ops engine_both;

#endif
