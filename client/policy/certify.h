// Thresholds with a guarantee. A candidate has a score: the higher it is, the more the candidate is
// worth measuring. The forecast P(improves) is such a score. A candidate whose score is below the
// threshold tau is discarded, which means that its forecast is trusted and it is not measured.
// Each function here chooses tau from known outcomes, or bounds what was lost, and says in one
// sentence what the result rests on. Called by risk.c and false_omission.c. Everything is pure: the
// same rows give the same answer, and nothing is kept or logged.
//
// Which function to use:
//   certify_recall     keeps improvers, and needs very few of them.
//   certify_joint      makes "discarded and an improver" rare among all candidates.
//   certify_selective  makes improvers rare among what is discarded, with confidence.
// These three need a set of outcomes that later candidates resemble. A search is no such set,
// because its candidates get better and its improvers rarer.
//   certify_online     learns from the stream itself and stays valid when the search adapts. It
//                      needs more outcomes, and raises an alarm when forecasts get worse.
//   certify_false_omission  promises nothing ahead. It bounds what was lost.
#ifndef CLIENT_POLICY_CERTIFY_H
#define CLIENT_POLICY_CERTIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CERTIFY_TEXT 320 // bytes of a sentence, with its NUL

// One candidate, as certificates see it.
struct certify_row {
    double score;      // NaN: there is no forecast, so the candidate is never discarded
    double forecast;   // P(improves) before the outcome, for certify_false_omission; NaN: none
    double propensity; // probability with which it was to be measured, in (0,1]
    bool measured;     // its outcome is known
    bool improves;     // discarding it is a loss; read only when it was measured
    uint64_t cluster;  // rows with the same number are not independent of each other, as the
                       // children of one parent are; 0: the row is independent of all others
};

struct certificate {
    double tau;       // Discard below it. Never above the largest score seen; -INFINITY: nothing.
    bool certified;   // tau is above -INFINITY and the guarantee of its function holds
    size_t rows;      // measured rows that it rests on, one per cluster
    size_t improvers; // among these rows
    size_t below;     // of these rows, those with a score below tau
    size_t improvers_below;  // of those below, the improvers
    char text[CERTIFY_TEXT]; // One sentence without a full stop: what is guaranteed under which
                             // assumption, or why nothing is.
};

// The three functions below take rows that are exchangeable with the candidates to come: a set from
// elsewhere, or the part of a search in which everything was measured. Outcomes that were selected
// are no such set. Therefore all rows must have one propensity in (0,1]; rows that were not
// measured are then left out. Of a cluster one row counts, chosen without regard to its outcome.
// alpha and delta lie in (0,1). Input that does not satisfy this is not certified, and text says
// why.

// Guarantees P(score < tau | improver) <= alpha, on average over the rows, by class-conditional
// split conformal prediction (Vovk 2012, "Conditional validity of inductive conformal predictors").
// tau is the kth smallest score of n improvers with k = floor(alpha (n + 1)). It is certified when
// k >= 1, which needs at least 1 / alpha - 1 improvers. The certificate's rows are the improvers,
// one per cluster.
struct certificate certify_recall(const struct certify_row *rows, size_t n, double alpha);

// Guarantees P(discarded and improver) <= alpha, on average over the rows, by conformal risk
// control (Angelopoulos et al., arXiv 2208.02814) of that loss, which rises with tau. Takes the
// largest tau with (loss + 1) / (n + 1) <= alpha. It is certified when alpha (n + 1) >= 1. Where
// improvers are rarer than alpha it says little, because everything may then be discarded.
struct certificate certify_joint(const struct certify_row *rows, size_t n, double alpha);

// Guarantees P(improver | discarded) <= alpha with probability 1 - delta over the rows, by Learn
// then Test (Angelopoulos et al., arXiv 2110.01052) with fixed-sequence testing. Each threshold is
// tested, from the lowest score upward, by the binomial distribution of the improvers below it. The
// last one before the first failure is taken. Testing starts where ln delta / ln(1 - alpha) rows
// are below, because fewer can never pass.
// It is exact when the share of improvers among the discarded does not fall as tau rises, which is
// the case for forecasts that rank the right way round: the number of rows below the first
// threshold whose share exceeds alpha then depends on the scores only.
struct certificate certify_selective(const struct certify_row *rows, size_t n, double alpha,
                                     double delta);

// ---- along a search ----

#define CERTIFY_GRID_MAX 16
#define CERTIFY_BETS 3

// Active anytime-valid test by betting after Xu, Karampatziakis and Mineiro (arXiv 2406.10490),
// here for the share of improvers below tau. Let y be 1 for a row that improves and 0 otherwise.
// For each tau of the grid the wealth
//     W(tau) = product over rows of 1 + lambda 1[score < tau] (measured / propensity) (alpha - y)
// with lambda = bet * smallest / (1 - alpha) cannot grow, on average, while that share is alpha or
// more, however the search adapts. It reaches 1 / delta with probability delta at most (Ville's
// inequality). W is the mean over the bets. Thresholds are certified in ascending order (a fixed
// sequence), so that the first wrong one costs delta and those after it cost nothing more. A
// certified threshold stays certified until a restart. The test assumes that measurements are drawn
// with the logged propensities independently of everything else, and that every row below tau had
// a chance of being measured. It does not prove that the share stays below alpha later.
//
// That is what the alarm is for. It places the opposite bet,
//     1 + lambda (measured / propensity) (y - alpha) with lambda = bet * smallest / alpha,
// on what is being discarded, summed over all starting points t with weights 1 / (t (t + 1)), so
// that a long good time does not delay it. It rises with probability alarm_delta at most while the
// share is alpha or less. When it rises, everything restarts.
struct certify_online {
    double alpha, delta, alarm_delta; // all in (0,1)
    double bet[CERTIFY_BETS];         // in (0,1]; certify_online_init sets .25, .5, .9
    double grid[CERTIFY_GRID_MAX];    // thresholds, ascending
    size_t grid_len;
    const char *fault; // why nothing can be certified before a restart; NULL: nothing is wrong
    size_t level;      // how many thresholds of the grid are certified, from the lowest
    unsigned alarms;   // since initialisation
    size_t rows, measured, improvers; // since the last restart
    struct {
        double log_wealth[CERTIFY_BETS]; // natural logarithm of each bet's wealth
        bool crossed;                    // W has reached 1 / delta at some time
        size_t measured, improvers;      // among the rows below this threshold
    } at[CERTIFY_GRID_MAX];              // for each threshold of the grid
    double alarm_wealth[CERTIFY_BETS];   // summed over the starting points so far
    size_t alarm_rows; // measured rows among what has been discarded since it was certified
};

// Fills ret_grid with the distinct quantiles .2, .3 to .9 of the scores and returns how many there
// are; NaN scores are left out, and without scores there are none. The scores must have been known
// before the first row is added: the outcomes that the test counts must not have chosen its
// thresholds.
size_t certify_grid(const double *score, size_t n, double ret_grid[CERTIFY_GRID_MAX]);
// grid has len thresholds, finite and ascending, at most CERTIFY_GRID_MAX; it is copied. With
// settings out of range nothing is ever certified, and the certificate's text says why.
void certify_online_init(struct certify_online *online, double alpha, double delta,
                         double alarm_delta, const double *grid, size_t len);
// Adds the next row, in the order of decisions. smallest is the smallest propensity that the policy
// in force could have given any candidate with a score; it is 1 while everything is measured. A
// propensity outside [smallest, 1] breaks the test: nothing is certified from then on before a
// restart. A row without a score is only counted. Returns true when the alarm rose, which restarts.
bool certify_online_add(struct certify_online *online, const struct certify_row *row,
                        double smallest);
// Forgets all rows. To be called after a change of the forecaster, its prompt, the device or the
// problem. grid NULL keeps the thresholds. The certificates that follow have a delta of their own.
void certify_online_restart(struct certify_online *online, const double *grid, size_t len);
// The certificate that holds after the rows so far. Its rows and improvers are what was measured
// since the last restart.
struct certificate certify_online_now(const struct certify_online *online);

// ---- afterwards ----

// With fewer audits than this an estimate is not shown: without an improver among them it reads as
// "nothing was lost", of which so few are no evidence. The bound is shown.
#define CERTIFY_AUDITS_LEAST 60

// An estimate of the false omission rate: the share of the discarded candidates that would have
// improved.
struct false_omission {
    bool estimated;      // something was audited, and the propensities are possible
    bool shown;          // the estimates may be shown: CERTIFY_AUDITS_LEAST audits or more
    size_t discarded;    // rows
    size_t audited;      // measured among them
    size_t improvers;    // among the audited
    double hajek, share; // the two estimates below; NaN when not estimated
    double upper;        // upper confidence bound of the share; 1 when not estimated
    // One sentence without a full stop: the bound, its confidence and the number of audits, with
    // the estimate only where it may be shown and an audit improved.
    char text[CERTIFY_TEXT];
};

// The words of its sentence that differ by what was audited.
struct false_omission_words {
    const char *population; // "discarded", behind its number
    const char *improve;    // "would have improved", behind the estimated share of it
    const char *of_which;   // "discarded would have", behind the number, of the share at most
};

// Writes the sentence. The bound is rounded up.
void false_omission_describe(struct false_omission *omission, double confidence,
                             const struct false_omission_words *words);

// rows are all that were discarded; those that were audited are measured. Assumes independent
// audits with the logged propensities, and nothing about scores, forecasts or what is still to
// come. With y = 1 for a row that improves, else 0, and w = 1 / propensity of an audited row:
//     hajek = sum(w y) / sum(w)                         (Hajek 1971);
//     share = mean(q) + sum(w (y - q)) / sum(w), in [0,1], with the forecasts q as control variate
//             (prediction-powered inference, Angelopoulos et al. 2023, Science 382);
//     upper = the smallest m whose bets against "the share is m or more" reach 1 / (1 - confidence)
//             (Waudby-Smith and Ramdas 2024, JRSS B 86).
// One fixed bet is used for all rows, so that the mean of the factors' logarithms is at most the
// logarithm of their mean and rows need not resemble each other; nor does it matter that an audit
// which finds an improver makes later ones rarer. The wealth is the mean over several bets with
// fixed shares. Half of it is on a bet of 1, which is lost when an audit improves. Without an
// improver among n audits of equal propensities it alone gives 1 - ((1 - confidence) / 2)^(1/n),
// the exact binomial bound at half the error. At 90 % all bets give 24 % for 10 such audits and
// 4.5 % for 60, where Clopper and Pearson, who need outcomes that do not depend on audits, have 21
// and 3.8 %. The rest is on smaller bets, with and without the control variate.
struct false_omission certify_false_omission(const struct certify_row *rows, size_t n,
                                             double confidence);

// Share of a draw's probability that is the same for all, in searches that begin now. The rest goes
// by what candidates promise, where an audit can refute most.
#define CERTIFY_DRAW_UNIFORM 0.75

// One audit that was drawn from what was left, without putting back.
struct certify_draw {
    double probability; // with which this one was drawn of all that were left then; in (0,1]
    bool improves;      // it was measured and improves
};

// The same for audits that were drawn one after the other from a population. draws are in order.
// Each draw chose one of those that were left with a probability of its own, of which the share
// `uniform` was the same for all of them. With N in the population, k - 1 draws before and S
// improvers among those, draw k gives Z = S / N + (1 / (N probability) if it improves), whose
// expectation, given all draws before, is the share of improvers in the population (Shekhar et al.
// 2023, "Risk-limiting financial audits via weighted sampling without replacement"); share is the
// mean of Z, and hajek the same. upper is found by bets as above, against the largest Z that there
// could be. Where draws are alike for all (uniform is 1) and none improves it is 22 % for 10 draws
// of many and 3.9 % for 60; with CERTIFY_DRAW_UNIFORM 28 and 5.2 %.
struct false_omission certify_draws(const struct certify_draw *draws, size_t n, size_t population,
                                    double uniform, double confidence);

#endif
