// The period is the one at which both samples, taken as directions on a circle, are most
// concentrated (mean resultant length; Mardia & Jupp 2000, "Directional Statistics"). Wrapped into
// one period each sample has one mode, and the shift within the period is Hodges and Lehmann's. The
// interval of the plain shift leaves some numbers of whole periods. The one is chosen with which
// the two samples are most alike as counts of modes: with the smallest likelihood ratio statistic
// of two multinomials (Wilks 1938). If the next best number is not worse by DECIDED, the plain
// shift with its interval is the result.
#include "executor/multimodal.h"
#include <complex.h>
#include <math.h>
#include <string.h>

// The periods that are tried, in nanoseconds.
#define PERIOD_LEAST 100.0
#define PERIOD_MOST 300.0
#define PERIOD_STEP 2.0
#define CONCENTRATED 0.5 // least mean resultant length of both samples at a period
#define DECIDED 8.0      // least difference of the likelihood ratio statistics
#define MODES 64         // number of modes that are told apart; the last one also takes the rest

static double complex mean_direction(const double *x, size_t count, double period)
{
    double complex sum = 0;

    for (size_t i = 0; i < count; i++) {
        sum += cexp(2 * M_PI * I * x[i] / period);
    }
    return sum / (double)count;
}

// Returns the common period of both samples, 0 when there is none.
static double find_period(const double *a, const double *b, size_t count)
{
    double best = 0, most = CONCENTRATED;

    for (double period = PERIOD_LEAST; period <= PERIOD_MOST; period += PERIOD_STEP) {
        double both =
            fmin(cabs(mean_direction(a, count, period)), cabs(mean_direction(b, count, period)));

        if (both > most) {
            most = both;
            best = period;
        }
    }
    return best;
}

// Moves every value by whole periods into the period around the sample's mean direction.
static void wrap(const double *x, size_t count, double period, double *ret)
{
    double centre = carg(mean_direction(x, count, period)) / (2 * M_PI) * period;

    for (size_t i = 0; i < count; i++) {
        ret[i] = x[i] - period * round((x[i] - centre) / period);
    }
}

// Returns the likelihood ratio statistic of the two samples' counts of modes, with b moved back by
// the shift. Larger means less alike.
static double unlikeness(const double *a, const double *b, size_t count, double period,
                         double shift)
{
    double complex direction =
        mean_direction(a, count, period) +
        mean_direction(b, count, period) * cexp(-2 * M_PI * I * shift / period);
    double centre = carg(direction) / (2 * M_PI) * period, least = INFINITY;

    for (size_t i = 0; i < count; i++) {
        least = fmin(least, fmin(a[i], b[i] - shift));
    }
    centre += period * floor((least - centre) / period + 0.5);
    double counts[2][MODES] = {{0}}, statistic = 0;
    for (size_t i = 0; i < count; i++) {
        size_t mode[2] = {(size_t)fmax(round((a[i] - centre) / period), 0),
                          (size_t)fmax(round((b[i] - shift - centre) / period), 0)};

        for (size_t arm = 0; arm < 2; arm++) {
            counts[arm][mode[arm] < MODES ? mode[arm] : MODES - 1]++;
        }
    }
    for (size_t m = 0; m < MODES; m++) {
        double all = counts[0][m] + counts[1][m];

        for (size_t arm = 0; arm < 2; arm++) {
            double n = counts[arm][m];

            statistic += n > 0 ? 2 * n * log(2 * n / all) : 0;
        }
    }
    return statistic;
}

struct stats_shift multimodal_shift(const double *a, const double *b, size_t count, double z)
{
    double first[MODES_MOST], second[MODES_MOST];

    count = count < MODES_MOST ? count : MODES_MOST;
    double period = count >= MODES_LEAST ? find_period(a, b, count) : 0;
    memcpy(first, a, count * sizeof(*a));
    memcpy(second, b, count * sizeof(*b));
    struct stats_shift plain = stats_shift(first, count, second, count, z);
    if (period == 0 || !isfinite(plain.lo) || plain.hi - plain.lo > MODES / 2 * period) {
        return plain;
    }
    wrap(a, count, period, first);
    wrap(b, count, period, second);
    struct stats_shift fine = stats_shift(first, count, second, count, z);
    double best = INFINITY, next = INFINITY, periods = 0;
    for (double n = ceil((plain.lo - fine.hi) / period); n <= floor((plain.hi - fine.lo) / period);
         n++) {
        double unlike = unlikeness(a, b, count, period, fine.shift + n * period);

        if (unlike < best) {
            next = best;
            best = unlike;
            periods = n;
        } else {
            next = fmin(next, unlike);
        }
    }
    if (!isfinite(best) || next - best < DECIDED) {
        return plain;
    }
    return (struct stats_shift){.shift = fine.shift + periods * period,
                                .lo = fine.lo + periods * period,
                                .hi = fine.hi + periods * period};
}
