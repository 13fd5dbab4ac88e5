// Design note. The reader of messages has checked types, counts and sizes; here it is about
// meaning. A number that is absent is fine where the table of messages says OPTIONAL. A number that
// is there must be finite and within what physics and the method allow, because it goes into the
// ledger, into the cache and into other people's results. An outcome that fails a check is the
// executor's failure, never the candidate's.
#include "daemon/run/outcome.h"
#include "common/printable.h"
#include "proto/verdict.h"
#include <math.h>
#include <string.h>

#define LOG2_MAX 40.0 // a factor of 10^12 or its inverse is no measurement
#define NS_MAX 1e15   // nanoseconds: 11 days
#define SECONDS_MAX 1e6
#define BLOCKS_MAX 1000000 // the method stops far below this

static bool within(double x, double low, double high)
{
    return isfinite(x) && x >= low && x <= high;
}

static bool absent_or_within(double x, double low, double high)
{
    return isnan(x) || within(x, low, high);
}

static int check_estimate(const struct estimate *e, const char *what, struct err *err)
{
    if (!within(e->log2, -LOG2_MAX, LOG2_MAX) || !within(e->lo, -LOG2_MAX * 2, LOG2_MAX * 2) ||
        !within(e->hi, -LOG2_MAX * 2, LOG2_MAX * 2)) {
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
    if (q->p10 > q->p50 || q->p50 > q->p90 || q->p10 > q->p90) { // each may be absent
        return err_set(err, ERR_PROTOCOL, "%s: quantiles out of order", what);
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
                              a->verify, a->time,    a->held};

    for (size_t i = 0; i < ARRAY_LEN(seconds); i++) {
        if (!absent_or_within(seconds[i], 0, SECONDS_MAX)) {
            return err_set(err, ERR_PROTOCOL, "seconds out of range");
        }
    }
    return 0;
}

// A digest that the outcome names must be the expected one.
static int check_digest(const struct digest *named, const struct digest *expected, const char *what,
                        struct err *err)
{
    if (!digest_is_zero(named) && !digest_equal(named, expected)) {
        return err_set(err, ERR_PROTOCOL, "the report is about another %s", what);
    }
    return 0;
}

static int check_sandbox(const char *named, bool off, struct err *err)
{
    if (named && strcmp(named, off ? "off" : "on") != 0) {
        return err_set(err, ERR_PROTOCOL, "the report says that the sandbox was %s", named);
    }
    return 0;
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

static int check_result(const struct result *result, const struct measure_expectation *expected,
                        struct err *err)
{
    if (result->verdict == VERDICT_NONE || !verdict_known(result->verdict)) {
        return err_set(err, ERR_PROTOCOL, "verdict %llu", (unsigned long long)result->verdict);
    }
    int rc;
    if (verdict_is_ratio(result->verdict)) {
        rc = check_ratio(result, err);
    } else { // a candidate that was quarantined after its timing keeps the estimate as evidence
        rc = result->speedup ? check_estimate(result->speedup, "speedup", err) : 0;
    }
    if (rc != 0) {
        return rc;
    }
    if (result->max_error < 0) { // it is infinite when the output was NaN
        return err_set(err, ERR_PROTOCOL, "an error below 0");
    }
    if (!absent_or_within(result->overhead_ns, 0, NS_MAX)) {
        return err_set(err, ERR_PROTOCOL, "an overhead out of range");
    }
    rc = result->control ? check_estimate(result->control, "control", err) : 0;
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
    rc = check_digest(&result->problem, &expected->problem, "problem", err);
    if (rc != 0) {
        return rc;
    }
    rc = check_digest(&result->candidate, &expected->candidate, "candidate", err);
    if (rc != 0) {
        return rc;
    }
    return check_sandbox(result->sandbox, expected->sandbox_off, err);
}

int outcome_read_measure(struct measure_outcome *ret, const struct bytes *outcome,
                         const struct measure_expectation *expected, struct err *err)
{
    struct measure_outcome read;
    int rc = message_read(&measure_outcome_message, &read, outcome->data, outcome->len, err);

    if (rc != 0) {
        return err_wrap(err, "kcast-exec measure");
    }
    rc = check_result(read.result, expected, err);
    if (rc != 0) {
        message_clear(&measure_outcome_message, &read);
        return err_wrap(err, "kcast-exec measure reports what cannot be");
    }
    *ret = read;
    return 0;
}

static int check_variant(const struct cuda_variant *variant, struct err *err)
{
    if (variant->cubin.len == 0 || variant->kernels_count == 0) {
        return err_set(err, ERR_PROTOCOL, "a variant without code");
    }
    for (size_t i = 0; i < variant->kernels_count; i++) {
        const struct cuda_kernel *kernel = &variant->kernels[i];

        if (kernel->symbol[0] == '\0' || kernel->sizes_count != kernel->offsets_count) {
            return err_set(err, ERR_PROTOCOL, "a kernel without symbol or parameters");
        }
    }
    return 0;
}

static int check_cuda_object(const struct bytes *packed, const char *target, struct err *err)
{
    struct cuda_object object;
    int rc = message_read(&cuda_object_message, &object, packed->data, packed->len, err);

    if (rc != 0) {
        return rc;
    }
    if (strcmp(object.target, target) != 0) {
        rc = err_set(err, ERR_PROTOCOL, "an object for %s instead of %s", object.target, target);
    } else if (object.variants_count == 0) {
        rc = err_set(err, ERR_PROTOCOL, "an object without a variant");
    }
    for (size_t i = 0; rc == 0 && i < object.variants_count; i++) {
        rc = check_variant(&object.variants[i], err);
        if (rc == 0 && object.variants[i].values_count != object.variants[0].values_count) {
            rc = err_set(err, ERR_PROTOCOL, "variants that are specialised differently");
        }
    }
    message_clear(&cuda_object_message, &object);
    return rc;
}

static int check_compiled(struct compile_outcome *outcome,
                          const struct compile_expectation *expected, struct err *err)
{
    struct compiled *compiled = outcome->compiled;

    if (!verdict_known(compiled->verdict) || verdict_is_ratio(compiled->verdict)) {
        return err_set(err, ERR_PROTOCOL, "verdict %llu", (unsigned long long)compiled->verdict);
    }
    if (compiled->verdict != VERDICT_NONE &&
        (!compiled->reason || compiled->reason[strspn(compiled->reason, " \t\n")] == '\0')) {
        return err_set(err, ERR_PROTOCOL, "%s without a reason", verdict_name(compiled->verdict));
    }
    if (compiled->verdict == VERDICT_NONE && outcome->object.len == 0) {
        return err_set(err, ERR_PROTOCOL, "compiled, but no object");
    }
    struct digest found = {0};
    int rc;
    if (compiled->verdict == VERDICT_NONE) {
        found = digest_of(outcome->object.data, outcome->object.len);
        rc = expected->target ? check_cuda_object(&outcome->object, expected->target, err) : 0;
        rc = rc == 0 ? check_digest(&compiled->object, &found, "object", err) : rc;
        if (rc != 0) {
            return rc;
        }
    }
    compiled->object = found;
    if (!absent_or_within(compiled->seconds, 0, SECONDS_MAX)) {
        return err_set(err, ERR_PROTOCOL, "seconds out of range");
    }
    return check_sandbox(compiled->sandbox, expected->sandbox_off, err);
}

int outcome_read_compile(struct compile_outcome *ret, const struct bytes *outcome,
                         const struct compile_expectation *expected, struct err *err)
{
    struct compile_outcome read;
    int rc = message_read(&compile_outcome_message, &read, outcome->data, outcome->len, err);

    if (rc != 0) {
        return err_wrap(err, "kcast-exec compile");
    }
    rc = check_compiled(&read, expected, err);
    if (rc != 0) {
        message_clear(&compile_outcome_message, &read);
        return err_wrap(err, "kcast-exec compile reports what cannot be");
    }
    *ret = read;
    return 0;
}

// What a device is called is shown by STATUS and is in the log.
static int check_shown(const char *what, const char *name, struct err *err)
{
    struct err why = ERR_INIT;

    return printable_check(what, name, &why) == 0 ? 0 : err_set(err, ERR_PROTOCOL, "%s", why.text);
}

int outcome_read_probe(struct probe_outcome *ret, const struct bytes *outcome, struct err *err)
{
    struct probe_outcome read;
    int rc = message_read(&probe_outcome_message, &read, outcome->data, outcome->len, err);

    if (rc != 0) {
        return err_wrap(err, "kcast-exec probe");
    }
    if (!read.device_class || !read.toolchain) {
        message_clear(&probe_outcome_message, &read);
        return err_set(err, ERR_PROTOCOL,
                       "kcast-exec probe does not say what the device or the toolchain is");
    }
    rc = check_shown("the device class", read.device_class, err);
    rc = rc == 0 ? check_shown("the toolchain", read.toolchain, err) : rc;
    if (rc != 0) {
        message_clear(&probe_outcome_message, &read);
        return err_wrap(err, "kcast-exec probe");
    }
    *ret = read;
    return 0;
}

static int check_gpu(const struct cuda_probe_outcome *outcome, size_t index, struct err *err)
{
    const struct gpu_info *gpu = &outcome->gpus[index];

    if (gpu->uuid[0] == '\0') {
        return err_set(err, ERR_PROTOCOL, "a GPU without uuid");
    }
    const char *const names[] = {gpu->uuid, gpu->name, gpu->device_class, gpu->target};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        int rc = names[i] ? check_shown("a name of a GPU", names[i], err) : 0;

        if (rc != 0) {
            return rc;
        }
    }
    for (size_t i = 0; i < index; i++) {
        if (strcmp(outcome->gpus[i].uuid, gpu->uuid) == 0 ||
            outcome->gpus[i].ordinal == gpu->ordinal) {
            return err_set(err, ERR_PROTOCOL, "two GPUs of the same uuid or number");
        }
    }
    if (!gpu->reason && (!gpu->device_class || !gpu->target || !outcome->toolchain)) {
        return err_set(err, ERR_PROTOCOL, "a GPU without class, target or toolchain");
    }
    return 0;
}

int outcome_read_cuda_probe(struct cuda_probe_outcome *ret, const struct bytes *outcome,
                            struct err *err)
{
    struct cuda_probe_outcome read;
    int rc = message_read(&cuda_probe_outcome_message, &read, outcome->data, outcome->len, err);

    if (rc != 0) {
        return err_wrap(err, "kcast-exec cuda-probe");
    }
    for (size_t i = 0; rc == 0 && i < read.gpus_count; i++) {
        rc = check_gpu(&read, i, err);
    }
    if (rc != 0) {
        message_clear(&cuda_probe_outcome_message, &read);
        return err_wrap(err, "kcast-exec cuda-probe reports what cannot be");
    }
    *ret = read;
    return 0;
}
