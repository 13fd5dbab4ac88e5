// Thresholds from the stream of a search itself. Each outcome wins or loses bets, and a threshold
// is certified when the wealth of its bets is large enough.
//
// Every factor of the wealth is a bet on the next row. Under the null hypothesis it is fair or
// unfavourable, whatever came before. Therefore the product is a supermartingale, and the search
// may stop, adapt and look at any time. lambda depends on the policy (its smallest propensity) and
// not on the row, since the null hypothesis is about the average row below tau. lambda is bounded
// so that no factor is negative: the smallest factor is 1 - bet.
#include "client/policy/certify.h"

#include "common/mem.h"
#include "common/stats.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GRID_FIRST 0.2 // a lower quantile would have too few rows below it to be certified
#define GRID_STEP 0.1
#define GRID_STEPS 8

// Small bets are best against a forecaster that got worse, because the share of improvers then is a
// few times alpha and not 1.
static const double alarm_bets[CERTIFY_BETS] = {0.1, 0.25, 0.5};

size_t certify_grid(const double *score, size_t n, double ret_grid[CERTIFY_GRID_MAX])
{
    double *sorted = xcalloc(n + 1, sizeof(*sorted));
    size_t with_score = 0, len = 0;
    for (size_t i = 0; i < n; i++) {
        if (isfinite(score[i])) {
            sorted[with_score++] = score[i];
        }
    }
    stats_sort(sorted, with_score);
    for (unsigned step = 0; step < GRID_STEPS && with_score > 0; step++) {
        double tau = stats_quantile(sorted, with_score, GRID_FIRST + GRID_STEP * step);
        if (len == 0 || tau > ret_grid[len - 1]) {
            ret_grid[len++] = tau;
        }
    }
    free(sorted);
    return len;
}

// Why nothing can be certified with these settings, or NULL.
static const char *fault_of(const struct certify_online *online)
{
    if (!(online->alpha > 0 && online->alpha < 1)) {
        return "the risk must lie between 0 and 1";
    }
    if (!(online->delta > 0 && online->delta < 1 && online->alarm_delta > 0 &&
          online->alarm_delta < 1)) {
        return "the confidence must lie between 0 and 1";
    }
    if (online->grid_len == 0 || online->grid_len > CERTIFY_GRID_MAX) {
        return "there is no grid of thresholds, or it is too long";
    }
    for (size_t j = 0; j < online->grid_len; j++) {
        if (!isfinite(online->grid[j]) || (j > 0 && online->grid[j] <= online->grid[j - 1])) {
            return "the grid of thresholds does not rise";
        }
    }
    return NULL;
}

void certify_online_restart(struct certify_online *online, const double *grid, size_t len)
{
    if (grid) {
        online->grid_len = len;
        memcpy(online->grid, grid,
               (len < CERTIFY_GRID_MAX ? len : CERTIFY_GRID_MAX) * sizeof(*grid));
    }
    online->fault = fault_of(online);
    online->level = 0;
    online->rows = online->measured = online->improvers = 0;
    online->alarm_rows = 0;
    memset(online->at, 0, sizeof(online->at));
    memset(online->alarm_wealth, 0, sizeof(online->alarm_wealth));
}

void certify_online_init(struct certify_online *online, double alpha, double delta,
                         double alarm_delta, const double *grid, size_t len)
{
    *online = (struct certify_online){
        .alpha = alpha, .delta = delta, .alarm_delta = alarm_delta, .bet = {0.25, 0.5, 0.9}};
    certify_online_restart(online, grid, grid ? len : 0);
}

// Whether the mean wealth over the bets has reached 1 / delta. The tolerance is for bets of 1,
// which reach it exactly.
static bool reached(const double log_wealth[CERTIFY_BETS], double delta)
{
    double sum = 0;
    for (size_t b = 0; b < CERTIFY_BETS; b++) {
        sum += exp(fmin(log_wealth[b], 700)) / CERTIFY_BETS; // exp(710) would overflow
    }
    return sum * delta >= 1 - 1e-9;
}

// Places the alarm's bets on a measured row whose score is below the certified threshold. weight is
// smallest / propensity. Returns true when the alarm rises.
static bool watch(struct certify_online *online, bool improves, double weight)
{
    double t = (double)++online->alarm_rows, sum = 0;
    for (size_t b = 0; b < CERTIFY_BETS; b++) {
        double factor =
            1 + alarm_bets[b] * weight * ((improves ? 1 : 0) - online->alpha) / online->alpha;
        online->alarm_wealth[b] = (online->alarm_wealth[b] + 1 / (t * (t + 1))) * factor;
        // The starting points to come have a weight of 1 / (t + 1) together and a wealth of 1.
        sum += (online->alarm_wealth[b] + 1 / (t + 1)) / CERTIFY_BETS;
    }
    return sum * online->alarm_delta >= 1;
}

static void bet(struct certify_online *online, size_t j, bool improves, double weight)
{
    for (size_t b = 0; b < CERTIFY_BETS; b++) {
        double stake = online->bet[b] * weight / (1 - online->alpha);
        // A bet of 1 may lose everything. Rounding must not make the loss larger than that.
        online->at[j].log_wealth[b] +=
            log1p(fmax(stake * (online->alpha - (improves ? 1 : 0)), -1));
    }
    online->at[j].measured++;
    online->at[j].improvers += improves;
    if (reached(online->at[j].log_wealth, online->delta)) {
        online->at[j].crossed = true;
    }
}

bool certify_online_add(struct certify_online *online, const struct certify_row *row,
                        double smallest)
{
    online->rows++;
    online->measured += row->measured;
    online->improvers += row->measured && row->improves;
    if (online->fault || isnan(row->score)) {
        return false;
    }
    if (!(smallest > 0 && row->propensity >= smallest && row->propensity <= 1)) {
        online->fault = "a row had a propensity that the policy does not allow";
        online->level = 0;
        return false;
    }
    if (!row->measured) {
        return false;
    }
    double weight = smallest / row->propensity;
    bool alarm = false;
    if (online->level > 0 && row->score < online->grid[online->level - 1]) {
        alarm = watch(online, row->improves, weight);
    }
    if (alarm) {
        online->alarms++;
        certify_online_restart(online, NULL, 0);
        return true;
    }
    for (size_t j = 0; j < online->grid_len; j++) {
        if (row->score < online->grid[j]) {
            bet(online, j, row->improves, weight);
        }
    }
    while (online->level < online->grid_len && online->at[online->level].crossed) {
        online->level++;
    }
    return false;
}

struct certificate certify_online_now(const struct certify_online *online)
{
    struct certificate certificate = {
        .tau = -INFINITY, .rows = online->measured, .improvers = online->improvers};
    double risk = 100 * online->alpha, confidence = 100 * (1 - online->delta);
    if (online->fault) {
        snprintf(certificate.text, sizeof(certificate.text), "nothing is discarded: %s",
                 online->fault);
        return certificate;
    }
    if (online->level == 0) {
        snprintf(certificate.text, sizeof(certificate.text),
                 "nothing is discarded%s: %zu candidates measured since do not show with %g %% "
                 "confidence that at most %g %% of the least promising improve",
                 online->alarms > 0 ? " after an alarm" : "", online->measured, confidence, risk);
        return certificate;
    }
    certificate.certified = true;
    certificate.tau = online->grid[online->level - 1];
    certificate.below = online->at[online->level - 1].measured;
    certificate.improvers_below = online->at[online->level - 1].improvers;
    snprintf(
        certificate.text, sizeof(certificate.text),
        "with %g %% confidence at most %g %% of what is discarded would have improved, as long "
        "as forecasts stay as good as for the %zu measured below the threshold; audits watch "
        "that",
        confidence, risk, certificate.below);
    return certificate;
}
