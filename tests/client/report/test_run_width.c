// What summary and report say of how many candidates a search had under way.
#include "client/report/run_width.h"

#include "common/mem.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
// cmocka.h needs the four above.
#include <cmocka.h>

static void assert_says(const struct run_started *started, const char *text, const char *json)
{
    char *said = run_width_text(started);
    json_t *object = run_width_json(started);
    char *dumped = json_dumps(object, JSON_COMPACT);
    assert_string_equal(said, text);
    assert_string_equal(dumped, json);
    json_decref(object);
    free(dumped);
    free(said);
}

static void the_width_and_what_it_was_chosen_for_are_said(void **state)
{
    static const struct run_started several = {.batch = 4,
                                               .wide = 8,
                                               .widest = 20,
                                               .lag = 10,
                                               .pool_devices = 4,
                                               .pool_compile_slots = 64,
                                               .worker_seconds = 0.5},
                                    one = {.batch = 4,
                                           .wide = 4,
                                           .lag = 1,
                                           .pool_devices = 1,
                                           .pool_compile_slots = 1,
                                           .worker_seconds = NAN};
    (void)state;
    assert_says(
        &several,
        "batches of 4, later 8, from the 65th on 20, decided from outcomes at most 10 "
        "batches behind; there were 4 devices with 64 compile slots, and a worker that forecast a "
        "batch in 0.5 s",
        "{\"batch\":4,\"wide\":8,\"widest\":20,\"lag\":10,\"devices\":4,\"compile_slots\":64,"
        "\"worker_seconds\":0.5}");
    assert_says(&one,
                "batches of 4, decided from outcomes at most 1 batch behind; there was 1 device "
                "with 1 compile slot",
                "{\"batch\":4,\"wide\":4,\"widest\":4,\"lag\":1,\"devices\":1,\"compile_slots\":1,"
                "\"worker_seconds\":null}");
}

static void runs_of_before_had_two_batches_under_way(void **state)
{
    static const struct run_started old = {.batch = 0, .worker_seconds = NAN};
    (void)state;
    assert_says(
        &old, "batches of 8, decided from outcomes at most 2 batches behind",
        "{\"batch\":8,\"wide\":8,\"widest\":8,\"lag\":2,\"devices\":null,\"compile_slots\":null,"
        "\"worker_seconds\":null}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_width_and_what_it_was_chosen_for_are_said),
        cmocka_unit_test(runs_of_before_had_two_batches_under_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
