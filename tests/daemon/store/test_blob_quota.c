// What may be stored: all together, of one tenant, and how a count goes with what is under way.
#include "daemon/store/blob_quota.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define PAGE ((uint64_t)4096)
#define MAX (80 * PAGE) // of which sources may take 70
#define TENANT_MAX (40 * PAGE)

static struct blob_quota *limited(void)
{
    struct blob_quota *quota = blob_quota_create();

    blob_quota_limit(quota, MAX, TENANT_MAX);
    blob_quota_counted(quota, 0, NULL, 0);
    return quota;
}

static bool may(struct blob_quota *quota, const char *tenant, uint64_t room)
{
    bool own;

    return blob_quota_reserve(quota, tenant, room, &own, NULL) == 0;
}

static void nothing_exceeds_the_limits_together(void **state)
{
    struct blob_quota *quota = limited();
    struct err err = ERR_INIT;
    bool own;

    (void)state;
    for (int i = 0; i < 40; i++) { // none of them is settled yet
        assert_true(may(quota, "ann", PAGE));
    }
    assert_int_equal(blob_quota_reserve(quota, "ann", PAGE, &own, &err), ERR_NO_SPACE);
    assert_true(own);
    assert_non_null(strstr(err.text, "tenant ann has sent"));
    assert_non_null(strstr(err.text, "--blobs-share"));
    for (int i = 0; i < 30; i++) {
        assert_true(may(quota, "ben", PAGE));
    }
    err = (struct err)ERR_INIT;
    assert_int_equal(blob_quota_reserve(quota, "ben", PAGE, &own, &err), ERR_NO_SPACE);
    assert_false(own);
    assert_non_null(strstr(err.text, "--blobs-max"));
    for (int i = 0; i < 10; i++) { // the daemon's own part
        assert_true(may(quota, NULL, PAGE));
    }
    assert_false(may(quota, NULL, PAGE));
    assert_int_equal(blob_quota_used(quota), MAX);
    blob_quota_settle(quota, "ann", PAGE, true);
    assert_false(may(quota, "ann", PAGE));
    blob_quota_settle(quota, "ann", PAGE, false);
    assert_int_equal(blob_quota_used(quota), MAX - PAGE);
    blob_quota_free(quota);
}

static void a_count_includes_what_is_under_way(void **state)
{
    struct blob_quota *quota = limited();
    const struct blob_owner found[] = {{"ann", 5 * PAGE}, {"eva", 7 * PAGE}};

    (void)state;
    assert_true(may(quota, "ann", PAGE)); // is written after the walk has passed
    assert_true(may(quota, "ann", PAGE)); // fails
    assert_true(may(quota, "ben", PAGE)); // was written before
    blob_quota_settle(quota, "ben", PAGE, true);
    blob_quota_begin_count(quota);
    assert_true(may(quota, "ben", 2 * PAGE));
    blob_quota_settle(quota, "ben", 2 * PAGE, true);
    blob_quota_settle(quota, "ann", PAGE, false);
    blob_quota_counted(quota, 20 * PAGE, found, 2);
    assert_int_equal(blob_quota_used(quota), 23 * PAGE); // 20, one of ann's and two of ben's
    blob_quota_settle(quota, "ann", PAGE, true);
    blob_quota_begin_count(quota);
    blob_quota_counted(quota, 12 * PAGE, found, 2);
    assert_int_equal(blob_quota_used(quota), 12 * PAGE);
    assert_false(may(quota, "eva", 34 * PAGE));
    assert_true(may(quota, "eva", 33 * PAGE));
    blob_quota_free(quota);
}

static void nothing_is_reserved_before_the_first_count(void **state)
{
    struct blob_quota *quota = blob_quota_create();

    (void)state;
    assert_true(may(quota, "ann", UINT64_C(1) << 40)); // without limits
    blob_quota_limit(quota, MAX, TENANT_MAX);
    assert_false(blob_quota_is_counted(quota));
    blob_quota_begin_count(quota);
    blob_quota_counted(quota, MAX, NULL, 0);
    assert_true(blob_quota_is_counted(quota));
    assert_false(may(quota, "ann", PAGE));
    blob_quota_free(quota);
}

static void room_is_counted_in_pages(void **state)
{
    (void)state;
    assert_int_equal(blob_quota_room(0), PAGE);
    assert_int_equal(blob_quota_room(4096), PAGE);
    assert_int_equal(blob_quota_room(4097), 2 * PAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_exceeds_the_limits_together),
        cmocka_unit_test(a_count_includes_what_is_under_way),
        cmocka_unit_test(nothing_is_reserved_before_the_first_count),
        cmocka_unit_test(room_is_counted_in_pages),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
