// Thresholds with a guarantee. A candidate has a score (higher: more worth measuring, such as the
// forecast P(improves)) and is discarded, that is trusted and not measured, when score < tau. Each
// function chooses tau from outcomes that are known, or bounds what was lost, and says in one
// sentence what that rests on. Pure: the same rows give the same answer; nothing is kept or logged.
//
// Which one: certify_recall for "do not lose improvers" from very few of them; certify_joint for
// "rarely discard an improver", counted over all candidates; certify_selective for "what is
// discarded is no improver" with confidence; these three need a set of outcomes that later
// candidates resemble, and a search is no such set: its candidates get better and its improvers
// rarer. certify_online learns from the stream itself and survives that the search adapts; it needs
// more outcomes, and an alarm for forecasts that get worse. certify_false_omission promises nothing ahead:
// it bounds what was lost.
#ifndef CLIENT_POLICY_CERTIFY_H
#define CLIENT_POLICY_CERTIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CERTIFY_TEXT 320

struct certify_row {
    double score;      // NaN: there is no forecast, so it is never discarded
    double forecast;   // P(improves) before the outcome, for certify_false_omission only; NaN: none
    double propensity; // with which it was to be measured, in (0,1]
    bool measured;     // its outcome is known
    bool improves;     // it improves, so that discarding it is a loss; read when measured only
    uint64_t cluster;  // rows that share it stand or fall together (children of a parent); 0: alone
};

struct certificate {
    double tau;       // discard below it; never above the largest score seen; -INFINITY: nothing
    bool certified;   // tau is above -INFINITY and the guarantee of its function holds
    size_t rows;      // that it rests on: measured, one per cluster
    size_t improvers; // among them
    size_t below;     // of rows, those with a score below tau
    size_t improvers_below;  // of these, the improvers
    char text[CERTIFY_TEXT]; // one sentence without a full stop: what is guaranteed if what, or why
                             // not
};

// The three below take rows that are exchangeable with the candidates to come: a set from
// elsewhere, or the part of a search where everything was measured. Outcomes that were chosen are
// no such set, so all rows must have one propensity, which lies in (0,1]; those not measured are
// then left out. Of a cluster one row counts, chosen without regard to its outcome. alpha and delta
// lie in (0,1). What does not satisfy this is not certified, and text says why.

// P(score < tau | improver) <= alpha, on average over the rows: class-conditional split conformal
// (Vovk 2012, "Conditional validity of inductive conformal predictors"). tau is the kth smallest
// score of n improvers, k = floor(alpha (n + 1)); certified when k >= 1, so with at least 1 / alpha
// - 1 improvers. rows of the certificate are the improvers, one per cluster.
struct certificate certify_recall(const struct certify_row *rows, size_t n, double alpha);

// P(discarded and improver) <= alpha, on average over the rows: conformal risk control
// (Angelopoulos et al., arXiv 2208.02814) of that loss, which falls with tau. The largest tau with
// (loss + 1) / (n + 1)
// <= alpha; certified when alpha (n + 1) >= 1. Where improvers are rarer than alpha it says little:
// everything may then be discarded.
struct certificate certify_joint(const struct certify_row *rows, size_t n, double alpha);

// P(improver | discarded) <= alpha with probability 1 - delta over the rows: Learn then Test
// (Angelopoulos et al., arXiv 2110.01052) with fixed-sequence testing. From the lowest scores
// upward each threshold is tested by the binomial distribution of the improvers below it; the last
// before the first failure is taken. Starts where ln delta / ln(1 - alpha) rows are below, fewer
// can never pass. Exact when that share does not fall as tau rises, that is for forecasts that are
// not upside down: the first threshold above alpha then has a count below it that depends on scores
// only.
struct certificate certify_selective(const struct certify_row *rows, size_t n, double alpha,
                                     double delta);

// ---- along a search ----

#define CERTIFY_GRID_MAX 16
#define CERTIFY_BETS 3

// Active anytime-valid test by betting after Xu, Karampatziakis and Mineiro (arXiv 2406.10490),
// here for the share of improvers below tau. For each tau of the grid the wealth
//     W(tau) = product over rows of 1 + lambda 1[score < tau] (measured / propensity) (alpha - bad)
// with lambda = bet * smallest / (1 - alpha) cannot grow, on average, while that share is alpha or
// more, however the search adapts; it reaches 1 / delta with probability delta at most (Ville). W
// is the mean over the bets. Thresholds are certified in ascending order (fixed sequence), so that
// the first wrong one costs delta and nothing after it more. A threshold that is certified stays so
// until a restart. Assumes that propensities are those of coins that nothing else depends on, and
// that no row below tau had none; it does not prove that the share stays below alpha later, hence
//
// the alarm: the same bet the other way, 1 + lambda (measured / propensity) (bad - alpha), lambda =
// bet * smallest / alpha, on what is being discarded, as the sum over all starting points t with
// weights 1 / (t (t + 1)), so that a long good time does not delay it. It rises with probability
// alarm_delta at most while the share is alpha or less, and then everything starts afresh.
struct certify_online {
    double alpha, delta, alarm_delta;
    double bet[CERTIFY_BETS];      // in (0,1]; certify_online_init sets .25, .5, .9
    double grid[CERTIFY_GRID_MAX]; // ascending
    size_t grid_len;
    const char *fault;                // why nothing can be certified before a restart, or NULL
    size_t level;                     // so many of the grid are certified
    unsigned alarms;                  // in all
    size_t rows, measured, improvers; // since the last start
    struct {
        double log_wealth[CERTIFY_BETS];
        bool crossed; // W was 1 / delta once
        size_t measured, improvers;
    } at[CERTIFY_GRID_MAX];
    double alarm_wealth[CERTIFY_BETS]; // of the starting points so far
    size_t alarm_rows;                 // measured among what is discarded since it was certified
};

// Fills ret_grid with the distinct quantiles .2, .3 … .9 of the scores, NaN left out, and returns
// how many there are (0 without scores). Of scores that were there before the first row is added:
// the outcomes that the test counts must not have chosen its thresholds.
size_t certify_grid(const double *score, size_t n, double ret_grid[CERTIFY_GRID_MAX]);
// grid: len thresholds, finite and ascending, at most CERTIFY_GRID_MAX. With settings out of range
// nothing is ever certified, and the text says why.
void certify_online_init(struct certify_online *online, double alpha, double delta,
                         double alarm_delta, const double *grid, size_t len);
// Adds the next row, in the order of decisions. smallest is the smallest propensity that the policy
// in force could have given any candidate with a score: 1 while everything is measured. A
// propensity outside [smallest, 1] breaks the test: nothing is certified from then on before a
// restart. A row without a score changes nothing. Returns true when the alarm rose, which restarts.
bool certify_online_add(struct certify_online *online, const struct certify_row *row,
                        double smallest);
// Forgets all rows: after a change of the forecaster, its prompt, the device or the problem. grid
// NULL keeps the thresholds. The new certificate has a delta of its own.
void certify_online_restart(struct certify_online *online, const double *grid, size_t len);
// rows and improvers are what was measured since the last start.
struct certificate certify_online_now(const struct certify_online *online);

// ---- afterwards ----

// What share of the discarded candidates would have improved. rows are all that were discarded;
// those that were audited are measured. Assumes independent audits with the logged propensities,
// and nothing about scores, forecasts or what is still to come.
//     hajek = sum(w bad) / sum(w) with w = 1 / propensity of the audited (Hajek 1971);
//     share = mean(q) + sum(w (bad - q)) / sum(w) with the forecasts q as control variate
//             (prediction-powered inference, Angelopoulos et al. 2023, Science 382), in [0,1];
//     upper = the smallest m whose bets against "the share is m or more" reach 1 / (1 - confidence)
//             (Waudby-Smith and Ramdas 2024, JRSS B 86). One fixed bet for all rows, so that the
//             mean of the factors' logarithms is at most that of their mean and no row need be like
//             another; averaged over three bets, with and without the control variate. Far below an
//             empirical Bernstein bound, whose range term alone is 7 ln 40 / (3 propensity n).
struct false_omission {
    bool estimated;      // something was audited, and the propensities are possible
    size_t discarded;    // rows
    size_t audited;      // measured among them
    size_t improvers;    // among the audited
    double hajek, share; // NaN when not estimated
    double upper; // with probability `confidence` the share is not above; 1 when not estimated
    char text[CERTIFY_TEXT]; // one sentence without a full stop
};
struct false_omission certify_false_omission(const struct certify_row *rows, size_t n,
                                             double confidence);

#endif
