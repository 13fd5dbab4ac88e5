// What the daemon tells of itself, and to whom.
#include "daemon/devices/device.h"
#include "daemon/jobs/listing.h"
#include "daemon/run/measure.h"
#include "daemon/status.h"
#include "proto/verdict.h"
#include "tests/daemon/served_workshop.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct caller admin = {.tenant = "local", .role = CALLER_ADMIN};
static const struct caller owner = {.tenant = "t", .role = CALLER_OBSERVE};
static const struct caller stranger = {.tenant = "u", .role = CALLER_SUBMIT};

static struct status ask(struct workshop *w, const struct caller *caller,
                         const struct status_request *request)
{
    struct listing *listing = listing_create(&w->parts, caller, request);
    struct status status;

    status_fill(&status, &w->parts, caller, true);
    while (!listing_step(listing)) {
    }
    listing_take(listing, &status.jobs, &status.jobs_count);
    listing_free(listing);
    return status;
}

static struct status ask_all(struct workshop *w, const struct caller *caller)
{
    struct status_request request;

    message_init(&status_request_message, &request);
    request.all = true;
    return ask(w, caller, &request);
}

static void clear(struct status *status)
{
    message_clear(&status_message, status);
}

static void a_strangers_job_shows_only_that_the_device_is_busy(void **state)
{
    struct workshop *w = served_open(1);
    struct job *job = workshop_submit(w, JOB_MEASURE, "k", "one", NULL);

    (void)state;
    workshop_compile_until(w, job, JOB_RUNNING);
    const struct caller *const callers[] = {&admin, &owner, &stranger};
    for (size_t i = 0; i < ARRAY_LEN(callers); i++) {
        bool may = callers[i] != &stranger;
        struct status status = ask_all(w, callers[i]);

        assert_int_equal(status.devices_count, 1);
        assert_string_equal(status.devices[0].state, "busy");
        assert_int_equal(status.devices[0].job, job->id);
        assert_int_equal(!!status.devices[0].search, may);
        assert_int_equal(!!status.devices[0].tenant, may);
        assert_int_equal(status.jobs_count, may ? 1 : 0);
        if (may) {
            assert_string_equal(status.devices[0].search, "s");
            assert_string_equal(status.jobs[0].key, "k");
            assert_string_equal(status.jobs[0].device, "cpu0");
        }
        assert_int_equal(status.states[JOB_RUNNING], 1); // numbers are everybody's
        clear(&status);
    }
    served_close(w);
}

static void jobs_are_listed_as_they_are_asked_for(void **state)
{
    struct workshop *w = served_open(1);
    struct job *one = workshop_submit(w, JOB_MEASURE, "k1", "one", NULL);
    struct status_request request;

    (void)state;
    workshop_compile_until(w, one, JOB_RUNNING);
    struct job *two = workshop_submit(w, JOB_MEASURE, "k2", "two", NULL);
    workshop_compile_until(w, two, JOB_READY);
    workshop_measured(w, workshop_execution(w, "measure"), VERDICT_WRONG);
    workshop_until_state(w, one, JOB_DONE);
    message_init(&status_request_message, &request);
    struct status status = ask(w, &owner, &request);
    assert_int_equal(status.jobs_count, 0);
    clear(&status);
    status = ask_all(w, &owner); // what is not finished
    assert_int_equal(status.jobs_count, 1);
    assert_int_equal(status.jobs[0].job, two->id);
    clear(&status);
    uint64_t ids[] = {two->id, one->id, 999};
    request.jobs = ids;
    request.jobs_count = 3;
    status = ask(w, &owner, &request);
    assert_int_equal(status.jobs_count, 2); // in the order of the request
    assert_int_equal(status.jobs[0].job, two->id);
    assert_int_equal(status.jobs[1].job, one->id);
    clear(&status);
    status = ask(w, &stranger, &request);
    assert_int_equal(status.jobs_count, 0);
    clear(&status);
    request.jobs_count = 0;
    request.search = (char *)(uintptr_t) "s";
    status = ask(w, &owner, &request);
    assert_int_equal(status.jobs_count, 2);
    clear(&status);
    status = ask(w, &admin, &request); // names of searches are the caller's own
    assert_int_equal(status.jobs_count, 0);
    clear(&status);
    served_close(w);
}

static void searches_are_shown_with_what_they_hold(void **state)
{
    struct workshop *w = served_open(2);
    struct job *one = workshop_submit(w, JOB_MEASURE, "k1", "one", NULL);
    struct job *two = workshop_submit(w, JOB_MEASURE, "k2", "two", NULL);

    (void)state;
    workshop_compile_until(w, one, JOB_RUNNING);
    workshop_compile_until(w, two, JOB_RUNNING);
    counters_search(&w->counters, "t", "s")->measured = 7;
    counters_search(&w->counters, "u", "theirs")->compile_seconds = 3;
    w->counters.others.measured = 4;
    struct status status = ask_all(w, &owner);
    assert_int_equal(status.searches_count, 1);
    assert_string_equal(status.searches[0].name, "s");
    assert_int_equal(status.searches[0].unfinished, 2);
    assert_int_equal(status.searches[0].running, 2);
    assert_int_equal(status.searches[0].measured, 7);
    clear(&status);
    status = ask_all(w, &admin); // and those of long ago, which have no name
    assert_int_equal(status.searches_count, 3);
    assert_string_equal(status.searches[2].name, "");
    assert_null(status.searches[2].tenant);
    assert_int_equal(status.searches[2].measured, 4);
    clear(&status);
    status_fill(&status, &w->parts, &admin, false);
    assert_int_equal(status.searches_count + status.shares_count, 0);
    assert_int_equal(status.devices_count, 2);
    clear(&status);
    served_close(w);
}

// Each device was held for a part of the time, and the search was in one stage after the other.
static void utilisation_and_stages_are_told(void **state)
{
    struct workshop *w = served_open(2);
    struct job *job = workshop_submit(w, JOB_MEASURE, "k1", "one", NULL);

    (void)state;
    w->parts.started_ns = clock_now_ns(&w->clock) - 10 * NS_PER_S;
    workshop_compile_until(w, job, JOB_RUNNING);
    const char *held = run_device(job->run)->name;
    clock_fake_advance(&w->clock, 30 * NS_PER_S);
    struct status status = ask_all(w, &owner);
    for (size_t i = 0; i < 2; i++) {
        bool is_held = strcmp(status.devices[i].name, held) == 0;

        double expected = is_held ? 0.75 : 0;
        assert_true(fabs(status.devices[i].utilisation - expected) < 1e-9);
        assert_true(fabs(status.devices[i].utilisation_minute - expected) < 1e-9);
    }
    assert_float_equal(status.searches[0].measuring_seconds, 30, 1e-9);
    assert_float_equal(status.searches[0].waiting_seconds, 0, 1e-9);
    clear(&status);
    workshop_measured(w, workshop_execution(w, "measure"), VERDICT_WRONG);
    workshop_until_state(w, job, JOB_DONE);
    clock_fake_advance(&w->clock, 60 * NS_PER_S);
    (void)workshop_submit(w, JOB_MEASURE, "k2", "two", NULL);
    clock_fake_advance(&w->clock, 5 * NS_PER_S);
    status = ask_all(w, &owner);
    float used = (float)(status.devices[0].utilisation + status.devices[1].utilisation);
    assert_float_equal(used, 30.0 / 105, 1e-6);
    assert_float_equal(status.devices[0].utilisation_minute, 0, 1e-9);
    assert_float_equal(status.devices[1].utilisation_minute, 0, 1e-9);
    assert_float_equal(status.searches[0].measuring_seconds, 30, 1e-9);
    assert_float_equal(status.searches[0].away_seconds, 60, 1e-9);
    float preparing =
        (float)(status.searches[0].compiling_seconds + status.searches[0].queued_seconds);
    assert_float_equal(preparing, 5, 1e-6);
    clear(&status);
    served_close(w);
}

static void what_waits_is_counted_by_place(void **state)
{
    struct workshop *w = served_open(1);
    struct job *one = workshop_submit(w, JOB_MEASURE, "k1", "one", NULL);

    (void)state;
    workshop_compile_until(w, one, JOB_RUNNING);
    struct job *two = workshop_submit(w, JOB_MEASURE, "k2", "two", NULL);
    workshop_compile_until(w, two, JOB_READY);
    struct status status = ask_all(w, &stranger);
    assert_int_equal(status.waiting_count, 2); // the intake and one class of devices
    assert_int_equal(status.waiting[0], 0);
    assert_int_equal(status.waiting[1], 1);
    assert_int_equal(status.states_count, JOB_STATE_COUNT);
    assert_int_equal(status.states[JOB_READY], 1);
    assert_int_equal(status.compile_slots, 4);
    assert_string_equal(status.sandbox, "on");
    assert_string_equal(status.state_dir, w->dir);
    assert_null(status.http);
    assert_null(status.illness);
    clear(&status);
    served_close(w);
}

static void a_status_can_be_packed_and_read(void **state)
{
    struct workshop *w = served_open(2);
    struct strbuf packed = STRBUF_INIT;

    (void)state;
    w->parts.limits.sandbox_off = true;
    w->parts.http = "http://127.0.0.1:1";
    struct status status = ask_all(w, &admin);
    assert_int_equal(message_pack(&status_message, &status, &packed, NULL), 0);
    clear(&status);
    assert_int_equal(
        message_read(&status_message, &status, (unsigned char *)packed.data, packed.len, NULL), 0);
    assert_int_equal(status.devices_count, 2);
    assert_string_equal(status.sandbox, "off");
    assert_string_equal(status.http, "http://127.0.0.1:1");
    clear(&status);
    strbuf_release(&packed);
    served_close(w);
}

static void one_usable_device_is_enough_to_be_well(void **state)
{
    struct workshop *w = served_open(2);
    char reason[STATUS_ILLNESS_MAX];

    (void)state;
    assert_true(status_is_well(&w->parts, reason));
    device_lose(&w->devices.device[0], true, "a process does not die");
    assert_true(status_is_well(&w->parts, reason));
    device_drain(&w->devices.device[1], NULL);
    assert_false(status_is_well(&w->parts, reason));
    assert_non_null(strstr(reason, "no device takes jobs"));
    assert_non_null(strstr(reason, "cpu0 is lost"));
    assert_non_null(strstr(reason, "a process does not die"));
    struct status status = ask_all(w, &stranger);
    assert_string_equal(status.illness, reason);
    assert_string_equal(status.devices[0].reason, "a process does not die");
    clear(&status);
    device_undrain(&w->devices.device[1]);
    assert_true(status_is_well(&w->parts, reason));
    served_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_strangers_job_shows_only_that_the_device_is_busy),
        cmocka_unit_test(jobs_are_listed_as_they_are_asked_for),
        cmocka_unit_test(searches_are_shown_with_what_they_hold),
        cmocka_unit_test(utilisation_and_stages_are_told),
        cmocka_unit_test(what_waits_is_counted_by_place),
        cmocka_unit_test(a_status_can_be_packed_and_read),
        cmocka_unit_test(one_usable_device_is_enough_to_be_well),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
