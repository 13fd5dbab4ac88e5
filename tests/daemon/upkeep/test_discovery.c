// What the probes of this machine make of it. The test answers for kcast-exec.
#include "common/strbuf.h"
#include "daemon/upkeep/discovery.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    struct devices devices;
    struct device_spec spec;
    struct cores cores;
    struct daemon_parts parts;
    struct discovery probing;
    struct executor *executor; // that runs; NULL: none
    char mode[32];
    bool broken; // none can be started
    unsigned started, stopped, ended;
    enum err_code code; // of the end
    char text[ERR_TEXT_MAX];
};

static int start(void *owner, struct executor *executor, const struct executor_config *config,
                 const struct bytes *plan, struct err *err)
{
    struct fixture *f = owner;

    assert_null(f->executor); // one after the other
    assert_int_equal(plan->len, 0);
    if (f->broken) {
        return err_set(err, ERR_SYSTEM, "no process can be started");
    }
    f->executor = executor;
    f->started++;
    (void)snprintf(f->mode, sizeof(f->mode), "%s", config->mode);
    return 0;
}

static void stop(void *owner, struct executor *executor)
{
    struct fixture *f = owner;

    assert_ptr_equal(executor, f->executor);
    f->stopped++;
}

static void on_end(void *owner, const struct err *error)
{
    struct fixture *f = owner;

    f->ended++;
    f->code = error ? error->code : ERR_NONE;
    (void)snprintf(f->text, sizeof(f->text), "%s", error ? error->text : "");
}

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    const struct executor_stand_in stand_in = {.start = start, .stop = stop, .owner = f};

    devices_init(&f->devices);
    f->cores.device[0] = 3;
    f->cores.device[1] = 2;
    f->cores.device_count = 2;
    f->spec = (struct device_spec){.cpus = true, .cuda = true};
    f->parts.devices = &f->devices;
    f->parts.executors = executors_stand_in(&stand_in);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    assert_null(f->executor);
    executors_free(f->parts.executors);
    devices_release(&f->devices);
    free(f);
    return 0;
}

static void begin(struct fixture *f)
{
    const struct discovery_config config = {.parts = &f->parts,
                                            .device_spec = &f->spec,
                                            .cores = &f->cores,
                                            .on_end = on_end,
                                            .owner = f};

    assert_int_equal(discovery_start(&f->probing, &config, NULL), 0);
    assert_string_equal(f->mode, "probe");
}

static void finish(struct fixture *f, struct executor_end *end)
{
    struct executor *executor = f->executor;

    f->executor = NULL;
    executor_answer(executor, end);
}

static void answer(struct fixture *f, const struct message *message, const void *outcome)
{
    struct executor_end end = {.ok = true};
    struct strbuf packed = STRBUF_INIT;

    assert_int_equal(message_pack(message, outcome, &packed, NULL), 0);
    end.outcome = strbuf_detach_bytes(&packed);
    finish(f, &end);
}

static void answer_cores(struct fixture *f, bool sandbox, const char *reason)
{
    struct probe_outcome outcome;

    message_init(&probe_outcome_message, &outcome);
    outcome.sandbox = sandbox;
    outcome.reason = (char *)(uintptr_t)reason;
    outcome.device_class = (char *)(uintptr_t) "cpu";
    outcome.toolchain = (char *)(uintptr_t) "cc";
    answer(f, &probe_outcome_message, &outcome);
}

static void answer_gpus(struct fixture *f, size_t count)
{
    struct gpu_info gpu;
    struct cuda_probe_outcome outcome;

    assert_string_equal(f->mode, "cuda-probe");
    message_init(&gpu_info_message, &gpu);
    gpu.uuid = (char *)(uintptr_t) "GPU-0";
    gpu.device_class = (char *)(uintptr_t) "gpu";
    gpu.target = (char *)(uintptr_t) "sm_90";
    message_init(&cuda_probe_outcome_message, &outcome);
    outcome.toolchain = (char *)(uintptr_t) "nvrtc";
    outcome.reason = (char *)(uintptr_t)(count > 0 ? NULL : "there is no driver");
    outcome.gpus = &gpu;
    outcome.gpus_count = count;
    answer(f, &cuda_probe_outcome_message, &outcome);
}

static void fail_probe(struct fixture *f, const char *reason)
{
    struct executor_end end = {.ok = false};

    (void)snprintf(end.reason, sizeof(end.reason), "%s", reason);
    finish(f, &end);
}

static void cores_and_then_gpus_become_devices(void **state)
{
    struct fixture *f = *state;

    begin(f);
    answer_cores(f, true, NULL);
    assert_int_equal(f->ended, 0);
    answer_gpus(f, 1);
    assert_int_equal(f->ended, 1);
    assert_int_equal(f->code, 0);
    assert_int_equal(f->devices.count, 3);
    assert_int_equal(f->devices.device[0].core, 3);
    assert_string_equal(f->devices.device[2].uuid, "GPU-0");
}

static void without_wanted_gpus_there_is_one_probe(void **state)
{
    struct fixture *f = *state;

    f->spec.cuda = false;
    begin(f);
    answer_cores(f, true, NULL);
    assert_int_equal(f->started, 1);
    assert_int_equal(f->ended, 1);
    assert_int_equal(f->code, 0);
    assert_int_equal(f->devices.count, 2);
}

static void without_wanted_cores_the_probe_is_still_about_the_sandbox(void **state)
{
    struct fixture *f = *state;

    f->cores.device_count = 0;
    begin(f);
    answer_cores(f, true, NULL);
    answer_gpus(f, 1);
    assert_int_equal(f->code, 0);
    assert_int_equal(f->devices.count, 1);
}

static void a_sandbox_that_does_not_work_ends_the_start_unless_it_is_off(void **state)
{
    static const char *const reasons[] = {"user namespaces are not allowed", NULL};
    struct fixture *f = *state;

    for (unsigned i = 0; i < 2; i++) {
        begin(f);
        answer_cores(f, false, reasons[i]);
        assert_int_equal(f->ended, i + 1);
        assert_int_equal(f->code, ERR_SANDBOX);
        assert_non_null(strstr(f->text, reasons[i] ? reasons[i] : "gives no reason"));
        assert_int_equal(f->devices.count, 0);
    }
    f->spec.cuda = false;
    f->parts.limits.sandbox_off = true;
    begin(f);
    answer_cores(f, false, reasons[0]);
    assert_int_equal(f->code, 0);
    assert_int_equal(f->devices.count, 2);
}

static void a_probe_that_fails_or_talks_nonsense_ends_the_start(void **state)
{
    struct fixture *f = *state;
    struct executor_end end = {.ok = true};

    begin(f);
    fail_probe(f, "it crashed");
    assert_int_equal(f->code, ERR_SYSTEM);
    assert_string_equal(f->text, "it crashed");
    begin(f);
    end.outcome = bytes_copy("garbage", 7);
    finish(f, &end);
    assert_int_equal(f->code, ERR_PROTOCOL);
    assert_int_equal(f->started, 2); // no probe of GPUs
    assert_int_equal(f->devices.count, 0);
}

static void a_failing_probe_of_gpus_matters_only_where_gpus_must_be_there(void **state)
{
    struct fixture *f = *state;

    begin(f);
    answer_cores(f, true, NULL);
    fail_probe(f, "the driver hangs");
    assert_int_equal(f->code, 0);
    assert_int_equal(f->devices.count, 2);
    devices_release(&f->devices);
    devices_init(&f->devices);
    f->spec.must = true;
    begin(f);
    answer_cores(f, true, NULL);
    fail_probe(f, "the driver hangs");
    assert_int_equal(f->code, ERR_SYSTEM);
    assert_string_equal(f->text, "the driver hangs");
}

static void gpus_that_must_be_there_and_are_not_are_an_error(void **state)
{
    struct fixture *f = *state;

    f->spec.must = true;
    begin(f);
    answer_cores(f, true, NULL);
    answer_gpus(f, 0);
    assert_int_equal(f->ended, 1);
    assert_int_equal(f->code, ERR_NOT_FOUND);
    assert_non_null(strstr(f->text, "there is no driver"));
}

static void a_stopped_discovery_says_nothing_more(void **state)
{
    struct fixture *f = *state;

    begin(f);
    discovery_stop(&f->probing);
    assert_int_equal(f->stopped, 1);
    answer_cores(f, true, NULL); // it had ended just before
    begin(f);
    answer_cores(f, true, NULL);
    discovery_stop(&f->probing);
    assert_int_equal(f->stopped, 2);
    answer_gpus(f, 1);
    discovery_stop(&f->probing); // nothing runs any more
    assert_int_equal(f->stopped, 2);
    assert_int_equal(f->ended, 0);
}

static void a_probe_that_cannot_be_started_is_an_error(void **state)
{
    struct fixture *f = *state;
    const struct discovery_config config = {.parts = &f->parts,
                                            .device_spec = &f->spec,
                                            .cores = &f->cores,
                                            .on_end = on_end,
                                            .owner = f};
    struct err err = ERR_INIT;

    f->broken = true;
    assert_int_equal(discovery_start(&f->probing, &config, &err), ERR_SYSTEM);
    assert_int_equal(f->ended, 0);
    f->broken = false;
    begin(f);
    f->broken = true;
    answer_cores(f, true, NULL); // the second one cannot
    assert_int_equal(f->ended, 1);
    assert_int_equal(f->code, ERR_SYSTEM);
    assert_non_null(strstr(f->text, "no process can be started"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(cores_and_then_gpus_become_devices),
        TEST(without_wanted_gpus_there_is_one_probe),
        TEST(without_wanted_cores_the_probe_is_still_about_the_sandbox),
        TEST(a_sandbox_that_does_not_work_ends_the_start_unless_it_is_off),
        TEST(a_probe_that_fails_or_talks_nonsense_ends_the_start),
        TEST(a_failing_probe_of_gpus_matters_only_where_gpus_must_be_there),
        TEST(gpus_that_must_be_there_and_are_not_are_an_error),
        TEST(a_stopped_discovery_says_nothing_more),
        TEST(a_probe_that_cannot_be_started_is_an_error),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
