// A message with a field of each type and small limits, so that tests meet every limit with a few
// bytes.
#ifndef TESTS_PROTO_EVERY_FIELD_H
#define TESTS_PROTO_EVERY_FIELD_H

#include "common/mem.h"
#include "proto/message.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct inner {
    char *name; // key 1, required, at most 3 bytes
    double value;
};

struct every {
    uint64_t count;
    int64_t offset;
    double ratio;
    bool ready;
    char *text;
    struct bytes data;
    struct digest digest;
    double *reals;
    size_t reals_count;
    uint64_t *numbers;
    size_t numbers_count;
    struct digest *digests;
    size_t digests_count;
    char **words;
    size_t words_count;
    struct inner *one;
    struct inner *list;
    size_t list_count;
};

static inline const struct field *inner_fields(size_t *ret_count)
{
    static const struct field table[] = {
        {1, FIELD_text, REQUIRED, "name", offsetof(struct inner, name), 0, 3, NULL},
        {2, FIELD_f64, OPTIONAL, "value", offsetof(struct inner, value), 0, 0, NULL},
    };

    *ret_count = ARRAY_LEN(table);
    return table;
}

static const struct message inner_message = {"inner", sizeof(struct inner), inner_fields};

#define EVERY_FIELD(key, type, name, max)                                                          \
    {                                                                                              \
        key, FIELD_##type, OPTIONAL, #name, offsetof(struct every, name), 0, max, NULL             \
    }
#define EVERY_ARRAY(key, type, name, max, sub)                                                     \
    {                                                                                              \
        key, FIELD_##type, OPTIONAL, #name, offsetof(struct every, name),                          \
            offsetof(struct every, name##_count), max, sub                                         \
    }

static inline const struct field *every_fields(size_t *ret_count)
{
    static const struct field table[] = {
        EVERY_FIELD(1, u64, count, 0),
        EVERY_FIELD(2, i64, offset, 0),
        EVERY_FIELD(3, f64, ratio, 0),
        EVERY_FIELD(4, flag, ready, 0),
        EVERY_FIELD(5, text, text, 4),
        EVERY_FIELD(6, bytes, data, 100),
        EVERY_FIELD(7, digest, digest, 0),
        EVERY_ARRAY(8, f64s, reals, 2, NULL),
        EVERY_ARRAY(9, u64s, numbers, 2, NULL),
        EVERY_ARRAY(10, digests, digests, 2, NULL),
        EVERY_ARRAY(11, texts, words, 2, NULL),
        {12, FIELD_one, OPTIONAL, "one", offsetof(struct every, one), 0, 0, &inner_message},
        EVERY_ARRAY(13, list, list, 2, &inner_message),
    };

    *ret_count = ARRAY_LEN(table);
    return table;
}

static const struct message every_message = {"every", sizeof(struct every), every_fields};

// The field of `every` with this key.
static inline const struct field *every_field(uint32_t key)
{
    size_t count;

    return &every_fields(&count)[key - 1];
}

#endif
