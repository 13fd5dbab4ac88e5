// Design note. The reader of messages has checked types, counts and sizes; here it is about
// meaning. What may be said of any result is proto/result_check.h's; what was asked of this
// kcast-exec is compared here. An outcome that fails a check is the executor's failure, never the
// candidate's.
#include "daemon/run/outcome.h"
#include "common/printable.h"
#include "proto/result_check.h"
#include "proto/verdict.h"
#include <string.h>

// A digest that the outcome names must be the expected one.
static int check_digest(const struct digest *named, const struct digest *expected, const char *what,
                        struct err *err)
{
    if (!digest_is_zero(named) && !digest_equal(named, expected)) {
        return err_set(err, ERR_PROTOCOL, "the outcome is about another %s", what);
    }
    return 0;
}

static int check_sandbox(const char *named, bool off, struct err *err)
{
    if (named && strcmp(named, off ? "off" : "on") != 0) {
        return err_set(err, ERR_PROTOCOL, "the outcome says that the sandbox was %s", named);
    }
    return 0;
}

static int check_result(const struct result *result, const struct measure_expectation *expected,
                        struct err *err)
{
    const struct result_expectation expectation = {.problem = expected->problem,
                                                   .candidate = expected->candidate,
                                                   .precision_log2 = expected->precision_log2};
    int rc = result_check(result, &expectation, err);

    if (rc == 0 && result->unsealed != expected->unsealed) {
        return err_set(err, ERR_PROTOCOL, "the outcome says that it ran %s",
                       result->unsealed ? "unsealed" : "sealed");
    }
    return rc != 0 ? rc : check_sandbox(result->sandbox, expected->sandbox_off, err);
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

static int check_cuda_object(const struct bytes *packed, const char *target, bool unsealed,
                             struct err *err)
{
    struct cuda_object object;
    int rc = message_read(&cuda_object_message, &object, packed->data, packed->len, err);

    if (rc != 0) {
        return rc;
    }
    if (strcmp(object.target, target) != 0) {
        rc = err_set(err, ERR_PROTOCOL, "an object for %s instead of %s", object.target, target);
    } else if (object.unsealed != unsealed) {
        rc = err_set(err, ERR_PROTOCOL, "an object that runs unsealed, or not, as nobody said");
    } else if (object.unsealed && (object.variants_count > 0 || object.recording)) {
        rc = err_set(err, ERR_PROTOCOL, "an object with code that is to run unsealed");
    } else if (!object.unsealed && object.variants_count == 0 && !object.recording) {
        rc = err_set(err, ERR_PROTOCOL, "an object without a variant");
    } else if (object.recording &&
               (object.variants_count > 0 || object.recording->cases_count == 0)) {
        rc = err_set(err, ERR_PROTOCOL, "a recording without a case");
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
    if (compiled->verdict == VERDICT_NONE &&
        ((expected->complete && compiled->incomplete) ||
         (expected->machine_code && compiled->no_machine_code))) {
        return err_set(err, ERR_PROTOCOL, "less than it was asked to compile");
    }
    if (compiled->unsealed && (!expected->unsealed || compiled->verdict != VERDICT_NONE)) {
        return err_set(err, ERR_PROTOCOL, "an unsealed candidate that nobody asked for");
    }
    struct digest found = {0};
    int rc;
    if (compiled->verdict == VERDICT_NONE) {
        found = digest_of(outcome->object.data, outcome->object.len);
        rc = expected->target
                 ? check_cuda_object(&outcome->object, expected->target, compiled->unsealed, err)
                 : 0;
        rc = rc == 0 ? check_digest(&compiled->object, &found, "object", err) : rc;
        if (rc != 0) {
            return rc;
        }
    }
    compiled->object = found;
    rc = compiled_check(compiled, err);
    return rc != 0 ? rc : check_sandbox(compiled->sandbox, expected->sandbox_off, err);
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
