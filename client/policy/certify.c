// Thresholds from a set of outcomes that later candidates resemble: conformal prediction, conformal
// risk control, and Learn then Test. All three sort the outcomes by score, choose tau among the
// scores, and count what lies below it.
#include "client/policy/certify.h"

#include "common/mem.h"
#include "common/stats.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define STREAM_PICK 0x7069636bULL

// Added before rounding down, because a product such as alpha (n + 1) may come out as
// 2.9999999999999996 where 3 is meant.
#define ROUNDING 1e-9

struct outcome {
    double score; // +INFINITY when there is none
    bool improves;
    uint64_t cluster; // as in struct certify_row
    uint64_t key;     // random; of a cluster the outcome with the smallest key is taken
};

static int by_cluster(const void *a, const void *b)
{
    const struct outcome *x = a, *y = b;
    if (x->cluster != y->cluster) {
        return x->cluster < y->cluster ? -1 : 1;
    }
    return (x->key > y->key) - (x->key < y->key);
}

static int by_score(const void *a, const void *b)
{
    const struct outcome *x = a, *y = b;
    return (x->score > y->score) - (x->score < y->score);
}

static void say(struct certificate *certificate, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void say(struct certificate *certificate, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(certificate->text, sizeof(certificate->text), format, args);
    va_end(args);
}

// Why these rows and settings allow no certificate at all. NULL when they allow one.
static const char *obstacle(const struct certify_row *rows, size_t n, double alpha, double delta)
{
    if (!(alpha > 0 && alpha < 1)) {
        return "the risk must lie between 0 and 1";
    }
    if (!(delta > 0 && delta < 1)) {
        return "the confidence must lie between 0 and 1";
    }
    for (size_t i = 0; i < n; i++) {
        if (!(rows[i].propensity > 0 && rows[i].propensity <= 1)) {
            return "a row has a propensity that is none, give one above 0 and up to 1";
        }
        if (rows[i].propensity != rows[0].propensity) {
            return "what was measured was chosen, so that later candidates are not like it";
        }
    }
    return NULL;
}

// Collects the measured rows, or only the improvers among them, one per cluster and sorted by
// score. Returns how many there are. The caller frees *ret.
static size_t gather(const struct certify_row *rows, size_t n, bool improvers, struct outcome **ret)
{
    struct outcome *out = xcalloc(n + 1, sizeof(*out));
    size_t len = 0, kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (rows[i].measured && (rows[i].improves || !improvers)) {
            out[len++] = (struct outcome){.score = isnan(rows[i].score) ? INFINITY : rows[i].score,
                                          .improves = rows[i].improves,
                                          .cluster = rows[i].cluster,
                                          .key = stats_philox(rows[i].cluster, STREAM_PICK, i)};
        }
    }
    qsort(out, len, sizeof(*out), by_cluster);
    for (size_t i = 0; i < len; i++) {
        if (i == 0 || out[i].cluster == 0 || out[i].cluster != out[i - 1].cluster) {
            out[kept++] = out[i];
        }
    }
    qsort(out, kept, sizeof(*out), by_score);
    *ret = out;
    return kept;
}

// Sets the certificate's threshold and its counts. tau is lowered to the largest score seen: a
// lower threshold discards less, so the guarantees of recall and joint, whose loss rises with tau,
// still hold.
static void settle(struct certificate *certificate, double tau, const struct outcome *rows)
{
    certificate->tau = tau;
    double largest = -INFINITY;
    for (size_t i = 0; i < certificate->rows; i++) {
        largest = isfinite(rows[i].score) ? fmax(largest, rows[i].score) : largest;
    }
    certificate->tau = fmin(tau, largest);
    certificate->certified = certificate->tau > -INFINITY;
    for (size_t i = 0; i < certificate->rows; i++) {
        certificate->improvers += rows[i].improves;
        certificate->below += rows[i].score < certificate->tau;
        certificate->improvers_below += rows[i].improves && rows[i].score < certificate->tau;
    }
}

// The smallest n with alpha (n + 1) >= 1.
static double least(double alpha)
{
    return ceil(1 / alpha - ROUNDING) - 1;
}

struct certificate certify_recall(const struct certify_row *rows, size_t n, double alpha)
{
    struct certificate certificate = {.tau = -INFINITY};
    const char *why = obstacle(rows, n, alpha, 0.5);
    if (why) {
        say(&certificate, "nothing is discarded: %s", why);
        return certificate;
    }
    struct outcome *improvers;
    certificate.rows = gather(rows, n, true, &improvers);
    size_t k = (size_t)(alpha * (double)(certificate.rows + 1) + ROUNDING);
    k = k < certificate.rows ? k : certificate.rows;
    settle(&certificate, k > 0 ? improvers[k - 1].score : -INFINITY, improvers);
    if (k == 0) {
        say(&certificate,
            "nothing is discarded: %zu improvers were measured, a miss rate of %g %% needs %.0f",
            certificate.rows, 100 * alpha, least(alpha));
    } else if (!certificate.certified) {
        say(&certificate,
            "nothing is discarded: the improvers that were measured have no scores to compare");
    } else {
        say(&certificate,
            "of the candidates that would have improved, at most %g %% are discarded on average, "
            "if "
            "later ones are like the %zu that were measured",
            100 * alpha, certificate.rows);
    }
    free(improvers);
    return certificate;
}

struct certificate certify_joint(const struct certify_row *rows, size_t n, double alpha)
{
    struct certificate certificate = {.tau = -INFINITY};
    const char *why = obstacle(rows, n, alpha, 0.5);
    double tau = INFINITY, allowed, improvers = 0;
    if (why) {
        say(&certificate, "nothing is discarded: %s", why);
        return certificate;
    }
    struct outcome *all;
    certificate.rows = gather(rows, n, false, &all);
    allowed = floor(alpha * (double)(certificate.rows + 1) + ROUNDING) - 1;
    for (size_t i = 0; i < certificate.rows && tau == INFINITY; i++) {
        improvers += all[i].improves;
        tau = improvers > allowed ? all[i].score : tau; // not discarded itself
    }
    settle(&certificate, allowed >= 0 ? tau : -INFINITY, all);
    if (allowed < 0) {
        say(&certificate,
            "nothing is discarded: %zu candidates were measured, a loss of %g %% needs %.0f",
            certificate.rows, 100 * alpha, least(alpha));
    } else if (!certificate.certified) {
        say(&certificate,
            "nothing is discarded: the candidates that were measured have no scores to "
            "compare");
    } else {
        say(&certificate,
            "on average at most %g %% of all candidates are improvers that are discarded, if later "
            "ones are like the %zu that were measured",
            100 * alpha, certificate.rows);
    }
    free(all);
    return certificate;
}

// Returns the last threshold that passes the test, or -INFINITY when the first fails. *ret_tested
// says whether there was any threshold to test.
static double test_upward(const struct outcome *rows, size_t n, double alpha, double delta,
                          bool *ret_tested)
{
    // The smallest m with (1 - alpha)^m <= delta: so many rows without an improver are needed.
    double start = ceil(log(delta) / log1p(-alpha) - ROUNDING), tau = -INFINITY;
    *ret_tested = false;
    size_t improvers = 0;
    for (size_t m = 1; m < n; m++) {
        improvers += rows[m - 1].improves;
        if ((double)m < start || !(rows[m].score > rows[m - 1].score) || isinf(rows[m].score)) {
            continue;
        }
        *ret_tested = true;
        if (stats_binomial_cdf(improvers, m, alpha) > delta * (1 + ROUNDING)) {
            break;
        }
        tau = rows[m].score;
    }
    return tau;
}

struct certificate certify_selective(const struct certify_row *rows, size_t n, double alpha,
                                     double delta)
{
    struct certificate certificate = {.tau = -INFINITY};
    const char *why = obstacle(rows, n, alpha, delta);
    if (why) {
        say(&certificate, "nothing is discarded: %s", why);
        return certificate;
    }
    struct outcome *all;
    certificate.rows = gather(rows, n, false, &all);
    bool tested;
    settle(&certificate, test_upward(all, certificate.rows, alpha, delta, &tested), all);
    if (certificate.certified) {
        say(&certificate,
            "with %g %% confidence at most %g %% of what is discarded would have improved, if "
            "later "
            "candidates are like the %zu that were measured",
            100 * (1 - delta), 100 * alpha, certificate.rows);
    } else if (!tested) {
        say(&certificate,
            "nothing is discarded: %zu candidates were measured, a risk of %g %% with %g %% "
            "confidence needs %.0f with scores below another's",
            certificate.rows, 100 * alpha, 100 * (1 - delta),
            ceil(log(delta) / log1p(-alpha) - ROUNDING));
    } else {
        say(&certificate,
            "nothing is discarded: among the lowest scores of %zu candidates too many improve to "
            "promise %g %% with %g %% confidence",
            certificate.rows, 100 * alpha, 100 * (1 - delta));
    }
    free(all);
    return certificate;
}
