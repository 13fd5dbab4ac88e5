// What kind of processor this is: the answers fit together, whatever the machine.
#include "executor/cpu/machine.h"

#include "common/mem.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void the_last_level_is_the_last_that_is_known(void **state)
{
    size_t last = 0;

    (void)state;
    for (unsigned level = 1; level <= 3; level++) {
        size_t bytes = machine_cache_bytes(level);

        last = bytes > 0 ? bytes : last;
    }
    assert_int_equal(machine_cache_bytes(0), last > 0 ? last : (size_t)32 << 20);
    assert_int_equal(machine_cache_bytes(4), 0);
    assert_int_equal(machine_cache_bytes(1000000), 0);
}

static void the_model_fits_into_any_room(void **state)
{
    char whole[128];

    (void)state;
    machine_model(whole, sizeof(whole));
    size_t len = strlen(whole);
    assert_true(len > 0);
    assert_true(whole[0] != ' ' && whole[len - 1] != ' ' && whole[len - 1] != '\n');
    for (size_t size = 1; size <= len + 1; size++) {
        char *room = xmemdup(whole, size); // just as much memory as there is room

        memset(room, 'x', size);
        machine_model(room, size);
        assert_int_equal(strlen(room), size - 1);
        assert_memory_equal(room, whole, size - 1);
        free(room);
    }
}

static void the_instructions_are_among_those_known(void **state)
{
    static const char *const known[] = {"avx512", "avx2", "avx", "sse2", "neon", "generic"};
    size_t found = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        found += strcmp(machine_isa(), known[i]) == 0;
    }
    assert_int_equal(found, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_level_is_the_last_that_is_known),
        cmocka_unit_test(the_model_fits_into_any_room),
        cmocka_unit_test(the_instructions_are_among_those_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
