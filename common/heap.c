// A binary heap in an array: the children of item i are at 2i+1 and 2i+2, and no child is less than
// its parent. Every move of an item is reported through set_index, so that the owner can name the
// item by its index when it removes or re-sorts it. Items with equal keys leave in any order. An
// owner that needs first in, first out compares a sequence number in less().
#include "common/heap.h"
#include "common/mem.h"
#include <stdlib.h>

void heap_init(struct heap *heap, bool (*less)(const void *, const void *),
               void (*set_index)(void *, size_t))
{
    *heap = (struct heap){.less = less, .set_index = set_index};
}

void heap_release(struct heap *heap)
{
    free(heap->item);
    heap->item = NULL;
    heap->count = 0;
    heap->size = 0;
}

static void put(struct heap *heap, size_t index, void *item)
{
    heap->item[index] = item;
    heap->set_index(item, index);
}

static void sift_up(struct heap *heap, size_t index, void *item)
{
    while (index > 0) {
        size_t parent = (index - 1) / 2;

        if (!heap->less(item, heap->item[parent])) {
            break;
        }
        put(heap, index, heap->item[parent]);
        index = parent;
    }
    put(heap, index, item);
}

static void sift_down(struct heap *heap, size_t index, void *item)
{
    for (;;) {
        size_t child = 2 * index + 1;

        if (child >= heap->count) {
            break;
        }
        if (child + 1 < heap->count && heap->less(heap->item[child + 1], heap->item[child])) {
            child++;
        }
        if (!heap->less(heap->item[child], item)) {
            break;
        }
        put(heap, index, heap->item[child]);
        index = child;
    }
    put(heap, index, item);
}

static void place(struct heap *heap, size_t index, void *item)
{
    if (index > 0 && heap->less(item, heap->item[(index - 1) / 2])) {
        sift_up(heap, index, item);
    } else {
        sift_down(heap, index, item);
    }
}

void heap_insert(struct heap *heap, void *item)
{
    if (heap->count == heap->size) {
        heap->size = heap->size ? heap->size * 2 : 16;
        heap->item = xrealloc(heap->item, heap->size, sizeof(*heap->item));
    }
    heap->count++;
    sift_up(heap, heap->count - 1, item);
}

void *heap_top(const struct heap *heap)
{
    return heap->count > 0 ? heap->item[0] : NULL;
}

void *heap_remove(struct heap *heap, size_t index)
{
    void *item = heap->item[index];
    void *last = heap->item[--heap->count];

    if (index < heap->count) {
        place(heap, index, last);
    }
    heap->set_index(item, HEAP_NOT_IN);
    return item;
}

void heap_rekey(struct heap *heap, size_t index)
{
    place(heap, index, heap->item[index]);
}

bool heap_check(const struct heap *heap)
{
    if (heap->count > heap->size || (heap->count > 0 && !heap->item)) {
        return false;
    }
    for (size_t i = 1; i < heap->count; i++) {
        if (heap->less(heap->item[i], heap->item[(i - 1) / 2])) {
            return false;
        }
    }
    return true;
}
