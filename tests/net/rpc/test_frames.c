// Frames are cut from bytes that arrive in pieces of any size.
#include "net/rpc/frames.h"

#include "common/mem.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FRAME_MAX ((size_t)1 << 20)

// Writes data into the room of frames as a socket would, in as many pieces as necessary.
static void feed(struct frames *frames, const void *data, size_t len)
{
    const char *from = data;

    while (len > 0) {
        struct err err = ERR_INIT;
        char *room;
        size_t have;

        assert_int_equal(frames_room(frames, &room, &have, &err), 0);
        assert_true(have > 0);
        have = have < len ? have : len;
        memcpy(room, from, have);
        frames_filled(frames, have);
        from += have;
        len -= have;
    }
}

static struct frames_view peek(const struct frames *frames)
{
    struct err err = ERR_INIT;
    struct frames_view view;

    if (frames_peek(frames, &view, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return view;
}

static void expect_error(const struct frames *frames, const char *text)
{
    struct err err = ERR_INIT;
    struct frames_view view;

    assert_int_equal(frames_peek(frames, &view, &err), ERR_PROTOCOL);
    assert_non_null(strstr(err.text, text));
}

static void greet(struct frames *frames)
{
    feed(frames, frames_greeting, sizeof(frames_greeting));
    struct frames_view view = peek(frames);
    assert_int_equal(view.item, FRAMES_GREETING);
    frames_take(frames, &view);
    assert_true(frames->greeted);
}

// Appends three frames of 1, 300 and 70,000 bytes, each filled with its number.
static void add_three(struct strbuf *buf)
{
    static const size_t len[] = {1, 300, 70000};

    for (size_t i = 0; i < ARRAY_LEN(len); i++) {
        struct strbuf frame = STRBUF_INIT;

        frame_begin(&frame);
        for (size_t n = 0; n < len[i]; n++) {
            strbuf_addc(&frame, (char)('1' + i));
        }
        frame_end(&frame);
        strbuf_add(buf, frame.data, frame.len);
        strbuf_release(&frame);
    }
}

static void frames_come_out_whole_however_they_arrive(void **state)
{
    static const size_t steps[] = {1, 3, 7, 4096, 70000, 1 << 20};

    (void)state;
    struct strbuf bytes = STRBUF_INIT;
    strbuf_add(&bytes, frames_greeting, sizeof(frames_greeting));
    add_three(&bytes);
    for (size_t s = 0; s < ARRAY_LEN(steps); s++) {
        struct frames frames;

        frames_init(&frames, FRAME_MAX);
        size_t seen[2] = {0};
        size_t total = 0;
        for (size_t at = 0; at < bytes.len; at += steps[s]) {
            size_t len = bytes.len - at < steps[s] ? bytes.len - at : steps[s];

            feed(&frames, bytes.data + at, len);
            struct frames_view view;
            while ((view = peek(&frames)).item != FRAMES_MORE) {
                seen[view.item == FRAMES_FRAME]++;
                if (view.item == FRAMES_FRAME) {
                    total += view.len;
                    assert_int_equal(view.data[0], '0' + seen[1]);
                    assert_int_equal(view.data[view.len - 1], '0' + seen[1]);
                }
                frames_take(&frames, &view);
            }
        }
        assert_int_equal(seen[0], 1);
        assert_int_equal(seen[1], 3);
        assert_int_equal(total, 70301);
        frames_release(&frames);
    }
    strbuf_release(&bytes);
}

static void a_frame_stays_until_it_is_taken(void **state)
{
    (void)state;
    struct frames frames;
    frames_init(&frames, FRAME_MAX);
    greet(&frames);
    struct strbuf bytes = STRBUF_INIT;
    add_three(&bytes);
    feed(&frames, bytes.data, 9);
    assert_int_equal(peek(&frames).len, 1);
    struct frames_view view = peek(&frames);
    assert_int_equal(view.len, 1);
    frames_take(&frames, &view);
    assert_int_equal(peek(&frames).item, FRAMES_MORE);
    frames_release(&frames);
    strbuf_release(&bytes);
}

static void a_wrong_greeting_is_refused_at_its_first_wrong_byte(void **state)
{
    static const char *const first[] = {"G", "KC0", "KCAST ", "\x16\x03\x01", "KCAST\n"};

    (void)state;
    struct frames frames;
    for (size_t i = 0; i < ARRAY_LEN(first); i++) {
        frames_init(&frames, FRAME_MAX);
        feed(&frames, first[i], strlen(first[i]));
        expect_error(&frames, "not kernelcast's greeting");
        frames_release(&frames);
    }
    frames_init(&frames, FRAME_MAX);
    feed(&frames, "KCAST\0\0\7", FRAMES_GREETING_LEN);
    expect_error(&frames, "version 7, here it is 1");
    frames_release(&frames);
}

static void impossible_lengths_are_refused(void **state)
{
    static const struct {
        unsigned char head[FRAMES_HEAD_LEN];
        const char *text;
    } bad[] = {
        {{0, 0, 0, 0}, "a frame of no bytes"},
        {{0xff, 0xff, 0xff, 0xff}, "a frame of 4294967295 bytes, and 1048576 are allowed"},
        {{1, 0, 0x10, 0}, "a frame of 1048577 bytes"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct frames frames;

        frames_init(&frames, FRAME_MAX);
        greet(&frames);
        feed(&frames, bad[i].head, FRAMES_HEAD_LEN);
        expect_error(&frames, bad[i].text);
        frames_release(&frames);
    }
}

// The memory follows what has arrived, not what was announced, and is freed afterwards.
static void memory_follows_what_arrived(void **state)
{
    static const unsigned char head[FRAMES_HEAD_LEN] = {0, 0, 0x10, 0}; // 1 MiB
    struct frames frames;
    char *kilobyte = xcalloc(1, 1024);

    (void)state;
    frames_init(&frames, FRAME_MAX);
    greet(&frames);
    feed(&frames, head, sizeof(head));
    char *room;
    size_t len;
    assert_int_equal(frames_room(&frames, &room, &len, NULL), 0);
    assert_true(frames.size <= (128 << 10));
    for (int i = 0; i < 1024; i++) {
        assert_int_equal(peek(&frames).item, FRAMES_MORE);
        feed(&frames, kilobyte, 1024);
        assert_true(frames.size <= (64u << 10) + 4 * frames.end);
    }
    struct frames_view view = peek(&frames);
    assert_int_equal(view.len, FRAME_MAX);
    frames_take(&frames, &view);
    assert_int_equal(frames.size, 0);
    frames_release(&frames);
    free(kilobyte);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_come_out_whole_however_they_arrive),
        cmocka_unit_test(a_frame_stays_until_it_is_taken),
        cmocka_unit_test(a_wrong_greeting_is_refused_at_its_first_wrong_byte),
        cmocka_unit_test(impossible_lengths_are_refused),
        cmocka_unit_test(memory_follows_what_arrived),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
