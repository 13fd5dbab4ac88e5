// Compilations are cached, made once for all who ask, tried again, given up, and limited in number.
#include "daemon/run/compiler.h"
#include "daemon/store/blob.h"
#include "proto/verdict.h"
#include "tests/support/descriptors.h"
#include "tests/support/workshop.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define REQUESTS 8

struct asked {
    struct compile_request request;
    bool done;
    bool lost;
    uint64_t verdict;
    bool cached;
    struct digest object;
    double seconds;
};

struct fixture {
    struct workshop w;
    struct compiler *compiler; // the one that is tested, beside the workshop's own
    bool may_start;
    unsigned idle; // how often a run has ended
    struct asked asked[REQUESTS];
};

static bool may_start(void *owner)
{
    return ((struct fixture *)owner)->may_start;
}

static void on_idle(void *owner, double seconds)
{
    struct fixture *f = owner;

    (void)seconds;
    f->idle++;
    compiler_kick(f->compiler);
}

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    const struct compiler_events events = {.may_start = may_start, .on_idle = on_idle, .owner = f};

    workshop_open(&f->w, 1);
    f->compiler = compiler_create(&f->w.parts, &events);
    f->may_start = true;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    compiler_stop(f->compiler);
    while (compiler_busy(f->compiler)) {
        workshop_turn(&f->w);
    }
    compiler_free(f->compiler);
    workshop_close(&f->w);
    free(f);
    return 0;
}

static void on_done(struct compile_request *request, const struct compile_answer *outcome)
{
    struct asked *asked = request->owner;

    assert_false(asked->done);
    asked->done = true;
    asked->lost = !outcome->compiled;
    asked->seconds = outcome->seconds;
    if (outcome->compiled) {
        asked->verdict = outcome->compiled->verdict;
        asked->cached = outcome->compiled->cached;
        asked->object = outcome->compiled->object;
    }
}

static struct asked *ask_fresh(struct fixture *f, size_t i, const char *source, bool fresh)
{
    struct asked *asked = &f->asked[i];
    const struct compile_input input = {
        .source = workshop_put(&f->w, source),
        .header = "",
        .glue = "",
        .name = "candidate.c",
        .fresh = fresh,
        .device_class = f->w.devices.classes,
    };

    *asked = (struct asked){.request = {.on_done = on_done, .owner = asked}};
    compiler_request(f->compiler, &asked->request, &input);
    return asked;
}

static struct asked *ask(struct fixture *f, size_t i, const char *source)
{
    return ask_fresh(f, i, source, false);
}

static void wait_for(struct fixture *f, const struct asked *asked)
{
    while (!asked->done) {
        workshop_turn(&f->w);
    }
}

static void compile_one(struct fixture *f, const char *error)
{
    workshop_compiled(&f->w, workshop_execution(&f->w, "candidate.c"), error);
}

static void equal_requests_are_compiled_once(void **state)
{
    struct fixture *f = *state;
    struct asked *one = ask(f, 0, "same");
    struct asked *two = ask(f, 1, "same");

    (void)workshop_execution(&f->w, "candidate.c");
    struct asked *late = ask(f, 2, "same");
    compile_one(f, NULL);
    wait_for(f, one);
    wait_for(f, two);
    wait_for(f, late);
    assert_int_equal(f->w.begun, 1);
    assert_true(one->seconds > 0); // the first requester is charged
    assert_true(two->seconds <= 0 && late->seconds <= 0);
    assert_true(digest_equal(&one->object, &late->object));
}

static void what_was_compiled_is_known_afterwards(void **state)
{
    struct fixture *f = *state;
    struct asked *one = ask(f, 0, "source");

    compile_one(f, NULL);
    wait_for(f, one);
    assert_false(one->cached);
    assert_true(blob_have(f->w.parts.blobs, &one->object));
    struct asked *two = ask(f, 1, "source");
    wait_for(f, two);
    assert_true(two->cached);
    assert_true(two->seconds <= 0);
    assert_int_equal(f->w.begun, 1);
    two = ask_fresh(f, 2, "source", true); // unless a request wants a fresh compilation
    compile_one(f, NULL);
    wait_for(f, two);
    assert_false(two->cached);
}

static void a_compile_error_is_an_answer_and_is_known_too(void **state)
{
    struct fixture *f = *state;
    struct asked *one = ask(f, 0, "source");

    compile_one(f, "no such word");
    wait_for(f, one);
    assert_false(one->lost);
    assert_int_equal(one->verdict, VERDICT_COMPILE_ERROR);
    struct asked *two = ask(f, 1, "source");
    wait_for(f, two);
    assert_int_equal(two->verdict, VERDICT_COMPILE_ERROR);
    assert_int_equal(f->w.begun, 1);
}

static void a_lost_jail_is_tried_once_more(void **state)
{
    struct fixture *f = *state;
    struct asked *one = ask(f, 0, "one");

    workshop_lost(&f->w, workshop_execution(&f->w, "candidate.c"), "it fell over");
    compile_one(f, NULL);
    wait_for(f, one);
    assert_false(one->lost);
    struct asked *two = ask(f, 1, "two");
    workshop_lost(&f->w, workshop_execution(&f->w, "candidate.c"), "it fell over");
    workshop_lost(&f->w, workshop_execution(&f->w, "candidate.c"), "it fell over again");
    wait_for(f, two);
    assert_true(two->lost);
    two = ask(f, 1, "two"); // a lost compilation is not cached
    compile_one(f, NULL);
    wait_for(f, two);
    assert_false(two->lost);
}

// kcast-exec gives a compilation up, and says why, before the daemon ends it.
static void the_deadline_comes_after_the_wall_time(void **state)
{
    struct fixture *f = *state;

    (void)ask(f, 0, "source");
    const struct execution *execution = workshop_execution(&f->w, "candidate.c");
    struct compile_plan plan;
    assert_int_equal(
        message_read(&compile_plan_message, &plan, execution->plan.data, execution->plan.len, NULL),
        0);
    assert_float_equal(plan.max_seconds, 10, 0);
    assert_float_equal(plan.wall_seconds, 100, 0);
    assert_int_equal(execution->deadline_ms, 101000); // with the workshop's slack
    message_clear(&compile_plan_message, &plan);
    compile_one(f, NULL);
}

static void no_more_children_than_there_are_slots(void **state)
{
    struct fixture *f = *state;

    f->w.parts.limits.compile_slots = 2;
    const char *const source[] = {"a", "b", "c"};
    for (size_t i = 0; i < 3; i++) {
        (void)ask(f, i, source[i]);
    }
    workshop_settle(&f->w);
    assert_int_equal(f->w.begun, 2);
    assert_int_equal(compiler_running(f->compiler), 2);
    assert_int_equal(compiler_waiting(f->compiler), 1);
    compile_one(f, NULL);
    while (f->w.begun < 3) {
        workshop_turn(&f->w);
    }
    assert_int_equal(compiler_waiting(f->compiler), 0);
}

static void what_nobody_wants_any_more_is_stopped(void **state)
{
    struct fixture *f = *state;
    struct asked *one = ask(f, 0, "same");
    struct asked *two = ask(f, 1, "same");
    struct execution *execution = workshop_execution(&f->w, "candidate.c");

    compiler_cancel(f->compiler, &one->request);
    assert_false(execution->stopped);
    compiler_cancel(f->compiler, &two->request);
    assert_true(execution->stopped);
    compiler_cancel(f->compiler, &two->request); // has no effect
    one = ask(f, 0, "same");                     // starts another task beside the one that ends
    compile_one(f, NULL);
    wait_for(f, one);
    assert_false(one->lost);
    assert_false(two->done);
    assert_int_equal(f->w.begun, 2);
}

static void nothing_begins_while_it_may_not(void **state)
{
    struct fixture *f = *state;

    f->may_start = false;
    struct asked *asked = ask(f, 0, "source");
    workshop_settle(&f->w);
    assert_int_equal(f->w.begun, 0);
    assert_int_equal(compiler_waiting(f->compiler), 1);
    f->may_start = true;
    compiler_kick(f->compiler);
    compile_one(f, NULL);
    wait_for(f, asked);
    assert_int_equal(f->idle, 1);
}

static void a_source_that_has_gone_is_lost(void **state)
{
    struct fixture *f = *state;
    struct asked *asked = &f->asked[0];
    const struct compile_input input = {.source = digest_of("never sent", 10),
                                        .header = "",
                                        .glue = "",
                                        .name = "candidate.c",
                                        .device_class = f->w.devices.classes};

    *asked = (struct asked){.request = {.on_done = on_done, .owner = asked}};
    compiler_request(f->compiler, &asked->request, &input);
    wait_for(f, asked);
    assert_true(asked->lost);
    assert_int_equal(f->w.begun, 0);
    assert_int_equal(compiler_running(f->compiler), 0);
}

static void a_source_that_the_host_cannot_open_is_compiled_later(void **state)
{
    struct fixture *f = *state;

    f->may_start = false;
    struct asked *asked = ask(f, 0, "source");
    workshop_settle(&f->w);
    f->may_start = true;
    struct rlimit old = descriptors_take();
    compiler_kick(f->compiler);
    while (!asked->done && compiler_running(f->compiler) > 0) {
        workshop_turn(&f->w);
    }
    descriptors_give_back(&old);
    assert_false(asked->done);
    assert_int_equal(executors_held(f->w.parts.executors), 1);
    compiler_kick(f->compiler); // it is too early
    assert_int_equal(compiler_running(f->compiler), 0);
    executors_tick(f->w.parts.executors);
    compiler_kick(f->compiler);
    compile_one(f, NULL);
    wait_for(f, asked);
    assert_false(asked->lost);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(equal_requests_are_compiled_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_compiled_is_known_afterwards, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_compile_error_is_an_answer_and_is_known_too, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_lost_jail_is_tried_once_more, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_deadline_comes_after_the_wall_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_more_children_than_there_are_slots, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_nobody_wants_any_more_is_stopped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_begins_while_it_may_not, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_source_that_has_gone_is_lost, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_source_that_the_host_cannot_open_is_compiled_later,
                                        set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
