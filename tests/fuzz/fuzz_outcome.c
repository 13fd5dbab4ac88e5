// Any bytes as what a child of kcastd wrote to its pipe. They are refused, or give an outcome that
// can be packed and read again.
#include "daemon/run/outcome.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void measure(const struct bytes *outcome)
{
    struct err err = ERR_INIT;
    struct measure_outcome read, again;
    struct measure_expectation expected = {.sandbox_off = false};
    if (outcome_read_measure(&read, outcome, &expected, &err) != 0) {
        return;
    }
    const struct result *result = read.result;
    if (!result || result->verdict == 0 || result->verdict > 10 ||
        (result->speedup && !isfinite(result->speedup->log2))) {
        abort();
    }
    struct strbuf packed = STRBUF_INIT;
    if (message_pack(&measure_outcome_message, &read, &packed, &err) != 0) {
        abort();
    }
    struct bytes bytes = {.data = (unsigned char *)packed.data, .len = packed.len};
    if (outcome_read_measure(&again, &bytes, &expected, &err) != 0) {
        abort();
    }
    message_clear(&measure_outcome_message, &read);
    message_clear(&measure_outcome_message, &again);
    strbuf_release(&packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const struct compile_expectation c = {.target = NULL}, cuda = {.target = "sm_90"};
    const struct bytes outcome = {.data = (unsigned char *)(uintptr_t)data, .len = len};
    measure(&outcome);
    struct err err = ERR_INIT;
    struct compile_outcome compiled;
    if (outcome_read_compile(&compiled, &outcome, &c, &err) == 0) {
        message_clear(&compile_outcome_message, &compiled);
    }
    err_clear(&err);
    if (outcome_read_compile(&compiled, &outcome, &cuda, &err) == 0) {
        message_clear(&compile_outcome_message, &compiled);
    }
    err_clear(&err);
    struct cuda_probe_outcome gpus;
    if (outcome_read_cuda_probe(&gpus, &outcome, &err) == 0) {
        message_clear(&cuda_probe_outcome_message, &gpus);
    }
    err_clear(&err);
    struct probe_outcome probe;
    if (outcome_read_probe(&probe, &outcome, &err) == 0) {
        message_clear(&probe_outcome_message, &probe);
    }
    return 0;
}
