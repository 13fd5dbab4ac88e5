// Trust for skill: which forecasts of a forecaster a search may act on, because they have told
// improvers from other candidates in this very search. The pipeline asks before each batch of
// decisions, policies obey (client/policy/policy.h), reports explain. A pure function of the run's
// events, so that a search that was killed finds the same trust again.
//
// Why. A forecaster that says "does not improve" of everything is right about nearly everything,
// once improvers are rare: being right is met by the base rate. Skill is what it does better than
// somebody who knows the base rate and nothing else. It is counted in the measured calls of this
// search, on this problem and device, of this forecaster, in each phase by itself.
// A phase is the candidates that were forecast against one incumbent, by one version of what the
// forecaster had learnt: within a phase nothing but the forecaster's opinion of a candidate makes
// forecasts differ.
//
// What is counted. For a cut c, a forecast below it (P(improves) < c) says "may be left out". Of
// the candidates of a phase, somebody without skill would have put each improver below the cut with
// the probability
//     q = (sum of the propensities of those below) / (sum of the propensities of all),
// because each candidate was measured with its propensity, and which ones improve does not depend
// on such forecasts. Improvers that were measured are therefore a test, and nothing else is: where
// none improved, q does not count. With O improvers below the cut and E = the sum of q,
//     skill = 1 - (O + TRUST_PRIOR) / (E + TRUST_PRIOR),
// the part of the base rate's improvers that are missing among what the forecaster would leave out.
// It is the skill score of forecast verification with the base rate as reference. A constant has 0
// (everything or nothing is below the cut), and so have noise and what follows the base rate along
// the search.
//
// When it is enough. A cut is shown when its skill is at least the search's --confidence, and when
// bets against "no skill" have reached TRUST_ODDS: after each improver the wealth is multiplied by
//     (1 - lambda [below the cut]) / (1 - lambda q),
// whose mean is 1 without skill, however the search adapts, stops and looks (a test martingale;
// Ville's inequality, as in client/policy/certify.h). So the lower bound of the skill is above 0
// with confidence 1 - 1 / TRUST_ODDS for each cut. Forecasts below the largest cut that is shown
// may be trusted; the policy decides which of them it trusts.
//
// When it is over. While forecasts are trusted, all measured calls (those above the cut, the most
// promising one of each batch, audits) are watched: each multiplies the odds that somebody who
// knows how often outcomes came lately is right, and not the forecaster, by the ratio of the
// probabilities that both gave to what came true. That is the log score against the base rate,
// summed from the worst moment on (CUSUM, Page 1954). It is taken of "improves or not" and of how
// fast the candidate is. When either reaches TRUST_ALARM the alarm goes off: all that was counted
// is forgotten, and trust is to be earned anew, by more than before.
#ifndef CLIENT_POLICY_TRUST_H
#define CLIENT_POLICY_TRUST_H

#include "client/run/run_state.h"
#include <stdbool.h>
#include <stdint.h>

#define TRUST_FORECASTER_MAX 384 // bytes of a forecaster, with the final NUL
#define TRUST_ODDS 10.0          // a cut is shown when its bets have made this of 1
#define TRUST_AGAIN 10.0         // after each alarm they must make so many times more
#define TRUST_PRIOR 0.2 // improvers below the cut, of as many expected, that are counted beforehand
#define TRUST_ALARM 1000.0 // odds for the base rate at which trust ends

// What a forecaster has shown in a search.
struct trust {
    double cut;         // forecasts below it may be trusted; NaN: none may
    uint64_t calls;     // its calls that were measured, since the beginning or the last alarm
    uint64_t improvers; // among them
    double expected;    // improvers that would be below the cut without skill; see text without one
    uint64_t below;     // improvers that are
    double skill;       // at the cut; without one, the greatest of any cut
    uint64_t alarms;    // since the search began
    uint64_t alarm_at;  // candidate at which the last alarm went off; 0: none did
};

// Writes who made the forecast: its engine, and the language model with what it was asked by, as
// its raw forecast names it. Trust in one forecaster is none in another.
void trust_forecaster(const struct forecast *forecast, char ret[static TRUST_FORECASTER_MAX]);

// What the forecaster has shown by the outcomes of candidates 1 to visible.
struct trust trust_judge(const struct run_state *run_state, uint64_t visible,
                         const char *forecaster);
// Whether forecasts of the forecaster of the latest of candidates 1 to visible may be trusted; true
// where the run's rule asks for no skill.
bool trust_holds(const struct run_state *run_state, uint64_t visible);
// What has changed, in a sentence without a full stop, malloc'd. The run state does not have the
// event yet.
char *trust_sentence(const struct run_state *run_state, const char *forecaster,
                     const struct trust *now);

#endif
