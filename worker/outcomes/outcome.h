// What both engines ask of an outcome and of an observation: whether a model can learn from it, and
// which group it belongs to. A group is the outcomes of one problem on one device class. Called by
// the store, the history and the engines; knows nothing of files and models. Thread-safe.
#ifndef WORKER_OUTCOMES_OUTCOME_H
#define WORKER_OUTCOMES_OUTCOME_H

#include "common/digest.h"
#include "proto/messages.h"
#include <stdbool.h>

#define OUTCOME_IDENTITY_MAX 256  // bytes of a problem's identity, with the final NUL
#define OUTCOME_GROUP_KEY_MAX 512 // bytes of a group's key, with the final NUL

// Whether a model of measurements can learn from the outcome. It needs a candidate, a known verdict
// that says something about the candidate (not none, compile-error or quarantined), and a finite,
// plausible log2 where the verdict is a ratio of times.
bool outcome_is_usable(const struct outcome *outcome);

// Whether the candidate did not compile. That teaches a model which points compile, by what is
// known of them before.
bool outcome_is_compile_failure(const struct outcome *outcome);

// Writes what names a problem: the hexadecimal digest, or "name:" and the problem's name when the
// digest is zero.
void outcome_identity(const char *problem, const struct digest *digest,
                      char ret[static OUTCOME_IDENTITY_MAX]);

// Writes the key of a group: the problem's identity, a newline, the device class.
void outcome_group_key(const char *identity, const char *device_class,
                       char ret[static OUTCOME_GROUP_KEY_MAX]);

#endif
