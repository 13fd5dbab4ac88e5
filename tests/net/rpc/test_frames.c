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

static void begin(struct frames *frames)
{
    frames_init(frames, FRAMES_CALLER, FRAME_MAX);
}

static void greet(struct frames *frames)
{
    feed(frames, frames_greeting(FRAMES_CALLER), FRAMES_GREETING_LEN);
    struct frames_view view = peek(frames);
    assert_int_equal(view.item, FRAMES_GREETING);
    frames_take(frames, &view);
    assert_true(frames->greeted);
}

// Appends three frames with the numbers 1, 2 and 3 and messages of 0, 300 and 70,000 bytes, each
// filled with its number. The second one has passed two devices.
static void add_three(struct strbuf *buf)
{
    static const unsigned char devices[] = {0, 0, 0, 7, 0x7f, 0xff, 0xff, 0xff, 0x80, 0, 0, 2};
    static const size_t len[] = {0, 300, 70000};

    for (size_t i = 0; i < ARRAY_LEN(len); i++) {
        struct strbuf frame = STRBUF_INIT;

        if (i == 1) {
            frame_begin(&frame, devices, sizeof(devices));
        } else {
            frame_begin_request(&frame, (uint32_t)i + 1);
        }
        for (size_t n = 0; n < len[i]; n++) {
            strbuf_addc(&frame, (char)('1' + i));
        }
        frame_end(&frame);
        strbuf_add(buf, frame.data, frame.len);
        strbuf_release(&frame);
    }
}

// The bytes of nng: a length of 8 bytes, big-endian, and a word whose highest bit is set.
static void a_frame_is_what_nng_sends(void **state)
{
    static const unsigned char expected[] = {0,    0,    0,    0,    0,   0,   0,  7,
                                             0x92, 0x34, 0x56, 0x78, 'a', 'b', 'c'};
    static const unsigned char req[] = {0, 'S', 'P', 0, 0, 0x30, 0, 0};
    static const unsigned char rep[] = {0, 'S', 'P', 0, 0, 0x31, 0, 0};
    struct strbuf frame = STRBUF_INIT;

    (void)state;
    frame_begin_request(&frame, 0x12345678);
    strbuf_adds(&frame, "abc");
    frame_end(&frame);
    assert_int_equal(frame.len, sizeof(expected));
    assert_memory_equal(frame.data, expected, sizeof(expected));
    strbuf_release(&frame);
    assert_memory_equal(frames_greeting(FRAMES_CALLER), req, sizeof(req));
    assert_memory_equal(frames_greeting(FRAMES_SERVER), rep, sizeof(rep));
}

static void check_one_of_three(const struct frames_view *view, size_t number)
{
    static const size_t header_len[] = {4, 12, 4};

    assert_int_equal(frames_request(view), FRAMES_REQUEST | number);
    assert_int_equal(view->header_len, header_len[number - 1]);
    if (view->len > 0) {
        assert_int_equal(view->data[0], '0' + number);
        assert_int_equal(view->data[view->len - 1], '0' + number);
    }
}

static void frames_come_out_whole_however_they_arrive(void **state)
{
    static const size_t steps[] = {1, 3, 7, 4096, 70000, 1 << 20};

    (void)state;
    struct strbuf bytes = STRBUF_INIT;
    strbuf_add(&bytes, frames_greeting(FRAMES_CALLER), FRAMES_GREETING_LEN);
    add_three(&bytes);
    for (size_t s = 0; s < ARRAY_LEN(steps); s++) {
        struct frames frames;

        begin(&frames);
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
                    check_one_of_three(&view, seen[1]);
                }
                frames_take(&frames, &view);
            }
        }
        assert_int_equal(seen[0], 1);
        assert_int_equal(seen[1], 3);
        assert_int_equal(total, 70300);
        frames_release(&frames);
    }
    strbuf_release(&bytes);
}

static void a_frame_stays_until_it_is_taken(void **state)
{
    (void)state;
    struct frames frames;
    begin(&frames);
    greet(&frames);
    struct strbuf bytes = STRBUF_INIT;
    add_three(&bytes);
    feed(&frames, bytes.data, 17);
    assert_int_equal(peek(&frames).item, FRAMES_FRAME);
    struct frames_view view = peek(&frames);
    check_one_of_three(&view, 1);
    frames_take(&frames, &view);
    assert_int_equal(peek(&frames).item, FRAMES_MORE);
    frames_release(&frames);
    strbuf_release(&bytes);
}

static void a_wrong_greeting_is_refused_at_its_first_wrong_byte(void **state)
{
    static const char *const first[] = {"G", "KC0", "KCAST ", "\x16\x03\x01", "KCAST\n"};
    static const unsigned char pub[] = {0, 'S', 'P', 0, 0, 0x20, 0, 0};

    (void)state;
    struct frames frames;
    for (size_t i = 0; i < ARRAY_LEN(first); i++) {
        begin(&frames);
        feed(&frames, first[i], strlen(first[i]));
        expect_error(&frames, "no greeting of nng's protocol");
        frames_release(&frames);
    }
    begin(&frames);
    feed(&frames, pub, sizeof(pub) - 1);
    assert_int_equal(peek(&frames).item, FRAMES_MORE);
    feed(&frames, pub + sizeof(pub) - 1, 1);
    expect_error(&frames, "of the kind PUB (0x20), and only REQ is answered");
    frames_release(&frames);
    frames_init(&frames, FRAMES_SERVER, FRAME_MAX);
    feed(&frames, frames_greeting(FRAMES_CALLER), FRAMES_GREETING_LEN);
    expect_error(&frames, "of the kind REQ (0x30), and only REP is called");
    frames_release(&frames);
}

// A caller of before is known by its greeting, and its requests are cut as it frames them.
static void the_framing_of_before_is_read(void **state)
{
    (void)state;
    struct frames frames;
    begin(&frames);
    feed(&frames, "KCAST\0\0\1\3\0\0\0abc\0\0", 17);
    struct frames_view view = peek(&frames);
    assert_int_equal(view.item, FRAMES_GREETING_OLD);
    frames_take(&frames, &view);
    view = peek(&frames);
    assert_int_equal(view.item, FRAMES_FRAME_OLD);
    assert_int_equal(view.len, 3);
    assert_memory_equal(view.data, "abc", 3);
    frames_take(&frames, &view);
    assert_int_equal(peek(&frames).item, FRAMES_MORE);
    frames_release(&frames);
    begin(&frames);
    feed(&frames, "KCAST\0\0\1\1\0\1\0", 12);
    view = peek(&frames);
    frames_take(&frames, &view);
    expect_error(&frames, "a frame of 65537 bytes, and 65536 are allowed");
    frames_release(&frames);
}

static void impossible_frames_are_refused(void **state)
{
    static const struct {
        unsigned char bytes[48];
        size_t len;
        const char *text;
    } bad[] = {
        {{0}, 8, "a frame of 0 bytes without a request's number"},
        {{0, 0, 0, 0, 0, 0, 0, 3}, 8, "a frame of 3 bytes without a request's number"},
        {{0, 0, 0, 0, 0, 0, 0, 7, 0x7f, 0, 0, 1}, 12, "a frame of 7 bytes without"},
        {{0, 0, 0, 0, 0, 0, 1, 0}, 40, "a header of more than 8 words"},
        {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x80},
         12,
         "a frame of 18446744073709551611 bytes, and 1048576 are allowed"},
        {{0, 0, 0, 0, 0, 0x10, 0, 5, 0x80}, 12, "a frame of 1048577 bytes, and 1048576"},
        {{0, 0, 0, 0, 0, 0x10, 0, 9, 0, 0, 0, 1, 0x80}, 16, "a frame of 1048577 bytes"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct frames frames;

        begin(&frames);
        greet(&frames);
        feed(&frames, bad[i].bytes, bad[i].len);
        expect_error(&frames, bad[i].text);
        frames_release(&frames);
    }
}

// Seven devices may stand between, and the length does not count the header.
static void the_longest_frame_with_the_longest_header_is_read(void **state)
{
    unsigned char header[FRAMES_HEADER_MAX] = {0};
    char *message = xcalloc(1, FRAME_MAX);
    struct strbuf frame = STRBUF_INIT;
    struct frames frames;

    (void)state;
    header[FRAMES_HEADER_MAX - FRAMES_WORD_LEN] = 0x80;
    header[FRAMES_HEADER_MAX - 1] = 9;
    frame_begin(&frame, header, sizeof(header));
    strbuf_add(&frame, message, FRAME_MAX);
    frame_end(&frame);
    begin(&frames);
    greet(&frames);
    feed(&frames, frame.data, frame.len - 1);
    assert_int_equal(peek(&frames).item, FRAMES_MORE);
    feed(&frames, "", 1);
    struct frames_view view = peek(&frames);
    assert_int_equal(view.item, FRAMES_FRAME);
    assert_int_equal(view.len, FRAME_MAX);
    assert_int_equal(view.header_len, FRAMES_HEADER_MAX);
    assert_int_equal(frames_request(&view), 0x80000009u);
    frames_release(&frames);
    strbuf_release(&frame);
    free(message);
}

// Who is not known yet may send little; a long message is looked at when it begins.
static void the_start_of_a_long_frame_is_shown_once(void **state)
{
    struct frames frames;
    struct strbuf frame = STRBUF_INIT;
    char *message = xcalloc(1, FRAME_MAX);

    (void)state;
    frame_begin_request(&frame, 1);
    strbuf_add(&frame, message, 5000);
    frame_end(&frame);
    begin(&frames);
    frames.message_max = 4096;
    frames.start_max = 5000;
    greet(&frames);
    feed(&frames, frame.data, 1000);
    assert_int_equal(peek(&frames).item, FRAMES_MORE);
    feed(&frames, frame.data + 1000, 1000);
    struct frames_view view = peek(&frames);
    assert_int_equal(view.item, FRAMES_START);
    assert_int_equal(view.len, 2000 - FRAMES_LENGTH_LEN - FRAMES_WORD_LEN);
    frames_take(&frames, &view);
    expect_error(&frames, "a frame of 5000 bytes, and 4096 are allowed");
    frames.message_max = 5000;
    assert_int_equal(peek(&frames).item, FRAMES_MORE);
    feed(&frames, frame.data + 2000, frame.len - 2000);
    assert_int_equal(peek(&frames).item, FRAMES_FRAME);
    frames_release(&frames);
    // Longer than ever allowed: refused at once.
    begin(&frames);
    frames.message_max = 4096;
    frames.start_max = 4999;
    greet(&frames);
    feed(&frames, frame.data, 12);
    expect_error(&frames, "a frame of 5000 bytes");
    frames_release(&frames);
    strbuf_release(&frame);
    free(message);
}

// The memory follows what has arrived, not what was announced, and is freed afterwards.
static void memory_follows_what_arrived(void **state)
{
    static const unsigned char head[] = {0, 0, 0, 0, 0, 0x10, 0, 4, 0x80, 0, 0, 1}; // 1 MiB
    struct frames frames;
    char *kilobyte = xcalloc(1, 1024);

    (void)state;
    begin(&frames);
    greet(&frames);
    feed(&frames, head, sizeof(head));
    char *room;
    size_t len;
    assert_int_equal(frames_room(&frames, &room, &len, NULL), 0);
    assert_true(frames.size <= FRAMES_SIZE_FIRST);
    for (int i = 0; i < 1024; i++) {
        assert_int_equal(peek(&frames).item, FRAMES_MORE);
        feed(&frames, kilobyte, 1024);
        assert_true(frames.size <= FRAMES_SIZE_FIRST + 8 * frames.end);
        assert_true(frames.size <= FRAME_MAX + ((size_t)16 << 10));
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
        cmocka_unit_test(a_frame_is_what_nng_sends),
        cmocka_unit_test(frames_come_out_whole_however_they_arrive),
        cmocka_unit_test(a_frame_stays_until_it_is_taken),
        cmocka_unit_test(a_wrong_greeting_is_refused_at_its_first_wrong_byte),
        cmocka_unit_test(the_framing_of_before_is_read),
        cmocka_unit_test(impossible_frames_are_refused),
        cmocka_unit_test(the_longest_frame_with_the_longest_header_is_read),
        cmocka_unit_test(the_start_of_a_long_frame_is_shown_once),
        cmocka_unit_test(memory_follows_what_arrived),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
