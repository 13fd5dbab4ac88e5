// Inspection of objects: the facts of a real one; and a damaged one never makes it read outside the
// object's bytes.
#include "common/stats.h"
#include "executor/sandbox/elf.h"
#include "tests/executor/fixture.h"

static void real_object_is_described(void **state)
{
    const struct fixture *fixture = *state;
    struct elf_facts facts;
    struct err err = ERR_INIT;

    assert_int_equal(elf_inspect(&fixture->baseline, &facts, &err), 0);
    assert_true(facts.code_bytes > 0 && facts.code_bytes < 100000);
    assert_false(facts.runs_when_loaded);
    assert_false(facts.has_ifunc);
    assert_string_equal(facts.needs, "");
    assert_true(facts.bss_bytes == 0);
    assert_false(elf_needs(&fixture->baseline, "libmvec.so.1"));
}

static void what_is_no_object_is_refused(void **state)
{
    const struct fixture *fixture = *state;

    (void)state;
    struct elf_facts facts;
    for (size_t len = 0; len < 64; len++) {
        struct bytes cut = {.data = fixture->baseline.data, .len = len};
        assert_int_equal(elf_inspect(&cut, &facts, NULL), ERR_INVALID);
    }
}

// Changes random bytes of a real object, mostly in its headers. Sanitizers find a read outside it.
static void damaged_objects_are_read_within_bounds(void **state)
{
    const struct fixture *fixture = *state;
    struct stats_rng rng;

    stats_rng_init(&rng, 1, 1);
    for (size_t run = 0; run < 20000; run++) {
        struct bytes copy = bytes_copy(fixture->baseline.data, fixture->baseline.len);
        size_t changes = 1 + stats_rng_below(&rng, 8);

        for (size_t i = 0; i < changes; i++) {
            size_t range = stats_rng_below(&rng, 2) ? 0x300 : copy.len;
            copy.data[stats_rng_below(&rng, range)] = (unsigned char)stats_rng_u64(&rng);
        }
        copy.len = stats_rng_below(&rng, 4) == 0 ? stats_rng_below(&rng, copy.len) : copy.len;
        struct elf_facts facts;
        if (elf_inspect(&copy, &facts, NULL) == 0) {
            assert_true(strlen(facts.needs) < sizeof(facts.needs));
        }
        (void)elf_needs(&copy, "libm.so.6");
        bytes_clear(&copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_object_is_described),
        cmocka_unit_test(what_is_no_object_is_refused),
        cmocka_unit_test(damaged_objects_are_read_within_bounds),
    };

    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
