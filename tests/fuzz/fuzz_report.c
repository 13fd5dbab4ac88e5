// Any bytes as what a child of kcastd wrote to its pipe: refused, or a report that can be packed again and passes again.
#include "daemon/report.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void measure(const struct bytes *report)
{
    struct err err = ERR_INIT;
    struct measure_report read, again;
    struct report_expectation expected = {.sandbox_off = false};
    struct strbuf packed = STRBUF_INIT;
    if (report_read_measure(&read, report, &expected, &err) != 0)
        return;
    const struct result *result = read.result;
    if (result == NULL || result->verdict == 0 || result->verdict > 10 ||
        (result->speedup != NULL && !isfinite(result->speedup->log2)))
        abort();
    if (message_pack(&measure_report_message, &read, &packed, &err) != 0)
        abort();
    struct bytes bytes = {.data = (unsigned char *)packed.data, .len = packed.len};
    if (report_read_measure(&again, &bytes, &expected, &err) != 0)
        abort();
    message_clear(&measure_report_message, &read);
    message_clear(&measure_report_message, &again);
    strbuf_release(&packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct err err = ERR_INIT;
    struct compile_report compiled;
    struct probe_report probe;
    struct cuda_probe_report gpus;
    const struct compile_expectation c = {.target = NULL}, cuda = {.target = "sm_90"};
    const struct bytes report = {.data = (unsigned char *)(uintptr_t)data, .len = len};
    measure(&report);
    if (report_read_compile(&compiled, &report, &c, &err) == 0)
        message_clear(&compile_report_message, &compiled);
    err_clear(&err);
    if (report_read_compile(&compiled, &report, &cuda, &err) == 0)
        message_clear(&compile_report_message, &compiled);
    err_clear(&err);
    if (report_read_cuda_probe(&gpus, &report, &err) == 0)
        message_clear(&cuda_probe_report_message, &gpus);
    err_clear(&err);
    if (report_read_probe(&probe, &report, &err) == 0)
        message_clear(&probe_report_message, &probe);
    return 0;
}
