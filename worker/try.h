// kcast-worker --try: asks a real question, of every endpoint of the language models or of the
// engine where it has none, and prints how it was asked, what that took and what came. Called by
// main.c.
#ifndef WORKER_TRY_H
#define WORKER_TRY_H

#include "common/err.h"
#include "worker/engine.h"
#include <stdio.h>

// Opens the engine, asks, prints to out and closes the engine. Runs config->loop. ERR_UNREACHABLE
// when an endpoint gives no forecast; errors of the engine's open.
MUST_CHECK int worker_try(const struct engine_ops *ops, const struct engine_config *config,
                          FILE *out, struct err *err);

#endif
