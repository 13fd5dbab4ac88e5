#include "common/heap.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include "common/stats.h"
#include <cmocka.h>

#define ITEMS 500

struct item {
    uint64_t key; // the least is on top
    size_t index; // as set by the heap
};

static bool item_less(const void *a, const void *b)
{
    return ((const struct item *)a)->key < ((const struct item *)b)->key;
}

static void item_set_index(void *item, size_t index)
{
    ((struct item *)item)->index = index;
}

static void empty_heap_has_no_top(void **state)
{
    (void)state;
    struct heap heap;
    heap_init(&heap, item_less, item_set_index);
    assert_null(heap_top(&heap));
    assert_true(heap_check(&heap));
    heap_release(&heap);
    heap_release(&heap);
}

static void items_leave_in_order_of_their_keys(void **state)
{
    static struct item item[ITEMS];

    (void)state;
    struct stats_rng rng;
    stats_rng_init(&rng, 1, 0);
    struct heap heap;
    heap_init(&heap, item_less, item_set_index);
    for (size_t i = 0; i < ITEMS; i++) {
        item[i].key = stats_rng_below(&rng, 100); // many equal keys
        heap_insert(&heap, &item[i]);
        assert_true(heap_check(&heap));
    }
    uint64_t last = 0;
    for (size_t i = 0; i < ITEMS; i++) {
        struct item *top = heap_top(&heap);

        assert_true(top->key >= last);
        last = top->key;
        assert_ptr_equal(heap_remove(&heap, 0), top);
        assert_true(top->index == HEAP_NOT_IN);
        assert_true(heap_check(&heap));
    }
    assert_null(heap_top(&heap));
    heap_release(&heap);
}

// Checks that each item knows its index and that the top is the least of all items.
static void check_against_scan(const struct heap *heap, const struct item *item)
{
    uint64_t least = UINT64_MAX;
    size_t in = 0;

    for (size_t i = 0; i < ITEMS; i++) {
        if (item[i].index == HEAP_NOT_IN) {
            continue;
        }
        assert_true(item[i].index < heap->count);
        assert_ptr_equal(heap->item[item[i].index], &item[i]);
        least = item[i].key < least ? item[i].key : least;
        in++;
    }
    assert_int_equal(in, heap->count);
    if (in > 0) {
        assert_true(((struct item *)heap_top(heap))->key == least);
    }
}

static void invariants_hold_under_random_operations(void **state)
{
    static struct item item[ITEMS];

    (void)state;
    struct stats_rng rng;
    stats_rng_init(&rng, 2, 0);
    struct heap heap;
    heap_init(&heap, item_less, item_set_index);
    for (size_t i = 0; i < ITEMS; i++) {
        item[i].index = HEAP_NOT_IN;
    }
    for (int step = 0; step < 20000; step++) {
        struct item *one = &item[stats_rng_below(&rng, ITEMS)];

        if (one->index == HEAP_NOT_IN) {
            one->key = stats_rng_below(&rng, 1000);
            heap_insert(&heap, one);
        } else if (stats_rng_below(&rng, 2) == 0) {
            assert_ptr_equal(heap_remove(&heap, one->index), one);
        } else {
            one->key = stats_rng_below(&rng, 1000);
            heap_rekey(&heap, one->index);
        }
        assert_true(heap_check(&heap));
        if (step % 50 == 0) {
            check_against_scan(&heap, item);
        }
    }
    check_against_scan(&heap, item);
    heap_release(&heap);
}

static void check_sees_a_broken_order(void **state)
{
    (void)state;
    struct heap heap;
    heap_init(&heap, item_less, item_set_index);
    struct item item[3] = {{.key = 1}, {.key = 2}, {.key = 3}};
    for (size_t i = 0; i < 3; i++) {
        heap_insert(&heap, &item[i]);
    }
    item[2].key = 0;
    assert_false(heap_check(&heap));
    heap_rekey(&heap, item[2].index);
    assert_true(heap_check(&heap));
    assert_ptr_equal(heap_top(&heap), &item[2]);
    heap_release(&heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_heap_has_no_top),
        cmocka_unit_test(items_leave_in_order_of_their_keys),
        cmocka_unit_test(invariants_hold_under_random_operations),
        cmocka_unit_test(check_sees_a_broken_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
