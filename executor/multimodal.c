// The period is the one at which both samples are most concentrated, as directions on a circle
// (mean resultant length, Mardia & Jupp 2000, "Directional Statistics"). Within it each sample has
// one mode; their shift is Hodges and Lehmann's. Of the numbers of periods that the interval of the
// plain shift leaves, the one is taken that makes the two samples most alike as counts of modes:
// the likelihood ratio statistic of two multinomials (Wilks 1938) is smallest. It has to be smaller
// than that of the next best by DECIDED, else the plain shift with its interval stands.
#include "executor/multimodal.h"
#include <complex.h>
#include <math.h>
#include <string.h>

#define PERIOD_LEAST 100.0
#define PERIOD_MOST 300.0
#define PERIOD_STEP 2.0
#define CONCENTRATED 0.5 // mean resultant length of both samples
#define DECIDED 8.0      // difference of the statistics
#define MODES 64         // that are told apart

static double complex mean_direction(const double *x, size_t count, double period)
{
    double complex sum = 0;

    for (size_t i = 0; i < count; i++) {
        sum += cexp(2 * M_PI * I * x[i] / period);
    }
    return sum / (double)count;
}

// 0 when there is none.
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

// Every value moved by whole periods into the one round the sample's mean direction.
static void fold(const double *x, size_t count, double period, double *ret)
{
    double centre = carg(mean_direction(x, count, period)) / (2 * M_PI) * period;

    for (size_t i = 0; i < count; i++) {
        ret[i] = x[i] - period * round((x[i] - centre) / period);
    }
}

// How unlike the counts of modes are when b is moved back by the shift.
static double unlikeness(const double *a, const double *b, size_t count, double period,
                         double shift)
{
    double counts[2][MODES] = {{0}}, least = INFINITY, statistic = 0, centre;
    double complex direction =
        mean_direction(a, count, period) +
        mean_direction(b, count, period) * cexp(-2 * M_PI * I * shift / period);

    centre = carg(direction) / (2 * M_PI) * period;
    for (size_t i = 0; i < count; i++) {
        least = fmin(least, fmin(a[i], b[i] - shift));
    }
    centre += period * floor((least - centre) / period + 0.5);
    for (size_t i = 0; i < count; i++) {
        size_t hump[2] = {(size_t)fmax(round((a[i] - centre) / period), 0),
                          (size_t)fmax(round((b[i] - shift - centre) / period), 0)};

        for (size_t arm = 0; arm < 2; arm++) {
            counts[arm][hump[arm] < MODES ? hump[arm] : MODES - 1]++;
        }
    }
    for (size_t h = 0; h < MODES; h++) {
        double all = counts[0][h] + counts[1][h];

        for (size_t arm = 0; arm < 2; arm++) {
            double n = counts[arm][h];

            statistic += n > 0 ? 2 * n * log(2 * n / all) : 0;
        }
    }
    return statistic;
}

struct stats_shift multimodal_shift(const double *a, const double *b, size_t count, double z)
{
    double first[MODES_MOST], second[MODES_MOST], best = INFINITY, next = INFINITY, periods = 0;
    struct stats_shift plain, fine;

    count = count < MODES_MOST ? count : MODES_MOST;
    double period = count >= MODES_LEAST ? find_period(a, b, count) : 0;
    memcpy(first, a, count * sizeof(*a));
    memcpy(second, b, count * sizeof(*b));
    plain = stats_shift(first, count, second, count, z);
    if (period == 0 || !isfinite(plain.lo) || plain.hi - plain.lo > MODES / 2 * period) {
        return plain;
    }
    fold(a, count, period, first);
    fold(b, count, period, second);
    fine = stats_shift(first, count, second, count, z);
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
