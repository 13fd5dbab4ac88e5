// On which streams the launches of a recording go, for graphs of many forms.
#include "common/mem.h"
#include "executor/gpu/program/streams.h"
#include "tests/support/gpu_recording.h"
#include "tests/support/stream_plan_check.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct picture {
    struct recorded_case of;
    struct stream_plan plan;
};

static void plan(struct picture *picture, const char *text)
{
    gpu_recording_draw(&picture->of, text);
    stream_plan_release(&picture->plan);
    stream_plan_make(&picture->plan, &picture->of);
    const char *fault = plan_fault(&picture->of, &picture->plan);
    if (fault) {
        fail_msg("%s: %s", text, fault);
    }
}

static int set_up(void **state)
{
    struct picture *picture = xcalloc(1, sizeof(*picture));

    message_init(&recorded_case_message, &picture->of);
    *state = picture;
    return 0;
}

static int tear_down(void **state)
{
    struct picture *picture = *state;

    stream_plan_release(&picture->plan);
    message_clear(&recorded_case_message, &picture->of);
    free(picture);
    return 0;
}

// Streams of the nodes as digits.
static void streams_are(const struct picture *picture, const char *digits)
{
    char got[PLAN_CHECK_MAX + 1] = "";

    for (size_t i = 0; i < picture->plan.count; i++) {
        got[i] = (char)('0' + picture->plan.step[i].stream);
    }
    assert_string_equal(got, digits);
}

static void what_follows_each_other_has_one_stream_and_waits_for_nothing(void **state)
{
    struct picture *picture = *state;

    plan(picture, "0;1;2");
    streams_are(picture, "0000");
    assert_int_equal(picture->plan.streams, 1);
    assert_int_equal(picture->plan.wait_count, 0);
    assert_true(picture->plan.step[3].follows_one);
    plan(picture, "0;0 1;1 2 0"); // more than it needs to say
    streams_are(picture, "0000");
    assert_int_equal(picture->plan.wait_count, 0);
    assert_false(picture->plan.step[0].awaited || picture->plan.begins_apart);
}

static void what_nothing_orders_is_on_streams_of_its_own(void **state)
{
    struct picture *picture = *state;

    plan(picture, ";;"); // four that come after nothing
    streams_are(picture, "0123");
    assert_true(picture->plan.begins_apart);
    assert_int_equal(picture->plan.step[0].waits, 0);
    assert_int_equal(picture->plan.step[3].waits, 1);
    assert_int_equal(picture->plan.wait[picture->plan.step[3].wait], STREAM_BEGIN);
    assert_int_equal(picture->plan.step[4].waits, 3); // the end waits for the last of each
    plan(picture, "0;0;1;2;3 4");                     // two branches of two that part and meet
    streams_are(picture, "001010");
    assert_false(picture->plan.begins_apart);
    assert_int_equal(picture->plan.wait_count, 2); // one where they part, one where they meet
    assert_false(picture->plan.step[5].follows_one);
    assert_true(picture->plan.step[3].follows_one);
}

static void streams_are_used_again(void **state)
{
    struct picture *picture = *state;

    plan(picture, "0;0;1 2;3;3;4 5"); // parts and meets twice
    streams_are(picture, "0010010");
    assert_int_equal(picture->plan.streams, 2);
    assert_int_equal(picture->plan.wait_count, 4);
}

static void an_implied_wait_is_left_out(void **state)
{
    struct picture *picture = *state;

    plan(picture, ";1;0 1 2;0 1 2 3"); // 0 on the first stream; 1, 2 on another
    streams_are(picture, "01100");
    // Node 3 waits for node 2, which comes after node 1; node 4 is behind node 3.
    assert_int_equal(picture->plan.step[3].waits, 1);
    assert_int_equal(picture->plan.wait[picture->plan.step[3].wait], 2);
    assert_int_equal(picture->plan.step[4].waits, 0);
    assert_false(picture->plan.step[1].awaited);
    assert_int_equal(picture->plan.step[5].waits, 0);
    plan(picture, ";0 0 1 1"); // what is said twice
    assert_int_equal(picture->plan.step[2].waits, 1);
}

static void wide_graphs_share_the_streams(void **state)
{
    struct picture *picture = *state;

    plan(picture, ";;;;;;;;;;");
    assert_int_equal(picture->plan.streams, GPU_STREAMS);
    streams_are(picture, "012345670123");
    assert_int_equal(picture->plan.step[9].waits, 0); // its stream has waited for the begin
}

static void any_graph_keeps_its_order(void **state)
{
    struct picture *picture = *state;
    uint64_t random = 7;
    size_t several = 0;

    for (int round = 0; round < 2000; round++) {
        gpu_recording_clear_nodes(&picture->of);
        size_t count = 1 + (size_t)round % PLAN_CHECK_MAX, most = 1 + (size_t)round / 100 % 5;
        for (size_t i = 0; i < count; i++) {
            gpu_recording_fill(&picture->of);
            for (size_t k = 0; k < most && i > 0; k++) {
                random = random * 6364136223846793005ULL + 1442695040888963407ULL;
                size_t number = (size_t)(random >> 33) % (i + 1),
                       back = round % 3 ? number / 8 : number;

                if (number < i) {
                    gpu_recording_after(&picture->of.nodes[i], i - 1 - (back < i ? back : 0));
                }
            }
        }
        stream_plan_release(&picture->plan);
        stream_plan_make(&picture->plan, &picture->of);
        const char *fault = plan_fault(&picture->of, &picture->plan);
        if (fault) {
            fail_msg("graph %d: %s", round, fault);
        }
        several += picture->plan.streams > 1;
    }
    assert_true(several > 500);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_follows_each_other_has_one_stream_and_waits_for_nothing),
        TEST(what_nothing_orders_is_on_streams_of_its_own),
        TEST(streams_are_used_again),
        TEST(an_implied_wait_is_left_out),
        TEST(wide_graphs_share_the_streams),
        TEST(any_graph_keeps_its_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
