#include "common/strbuf.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static void empty_buffer_is_empty_text(void **state)
{
    (void)state;
    struct strbuf buf = STRBUF_INIT;
    assert_string_equal(strbuf_text(&buf), "");
    strbuf_add(&buf, NULL, 0);
    assert_string_equal(strbuf_text(&buf), "");
    strbuf_release(&buf);
    strbuf_release(&buf);
    strbuf_release(NULL);
}

static void appends_grow_and_stay_terminated(void **state)
{
    (void)state;
    struct strbuf buf = STRBUF_INIT;
    for (int i = 0; i < 1000; i++) {
        strbuf_addf(&buf, "%03d", i);
        assert_int_equal(buf.len, 3 * (i + 1));
        assert_int_equal(strlen(strbuf_text(&buf)), buf.len);
        assert_true(buf.len < buf.size);
    }
    assert_memory_equal(strbuf_text(&buf) + 2997, "999", 4);
    strbuf_addc(&buf, '!');
    strbuf_adds(&buf, "?");
    assert_memory_equal(strbuf_text(&buf) + 3000, "!?", 3);
    strbuf_release(&buf);
}

static void long_formats_are_not_cut(void **state)
{
    (void)state;
    struct strbuf buf = STRBUF_INIT;
    for (int width = 0; width < 300; width++) {
        strbuf_release(&buf);
        strbuf_adds(&buf, "ab");
        strbuf_addf(&buf, "%*s", width, "");
        assert_int_equal(buf.len, 2 + width);
        assert_int_equal(strlen(strbuf_text(&buf)), 2 + width);
    }
    strbuf_release(&buf);
}

static void append_past_max_keeps_a_prefix(void **state)
{
    (void)state;
    struct strbuf buf;
    strbuf_init(&buf, 10);
    strbuf_adds(&buf, "0123456789");
    assert_false(buf.truncated);
    strbuf_addc(&buf, 'x');
    assert_true(buf.truncated);
    assert_string_equal(strbuf_text(&buf), "0123456789");

    strbuf_reset(&buf);
    assert_false(buf.truncated);
    strbuf_adds(&buf, "01234567");
    strbuf_addf(&buf, "%s", "890");
    assert_true(buf.truncated);
    assert_string_equal(strbuf_text(&buf), "01234567");
    strbuf_addc(&buf, 'y'); // it would fit, but would leave a gap
    strbuf_addf(&buf, "%d", 1);
    assert_string_equal(strbuf_text(&buf), "01234567");
    strbuf_release(&buf);
}

static void huge_append_does_not_overflow(void **state)
{
    (void)state;
    struct strbuf buf;
    strbuf_init(&buf, SIZE_MAX);
    strbuf_adds(&buf, "a");
    strbuf_add(&buf, "b", SIZE_MAX - 1);
    assert_true(buf.truncated);
    assert_string_equal(strbuf_text(&buf), "a");
    strbuf_release(&buf);
}

static void reset_keeps_the_memory(void **state)
{
    (void)state;
    struct strbuf buf = STRBUF_INIT;
    strbuf_adds(&buf, "abc");
    char *before = buf.data;
    strbuf_reset(&buf);
    assert_string_equal(strbuf_text(&buf), "");
    strbuf_adds(&buf, "d");
    assert_ptr_equal(buf.data, before);
    strbuf_release(&buf);
}

static void detach_gives_the_text_away(void **state)
{
    (void)state;
    struct strbuf buf;
    strbuf_init(&buf, 100);
    char *text = strbuf_detach(&buf);
    assert_string_equal(text, "");
    free(text);
    strbuf_add(&buf, "a\0b", 3);
    struct bytes bytes = strbuf_detach_bytes(&buf);
    assert_int_equal(bytes.len, 3);
    assert_memory_equal(bytes.data, "a\0b", 4);
    bytes_clear(&bytes);
    strbuf_adds(&buf, "again");
    text = strbuf_detach(&buf);
    assert_string_equal(text, "again");
    free(text);
    assert_int_equal(buf.max, 100);
    assert_null(buf.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_buffer_is_empty_text),
        cmocka_unit_test(appends_grow_and_stay_terminated),
        cmocka_unit_test(long_formats_are_not_cut),
        cmocka_unit_test(append_past_max_keeps_a_prefix),
        cmocka_unit_test(huge_append_does_not_overflow),
        cmocka_unit_test(reset_keeps_the_memory),
        cmocka_unit_test(detach_gives_the_text_away),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
