// A line: so many at once, each caller in turn, and none with all places.
#include "daemon/store/line.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define PLACES 40

struct fixture {
    struct line *line;
    struct line_place place[PLACES];
    size_t entered;
    size_t started[PLACES]; // numbers of places, in the order in which they were started
    size_t count;
};

static void on_start(void *owner);

struct entry {
    struct fixture *fixture;
    size_t number;
};
static struct entry entries[PLACES];

static void on_start(void *owner)
{
    const struct entry *entry = owner;

    entry->fixture->started[entry->fixture->count++] = entry->number;
}

static void enter(struct fixture *f, const char *caller)
{
    size_t number = f->entered++;

    entries[number] = (struct entry){.fixture = f, .number = number};
    line_enter(f->line, &f->place[number], caller, on_start, &entries[number]);
}

static void finish_all(struct fixture *f)
{
    for (size_t i = 0; i < f->count; i++) {
        line_leave(&f->place[f->started[i]]);
    }
    line_free(f->line);
}

static void one_caller_leaves_a_place(void **state)
{
    struct fixture f = {.line = line_create(3, 2)};

    (void)state;
    for (int i = 0; i < 10; i++) {
        enter(&f, "ann");
    }
    assert_int_equal(f.count, 2);
    enter(&f, "ben");
    assert_int_equal(f.count, 3);
    assert_int_equal(f.started[2], 10);
    finish_all(&f);
    assert_int_equal(f.count, 11);
}

static void callers_are_taken_in_turn(void **state)
{
    struct fixture f = {.line = line_create(1, 1)};

    (void)state;
    for (int i = 0; i < 4; i++) {
        enter(&f, "ann"); // 0 to 3
    }
    enter(&f, "ben"); // 4
    enter(&f, "eva"); // 5
    enter(&f, "ben"); // 6
    finish_all(&f);
    static const size_t order[] = {0, 1, 4, 5, 2, 6, 3};
    assert_int_equal(f.count, 7);
    for (size_t i = 0; i < 7; i++) {
        assert_int_equal(f.started[i], order[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_caller_leaves_a_place),
        cmocka_unit_test(callers_are_taken_in_turn),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
