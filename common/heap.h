// An indexed binary heap of pointers: the least item is on top, and any item can be removed or
// re-sorted in O(log n). The owner of the items chooses the order and keeps each item's index. The
// heap never looks into an item and never frees one.
#ifndef COMMON_HEAP_H
#define COMMON_HEAP_H

#include <stdbool.h>
#include <stddef.h>

#define HEAP_NOT_IN ((size_t)-1) // the index of an item that is in no heap

struct heap {
    // Whether a comes before b. A strict order.
    bool (*less)(const void *a, const void *b);
    // Called whenever an item moves, with its new index, and with HEAP_NOT_IN when it leaves.
    void (*set_index)(void *item, size_t index);
    void **item;  // the heap, in the usual array layout
    size_t count; // items in the heap
    size_t size;  // items that fit into the allocated array
};

// Makes an empty heap. Release it with heap_release.
void heap_init(struct heap *heap, bool (*less)(const void *, const void *),
               void (*set_index)(void *, size_t));
// Frees the array, not the items, and does not call set_index.
void heap_release(struct heap *heap);
void heap_insert(struct heap *heap, void *item);
// The least item, NULL when the heap is empty.
void *heap_top(const struct heap *heap);
// Removes the item at this index and returns it.
void *heap_remove(struct heap *heap, size_t index);
// Restores the order after the key of the item at this index has changed.
void heap_rekey(struct heap *heap, size_t index);
// Whether the heap's order and bounds hold. For assertions.
bool heap_check(const struct heap *heap);

#endif
