// What --devices may say, and which GPUs it means.
#include "daemon/offer.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct offer parsed(const char *spec)
{
    struct offer offer;
    struct err err = ERR_INIT;

    if (offer_parse(&offer, spec, &err) != 0) {
        fail_msg("%s: %s", spec, err.text);
    }
    return offer;
}

static void expect_usage(const char *spec, const char *text)
{
    struct offer offer;
    struct err err = ERR_INIT;

    assert_int_equal(offer_parse(&offer, spec, &err), ERR_USAGE);
    assert_int_equal(err.code, ERR_USAGE);
    if (!strstr(err.text, text)) {
        fail_msg("%s: %s", spec, err.text);
    }
}

static void auto_is_cores_and_what_gpus_there_are(void **state)
{
    struct offer offer = parsed("auto");

    (void)state;
    assert_true(offer.cpus && offer.cuda && !offer.must);
    assert_int_equal(offer.cpu_count, 0);
    assert_int_equal(offer.gpu_count, 0);
}

static void cores_and_gpus_are_named(void **state)
{
    struct offer offer = parsed("cpu");

    (void)state;
    assert_true(offer.cpus && !offer.cuda);
    assert_int_equal(parsed("cpu:3").cpu_count, 3);
    offer = parsed("cuda");
    assert_true(!offer.cpus && offer.cuda && offer.must);
    assert_int_equal(offer.gpu_count, 0);
    offer = parsed("cuda:0,2+cpu:2");
    assert_true(offer.cpus && offer.cuda && offer.must);
    assert_int_equal(offer.cpu_count, 2);
    assert_int_equal(offer.gpu_count, 2);
    assert_int_equal(offer.gpu[0], 0);
    assert_int_equal(offer.gpu[1], 2);
}

static void nonsense_is_told(void **state)
{
    (void)state;
    expect_usage("tpu", "--devices tpu: neither");
    expect_usage("", "neither");
    expect_usage("cuda+", "neither");
    expect_usage("cpu+auto", "neither");
    expect_usage("cpu:0", "cpu:N");
    expect_usage("cpu:x", "cpu:N");
    expect_usage("cuda:", "no number");
    expect_usage("cuda:1,x", "cuda:N");
    expect_usage("cuda:64", "cuda:N");
    expect_usage("cuda:1,1", "twice");
    expect_usage("cpu+cpu:2", "twice");
    expect_usage("cuda+cuda:0", "twice");
}

// Three GPUs, 0 to 2; the last one is unfit.
static struct cuda_probe_report three(void)
{
    struct cuda_probe_report report;

    message_init(&cuda_probe_report_message, &report);
    report.toolchain = xstrdup("nvrtc");
    report.gpus = xcalloc(3, sizeof(*report.gpus));
    for (report.gpus_count = 0; report.gpus_count < 3; report.gpus_count++) {
        struct gpu_info *gpu = &report.gpus[report.gpus_count];

        message_init(&gpu_info_message, gpu);
        gpu->uuid = xasprintf("GPU-%zu", report.gpus_count);
        gpu->ordinal = report.gpus_count;
        gpu->name = xstrdup("Name");
        gpu->device_class = xstrdup("class");
        gpu->target = xstrdup("sm_90");
    }
    report.gpus[2].reason = xstrdup("it is too old");
    return report;
}

static struct cuda_probe_report none(void)
{
    struct cuda_probe_report report;

    message_init(&cuda_probe_report_message, &report);
    report.reason = xstrdup("there is no driver");
    return report;
}

// The number of devices, or an error that contains text.
static size_t offered(const char *spec, struct cuda_probe_report report, const char *text)
{
    struct offer offer = parsed(spec);
    struct devices devices;
    struct err err = ERR_INIT;
    size_t count;
    int rc;

    devices_init(&devices);
    rc = offer_gpus(&offer, &report, &devices, &err);
    count = devices.count;
    assert_int_equal(rc, text ? ERR_NOT_FOUND : 0);
    if (text && !strstr(err.text, text)) {
        fail_msg("%s: %s", spec, err.text);
    }
    devices_release(&devices);
    message_clear(&cuda_probe_report_message, &report);
    return count;
}

static void what_can_be_used_is_offered(void **state)
{
    (void)state;
    assert_int_equal(offered("auto", three(), NULL), 2);
    assert_int_equal(offered("cuda", three(), NULL), 2);
    assert_int_equal(offered("cuda:1", three(), NULL), 1);
    assert_int_equal(offered("auto", none(), NULL), 0);
}

static void what_must_be_there_and_is_not_is_told(void **state)
{
    (void)state;
    (void)offered("cuda", none(), "no GPU can be used here: there is no driver");
    (void)offered("cuda:0", none(), "no GPU 0 here (0 in all): there is no driver");
    (void)offered("cuda:1,3", three(), "no GPU 3 here (3 in all)");
    (void)offered("cuda:2", three(), "GPU 2 (Name) cannot be used: it is too old");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(auto_is_cores_and_what_gpus_there_are),
        cmocka_unit_test(cores_and_gpus_are_named),
        cmocka_unit_test(nonsense_is_told),
        cmocka_unit_test(what_can_be_used_is_offered),
        cmocka_unit_test(what_must_be_there_and_is_not_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
