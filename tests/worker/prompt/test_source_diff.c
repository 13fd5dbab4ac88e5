// The lines in which sources differ: the fewest, and enough to make the one from the other.
#include "worker/prompt/source_diff.h"

#include "common/stats.h"
#include "tests/worker/prompt/prompt_fixture.h"
#include <stdio.h>
#include <stdlib.h>

static void check(const char *from, const char *to, const char *diff)
{
    struct strbuf out = STRBUF_INIT;
    struct bytes a = borrowed(from), b = borrowed(to);

    assert_true(source_diff(&out, &a, &b));
    assert_string_equal(strbuf_text(&out), diff);
    strbuf_release(&out);
}

static void changes_have_their_place(void **state)
{
    (void)state;
    check("a\nb\nc\n", "a\nb\nc\n", "");
    check("a\nb\nc\n", "a\nx\nc\n", "@ 2\n- b\n+ x\n");
    check("a\nb\nc\n", "b\nc\nd\n", "@ 1\n- a\n@ 4\n+ d\n");
    check("", "a\nb", "@ 1\n+ a\n+ b\n");
    check("a", "", "@ 1\n- a\n");
    check("a\nb\nc\nd\ne\n", "a\nB\nc\nd\nE\nf\n", "@ 2\n- b\n+ B\n@ 5\n- e\n+ E\n+ f\n");
}

// Applies a diff to the lines of `from`, as somebody who reads it would.
static void apply(struct strbuf *out, const char *from, const char *diff)
{
    size_t line = 1, at;
    const char *next = from;

    for (const char *entry = diff; *entry != '\0'; entry = strchr(entry, '\n') + 1) {
        size_t len = (size_t)(strchr(entry, '\n') + 1 - entry);

        if (entry[0] == '@') {
            at = (size_t)strtoul(entry + 2, NULL, 10);
            for (; line < at; line++) { // what lies between is the same
                size_t same = (size_t)(strchr(next, '\n') + 1 - next);

                strbuf_add(out, next, same);
                next += same;
            }
        } else if (entry[0] == '-') {
            assert_memory_equal(entry + 2, next, len - 2);
            next += len - 2;
            line++;
        } else {
            strbuf_add(out, entry + 2, len - 2);
        }
    }
    strbuf_adds(out, next);
}

static void a_diff_makes_the_one_from_the_other(void **state)
{
    struct stats_rng rng;

    (void)state;
    stats_rng_init(&rng, 7, 1);
    for (size_t round = 0; round < 300; round++) {
        struct strbuf text[2], diff = STRBUF_INIT, made = STRBUF_INIT;

        for (size_t i = 0; i < 2; i++) {
            strbuf_init(&text[i], STRBUF_DEFAULT_MAX);
            for (uint64_t lines = stats_rng_below(&rng, 30); lines > 0; lines--) {
                strbuf_addf(&text[i], "%c\n", 'a' + (int)stats_rng_below(&rng, 4));
            }
        }
        struct bytes a = borrowed(strbuf_text(&text[0])), b = borrowed(strbuf_text(&text[1]));
        assert_true(source_diff(&diff, &a, &b));
        apply(&made, strbuf_text(&text[0]), strbuf_text(&diff));
        assert_string_equal(strbuf_text(&made), strbuf_text(&text[1]));
        strbuf_release(&text[0]);
        strbuf_release(&text[1]);
        strbuf_release(&diff);
        strbuf_release(&made);
    }
}

static void sources_of_many_lines_are_not_compared(void **state)
{
    struct strbuf text = STRBUF_INIT, out = STRBUF_INIT;
    struct bytes one = borrowed("x\n");

    (void)state;
    for (size_t i = 0; i <= SOURCE_DIFF_LINES_MAX; i++) {
        strbuf_adds(&text, "y\n");
    }
    struct bytes many = borrowed(strbuf_text(&text));
    assert_false(source_diff(&out, &many, &one));
    assert_false(source_diff(&out, &one, &many));
    assert_int_equal(out.len, 0);
    many.len -= 2;
    assert_true(source_diff(&out, &many, &one));
    strbuf_release(&text);
    strbuf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_have_their_place),
        cmocka_unit_test(a_diff_makes_the_one_from_the_other),
        cmocka_unit_test(sources_of_many_lines_are_not_compared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
