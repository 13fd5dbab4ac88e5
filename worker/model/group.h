// A group: the outcomes of one problem on one device class, in memory, with the model learnt from
// them and the decisions that were made with it. Owned and called by the static engine (and by
// simulations). Everything in a group is a function of its outcomes in the order of adding; it does
// not depend on time, threads or chance. Knows nothing of files and messages' transport.
//
// Threads: one thread at a time learns (group_add, group_skip, group_fit, group_refit, group_rows,
// group_version). Any number of others may forecast meanwhile (group_ready, group_forecast,
// worker/model/forecasting.h, group_info) and never wait for a fit.
#ifndef WORKER_MODEL_GROUP_H
#define WORKER_MODEL_GROUP_H

#include "common/err.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GROUP_ROWS_MIN 12   // with fewer outcomes there is no model and the confidence is 0
#define GROUP_ROWS_MAX 4000 // outcomes kept, the newest
#define GROUP_USED_ROWS                                                                            \
    16 // so many outcomes after it was last asked a model is not fitted any more

struct group;

struct group *group_create(const char *problem, const char *device_class);
void group_free(struct group *group); // NULL is fine

// From now on forecasts are recalibrated (worker/calibration/recalibrate.h) by the outcomes of the
// group's earlier forecasts; an outcome comes with the raw forecast that was made for it. Must be
// called before the first outcome is added.
void group_recalibrate(struct group *group);

// Adds one outcome, which must be usable (outcome_is_usable). context gives the facts about the
// baseline and the device; its own list of outcomes is ignored. Both are borrowed for the call.
void group_add(struct group *group, const struct observe *context, const struct outcome *outcome);

// Counts `count` outcomes as added and already dropped. Must be called before the first group_add.
// A full group that is read back after a restart is then trained at the same counts as if the
// worker had never stopped.
void group_skip(struct group *group, uint64_t count);

// A group has two models: of compiled candidates, and for screening, of what is known before a
// candidate is compiled. Forecasts of a request with `screening` are made with the second. Each is
// fitted anew to new outcomes only while it is asked; otherwise when it is asked again.

// Says that a forecast of this kind is asked for. Any thread.
void group_use(struct group *group, bool screening);

// Fits one model to all outcomes that were added, unless it is up to date. On failure the old one
// stays.
MUST_CHECK int group_fit(struct group *group, bool screening, struct err *err);

// Fits the models that were asked within the last GROUP_USED_ROWS outcomes.
MUST_CHECK int group_refit(struct group *group, struct err *err);

// Whether a forecast, of a screening or not, can be made without the learning thread: there is a
// model that group_refit keeps up to date, or there are too few outcomes for one and no more are on
// their way (more is false). A group that was read from the store is not ready before a fit.
bool group_ready(struct group *group, bool screening, bool more);

// Writes one forecast per candidate into *ret, made with the model of the last group_fit. *ret is
// uninitialised before and, on success, cleared by the caller with forecast_reply_message.
MUST_CHECK int group_forecast(struct group *group, const struct forecast_request *request,
                              struct forecast_reply *ret, struct err *err);

uint64_t group_rows(const struct group *group); // outcomes that were ever added or skipped
// Outcomes that the newest model has learnt from, ever; 0 when there is no model.
uint64_t group_version(const struct group *group);
void group_info(struct group *group, struct model_info *ret); // *ret owns its texts

#endif
