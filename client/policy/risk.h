// The threshold of the policy `risk`: which of the certificates of client/policy/certify.h a search
// has earned by its own outcomes. The pipeline calls it before each decision, summaries afterwards.
// Candidates are taken in one at a time in the order of their ids, so that the result is the same
// however many are taken in at once, and a search that was killed finds the same threshold again.
//
// A row is a candidate that the policy has decided about and that has a usable forecast of a
// trained model (risk_score). Its score is the forecast P(improves) as it was logged. The score is
// not shifted: the forecast was asked for with the incumbent that the decision saw, and "improves"
// means beyond that one. Scores of 0.5 and more count as 0.5, and no threshold is above 0.5: a
// candidate that is forecast to improve is always measured. An outcome that the daemon gave up
// counts as an improvement.
//
// recall, selective: the rows are those of a calibration phase in which everything is measured. It
// ends, for good, when certify_recall or certify_selective certifies. recall tests after every
// improver. selective tests first when there are half as many rows again as a test without an
// improver needs, then at twice, four times and eight times as many rows. Test number j has a share
// 1 / (j (j + 1)) of delta, since testing until something holds would exceed delta. Of a language
// model's candidates one per parent counts.
//
// online: thresholds lie just above quantiles of the scores of the first RISK_SCORES rows. The rows
// after them are bet on (certify_online), audits with their logged propensities. After an alarm
// everything is measured again, and the thresholds are chosen from the latest scores.
//
// All three restart when forecasts come from another engine.
#ifndef CLIENT_POLICY_RISK_H
#define CLIENT_POLICY_RISK_H

#include "client/policy/certify.h"
#include "client/run/run_state.h"
#include "common/err.h"
#include <stdint.h>

#define RISK_GUARANTEES "recall|selective|online"
#define RISK_GUARANTEE_DEFAULT "online"
#define RISK_SCORES 16 // scores that are collected before thresholds are chosen

struct risk;

struct risk_counts {
    uint64_t alarms;   // after each of which everything was measured again
    uint64_t restarts; // because forecasts came from another engine
};

// ERR_USAGE for --guarantee online without audits, from which it learns.
MUST_CHECK int risk_check(const char *guarantee, double audit, struct err *err);
// Reads guarantee, alpha, delta and audit of started, which is not kept. Never NULL.
struct risk *risk_create(const struct run_started *started);
void risk_free(struct risk *risk); // NULL is fine
// Takes in further candidates up to last, and stops at the first whose outcome is still to come.
void risk_update(struct risk *risk, const struct run_state *run_state, uint64_t last);
// The certificate that holds after the candidates that were taken in. Its tau is at most 0.5.
struct certificate risk_now(const struct risk *risk);
struct risk_counts risk_counts(const struct risk *risk);
// The engine that made the rows' forecasts; NULL before the first row. Valid until the next
// risk_update.
const char *risk_engine(const struct risk *risk);

// The forecast's P(improves), at most 0.5. NaN when it is not usable or its model has learnt
// nothing; such a candidate is always measured.
double risk_score(const struct forecast *forecast);
// What was guaranteed when the last decision was made, or why nothing was: a sentence without a
// full stop, malloc'd. NULL when the run has another policy.
char *risk_sentence(const struct run_state *run_state);

#endif
