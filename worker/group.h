// The outcomes of one problem on one class of devices, in memory, with the model learnt from them
// and the record of calls. Everything here is a function of the outcomes, in the order of adding;
// nothing of time, threads or chance. One thread at a time learns (add, skip, fit, rows, version); another
// one may ask meanwhile (ready, forecast, info), which waits for no fit.
#ifndef WORKER_GROUP_H
#define WORKER_GROUP_H

#include "common/err.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GROUP_ROWS_MIN 12   // outcomes without which there is no model and confidence is 0
#define GROUP_ROWS_MAX 4000 // the newest are kept

struct group;

struct group *group_create(const char *problem, const char *device_class);
void group_free(struct group *group);
// From now on forecasts are recalibrated (worker/calibration/recalibrate.h) by what came of the group's earlier ones,
// whose raw forecast comes back with their outcome. Before the first outcome.
void group_recalibrate(struct group *group);

// Whether an outcome can be learnt from: a known verdict that says something about the candidate
// (not none, not compile-error, not quarantined), with a finite log2 where it is a ratio.
bool group_takes(const struct outcome *outcome);

// Adds one outcome that group_takes(); context (its outcomes are ignored) gives baseline and device
// facts. Borrowed.
void group_add(struct group *group, const struct observe *context, const struct outcome *outcome);
// Tells that `count` outcomes were added and have left before the first group_add: after a restart
// a group that is full then fits at the same counts as if it had never stopped.
void group_skip(struct group *group, uint64_t count);

// Fits the model to all that was added, unless it is up to date. On failure the old model stays.
MUST_CHECK int group_fit(struct group *group, struct err *err);

// Whether a forecast need not wait for the learning thread: there is a model, or there are too few
// outcomes for one and no more are on their way. False after a restart, before the first fit.
bool group_ready(struct group *group, bool more);

// One forecast per candidate into *ret (uninitialised before; the caller clears it by
// forecast_reply_message), by the model of the last group_fit.
MUST_CHECK int group_forecast(struct group *group, const struct forecast_request *request,
                              struct forecast_reply *ret, struct err *err);

uint64_t group_rows(const struct group *group); // ever added
uint64_t
group_version(const struct group *group); // rows that the model has learnt from, ever; 0: no model
void group_info(struct group *group, struct model_info *ret); // *ret owns its texts

#endif
