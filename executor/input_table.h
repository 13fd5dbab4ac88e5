// Inputs of timed launches, made quickly. Each timed launch gets contents that its arm has never
// had, so making them must cost about as little as copying them. For each input tensor a table of
// the quantiles of its `values` is made once; an element is a quantile chosen by a hash of key and
// index, moved towards the next one by more bits of the same hash. The CPU harness calls this. It
// must not know what is launched. Verification uses the exact values of executor/inputs.h.
#ifndef EXECUTOR_INPUT_TABLE_H
#define EXECUTOR_INPUT_TABLE_H

#include "problem/problem.h"
#include <stddef.h>
#include <stdint.h>

// The quantiles of one tensor's distribution.
struct input_table;

// Makes the table for the `values` of an input tensor. key decides it for a distribution whose
// quantiles have no closed form (zipf): they are those of 65,536 draws. tensor must outlive the
// table.
struct input_table *input_table_create(const struct tensor *tensor, uint64_t key);
void input_table_free(struct input_table *table); // NULL is fine

// Fills out[0 .. count) with elements of the tensor's dtype. Another key changes every element, up
// to equal values of a discrete distribution. last_extent as for inputs_fill, which does the work
// for sorted and one-hot tensors, whose elements depend on each other.
void input_table_fill(const struct input_table *table, uint64_t key, size_t count,
                      size_t last_extent, void *out);

#endif
