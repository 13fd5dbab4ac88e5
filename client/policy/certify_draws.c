// The share of improvers in what was never measured, bounded from audits that were drawn one by
// one. The wealth of each bet is a supermartingale when the share is m or more, whatever decides
// which candidates improve, so that no draw has to be independent of the others.
#include "client/policy/certify.h"

#include <math.h>
#include <stdio.h>

#define BISECTIONS 50

static const struct {
    double bet, share; // of the wealth
} bets[] = {{1, 0.9}, {0.6, 0.04}, {0.3, 0.03}, {0.1, 0.03}};
#define BETS (sizeof(bets) / sizeof(bets[0]))

// What a draw says of the share of improvers, and the most that it could have said.
struct step {
    double z, most;
};

static struct step step_of(const struct certify_draw *draw, size_t before, size_t found,
                           size_t population, double uniform)
{
    double all = (double)population, left = (double)(population - before);
    double known = (double)found / all;
    return (struct step){.z = known + (draw->improves ? 1 / (all * draw->probability) : 0),
                         .most = known + left / (all * uniform)};
}

// The wealth of the bets that the share is below m. It rises with m.
static double wealth(const struct certify_draw *draws, size_t n, size_t population, double uniform,
                     double m)
{
    double log_wealth[BETS] = {0}, sum = 0;
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        struct step step = step_of(&draws[i], i, found, population, uniform);
        for (size_t b = 0; b < BETS && step.most > m; b++) {
            // Rounding must not make a loss larger than everything.
            log_wealth[b] += log1p(fmax(bets[b].bet * (m - step.z) / (step.most - m), -1));
        }
        found += draws[i].improves;
    }
    for (size_t b = 0; b < BETS; b++) {
        sum += bets[b].share * exp(fmin(log_wealth[b], 700)); // exp(710) would overflow
    }
    return sum;
}

static double upper_bound(const struct certify_draw *draws, size_t n, size_t population,
                          double uniform, double confidence)
{
    double lo = 0, hi = 1;
    for (unsigned i = 0; i < BISECTIONS; i++) {
        double middle = 0.5 * (lo + hi);
        bool enough = wealth(draws, n, population, uniform, middle) * (1 - confidence) >= 1;
        *(enough ? &hi : &lo) = middle;
    }
    return hi;
}

// Whether the draws are possible.
static bool are_possible(const struct certify_draw *draws, size_t n, size_t population,
                         double uniform, double confidence)
{
    bool possible =
        n <= population && uniform > 0 && uniform <= 1 && confidence > 0 && confidence < 1;
    for (size_t i = 0; i < n && possible; i++) {
        double least = uniform / (double)(population - i);
        possible = draws[i].probability >= least * (1 - 1e-9) && draws[i].probability <= 1 + 1e-9;
    }
    return possible;
}

struct false_omission certify_draws(const struct certify_draw *draws, size_t n, size_t population,
                                    double uniform, double confidence)
{
    struct false_omission omission = {
        .discarded = population, .audited = n, .hajek = NAN, .share = NAN, .upper = 1};
    if (population == 0) {
        snprintf(omission.text, sizeof(omission.text), "nothing was left unmeasured");
        return omission;
    }
    if (n == 0 || !are_possible(draws, n, population, uniform, confidence)) {
        snprintf(omission.text, sizeof(omission.text),
                 "how many of the %zu that were never measured improve is not known: %s",
                 population,
                 n == 0 ? "none was audited" : "the draws of the audits are not possible");
        return omission;
    }
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += step_of(&draws[i], i, omission.improvers, population, uniform).z;
        omission.improvers += draws[i].improves;
    }
    omission.estimated = true;
    omission.shown = n >= CERTIFY_AUDITS_LEAST;
    omission.hajek = omission.share = fmin(sum / (double)n, 1);
    // What was drawn is known, so that at most all others improve as well.
    double found = (double)omission.improvers / (double)population;
    double left = (double)(population - n) / (double)population;
    omission.upper = fmin(upper_bound(draws, n, population, uniform, confidence), found + left);
    omission.upper = fmax(omission.upper, found);
    static const struct false_omission_words words = {
        .population = "that were never measured before the last audits",
        .improve = "improve",
        .of_which = "that were never measured before do"};
    false_omission_describe(&omission, confidence, &words);
    return omission;
}
