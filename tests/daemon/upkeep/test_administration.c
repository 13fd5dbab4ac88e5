// Device administration: drains, quarantines and probes are carried out by a fake executor, kept
// and answered.
#include "common/clock.h"
#include "common/file.h"
#include "daemon/devices/device.h"
#include "daemon/jobs/scheduler.h"
#include "daemon/run/executors.h"
#include "daemon/store/ledger.h"
#include "daemon/upkeep/administration.h"
#include "tests/support/program.h"
#include "tests/support/service_pair.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    struct service_pair pair;
    char *dir;
    struct ledger *ledger;
    struct executors *executors;
    struct devices devices;
    struct administration *administration;
    struct daemon_parts parts;
    // The reply to a PROBE that the test does not wait for at once.
    bool answered, passed;
    enum err_code error;
};

static void on_request(void *owner, struct exchange *exchange, const struct request *request)
{
    struct fixture *f = owner;
    struct drain drain;
    struct quarantine quarantine;
    struct probe_request probe;

    if (request->op == OP_DRAIN && exchange_read_body(exchange, request, &drain_message, &drain)) {
        administration_drain(f->administration, exchange, &drain);
        message_clear(&drain_message, &drain);
    } else if (request->op == OP_QUARANTINE &&
               exchange_read_body(exchange, request, &quarantine_message, &quarantine)) {
        administration_quarantine(f->administration, exchange, &quarantine);
        message_clear(&quarantine_message, &quarantine);
    } else if (request->op == OP_PROBE &&
               exchange_read_body(exchange, request, &probe_request_message, &probe)) {
        administration_probe(f->administration, exchange, &probe);
        message_clear(&probe_request_message, &probe);
    }
}

// Adds two cores of the class that the probe of the fake executor finds.
static void add_devices(struct fixture *f)
{
    static const int core[] = {0, 1};
    struct probe_outcome probe;

    message_init(&probe_outcome_message, &probe);
    probe.device_class = xstrdup("fake-cpu");
    probe.toolchain = xstrdup("cc");
    devices_init(&f->devices);
    devices_add_cpus(&f->devices, core, 2, &probe);
    message_clear(&probe_outcome_message, &probe);
}

static void begin(struct fixture *f)
{
    char *path = xasprintf("%s/ledger.db", f->dir);
    char *exec = program_support_path("fake_exec");

    service_pair_init(&f->pair);
    add_devices(f);
    assert_int_equal(ledger_open(&f->ledger, path, 0, NULL), 0);
    assert_int_equal(executors_create(&f->executors, &f->pair.loop, exec, NULL, NULL, NULL), 0);
    f->parts = (struct daemon_parts){
        .loop = &f->pair.loop,
        .clock = &clock_system,
        .limits = {.grace_ms = 100},
        .devices = &f->devices,
        .ledger = f->ledger,
        .executors = f->executors,
    };
    f->parts.scheduler = scheduler_create(&f->parts);
    scheduler_stop(f->parts.scheduler); // there are no jobs
    assert_int_equal(administration_create(&f->administration, &f->parts, NULL), 0);
    assert_int_equal(ledger_start(f->ledger, &f->pair.loop, NULL), 0);
    service_pair_open(&f->pair, on_request, f);
    free(exec);
    free(path);
}

static void end(struct fixture *f)
{
    administration_stop(f->administration);
    while (executors_count(f->executors) > 0) {
        (void)uv_run(&f->pair.loop, UV_RUN_ONCE);
    }
    scheduler_free(f->parts.scheduler);
    ledger_close(f->ledger);
    service_pair_close(&f->pair);
    assert_int_equal(administration_pending(f->administration), 0);
    administration_free(f->administration);
    executors_free(f->executors);
    devices_release(&f->devices);
}

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    (void)unsetenv("KCAST_FAKE_PROBE");
    assert_int_equal(file_make_temp_dir(&f->dir, "kcast-orders", NULL), 0);
    begin(f);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    end(f);
    assert_int_equal(file_remove_tree(f->dir, NULL), 0);
    free(f->dir);
    free(f);
    return 0;
}

static int drain(struct fixture *f, const char *first, const char *second, bool undrain)
{
    char *names[] = {(char *)(uintptr_t)first, (char *)(uintptr_t)second};
    struct drain body;

    message_init(&drain_message, &body);
    body.devices = names;
    body.devices_count = (!!first) + (!!second);
    body.undrain = undrain;
    body.reason = (char *)(uintptr_t) "a new fan";
    struct empty reply;
    struct err err;
    return service_pair_call(&f->pair, OP_DRAIN, &drain_message, &body, &empty_message, &reply,
                             &err);
}

static int quarantine(struct fixture *f, const char *name)
{
    char *names[] = {(char *)(uintptr_t)name};
    struct quarantine body = {
        .devices = names, .devices_count = 1, .reason = (char *)(uintptr_t) "it smells"};
    struct empty reply;
    struct err err;

    return service_pair_call(&f->pair, OP_QUARANTINE, &quarantine_message, &body, &empty_message,
                             &reply, &err);
}

static int probe(struct fixture *f, const char *name, bool *ret_passed)
{
    struct probe_request body = {.device = (char *)(uintptr_t)name};
    struct probed reply;
    struct err err;
    int rc = service_pair_call(&f->pair, OP_PROBE, &probe_request_message, &body, &probed_message,
                               &reply, &err);

    if (rc == 0) {
        *ret_passed = reply.passed;
        message_clear(&probed_message, &reply);
    }
    return rc;
}

static const char *state_of(const struct fixture *f, size_t device)
{
    return device_state_name(f->devices.device[device].state);
}

static void a_drain_survives_until_it_is_taken_back(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(drain(f, "cpu1", NULL, false), 0);
    assert_string_equal(state_of(f, 0), "ready");
    assert_string_equal(state_of(f, 1), "draining");
    end(f);
    begin(f);
    assert_string_equal(state_of(f, 0), "ready");
    assert_string_equal(state_of(f, 1), "draining");
    assert_int_equal(drain(f, "cpu1", NULL, true), 0);
    assert_string_equal(state_of(f, 1), "ready");
    end(f);
    begin(f);
    assert_string_equal(state_of(f, 1), "ready");
}

static void all_devices_that_are_named_or_none(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(drain(f, "cpu0", "cpu7", false), ERR_NOT_FOUND);
    assert_int_equal(drain(f, NULL, NULL, false), ERR_USAGE);
    assert_int_equal(quarantine(f, "cpu7"), ERR_NOT_FOUND);
    assert_string_equal(state_of(f, 0), "ready");
    assert_int_equal(drain(f, "cpu0", "cpu1", false), 0);
    assert_string_equal(state_of(f, 0), "draining");
    assert_string_equal(state_of(f, 1), "draining");
}

static void only_a_passed_probe_ends_a_quarantine(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(quarantine(f, "cpu0"), 0);
    assert_string_equal(state_of(f, 0), "quarantined");
    assert_int_equal(drain(f, "cpu0", NULL, true), ERR_INVALID);
    assert_int_equal(drain(f, "cpu0", NULL, false), 0);
    assert_int_equal(drain(f, "cpu0", NULL, true), 0); // which leaves the quarantine
    assert_string_equal(state_of(f, 0), "quarantined");
    (void)setenv("KCAST_FAKE_PROBE", "crash", 1);
    end(f);
    begin(f); // the environment is the executors' from their beginning; the order stays
    assert_string_equal(state_of(f, 0), "quarantined");
    bool passed = true;
    assert_int_equal(probe(f, "cpu0", &passed), 0);
    assert_false(passed);
    assert_string_equal(state_of(f, 0), "quarantined");
    (void)unsetenv("KCAST_FAKE_PROBE");
    end(f);
    begin(f);
    assert_string_equal(state_of(f, 0), "quarantined");
    assert_int_equal(probe(f, "cpu0", &passed), 0);
    assert_true(passed);
    assert_string_equal(state_of(f, 0), "ready");
    end(f);
    begin(f);
    assert_string_equal(state_of(f, 0), "ready");
}

static void on_probed(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    struct fixture *f = owner;

    (void)retry_after_ms;
    f->answered = true;
    f->error = error ? error->code : ERR_NONE;
    f->passed = reply && ((struct probed *)reply)->passed;
}

// Returns when the inspection has been asked for.
static void probe_later(struct fixture *f, const char *name, const struct device *device)
{
    struct probe_request body = {.device = (char *)(uintptr_t)name};

    f->answered = false;
    remote_call(f->pair.remote, OP_PROBE, &probe_request_message, &body, &probed_message,
                PROGRAM_LIMIT_MS, on_probed, f);
    while (!device->inspecting) {
        (void)uv_run(&f->pair.loop, UV_RUN_ONCE);
    }
}

static void until_answered(struct fixture *f)
{
    while (!f->answered) {
        (void)uv_run(&f->pair.loop, UV_RUN_ONCE);
    }
}

static void a_busy_device_is_tried_when_it_is_free(void **state)
{
    struct fixture *f = *state;
    struct device *device = &f->devices.device[0];

    device_hold(device, 17, clock_now_ns(&clock_system));
    probe_later(f, "cpu0", device);
    administration_tick(f->administration);
    assert_int_equal(executors_count(f->executors), 0);
    bool passed;
    assert_int_equal(probe(f, "cpu0", &passed), ERR_BUSY); // one at a time
    (void)device_release(device, clock_now_ns(&clock_system));
    assert_false(f->answered);
    administration_tick(f->administration);
    assert_int_equal(executors_count(f->executors), 1);
    until_answered(f);
    assert_int_equal(f->error, ERR_NONE);
    assert_true(f->passed);
    assert_string_equal(state_of(f, 0), "ready");
}

static void who_waits_for_a_probe_is_answered_when_it_ends(void **state)
{
    struct fixture *f = *state;
    struct device *device = &f->devices.device[0];

    device_hold(device, 17, clock_now_ns(&clock_system));
    probe_later(f, "cpu0", device);
    administration_stop(f->administration);
    until_answered(f);
    assert_int_equal(f->error, ERR_BUSY);
    assert_false(device->inspecting);
    administration_tick(f->administration); // nothing begins any more
    assert_int_equal(executors_count(f->executors), 0);
}

static void a_leaving_daemon_drains_all_and_keeps_nothing_of_it(void **state)
{
    struct fixture *f = *state;

    administration_drain_all(f->administration);
    assert_string_equal(state_of(f, 0), "draining");
    assert_string_equal(state_of(f, 1), "draining");
    end(f);
    begin(f);
    assert_string_equal(state_of(f, 0), "ready");
    assert_string_equal(state_of(f, 1), "ready");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_drain_survives_until_it_is_taken_back),
        TEST(all_devices_that_are_named_or_none),
        TEST(only_a_passed_probe_ends_a_quarantine),
        TEST(a_busy_device_is_tried_when_it_is_free),
        TEST(who_waits_for_a_probe_is_answered_when_it_ends),
        TEST(a_leaving_daemon_drains_all_and_keeps_nothing_of_it),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
