#include "proto/queue_class.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <string.h>

// On the wire a class is its position: this list may only grow.
static void classes_keep_their_positions_and_are_found_by_name(void **state)
{
    static const char *const names[] = {"normal", "interactive", "scavenge"};

    (void)state;
    assert_int_equal(QUEUE_CLASS_COUNT, sizeof(names) / sizeof(names[0]));
    for (size_t i = 0; i < QUEUE_CLASS_COUNT; i++) {
        enum queue_class found = QUEUE_CLASS_COUNT;
        assert_string_equal(queue_class_name((enum queue_class)i), names[i]);
        assert_true(queue_class_find(&found, names[i]));
        assert_int_equal(found, i);
    }
}

static void what_is_no_class_is_unknown_and_not_found(void **state)
{
    static const char *const names[] = {"", "Normal", "norm", "normal ", "unknown", "0"};

    (void)state;
    assert_string_equal(queue_class_name(QUEUE_CLASS_COUNT), "unknown");
    assert_string_equal(queue_class_name((enum queue_class) - 1), "unknown");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        enum queue_class found = QUEUE_SCAVENGE;
        assert_false(queue_class_find(&found, names[i]));
        assert_int_equal(found, QUEUE_SCAVENGE);
    }
}

// A command line offers what the table has, in its order.
static void the_choices_of_command_lines_are_the_names_of_the_table(void **state)
{
    char choices[100] = "";

    (void)state;
    for (size_t i = 0; i < QUEUE_CLASS_COUNT; i++) {
        size_t len = strlen(choices);
        const char *name = queue_class_name((enum queue_class)i);
        assert_true(len + strlen(name) + 2 < sizeof(choices));
        if (i > 0) {
            choices[len++] = '|';
        }
        memcpy(choices + len, name, strlen(name) + 1);
    }
    assert_string_equal(choices, QUEUE_CLASS_CHOICES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_keep_their_positions_and_are_found_by_name),
        cmocka_unit_test(what_is_no_class_is_unknown_and_not_found),
        cmocka_unit_test(the_choices_of_command_lines_are_the_names_of_the_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
