// One more small variation of a program whose small variations brought nothing is no news; a
// repair, another program, and a variation of what still improves are.
#include "client/search/novelty.h"

#include "common/mem.h"
#include "common/strbuf.h"
#include "proto/verdict.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka.h needs the headers above.
#include <cmocka.h>

#define COUNT 12

struct fixture {
    struct novelty *novelty;
    struct run_state run_state;
    struct run_state_candidate candidate[COUNT];
    struct result result[COUNT];
    struct estimate speedup[COUNT];
};

// A program of some 300 tokens, of which one differs.
static char *variation(size_t number)
{
    struct strbuf text = STRBUF_INIT;

    for (size_t i = 0; i < 50; i++) {
        strbuf_addf(&text, "x%zu = a[%zu] * %zu;\n", i, i, i == 25 ? 1000 + number : i);
    }
    return strbuf_detach(&text);
}

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    f->novelty = novelty_create();
    f->run_state.candidate = f->candidate;
    for (size_t i = 0; i < COUNT; i++) {
        char *source = variation(i);

        novelty_add(f->novelty, i + 1, source, strlen(source));
        free(source);
    }
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    novelty_free(f->novelty);
    free(f);
    return 0;
}

static void measured(struct fixture *f, size_t i, uint64_t verdict, double log2)
{
    f->speedup[i].log2 = log2;
    f->result[i] = (struct result){.verdict = verdict, .speedup = &f->speedup[i]};
    f->candidate[i].result = &f->result[i];
}

static bool is_spent(const struct fixture *f, uint64_t visible, size_t number)
{
    char *source = variation(number);
    bool ret = novelty_is_spent(f->novelty, &f->run_state, visible, source, strlen(source));

    free(source);
    return ret;
}

static void variations_that_bring_nothing_are_enough_at_some_time(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT; i++) {
        measured(f, i, VERDICT_FASTER, i == 0 ? 1 : 0.9);
        assert_int_equal(is_spent(f, COUNT, 99), i >= NOVELTY_TRIES);
    }
    assert_false(is_spent(f, NOVELTY_TRIES, 99)); // only visible outcomes count
    assert_false(novelty_is_spent(f->novelty, &f->run_state, COUNT, "int other() { }", 15));
    measured(f, COUNT - 1, VERDICT_FASTER, 1.5); // one of the newest improves
    assert_false(is_spent(f, COUNT, 99));
}

static void failures_do_not_count(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < COUNT; i++) {
        measured(f, i, VERDICT_WRONG, 0);
    }
    measured(f, 0, VERDICT_FASTER, 1);
    assert_false(is_spent(f, COUNT, 99));
}

static void what_was_not_added_or_measured_does_not_count(void **state)
{
    struct fixture *f = *state;

    assert_false(is_spent(f, COUNT, 99));
    assert_false(is_spent(f, 0, 99));
    assert_false(novelty_is_spent(f->novelty, &f->run_state, COUNT, "", 0));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(variations_that_bring_nothing_are_enough_at_some_time),
        TEST(failures_do_not_count),
        TEST(what_was_not_added_or_measured_does_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
