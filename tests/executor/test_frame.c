// The loop of the modes that serve: plans come in, answers go out, and what ends it.
#include "common/mem.h"
#include "executor/frame.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

// Answers with the plan's bytes. The answer that makes `left` 0 is the last.
static int echo(void *owner, const struct bytes *plan, struct bytes *ret, bool *ret_last,
                struct err *err)
{
    int *left = owner;

    if (plan->len == 3) {
        return err_set(err, ERR_INVALID, "three bytes are no plan");
    }
    *ret = bytes_copy(plan->data, plan->len);
    *ret_last = --*left == 0;
    return 0;
}

// Serves plans of the given lengths, which a 0 ends. Returns what frame_serve returns and how many
// frames came back; the first of them says that the process is ready.
static int serve(const size_t *len, int answers, size_t *ret_frames)
{
    int in[2], out[2], rc;

    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    struct err err = ERR_INIT;
    for (size_t i = 0; len[i] > 0; i++) {
        const struct bytes plan = {.data = (unsigned char *)(uintptr_t) "12345678", .len = len[i]};

        assert_int_equal(frame_write(in[1], &plan, &err), 0);
    }
    close(in[1]);
    rc = frame_serve(in[0], out[1], 6, echo, &answers, &err);
    close(out[1]);
    struct bytes frame;
    bool ended = false;
    for (*ret_frames = 0;; ++*ret_frames) {
        struct err reading = ERR_INIT;

        assert_int_equal(frame_read(out[0], &frame, 100, &ended, &reading), 0);
        if (ended) {
            break;
        }
        assert_int_equal(frame.len, *ret_frames == 0 ? 0 : len[*ret_frames - 1]);
        bytes_clear(&frame);
    }
    close(in[0]);
    close(out[0]);
    return rc;
}

static void plans_are_answered_until_they_end(void **state)
{
    (void)state;
    size_t frames;
    assert_int_equal(serve((const size_t[]){0}, 9, &frames), 0);
    assert_int_equal(frames, 1);
    assert_int_equal(serve((const size_t[]){4, 5, 0}, 9, &frames), 0);
    assert_int_equal(frames, 3);
}

static void the_last_answer_ends_it(void **state)
{
    (void)state;
    size_t frames;
    assert_int_equal(serve((const size_t[]){4, 5, 6, 0}, 2, &frames), 0);
    assert_int_equal(frames, 3);
}

static void an_error_ends_it(void **state)
{
    (void)state;
    size_t frames;
    assert_int_equal(serve((const size_t[]){4, 3, 5, 0}, 9, &frames), ERR_INVALID);
    assert_int_equal(frames, 2);
    assert_int_equal(serve((const size_t[]){4, 7, 5, 0}, 9, &frames), ERR_LIMIT);
    assert_int_equal(frames, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_are_answered_until_they_end),
        cmocka_unit_test(the_last_answer_ends_it),
        cmocka_unit_test(an_error_ends_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
