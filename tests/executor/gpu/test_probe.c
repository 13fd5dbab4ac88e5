// What the probes report about GPUs that are missing, healthy or defective. Needs the CUDA compiler
// for the executor's kernels.
#include "executor/gpu/compile/toolkit.h"
#include "executor/gpu/probe.h"
#include "tests/support/gpu.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void probe(const char *settings, struct cuda_probe_outcome *ret)
{
    gpu_fake_set(settings);
    struct err err = ERR_INIT;
    assert_int_equal(probe_cuda(ret, &err), 0);
}

static double fact(const struct gpu_info *info, const char *name)
{
    for (size_t i = 0; i < info->facts_count; i++) {
        if (strcmp(info->facts[i].name, name) == 0) {
            return info->facts[i].value;
        }
    }
    return NAN;
}

static void every_gpu_is_described(void **state)
{
    (void)state;
    struct cuda_probe_outcome outcome;
    probe("count=2;memory=1G;l2=2M", &outcome);
    assert_null(outcome.reason);
    assert_non_null(strstr(outcome.toolchain, "nvrtc"));
    assert_non_null(strstr(outcome.toolchain, "nvdisasm")); // or "no nvdisasm"
    assert_int_equal(outcome.gpus_count, 2);
    struct gpu_info *gpu = &outcome.gpus[1];
    assert_null(gpu->reason);
    assert_string_equal(gpu->uuid, "GPU-fa4e0000-0000-4000-8000-000000000001");
    assert_string_equal(gpu->name, "NVIDIA H200");
    assert_string_equal(gpu->target, "sm_90");
    assert_int_equal(gpu->ordinal, 1);
    assert_non_null(strstr(gpu->device_class, "NVIDIA H200, sm_90, driver 13.0, nvrtc"));
    assert_null(strstr(gpu->device_class, "nvdisasm")); // because the disassembler changes no times
    assert_true(fact(gpu, "multiprocessors") == 132);
    assert_true(fact(gpu, "l2_bytes") == 2 << 20);
    assert_true(fact(gpu, "memory_bytes") == 1 << 30);
    assert_true(fact(gpu, "shared_bytes_per_block") == 232448);
    assert_true(fact(gpu, "peak_bytes") > 1e12); // by the clock of the fake GPU
    // 132 multiprocessors with 256 operations per cycle, at 1.98 GHz.
    assert_true(fabs(fact(gpu, "peak_flops_f32") / (132 * 256 * 1.98e9) - 1) < 1e-9);
    assert_false(gpu->pageable);
    message_clear(&cuda_probe_outcome_message, &outcome);
}

static void kernels_that_can_read_memory_of_processes_are_told(void **state)
{
    (void)state;
    struct cuda_probe_outcome outcome;
    probe("pageable=1", &outcome);
    assert_int_equal(outcome.gpus_count, 1);
    assert_null(outcome.gpus[0].reason);
    assert_true(outcome.gpus[0].pageable);
    message_clear(&cuda_probe_outcome_message, &outcome);
}

static void unknown_architectures_have_no_peaks(void **state)
{
    (void)state;
    struct cuda_probe_outcome outcome;
    probe("arch=80;name=NVIDIA A1", &outcome);
    assert_int_equal(outcome.gpus_count, 1);
    assert_null(outcome.gpus[0].reason);
    assert_true(fact(&outcome.gpus[0], "peak_flops_fp8") !=
                fact(&outcome.gpus[0], "peak_flops_fp8"));
    message_clear(&cuda_probe_outcome_message, &outcome);
    probe("arch=31", &outcome); // the compiler does not know this architecture either
    assert_non_null(outcome.gpus[0].reason);
    message_clear(&cuda_probe_outcome_message, &outcome);
}

static void an_ill_gpu_is_named_with_its_reason(void **state)
{
    static const struct {
        const char *settings, *words;
    } cases[] = {
        {"fault=sick", "the GPU computes wrong values in the health check"},
        {"fault=context", "making a CUDA context: CUDA_ERROR_DEVICE_UNAVAILABLE"},
        {"fault=oom:1", "of memory left"}, // of the stamps and the result words
        {"fault=oom:2", "of memory left"}, // of the memory that flushes the cache
        {"fault=oom:3",
         "the GPU has no 128.0 MiB of memory left"}, // of the buffer that measures the memory
    };

    (void)state;
    struct cuda_probe_outcome outcome;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        probe(cases[i].settings, &outcome);
        assert_int_equal(outcome.gpus_count, 1);
        if (!outcome.gpus[0].reason || !strstr(outcome.gpus[0].reason, cases[i].words)) {
            fail_msg("%s: %s", cases[i].settings, outcome.gpus[0].reason);
        }
        assert_string_equal(outcome.gpus[0].name, "NVIDIA H200");
        assert_int_equal(outcome.gpus[0].facts_count, 0);
        message_clear(&cuda_probe_outcome_message, &outcome);
    }
}

static void no_gpu_has_a_reason_too(void **state)
{
    static const char *const cases[][2] = {
        {"count=0", "the CUDA driver knows of no GPU"},
        {"fault=no-device", "CUDA_ERROR_NO_DEVICE"},
        {"fault=init", "the CUDA driver finds no GPU: CUDA_ERROR_UNKNOWN"},
    };

    (void)state;
    struct cuda_probe_outcome outcome;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        probe(cases[i][0], &outcome);
        assert_int_equal(outcome.gpus_count, 0);
        assert_non_null(outcome.reason);
        if (!strstr(outcome.reason, cases[i][1])) {
            fail_msg("%s: %s", cases[i][0], outcome.reason);
        }
        message_clear(&cuda_probe_outcome_message, &outcome);
    }
}

static void health_is_asked_for_by_uuid_or_number(void **state)
{
    (void)state;
    gpu_fake_set("count=2");
    struct err err = ERR_INIT;
    assert_int_equal(probe_health("1", &err), 0);
    assert_int_equal(probe_health("GPU-fa4e0000-0000-4000-8000-000000000001", &err), 0);
    assert_int_equal(probe_health("GPU-gone", &err), ERR_NOT_FOUND);
    assert_string_equal(err.text, "this machine has no GPU GPU-gone");
    err = (struct err)ERR_INIT;
    gpu_fake_set("fault=sick");
    assert_int_equal(probe_health("0", &err), ERR_SYSTEM);
    assert_non_null(strstr(err.text, "computes wrong values"));
}

static int find_compiler(void **state)
{
    (void)state;
    struct toolkit toolkit;
    struct err err = ERR_INIT;
    if (toolkit_find(&toolkit, &err) != 0) {
        printf("skipped because %s\n", err.text);
        exit(0);
    }
    toolkit_release(&toolkit);
    gpu_fake_use("");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_gpu_is_described),
        cmocka_unit_test(kernels_that_can_read_memory_of_processes_are_told),
        cmocka_unit_test(unknown_architectures_have_no_peaks),
        cmocka_unit_test(an_ill_gpu_is_named_with_its_reason),
        cmocka_unit_test(no_gpu_has_a_reason_too),
        cmocka_unit_test(health_is_asked_for_by_uuid_or_number),
    };

    return cmocka_run_group_tests(tests, find_compiler, NULL);
}
