// The threshold of policy risk: which of the certificates of client/policy/certify.h a search has earned
// by its own outcomes. A run state over decided candidates, one at a time in order of ids, so that it is
// the same however many are taken in at once, and a search that was killed finds the same threshold
// again.
//
// A row is a candidate that was decided by the policy and has a usable forecast of a model that has
// learnt something (risk_score). Its score is the forecast P(improves) as it was logged. It is not
// shifted: the forecast was asked for with the incumbent that the decision saw, and "improves"
// means beyond that one. Scores of 0.5 and more count as 0.5, and no threshold is above: who is
// forecast to improve is measured. An outcome that the daemon gave up counts as an improvement.
//
// recall, selective: rows of a calibration phase in which everything is measured. It ends, for
// good, when certify_recall or certify_selective certifies. recall looks after every improver.
// selective looks when there are half as many rows again as one look without an improver needs,
// then at twice as many, four times …; look j has a share 1 / (j (j + 1)) of delta, since looking
// until it holds would spend more. Of a language model's candidates one per parent counts.
//
// online: thresholds are just above quantiles of the scores of the first RISK_SCORES rows; the rows after them
// are bet on (certify_online), audits with their logged propensities. After an alarm everything is
// measured again, and the thresholds are of the latest scores.
//
// All begin afresh when forecasts come from another engine.
#ifndef CLIENT_POLICY_RISK_H
#define CLIENT_POLICY_RISK_H

#include "client/policy/certify.h"
#include "client/run/run_state.h"
#include "common/err.h"
#include <stdint.h>

#define RISK_GUARANTEES "recall|selective|online"
#define RISK_GUARANTEE_DEFAULT "online"
#define RISK_SCORES 16 // before thresholds are chosen

struct risk;

struct risk_counts {
    uint64_t alarms;   // after which everything was measured again
    uint64_t restarts; // since forecasts came from another engine
};

// ERR_USAGE for --guarantee online without audits, which it learns from.
MUST_CHECK int risk_check(const char *guarantee, double audit, struct err *err);
// guarantee, alpha, delta and audit of started, which is not kept. Never NULL.
struct risk *risk_create(const struct run_started *started);
void risk_free(struct risk *risk); // NULL is fine
// Takes in candidates up to last, but none from the first on whose outcome is still to come.
void risk_update(struct risk *risk, const struct run_state *run_state, uint64_t last);
// What holds after these. Its tau is at most 0.5.
struct certificate risk_now(const struct risk *risk);
struct risk_counts risk_counts(const struct risk *risk);
// Whose forecasts the rows had; NULL before the first. Valid until the next risk_update.
const char *risk_engine(const struct risk *risk);

// NaN: such a candidate is always measured.
double risk_score(const struct forecast *forecast);
// What was promised when the last decision was made, or why nothing was: a sentence without a full
// stop, malloc'd; NULL for another policy.
char *risk_sentence(const struct run_state *run_state);

#endif
