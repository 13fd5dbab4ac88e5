// Indexed binary heap of pointers: the least element on top, removal and re-keying of any element in O(log n).
#ifndef COMMON_HEAP_H
#define COMMON_HEAP_H

#include <stdbool.h>
#include <stddef.h>

#define HEAP_NOT_IN ((size_t)-1)

struct heap {
    bool (*less)(const void *a, const void *b); // strict order
    void (*set_index)(void *item,
                      size_t index); // told whenever an item moves; HEAP_NOT_IN when it leaves
    void **item;
    size_t count;
    size_t size;
};

void heap_init(struct heap *heap, bool (*less)(const void *, const void *),
               void (*set_index)(void *, size_t));
void heap_release(struct heap *heap); // does not free the items
void heap_insert(struct heap *heap, void *item);
void *heap_top(const struct heap *heap);            // NULL when empty
void *heap_remove(struct heap *heap, size_t index); // returns the removed item
void heap_rekey(struct heap *heap, size_t index);   // the item's key has changed
bool heap_check(const struct heap *heap);           // invariant, for assert

#endif
