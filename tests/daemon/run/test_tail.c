// The last line of what a program has written, however it was written.
#include "common/mem.h"
#include "daemon/run/tail.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void assert_last(const struct tail *tail, const char *line)
{
    char found[TAIL_LINE_MAX];

    memset(found, 0x55, sizeof(found));
    tail_last_line(tail, found);
    assert_string_equal(found, line);
}

static void the_last_line_with_text_counts(void **state)
{
    static const struct {
        const char *text, *line;
    } cases[] = {
        {"", ""},
        {"\n", ""},
        {"\n\n\n", ""},
        {"one", "one"},
        {"one\n", "one"},
        {"one\n\n\n", "one"},
        {"one\ntwo", "two"},
        {"one\ntwo\n", "two"},
        {"one\n\ntwo\n\n", "two"},
        {"\none", "one"},
        {"one\n ", " "},
        {"tab\tbell\aescape\x1b[1m", "tab?bell?escape?[1m"},
        {"z\xc3\xa4hlen\x7f", "z??hlen?"},
        {"a line\r\n", "a line?"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct tail whole = {.len = 0};
        struct tail single = {.len = 0};

        tail_add(&whole, cases[i].text, strlen(cases[i].text));
        for (size_t at = 0; cases[i].text[at] != '\0'; at++) {
            tail_add(&single, &cases[i].text[at], 1);
        }
        assert_last(&whole, cases[i].line);
        assert_last(&single, cases[i].line); // pieces do not matter
    }
}

static void a_nul_byte_does_not_end_the_line(void **state)
{
    struct tail tail = {.len = 0};

    (void)state;
    tail_add(&tail, "a\0b", 3);
    assert_last(&tail, "a?b");
    tail_add(&tail, NULL, 0);
    assert_last(&tail, "a?b");
}

static void a_long_line_is_cut_at_its_end(void **state)
{
    struct tail tail = {.len = 0};
    char expected[TAIL_LINE_MAX];

    (void)state;
    tail_add(&tail, "first\n", 6);
    for (int i = 0; i < 1000; i++) {
        char c = (char)('a' + i % 26);

        tail_add(&tail, &c, 1);
        if (i < TAIL_LINE_MAX - 1) {
            expected[i] = c;
        }
    }
    expected[TAIL_LINE_MAX - 1] = '\0';
    assert_last(&tail, expected);
    tail_add(&tail, "\nshort", 6);
    assert_last(&tail, "short");
}

static void what_is_older_than_the_ring_is_forgotten(void **state)
{
    struct tail tail = {.len = 0};
    char fill[TAIL_MAX];

    (void)state;
    memset(fill, '\n', sizeof(fill));
    tail_add(&tail, "old", 3);
    tail_add(&tail, fill, TAIL_MAX - 3);
    assert_last(&tail, "old"); // it fits exactly
    tail_add(&tail, fill, 1);
    assert_last(&tail, "ld");
    tail_add(&tail, fill, 2);
    assert_last(&tail, "");
    tail_add(&tail, "new", 3);
    assert_last(&tail, "new");
}

static void a_line_is_read_across_the_seam_of_the_ring(void **state)
{
    char fill[TAIL_MAX];

    (void)state;
    memset(fill, 'x', sizeof(fill));
    for (size_t before = TAIL_MAX - 8; before <= TAIL_MAX + 2; before++) {
        struct tail tail = {.len = 0};

        tail_add(&tail, fill, before < TAIL_MAX ? before : TAIL_MAX);
        tail_add(&tail, fill, before < TAIL_MAX ? 0 : before - TAIL_MAX);
        tail_add(&tail, "\nreason\n", 8);
        assert_last(&tail, "reason");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_line_with_text_counts),
        cmocka_unit_test(a_nul_byte_does_not_end_the_line),
        cmocka_unit_test(a_long_line_is_cut_at_its_end),
        cmocka_unit_test(what_is_older_than_the_ring_is_forgotten),
        cmocka_unit_test(a_line_is_read_across_the_seam_of_the_ring),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
