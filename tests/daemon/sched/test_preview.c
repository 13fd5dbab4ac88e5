// Looking who goes next, without taking anybody.
#include "common/mem.h"
#include "daemon/sched/queue.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

struct item {
    struct queue_entry entry;
};

struct picture {
    struct fair_view view[64];
    size_t count;
};

static void on_view(void *owner, enum queue_class in, const struct fair_view *view)
{
    struct picture *picture = owner;

    (void)in;
    picture->view[picture->count++] = *view;
}

static struct picture picture_of(const struct queue *queue)
{
    struct picture picture = {.count = 0};

    queue_visit(queue, on_view, &picture);
    return picture;
}

static void assert_same(const struct fair_view *a, const struct fair_view *b)
{
    assert_int_equal(a->tenant, b->tenant);
    assert_int_equal(a->search, b->search);
    assert_int_equal(a->held, b->held);
    assert_int_equal(a->waiting, b->waiting);
    assert_float_equal(a->share, b->share, 0);
    assert_float_equal(a->ahead_s, b->ahead_s, 0);
}

// Whoever looks changes nothing, and sees what is taken afterwards.
static void a_preview_is_what_is_taken_next(void **state)
{
    enum { ITEMS = 60, TAKEN = 10, AHEAD = 20 };
    struct queue *queue = queue_create();
    struct item *item = xcalloc(ITEMS, sizeof(*item));
    struct queue_grant grant[TAKEN + AHEAD];
    const struct fair_terms four = {.devices = 4};

    (void)state;
    for (uint64_t i = 0; i < ITEMS; i++) {
        const struct fair_who who = {
            .tenant = i % 3, .search = i % 7, .tenant_weight = 1 + (double)(i % 3), .weight = 1};
        enum queue_class in = i % 10 == 0   ? QUEUE_INTERACTIVE
                              : i % 11 == 0 ? QUEUE_SCAVENGE
                                            : QUEUE_NORMAL;

        queue_add(queue, &item[i].entry, in, &who, 0, i + 1);
    }
    for (size_t i = 0; i < TAKEN; i++) {
        assert_non_null(queue_take(queue, &four, 0, &grant[i]));
        queue_refresh(queue, &grant[i], 0.3 * (double)i);
    }
    struct picture before = picture_of(queue);
    struct queue_entry *ahead[AHEAD];
    assert_int_equal(queue_preview(queue, &four, 0, ahead, AHEAD), AHEAD);
    assert_true(queue_check(queue));
    assert_int_equal(queue_count(queue), ITEMS - TAKEN);
    struct picture after = picture_of(queue);
    assert_int_equal(before.count, after.count);
    for (size_t i = 0; i < before.count; i++) {
        assert_same(&before.view[i], &after.view[i]);
    }
    for (size_t i = 0; i < AHEAD; i++) {
        assert_ptr_equal(queue_take(queue, &four, 0, &grant[TAKEN + i]), ahead[i]);
    }
    for (size_t i = 0; i < TAKEN + AHEAD; i++) {
        queue_finish(queue, &grant[i], 1, false);
    }
    for (size_t i = 0; i < ITEMS; i++) {
        queue_remove(queue, &item[i].entry);
    }
    assert_int_equal(queue_preview(queue, &four, 0, ahead, AHEAD), 0);
    queue_free(queue);
    free(item);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_preview_is_what_is_taken_next),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
