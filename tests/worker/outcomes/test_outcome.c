// From which outcomes a model can learn, and what names a group.
#include "worker/outcomes/outcome.h"

#include "common/mem.h"
#include "proto/verdict.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void only_what_says_something_about_the_candidate_is_usable(void **state)
{
    static const struct {
        uint64_t verdict;
        double log2;
        bool usable;
    } row[] = {
        {VERDICT_FASTER, 1, true},           {VERDICT_SLOWER, -40, true},
        {VERDICT_FASTER, 40, true},          {VERDICT_EQUIVALENT, 0, true},
        {VERDICT_INCONCLUSIVE, -0.1, true},  {VERDICT_FASTER, 40.001, false}, // no measurement
        {VERDICT_SLOWER, -40.001, false},    {VERDICT_FASTER, NAN, false},
        {VERDICT_FASTER, INFINITY, false},   {VERDICT_SLOWER, -INFINITY, false},
        {VERDICT_WRONG, NAN, true}, // needs no ratio
        {VERDICT_CRASH, NAN, true},          {VERDICT_TIMEOUT, 1e9, true},
        {VERDICT_REJECTED, NAN, true},       {VERDICT_NONE, 0, false},
        {VERDICT_COMPILE_ERROR, 0, false},   {VERDICT_QUARANTINED, 0, false},
        {VERDICT_QUARANTINED + 1, 0, false}, {UINT64_MAX, 0, false},
    };
    struct candidate_facts candidate = {0};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct outcome outcome = {
            .candidate = &candidate, .verdict = row[i].verdict, .log2 = row[i].log2};

        if (outcome_is_usable(&outcome) != row[i].usable) {
            fail_msg("%s with log2 %g", verdict_name(row[i].verdict), row[i].log2);
        }
        assert_true(outcome_is_compile_failure(&outcome) ==
                    (row[i].verdict == VERDICT_COMPILE_ERROR));
        outcome.candidate = NULL;
        assert_false(outcome_is_usable(&outcome) || outcome_is_compile_failure(&outcome));
    }
}

static void a_problem_is_named_by_its_digest_or_else_its_name(void **state)
{
    char name[65], identity[OUTCOME_IDENTITY_MAX], other[OUTCOME_IDENTITY_MAX];
    struct digest digest = {{0}}, given = digest_of("sgemm", 5);

    (void)state;
    outcome_identity("sgemm", &digest, identity);
    assert_string_equal(identity, "name:sgemm");
    outcome_identity("", &digest, identity);
    assert_string_equal(identity, "name:");
    // A name that looks like a digest is a name still.
    outcome_identity("sgemm", &given, identity);
    assert_int_equal(strlen(identity), DIGEST_HEX_LEN);
    memcpy(name, identity, 64);
    name[64] = '\0';
    outcome_identity(name, &digest, other);
    assert_string_not_equal(identity, other);
    // The digest alone decides: a renamed problem is the same one.
    outcome_identity("renamed", &given, other);
    assert_string_equal(identity, other);
}

static void a_group_is_a_problem_on_a_device_class(void **state)
{
    char longest[257], key[OUTCOME_GROUP_KEY_MAX], other[OUTCOME_GROUP_KEY_MAX];

    (void)state;
    outcome_group_key("name:a", "cpu x", key);
    assert_string_equal(key, "name:a\ncpu x");
    outcome_group_key("name:acpu ", "x", other);
    assert_string_not_equal(key, other);
    // The longest texts that the wire allows still differ in their last byte.
    memset(longest, 'd', 256);
    longest[256] = '\0';
    struct digest digest = digest_of("a", 1);
    char identity[OUTCOME_IDENTITY_MAX];
    outcome_identity("a", &digest, identity);
    outcome_group_key(identity, longest, key);
    longest[255] = 'e';
    outcome_group_key(identity, longest, other);
    assert_string_not_equal(key, other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_says_something_about_the_candidate_is_usable),
        cmocka_unit_test(a_problem_is_named_by_its_digest_or_else_its_name),
        cmocka_unit_test(a_group_is_a_problem_on_a_device_class),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
