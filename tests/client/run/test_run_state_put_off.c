// What follows from candidates that are put off and come again.
#include "client/run/run_state.h"
#include "common/mem.h"
#include "proto/verdict.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct run_state run_state;

static int apply(enum run_event_kind kind, void *body)
{
    struct run_event event = {.kind = kind, .body = body, .sequence = run_state.last_sequence + 1};
    struct err err = ERR_INIT;
    int rc = run_state_apply(&run_state, &event, &err);
    message_clear(run_event_message(kind), body);
    return rc;
}

static int compile(uint64_t id)
{
    struct run_compiled event = {.candidate = id, .compiled = xcalloc(1, sizeof(*event.compiled))};
    event.compiled->verdict = VERDICT_NONE;
    return apply(RUN_COMPILED, &event);
}

static int put_off(uint64_t id)
{
    struct run_put_off event = {.candidate = id};
    return apply(RUN_PUT_OFF, &event);
}

static int propose(uint64_t id, uint64_t again, const char *source)
{
    struct run_proposed event = {
        .candidate = id, .again = again, .source = digest_of(source, strlen(source))};
    return apply(RUN_PROPOSED, &event);
}

static void what_is_put_off_goes_on_as_another_candidate(void **state)
{
    struct run_started begin = {.problem = xstrdup("p"), .search = xstrdup("s")};
    (void)state;
    run_state_init(&run_state);
    assert_int_equal(apply(RUN_STARTED, &begin), 0);
    assert_int_equal(put_off(1), ERR_CORRUPT); // there is none
    assert_int_equal(propose(1, 0, "one"), 0);
    assert_int_equal(propose(2, 0, "two"), 0);
    assert_int_equal(compile(2), 0);
    assert_int_equal(put_off(2), ERR_CORRUPT);           // it has compiled
    assert_int_equal(propose(3, 1, "one"), ERR_CORRUPT); // it was not put off
    assert_int_equal(put_off(1), 0);
    assert_int_equal(put_off(1), ERR_CORRUPT);
    assert_int_equal(compile(1), ERR_CORRUPT);
    assert_int_equal(propose(3, 1, "three"), ERR_CORRUPT); // another source
    assert_int_equal(propose(3, 7, "one"), ERR_CORRUPT);
    // What is known of it goes over.
    run_state.candidate[0].forecast = xcalloc(1, sizeof(*run_state.candidate[0].forecast));
    run_state.candidate[0].forecast_done = true;
    assert_int_equal(propose(3, 1, "one"), 0);
    assert_int_equal(run_state.candidate[0].proposed.duplicate_of, 3);
    assert_null(run_state.candidate[0].forecast);
    assert_true(run_state.candidate[2].forecast_done);
    assert_int_equal(run_state.candidate[2].forecast->id, 3);
    assert_int_equal(run_state.considered, 2);
    assert_int_equal(run_state.candidate_count, 3);
    assert_int_equal(propose(4, 1, "one"), ERR_CORRUPT); // it goes on already
    assert_int_equal(compile(3), 0);
    run_state_release(&run_state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_put_off_goes_on_as_another_candidate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
