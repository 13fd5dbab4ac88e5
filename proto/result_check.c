// Design note. The reader of messages has checked types, counts and sizes; here it is about
// meaning. A number that is absent is fine where the table of messages says OPTIONAL. A number that
// is there must be finite and within what physics and the method allow, because it goes into the
// ledger, into the cache and into other people's results.
//
// The second half compares parts with each other. They were computed from each other by
// executor/timing.c (the speedup over all cases from that of each, the verdict from the interval),
// so that a result whose parts disagree was not written by it, or not kept as it was written. The
// tolerances are far above what rounding does and far below what anybody would call a difference.
#include "proto/result_check.h"
#include "common/mem.h"
#include "proto/verdict.h"
#include <math.h>

#define NS_MAX 1e15 // nanoseconds: 11 days
#define SECONDS_MAX 1e6
#define DATE_MAX 1e11      // seconds since 1970: the year 5138
#define BLOCKS_MAX 1000000 // the method stops far below this
#define PRECISION_MAX 1.0  // the coarsest precision that a job may ask for
// The method never looks for differences below its systematic error. It then widens the precision
// to 1.15 times the least half-width that is possible; see timing_precision.
#define PRECISION_SHARE 1.16
#define ROUNDING 1e-6 // of a sum of a few logarithms or weights
// The interval over all cases is at most as wide as the weighted mean of the cases' intervals; this
// much is left for degrees of freedom.
#define WIDTH_SHARE 1.1
#define TIMES_LOG2_MAX 2.0 // by which a speedup may lie beyond what the quantiles of the times span

static bool within(double x, double low, double high)
{
    return isfinite(x) && x >= low && x <= high;
}

static bool absent_or_within(double x, double low, double high)
{
    return isnan(x) || within(x, low, high);
}

// ---- numbers ----

static int check_estimate(const struct estimate *e, const char *what, struct err *err)
{
    if (!within(e->log2, -RESULT_LOG2_MAX, RESULT_LOG2_MAX) ||
        !within(e->lo, -RESULT_LOG2_MAX * 2, RESULT_LOG2_MAX * 2) ||
        !within(e->hi, -RESULT_LOG2_MAX * 2, RESULT_LOG2_MAX * 2)) {
        return err_set(err, ERR_PROTOCOL, "%s: an estimate out of range", what);
    }
    if (e->lo > e->log2 || e->hi < e->log2) {
        return err_set(err, ERR_PROTOCOL, "%s: an estimate outside its interval", what);
    }
    if (e->blocks == 0 || e->blocks > BLOCKS_MAX) {
        return err_set(err, ERR_PROTOCOL, "%s: an estimate from %llu blocks", what,
                       (unsigned long long)e->blocks);
    }
    return 0;
}

static int check_quantiles(const struct quantiles *q, const char *what, struct err *err)
{
    if (!q) {
        return 0;
    }
    if (!absent_or_within(q->p10, 0, NS_MAX) || !absent_or_within(q->p50, 0, NS_MAX) ||
        !absent_or_within(q->p90, 0, NS_MAX)) {
        return err_set(err, ERR_PROTOCOL, "%s: a time out of range", what);
    }
    // Each may be absent. One by one: gcc 14 takes a > b || b > c || a > c for a > b || b > c, which
    // is wrong where b is NaN.
    const double value[] = {q->p10, q->p50, q->p90};
    double least = 0;
    for (size_t i = 0; i < ARRAY_LEN(value); i++) {
        if (!isnan(value[i]) && value[i] < least) {
            return err_set(err, ERR_PROTOCOL, "%s: quantiles out of order", what);
        }
        least = isnan(value[i]) ? least : value[i];
    }
    return 0;
}

static int check_case(const struct case_result *c, struct err *err)
{
    int rc = check_estimate(c->speedup, c->params, err);

    if (rc != 0) {
        return rc;
    }
    rc = check_quantiles(c->baseline_ns, c->params, err);
    if (rc != 0) {
        return rc;
    }
    rc = check_quantiles(c->candidate_ns, c->params, err);
    if (rc != 0) {
        return rc;
    }
    if (!absent_or_within(c->weight, 0, 1) || !absent_or_within(c->floor_ns, 0, NS_MAX)) {
        return err_set(err, ERR_PROTOCOL, "%s: weight or floor out of range", c->params);
    }
    return 0;
}

static int check_accounts(const struct accounts *a, struct err *err)
{
    const double seconds[] = {a->queue,  a->compile, a->start, a->inputs,
                              a->verify, a->time,    a->held,  a->wait};

    for (size_t i = 0; i < ARRAY_LEN(seconds); i++) {
        if (!absent_or_within(seconds[i], 0, SECONDS_MAX)) {
            return err_set(err, ERR_PROTOCOL, "seconds out of range");
        }
    }
    return 0;
}

// Whether nothing counted of all that was timed, as the reason says.
static bool is_without_estimate(const struct result *result)
{
    return result->verdict == VERDICT_INCONCLUSIVE && !result->speedup &&
           result->cases_count == 0 && result->reason && result->reason[0] != '\0';
}

static int check_ratio(const struct result *result, struct err *err)
{
    if (!result->speedup || result->cases_count == 0) {
        return err_set(err, ERR_PROTOCOL, "verdict %s without an estimate",
                       verdict_name(result->verdict));
    }
    int rc = check_estimate(result->speedup, "speedup", err);
    for (size_t i = 0; rc == 0 && i < result->cases_count; i++) {
        rc = check_case(&result->cases[i], err);
    }
    return rc;
}

// What a result may have whatever its verdict is.
static int check_parts(const struct result *result, struct err *err)
{
    if (result->max_error < 0) { // it is infinite when the output was NaN
        return err_set(err, ERR_PROTOCOL, "an error below 0");
    }
    if (!absent_or_within(result->overhead_ns, 0, NS_MAX)) {
        return err_set(err, ERR_PROTOCOL, "an overhead out of range");
    }
    if (!absent_or_within(result->measured_at, 0, DATE_MAX)) {
        return err_set(err, ERR_PROTOCOL, "a date out of range");
    }
    int rc = result->control ? check_estimate(result->control, "control", err) : 0;
    if (rc != 0) {
        return rc;
    }
    rc = check_quantiles(result->baseline_ns, "baseline", err);
    if (rc != 0) {
        return rc;
    }
    rc = check_quantiles(result->candidate_ns, "candidate", err);
    if (rc != 0) {
        return rc;
    }
    rc = result->seconds ? check_accounts(result->seconds, err) : 0;
    if (rc != 0) {
        return rc;
    }
    for (size_t i = 0; i < result->conditions_count; i++) {
        if (isinf(result->conditions[i].value)) {
            return err_set(err, ERR_PROTOCOL, "a reading that is infinite");
        }
    }
    return 0;
}

// ---- parts against each other ----

static int check_verdict(const struct result *result, double asked_log2, struct err *err)
{
    const struct estimate *e = result->speedup;
    double precision =
        fmax(isnan(asked_log2) ? PRECISION_MAX : asked_log2, PRECISION_SHARE * (e->hi - e->lo) / 2);
    bool agrees = true;

    switch (result->verdict) {
    case VERDICT_FASTER:
        agrees = e->lo > 0;
        break;
    case VERDICT_SLOWER:
        agrees = e->hi < 0;
        break;
    case VERDICT_INCONCLUSIVE:
        agrees = e->lo <= 0 && e->hi >= 0;
        break;
    case VERDICT_EQUIVALENT: // a precise estimate may exclude 0 and be called no difference
        agrees = (e->lo <= 0 && e->hi >= 0) || fabs(e->log2) <= precision + ROUNDING;
        break;
    }
    return agrees ? 0
                  : err_set(err, ERR_PROTOCOL, "verdict %s, but a log2 speedup from %.4g to %.4g",
                            verdict_name(result->verdict), e->lo, e->hi);
}

// Whether a bound of the estimate was cut off at what messages carry.
static bool is_cut(const struct estimate *e)
{
    return fabs(e->log2) >= RESULT_LOG2_MAX || e->lo <= -RESULT_LOG2_MAX ||
           e->hi >= RESULT_LOG2_MAX;
}

// The speedup over all cases against that of each. Without the weights, which older daemons may
// have left out, only the blocks can be compared.
static int check_combination(const struct result *result, struct err *err)
{
    const struct estimate *all = result->speedup;
    double weights = 0, log2 = 0, width = 0;
    bool cut = is_cut(all);
    uint64_t blocks = 0;

    for (size_t i = 0; i < result->cases_count; i++) {
        const struct case_result *c = &result->cases[i];

        weights += c->weight;
        log2 += c->weight * c->speedup->log2;
        width += c->weight * (c->speedup->hi - c->speedup->lo);
        cut = cut || is_cut(c->speedup);
        blocks += c->speedup->blocks;
    }
    if (blocks != all->blocks) {
        return err_set(err, ERR_PROTOCOL, "%llu blocks, but the cases have %llu",
                       (unsigned long long)all->blocks, (unsigned long long)blocks);
    }
    if (isnan(weights)) {
        return 0;
    }
    if (!within(weights, 1 - ROUNDING, 1 + ROUNDING)) {
        return err_set(err, ERR_PROTOCOL, "the weights of the cases sum to %.6g", weights);
    }
    if (!cut && !(fabs(log2 - all->log2) <= ROUNDING)) {
        return err_set(err, ERR_PROTOCOL, "a log2 speedup of %.6g, but the cases give %.6g",
                       all->log2, log2);
    }
    if (!cut && all->hi - all->lo > WIDTH_SHARE * width + ROUNDING) {
        return err_set(err, ERR_PROTOCOL, "an interval of %.4g, but the cases give %.4g at most",
                       all->hi - all->lo, width);
    }
    return 0;
}

// The speedup of a case against its times. A few launches that were disturbed may move either; what
// is refused here is the wrong order of magnitude.
static int check_times(const struct case_result *c, struct err *err)
{
    const struct quantiles *baseline = c->baseline_ns, *candidate = c->candidate_ns;
    double low = log2(baseline->p10 / candidate->p90) - TIMES_LOG2_MAX;
    double high = log2(baseline->p90 / candidate->p10) + TIMES_LOG2_MAX;

    if (c->speedup->log2 < low || c->speedup->log2 > high) { // false where a time is absent
        return err_set(err, ERR_PROTOCOL, "%s: a log2 speedup of %.4g, but the times give %.4g",
                       c->params, c->speedup->log2, log2(baseline->p50 / candidate->p50));
    }
    return 0;
}

static bool same_time(double a, double b)
{
    return isnan(a) || isnan(b) || fabs(a - b) <= ROUNDING * fmax(a, b);
}

static bool same_times(const struct quantiles *a, const struct quantiles *b)
{
    return !a ||
           (same_time(a->p10, b->p10) && same_time(a->p50, b->p50) && same_time(a->p90, b->p90));
}

// The parts of a ratio, whose numbers are possible each.
static int check_agreement(const struct result *result, double asked_log2, struct err *err)
{
    int rc = check_verdict(result, asked_log2, err);

    for (size_t i = 0; rc == 0 && i < result->cases_count; i++) {
        rc = check_times(&result->cases[i], err);
    }
    rc = rc == 0 ? check_combination(result, err) : rc;
    if (rc != 0) {
        return rc;
    }
    if (!same_times(result->baseline_ns, result->cases[0].baseline_ns) ||
        !same_times(result->candidate_ns, result->cases[0].candidate_ns)) {
        return err_set(err, ERR_PROTOCOL, "other times than its first case has");
    }
    if (result->checks == 0 || result->launches == 0) {
        return err_set(err, ERR_PROTOCOL,
                       "verdict %s from %llu launches, of which %llu were checked",
                       verdict_name(result->verdict), (unsigned long long)result->launches,
                       (unsigned long long)result->checks);
    }
    if (isinf(result->max_error) ||
        result->max_error > result->error_bound * (1 + ROUNDING)) { // false without a bound
        return err_set(err, ERR_PROTOCOL, "verdict %s with an error of %.4g, where %.4g is allowed",
                       verdict_name(result->verdict), result->max_error, result->error_bound);
    }
    if (result->compiled && result->compiled->verdict != VERDICT_NONE) {
        return err_set(err, ERR_PROTOCOL, "verdict %s of a candidate that did not compile",
                       verdict_name(result->verdict));
    }
    return 0;
}

static int check_compilation(const struct compiled *compiled, struct err *err)
{
    if (!verdict_known(compiled->verdict) || verdict_is_ratio(compiled->verdict)) {
        return err_set(err, ERR_PROTOCOL, "verdict %llu", (unsigned long long)compiled->verdict);
    }
    if (!absent_or_within(compiled->seconds, 0, SECONDS_MAX)) {
        return err_set(err, ERR_PROTOCOL, "seconds out of range");
    }
    return 0;
}

// A digest that the result names must be the expected one, where that is known.
static int check_digest(const struct digest *named, const struct digest *expected, const char *what,
                        struct err *err)
{
    if (!digest_is_zero(named) && !digest_is_zero(expected) && !digest_equal(named, expected)) {
        return err_set(err, ERR_PROTOCOL, "the report is about another %s", what);
    }
    return 0;
}

int result_check(const struct result *result, const struct result_expectation *expectation,
                 struct err *err)
{
    if (result->verdict == VERDICT_NONE || !verdict_known(result->verdict)) {
        return err_set(err, ERR_PROTOCOL, "verdict %llu", (unsigned long long)result->verdict);
    }
    bool ratio = verdict_is_ratio(result->verdict) && !is_without_estimate(result);
    int rc;
    if (ratio) {
        rc = check_ratio(result, err);
    } else { // a candidate that was quarantined after its timing keeps the estimate as evidence
        rc = result->speedup ? check_estimate(result->speedup, "speedup", err) : 0;
    }
    rc = rc == 0 ? check_parts(result, err) : rc;
    if (rc == 0 && ratio) {
        rc = check_agreement(result, expectation ? expectation->precision_log2 : (double)NAN, err);
    }
    rc = rc == 0 && result->compiled ? check_compilation(result->compiled, err) : rc;
    if (rc != 0 || !expectation) {
        return rc;
    }
    rc = check_digest(&result->problem, &expectation->problem, "problem", err);
    if (rc != 0) {
        return rc;
    }
    return check_digest(&result->candidate, &expectation->candidate, "candidate", err);
}

int compiled_check(const struct compiled *compiled, struct err *err)
{
    if (compiled->verdict == VERDICT_NONE && digest_is_zero(&compiled->object)) {
        return err_set(err, ERR_PROTOCOL, "compiled, but no object");
    }
    return check_compilation(compiled, err);
}
