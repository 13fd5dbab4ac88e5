// What the option --devices may be, and which GPUs it selects.
#include "daemon/devices/device_spec.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct device_spec parsed(const char *spec)
{
    struct device_spec device_spec;
    struct err err = ERR_INIT;

    if (device_spec_parse(&device_spec, spec, &err) != 0) {
        fail_msg("%s: %s", spec, err.text);
    }
    return device_spec;
}

static void expect_usage(const char *spec, const char *text)
{
    struct device_spec device_spec;
    struct err err = ERR_INIT;

    assert_int_equal(device_spec_parse(&device_spec, spec, &err), ERR_USAGE);
    assert_int_equal(err.code, ERR_USAGE);
    if (!strstr(err.text, text)) {
        fail_msg("%s: %s", spec, err.text);
    }
}

static void auto_is_cores_and_what_gpus_there_are(void **state)
{
    struct device_spec device_spec = parsed("auto");

    (void)state;
    assert_true(device_spec.cpus && device_spec.cuda && !device_spec.must);
    assert_int_equal(device_spec.cpu_count, 0);
    assert_int_equal(device_spec.gpu_count, 0);
}

static void cores_and_gpus_are_named(void **state)
{
    struct device_spec device_spec = parsed("cpu");

    (void)state;
    assert_true(device_spec.cpus && !device_spec.cuda);
    assert_int_equal(parsed("cpu:3").cpu_count, 3);
    device_spec = parsed("cuda");
    assert_true(!device_spec.cpus && device_spec.cuda && device_spec.must);
    assert_int_equal(device_spec.gpu_count, 0);
    device_spec = parsed("cuda:0,2+cpu:2");
    assert_true(device_spec.cpus && device_spec.cuda && device_spec.must);
    assert_int_equal(device_spec.cpu_count, 2);
    assert_int_equal(device_spec.gpu_count, 2);
    assert_int_equal(device_spec.gpu[0], 0);
    assert_int_equal(device_spec.gpu[1], 2);
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

// Three GPUs, 0 to 2, of which the last one cannot be used.
static struct cuda_probe_outcome three(void)
{
    struct cuda_probe_outcome outcome;

    message_init(&cuda_probe_outcome_message, &outcome);
    outcome.toolchain = xstrdup("nvrtc");
    outcome.gpus = xcalloc(3, sizeof(*outcome.gpus));
    for (outcome.gpus_count = 0; outcome.gpus_count < 3; outcome.gpus_count++) {
        struct gpu_info *gpu = &outcome.gpus[outcome.gpus_count];

        message_init(&gpu_info_message, gpu);
        gpu->uuid = xasprintf("GPU-%zu", outcome.gpus_count);
        gpu->ordinal = outcome.gpus_count;
        gpu->name = xstrdup("Name");
        gpu->device_class = xstrdup("class");
        gpu->target = xstrdup("sm_90");
    }
    outcome.gpus[2].reason = xstrdup("it is too old");
    return outcome;
}

static struct cuda_probe_outcome none(void)
{
    struct cuda_probe_outcome outcome;

    message_init(&cuda_probe_outcome_message, &outcome);
    outcome.reason = xstrdup("there is no driver");
    return outcome;
}

static size_t offered_by(const struct device_spec *device_spec, const char *spec,
                         struct cuda_probe_outcome outcome, const char *text)
{
    struct devices devices;

    devices_init(&devices);
    struct err err = ERR_INIT;
    int rc = device_spec_gpus(device_spec, &outcome, &devices, &err);
    size_t count = devices.count;
    assert_int_equal(rc, text ? ERR_NOT_FOUND : 0);
    if (text && !strstr(err.text, text)) {
        fail_msg("%s: %s", spec, err.text);
    }
    devices_release(&devices);
    message_clear(&cuda_probe_outcome_message, &outcome);
    return count;
}

// Expects this number of devices, or an error that contains the text.
static size_t offered(const char *spec, struct cuda_probe_outcome outcome, const char *text)
{
    const struct device_spec device_spec = parsed(spec);

    return offered_by(&device_spec, spec, outcome, text);
}

// Kernels of the first GPU can read memory of processes.
static struct cuda_probe_outcome three_of_which_one_reads(void)
{
    struct cuda_probe_outcome outcome = three();

    outcome.gpus[0].pageable = true;
    return outcome;
}

static void a_gpu_that_reads_memory_of_processes_is_left_out_unless_it_is_allowed(void **state)
{
    (void)state;
    assert_int_equal(offered("auto", three_of_which_one_reads(), NULL), 1);
    assert_int_equal(offered("cuda", three_of_which_one_reads(), NULL), 1);
    (void)offered("cuda:0,1", three_of_which_one_reads(),
                  "GPU 0 (Name) cannot be used: its kernels could read the memory of kcast-exec");
    static const char *const spec[] = {"auto", "cuda", "cuda:0,1"};
    for (size_t i = 0; i < 3; i++) {
        struct device_spec allowed = parsed(spec[i]);

        allowed.pageable = true;
        assert_int_equal(offered_by(&allowed, spec[i], three_of_which_one_reads(), NULL), 2);
    }
    struct device_spec allowed = parsed("cuda:2");
    allowed.pageable = true; // this allows nothing else
    (void)offered_by(&allowed, "cuda:2", three_of_which_one_reads(), "it is too old");
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
        cmocka_unit_test(a_gpu_that_reads_memory_of_processes_is_left_out_unless_it_is_allowed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
