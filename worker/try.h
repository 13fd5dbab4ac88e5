// kcast-worker --try: asks a real question, of every endpoint of the language models, and prints
// how it was asked, what that took and what came. An engine without endpoints is asked about a
// candidate of the problem that it was told most of, as if that had not been measured; where it was
// told of none yet, this is said. Called by main.c.
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
