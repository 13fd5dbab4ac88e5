// The false omission rate, estimated and bounded from audits. The bound comes from bets against
// "the share of improvers among the discarded is m or more" (Waudby-Smith and Ramdas 2024,
// "Estimating means of bounded random variables by betting", JRSS B 86, 1-27): their wealth rises
// with m, and a bisection finds the smallest m at which it is large enough.
#include "client/policy/certify.h"

#include <math.h>
#include <stdio.h>

#define BISECTIONS 40

// Where the wealth is at the beginning. A larger bet wins more while audits do not improve, and
// loses more when one does.
static const struct {
    double bet;   // in (0,1]
    bool varied;  // with the forecasts as control variate
    double share; // of the wealth; their sum is 1
} bets[] = {{1, false, 0.5},   {0.75, false, 0.1}, {0.5, false, 0.1}, {0.25, false, 0.1},
            {0.9, true, 0.06}, {0.5, true, 0.07},  {0.25, true, 0.07}};
#define BETS (sizeof(bets) / sizeof(bets[0]))

// The forecast as a probability. A candidate without a forecast counts as 0: any number is a valid
// control variate.
static double forecast_of(const struct certify_row *row)
{
    return isnan(row->forecast) ? 0 : fmin(fmax(row->forecast, 0), 1);
}

// An unbiased estimate of y, which is 1 for a row that improves and else 0: forecast + (measured /
// propensity) (y - forecast). Its expectation over the draw that decides about the audit is y.
static double corrected(const struct certify_row *row)
{
    double q = forecast_of(row);
    return row->measured ? q + ((row->improves ? 1 : 0) - q) / row->propensity : q;
}

// The wealth of the bets that the share is below m. It rises with m, and its expectation is at most
// 1 when the share is m or more. smallest and largest make the worst row cost a bet of 1
// everything.
static double wealth(const struct certify_row *rows, size_t n, double m, double smallest,
                     double largest)
{
    double log_wealth[BETS] = {0}, sum = 0;
    for (size_t i = 0; i < n; i++) {
        double gain = rows[i].measured ? (m - (rows[i].improves ? 1 : 0)) / rows[i].propensity : 0;
        double plain = gain * smallest / (1 - m);
        double varied = (m - corrected(&rows[i])) / (largest - m);
        for (size_t b = 0; b < BETS; b++) {
            // Rounding must not make a loss larger than everything.
            log_wealth[b] += log1p(fmax(bets[b].bet * (bets[b].varied ? varied : plain), -1));
        }
    }
    for (size_t b = 0; b < BETS; b++) {
        sum += bets[b].share * exp(fmin(log_wealth[b], 700)); // exp(710) would overflow
    }
    return sum;
}

// The smallest m whose wealth reaches 1 / (1 - confidence).
static double upper_bound(const struct certify_row *rows, size_t n, double confidence)
{
    double smallest = 1, largest = 1, lo = 0, hi = 1;
    for (size_t i = 0; i < n; i++) {
        double q = forecast_of(&rows[i]);
        smallest = fmin(smallest, rows[i].propensity);
        // The largest value that corrected() could have had, whatever was drawn and came out.
        largest = fmax(largest, q + (1 - q) / rows[i].propensity);
    }
    for (unsigned step = 0; step < BISECTIONS; step++) {
        double middle = 0.5 * (lo + hi);
        if (wealth(rows, n, middle, smallest, largest) * (1 - confidence) >= 1) {
            hi = middle;
        } else {
            lo = middle;
        }
    }
    return hi;
}

// Why there can be no estimate, or NULL.
static const char *obstacle(const struct certify_row *rows, size_t n, double confidence)
{
    if (!(confidence > 0 && confidence < 1)) {
        return "the confidence must lie between 0 and 1";
    }
    for (size_t i = 0; i < n; i++) {
        if (!(rows[i].propensity > 0 && rows[i].propensity <= 1)) {
            return "some had no chance of being audited, or a propensity that is none";
        }
    }
    return NULL;
}

void false_omission_describe(struct false_omission *omission, double confidence,
                             const struct false_omission_words *words)
{
    double upper = fmin(ceil(1000 * omission->upper - 1e-9) / 10, 100);
    char *text = omission->text;
    size_t size = sizeof(omission->text);
    if (omission->shown && omission->improvers > 0) {
        snprintf(text, size,
                 "of the %zu %s an estimated %.1f %% %s, with %g %% confidence at most %.1f %%, by "
                 "%zu audits",
                 omission->discarded, words->population, 100 * omission->share, words->improve,
                 100 * confidence, upper, omission->audited);
        return;
    }
    char found[32] = "none";
    if (omission->improvers > 0) {
        snprintf(found, sizeof(found), "%zu", omission->improvers);
    }
    snprintf(text, size,
             "%s of %zu audit%s improved: with %g %% confidence at most %.1f %% of the %zu %s",
             found, omission->audited, omission->audited == 1 ? "" : "s", 100 * confidence, upper,
             omission->discarded, words->of_which);
}

struct false_omission certify_false_omission(const struct certify_row *rows, size_t n,
                                             double confidence)
{
    struct false_omission omission = {.discarded = n, .hajek = NAN, .share = NAN, .upper = 1};
    const char *why = obstacle(rows, n, confidence);
    double weights = 0, improving = 0, forecasts = 0, residuals = 0;
    for (size_t i = 0; i < n; i++) {
        omission.audited += rows[i].measured;
        omission.improvers += rows[i].measured && rows[i].improves;
    }
    if (n == 0) {
        snprintf(omission.text, sizeof(omission.text), "nothing was discarded");
        return omission;
    }
    if (why || omission.audited == 0) {
        snprintf(omission.text, sizeof(omission.text),
                 "how many of the %zu discarded would have improved is not known: %s", n,
                 why ? why : "none was audited");
        return omission;
    }
    for (size_t i = 0; i < n; i++) {
        double q = forecast_of(&rows[i]), y = rows[i].improves ? 1 : 0,
               weight = 1 / rows[i].propensity;
        forecasts += q;
        if (rows[i].measured) {
            weights += weight;
            improving += weight * y;
            residuals += weight * (y - q);
        }
    }
    omission.estimated = true;
    omission.shown = omission.audited >= CERTIFY_AUDITS_LEAST;
    omission.hajek = improving / weights;
    omission.share = fmin(fmax(forecasts / (double)n + residuals / weights, 0), 1);
    // The share is at least that of the improvers that audits have found.
    omission.upper = fmax(upper_bound(rows, n, confidence), (double)omission.improvers / (double)n);
    static const struct false_omission_words words = {.population = "discarded",
                                                      .improve = "would have improved",
                                                      .of_which = "discarded would have"};
    false_omission_describe(&omission, confidence, &words);
    return omission;
}
