// The wall time of a search is divided completely, and each moment goes to the first part that
// applies.
#include "client/run/wall_time.h"
#include "common/mem.h"
#include "common/stats.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct run_state run_state;

static int set_up(void **state)
{
    (void)state;
    run_state_init(&run_state);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    run_state_release(&run_state);
    return 0;
}

static void apply(double at, enum run_event_kind kind, void *body)
{
    struct err err = ERR_INIT;
    struct run_event event = {
        .sequence = run_state.last_sequence + 1, .at = at, .kind = kind, .body = body};
    if (run_state_apply(&run_state, &event, &err) != 0) {
        fail_msg("%s", err.text);
    }
    message_clear(run_event_message(kind), body);
}

static void started(double at)
{
    struct run_started event = {.problem = xstrdup("p"), .search = xstrdup("s")};
    apply(at, RUN_STARTED, &event);
}

// began_at NaN: by a kcast that recorded no times.
static void session(double began_at, double at)
{
    struct run_session event = {.began_at = began_at};
    apply(at, RUN_SESSION, &event);
}

static struct job_times *times(double submitted, double compiling, double ready, double running,
                               double ended, double answered)
{
    struct job_times *ret = xmalloc(sizeof(*ret));
    *ret = (struct job_times){submitted, compiling, ready, running, ended, answered};
    return ret;
}

static void proposed(double at, uint64_t id)
{
    struct run_proposed event = {.candidate = id};
    apply(at, RUN_PROPOSED, &event);
}

static void compiled(double at, uint64_t id, struct job_times *job_times)
{
    struct run_compiled event = {.candidate = id, .times = job_times};
    event.compiled = xcalloc(1, sizeof(*event.compiled));
    event.compiled->verdict = VERDICT_NONE;
    event.compiled->seconds = 2;
    apply(at, RUN_COMPILED, &event);
}

static void decided(double at, uint64_t id)
{
    struct run_decided event = {.candidate = id, .decision = DECISION_MEASURE};
    apply(at, RUN_DECIDED, &event);
}

static void measured(double at, uint64_t id, enum purpose purpose, const char *pool,
                     const char *device, struct job_times *job_times)
{
    struct run_measured event = {.candidate = id,
                                 .purpose = purpose,
                                 .pool = pool ? xstrdup(pool) : NULL,
                                 .times = job_times};
    event.result = xcalloc(1, sizeof(*event.result));
    event.result->verdict = VERDICT_WRONG;
    event.result->device = xstrdup(device);
    event.result->seconds = xcalloc(1, sizeof(*event.result->seconds));
    *event.result->seconds = (struct accounts){.queue = 3,
                                               .compile = NAN,
                                               .start = 0.25,
                                               .inputs = 0.5,
                                               .verify = 1,
                                               .time = 2,
                                               .held = 4};
    apply(at, RUN_MEASURED, &event);
}

static void forecast(double at, uint64_t id, double asked_at)
{
    struct run_forecast event = {.candidate = id, .asked_at = asked_at};
    event.forecast = xcalloc(1, sizeof(*event.forecast));
    event.forecast->seconds = 0.5;
    apply(at, RUN_FORECAST, &event);
}

static void assert_part(enum wall_part part, double seconds)
{
    double parts[WALL_PART_COUNT];
    wall_time_parts(&run_state, parts);
    if (fabs(parts[part] - seconds) > 1e-9) {
        fail_msg("%s is %.9g s, not %.9g s", wall_part_text(part), parts[part], seconds);
    }
}

static double sum_of_parts(void)
{
    double parts[WALL_PART_COUNT], sum = 0;
    wall_time_parts(&run_state, parts);
    for (size_t i = 0; i < WALL_PART_COUNT; i++) {
        assert_true(parts[i] >= 0);
        sum += parts[i];
    }
    return sum;
}

static void assert_complete(double wall)
{
    if (fabs(run_state.wall_seconds - wall) > 1e-6 || fabs(sum_of_parts() - wall) > 1e-6) {
        fail_msg("of %.9g s the run state knows %.9g s, the parts are %.9g s", wall,
                 run_state.wall_seconds, sum_of_parts());
    }
}

// One candidate alone goes through all parts, one after the other.
static void each_part_has_its_time(void **state)
{
    (void)state;
    started(1001);
    session(1000, 1003);                                          // start-up: 3 s
    proposed(1004, 1);                                            // proposing: 1 s
    compiled(1008, 1, times(1004, 1005, NAN, NAN, 1007, 1007.5)); // 2 s of 3.5 s
    forecast(1011, 1, 1008);                                      // 3 s
    decided(1011, 1);                                             //
    measured(1023, 1, PURPOSE_SEARCH, NULL, "cuda0",              //
             times(1011, 1012, 1012.5, 1016, 1022, 1023));        // 0.5, 3.5 and 6 s
    struct run_observed told = {.up_to_event = 7, .up_to_candidate = 1, .told_at = 1023};
    apply(1024, RUN_OBSERVED, &told);
    struct run_finished end = {.reason = xstrdup("done")};
    apply(1026, RUN_FINISHED, &end);
    assert_part(WALL_NOT_RECORDED, 0);
    assert_part(WALL_START_UP, 3);
    assert_part(WALL_MEASURING, 6);
    assert_part(WALL_WAITING, 3.5);
    assert_part(WALL_COMPILING, 2.5);
    assert_part(WALL_QUEUED, 1 + 0.5 + 1 + 1);
    assert_part(WALL_FORECASTING, 4);
    assert_part(WALL_PROPOSING, 1 + 0.5 + 2);
    assert_complete(26);
    assert_true(run_state.start_up_seconds == 3);
    assert_true(wall_time_is_recorded(&run_state));
}

static void what_overlaps_goes_to_the_first_part(void **state)
{
    (void)state;
    started(1000);
    session(1000, 1000);
    for (uint64_t id = 1; id <= 3; id++) {
        proposed(1000, id);
    }
    compiled(1010, 1, times(1000, 1000, NAN, NAN, 1010, 1010));
    compiled(1010, 2, times(1000, 1000, NAN, NAN, 1010, 1010));
    forecast(1012, 1, 1001); // 1001 … 1010 are compiling
    forecast(1012, 2, 1001);
    decided(1012, 1);
    decided(1012, 2);
    measured(1030, 1, PURPOSE_SEARCH, NULL, "cuda0", times(1012, NAN, 1012, 1015, 1030, 1030));
    compiled(1040, 3, times(1000, 1012, NAN, NAN, 1040, 1040)); // beside the measurements
    measured(1050, 2, PURPOSE_SEARCH, NULL, "cuda1", times(1012, NAN, 1012, 1025, 1035, 1050));
    struct run_finished end = {.reason = xstrdup("done")};
    apply(1060, RUN_FINISHED, &end);
    assert_part(WALL_MEASURING, 20); // 1015 … 1035, once
    assert_part(WALL_WAITING, 3);    // 1012 … 1015, although one compiles
    assert_part(WALL_COMPILING, 10 + 5);
    assert_part(WALL_QUEUED, 2 + 10); // 1010 … 1012: the third job waits for its slot
    assert_part(WALL_FORECASTING, 0);
    assert_part(WALL_PROPOSING, 10);
    assert_complete(60);
}

// What is given to a search that has ended belongs to its next session, which began before.
static void a_pause_before_more_is_given_does_not_count(void **state)
{
    (void)state;
    started(1001);
    session(1000, 1003);
    struct run_finished end = {.reason = xstrdup("done")};
    apply(1010, RUN_FINISHED, &end);
    struct run_extended more = {.candidates_max = 9, .budget_seconds = NAN, .target = NAN};
    apply(5001, RUN_EXTENDED, &more);
    session(5000, 5002);
    proposed(5006, 1);
    assert_part(WALL_START_UP, 3 + 2);
    assert_part(WALL_PROPOSING, 7 + 4);
    assert_complete(16);
}

// The daemon works on while no client is there. The pause is no time at work.
static void sessions_add_up(void **state)
{
    (void)state;
    started(1001);
    session(1000, 1002);
    proposed(1003, 1);
    compiled(1006, 1, times(1003, 1003, NAN, NAN, 1006, 1006));
    decided(1006, 1);
    session(2000, 2004); // the first one was killed
    measured(2010, 1, PURPOSE_SEARCH, NULL, "cuda0", times(1006, NAN, 1006, 1900, 2006, 2010));
    struct run_finished end = {.reason = xstrdup("done")};
    apply(2011, RUN_FINISHED, &end);
    assert_part(WALL_START_UP, 2 + 4); // what the device did then is not what was waited for
    assert_part(WALL_COMPILING, 3);
    assert_part(WALL_MEASURING, 2);
    assert_part(WALL_WAITING, 0);
    assert_part(WALL_QUEUED, 4);
    assert_part(WALL_PROPOSING, 1 + 1);
    assert_complete(6 + 11);
}

static void sessions_of_an_older_kcast_are_not_recorded(void **state)
{
    (void)state;
    started(1000);
    session(NAN, 1005);
    proposed(1006, 1);
    compiled(1010, 1, NULL);
    assert_false(wall_time_is_recorded(&run_state));
    assert_part(WALL_NOT_RECORDED, 5);
    session(2000, 2001);
    decided(2002, 1);
    measured(2010, 1, PURPOSE_SEARCH, NULL, "cuda0", times(2002, NAN, 2002, 2003, 2010, 2010));
    assert_true(wall_time_is_recorded(&run_state));
    assert_part(WALL_NOT_RECORDED, 5);
    assert_part(WALL_START_UP, 1);
    assert_part(WALL_MEASURING, 7);
    assert_part(WALL_WAITING, 1);
    assert_complete(15);
}

static void a_clock_that_jumps_back_loses_nothing_that_was_counted(void **state)
{
    (void)state;
    started(1000);
    session(1000, 1001);
    proposed(1010, 1);
    proposed(1005, 2); // no time has passed, as far as anybody knows
    proposed(1008, 3);
    compiled(1009, 1, times(1005, 1005, NAN, NAN, 1009, 1009));
    assert_complete(14);
    session(900, 1020); // a session that claims time of the one before
    assert_complete(14 + 11);
}

struct stretch {
    double end;
    enum wall_part last;
    size_t count;
};

static void on_stretch(void *owner, enum wall_part part, double begin, double end)
{
    struct stretch *stretch = owner;
    assert_true(begin >= stretch->end && begin <= stretch->end); // without gaps
    assert_true(begin < end);
    assert_true(stretch->count == 0 || part != stretch->last);
    *stretch = (struct stretch){end, part, stretch->count + 1};
}

static double later(struct stats_rng *rng, double from, double most)
{
    return from + most * stats_rng_unit(rng);
}

static void any_search_is_divided_without_gaps(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct stats_rng rng;
        double now = 1e9, work = 0;
        stats_rng_init(&rng, seed, 0);
        run_state_release(&run_state);
        started(now);
        for (uint64_t id = 1; id <= 40; id++) {
            if (id % 10 == 1) {
                double began = later(&rng, now, id == 1 ? 0 : 100);
                now = later(&rng, began, 3);
                session(id == 11 ? NAN : began, now);
                work += id == 11 ? 0 : now - began;
            }
            double at = now;
            proposed(at, id);
            double point[6] = {at - 5};
            for (size_t i = 1; i < ARRAY_LEN(point); i++) {
                point[i] = later(&rng, point[i - 1], 4);
            }
            now = later(&rng, now, 10);
            compiled(now, id,
                     times(point[0], point[1], stats_rng_unit(&rng) < 0.5 ? NAN : point[2],
                           point[3], stats_rng_unit(&rng) < 0.1 ? NAN : point[4], point[5]));
            forecast(now, id, later(&rng, at, 1));
            work += now - at;
        }
        struct stretch stretch = {0};
        wall_time_visit(&run_state, on_stretch, &stretch);
        assert_true(stretch.count > 10);
        assert_complete(work);
        assert_true(fabs(stretch.end - work) < 1e-4);
    }
}

static void stages_and_devices_are_added_up(void **state)
{
    (void)state;
    started(1000);
    session(1000, 1000);
    proposed(1000, 1);
    compiled(1001, 1, NULL);
    forecast(1002, 1, NAN);
    decided(1002, 1);
    measured(1003, 1, PURPOSE_SEARCH, "tcp://a", "cuda0", NULL);
    measured(1004, 1, PURPOSE_RECORD, "tcp://b", "cuda0", NULL);
    struct run_asked asked = {.batch = 1, .seconds = 7};
    apply(1010, RUN_ASKED, &asked);
    struct work_seconds work = work_seconds_of(&run_state);
    assert_float_equal(work.asking, 7, 1e-9);
    assert_float_equal(work.forecasting, 0.5, 1e-9);
    assert_float_equal(work.compiling, 2, 1e-9);
    assert_float_equal(work.queued, 6, 1e-9);
    assert_float_equal(work.held, 8, 1e-9);
    assert_float_equal(work.start, 0.5, 1e-9);
    assert_float_equal(work.inputs, 1, 1e-9);
    assert_float_equal(work.verify, 2, 1e-9);
    assert_float_equal(work.time, 4, 1e-9);
    assert_int_equal(run_state.device_count, 2); // equal names at two daemons
    assert_string_equal(run_state.device[1].pool, "tcp://b");
    assert_string_equal(run_state.device[1].name, "cuda0");
    assert_int_equal(run_state.device[1].runs, 1);
    assert_float_equal(run_state.device[1].held_seconds, 4, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(each_part_has_its_time),
        TEST(what_overlaps_goes_to_the_first_part),
        TEST(a_pause_before_more_is_given_does_not_count),
        TEST(sessions_add_up),
        TEST(sessions_of_an_older_kcast_are_not_recorded),
        TEST(a_clock_that_jumps_back_loses_nothing_that_was_counted),
        TEST(any_search_is_divided_without_gaps),
        TEST(stages_and_devices_are_added_up),
#undef TEST
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
