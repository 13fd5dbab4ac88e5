// Frames: what is read of a stream that is cut off or lies about its lengths. And the loop of the
// modes that serve: plans come in, answers go out, and what ends it.
#include "common/mem.h"
#include "executor/frame.h"
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
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

// Reads the first frame of a stream of these bytes. Returns what frame_read returns.
static int read_first(const void *bytes, size_t len, struct bytes *ret, bool *ret_ended,
                      struct err *err)
{
    int fd[2];

    assert_int_equal(pipe(fd), 0);
    assert_int_equal(write(fd[1], bytes, len), len);
    close(fd[1]);
    int rc = frame_read(fd[0], ret, 6, ret_ended, err);
    close(fd[0]);
    return rc;
}

static void a_stream_is_cut_only_between_frames(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        int code;
        bool ended;
        const char *words;
    } row[] = {
        {"", 0, 0, true, ""},
        {"\0\0\0\0", 4, 0, false, ""},
        {"\3\0\0\0abc", 7, 0, false, ""},
        {"\6\0\0\0abcdef", 10, 0, false, ""},
        {"\3", 1, ERR_PROTOCOL, false, "ends within its length"},
        {"\3\0\0", 3, ERR_PROTOCOL, false, "ends within its length"},
        {"\3\0\0\0", 4, ERR_PROTOCOL, false, "a frame of 3 bytes ends after 0"},
        {"\3\0\0\0ab", 6, ERR_PROTOCOL, false, "a frame of 3 bytes ends after 2"},
        {"\7\0\0\0abcdefg", 11, ERR_LIMIT, false, "a frame of 7 bytes; the limit is 6"},
        {"\0\1\0\0", 4, ERR_LIMIT, false, "a frame of 256 bytes"},
        {"\xff\xff\xff\xff", 4, ERR_LIMIT, false, "a frame of 4294967295 bytes"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct bytes frame = {.data = NULL, .len = 99};
        struct err err = ERR_INIT;
        bool ended = !row[i].ended;

        assert_int_equal(read_first(row[i].bytes, row[i].len, &frame, &ended, &err), row[i].code);
        assert_int_equal(ended, row[i].ended);
        assert_non_null(strstr(err.text, row[i].words));
        if (row[i].code == 0 && !ended) {
            assert_int_equal(frame.len, row[i].len - 4);
            assert_memory_equal(frame.data, row[i].bytes + 4, frame.len);
            bytes_clear(&frame);
        } else {
            assert_null(frame.data); // untouched, so that there is nothing to free
            assert_int_equal(frame.len, 99);
        }
    }
}

static void what_cannot_be_read_or_written_is_an_error(void **state)
{
    unsigned char byte = 'x';
    struct bytes frame, huge = {.data = &byte, .len = (size_t)UINT32_MAX + 1};
    struct err err = ERR_INIT;
    bool ended = true;
    int fd[2];

    (void)state;
    (void)signal(SIGPIPE, SIG_IGN);
    assert_int_equal(frame_read(-1, &frame, 6, &ended, &err), ERR_SYSTEM);
    assert_false(ended);
    assert_non_null(strstr(err.text, strerror(EBADF)));
    err_clear(&err);
    assert_int_equal(pipe(fd), 0);
    assert_int_equal(frame_write(fd[1], &huge, &err), ERR_LIMIT); // nothing was written yet
    assert_non_null(strstr(err.text, "the limit is 4 GiB"));
    close(fd[0]);
    struct bytes small = {.data = &byte, .len = 1};
    err_clear(&err);
    assert_int_equal(frame_write(fd[1], &small, &err), ERR_SYSTEM);
    assert_non_null(strstr(err.text, "a frame"));
    close(fd[1]);
    // Nobody hears that the process is ready: no plan is read then.
    int left = 9;
    assert_int_equal(frame_serve(-1, -1, 6, echo, &left, NULL), ERR_SYSTEM);
    assert_int_equal(left, 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_is_cut_only_between_frames),
        cmocka_unit_test(what_cannot_be_read_or_written_is_an_error),
        cmocka_unit_test(plans_are_answered_until_they_end),
        cmocka_unit_test(the_last_answer_ends_it),
        cmocka_unit_test(an_error_ends_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
