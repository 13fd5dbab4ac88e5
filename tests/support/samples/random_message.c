#include "tests/support/samples/random_message.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static char *random_text(struct stats_rng *rng, size_t max)
{
    static const char *const piece[] = {
        "a", "Z9", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x9a\x80", " ", "\"\\\n"};
    size_t pieces = stats_rng_below(rng, 6);
    char text[64] = "";
    size_t len = 0;
    for (size_t i = 0; i < pieces; i++) {
        const char *p = piece[stats_rng_below(rng, ARRAY_LEN(piece))];
        if (len + strlen(p) > max || len + strlen(p) >= sizeof text) {
            break;
        }
        memcpy(text + len, p, strlen(p) + 1);
        len += strlen(p);
    }
    return xstrdup(text);
}

static struct digest random_digest(struct stats_rng *rng)
{
    uint64_t word = stats_rng_u64(rng) | 1;
    return digest_of(&word, sizeof word);
}

static double random_f64(struct stats_rng *rng)
{
    switch (stats_rng_below(rng, 5)) {
    case 0:
        return 0;
    case 1:
        return (double)INFINITY;
    case 2:
        return -1e300;
    default:
        return stats_rng_normal(rng);
    }
}

static size_t element_size(const struct field *field)
{
    switch (field->type) {
    case FIELD_digests:
        return sizeof(struct digest);
    case FIELD_texts:
        return sizeof(char *);
    case FIELD_list:
        return field->sub->size;
    default:
        return sizeof(uint64_t);
    }
}

static void random_array(const struct field *field, char *value, struct stats_rng *rng,
                         size_t list_max)
{
    size_t most = field->max < list_max ? field->max : list_max;
    size_t count = stats_rng_below(rng, most + 1), size = element_size(field);
    char *element = count > 0 ? xcalloc(count, size) : NULL;
    for (size_t i = 0; i < count; i++) {
        void *at = element + i * size;
        if (field->type == FIELD_f64s) {
            *(double *)at = random_f64(rng);
        } else if (field->type == FIELD_u64s) {
            *(uint64_t *)at = stats_rng_u64(rng);
        } else if (field->type == FIELD_digests) {
            *(struct digest *)at = random_digest(rng);
        } else if (field->type == FIELD_texts) {
            *(char **)at = random_text(rng, TEXTS_ELEMENT_MAX);
        } else {
            random_message(field->sub, at, rng, list_max / 2);
        }
    }
    memcpy(value + field->offset, &element, sizeof element);
    memcpy(value + field->count_offset, &count, sizeof count);
}

static void random_field(const struct field *field, char *value, struct stats_rng *rng,
                         size_t list_max)
{
    void *at = value + field->offset;
    switch (field->type) {
    case FIELD_u64:
        *(uint64_t *)at = stats_rng_u64(rng) >> stats_rng_below(rng, 64);
        break;
    case FIELD_i64:
        *(int64_t *)at = (int64_t)stats_rng_u64(rng) >> stats_rng_below(rng, 64);
        break;
    case FIELD_f64:
        *(double *)at = random_f64(rng);
        break;
    case FIELD_flag:
        *(bool *)at = stats_rng_below(rng, 2) == 1;
        break;
    case FIELD_text:
        *(char **)at = random_text(rng, field->max);
        break;
    case FIELD_bytes: {
        size_t len = stats_rng_below(rng, 40);
        unsigned char data[40];
        for (size_t i = 0; i < len; i++) {
            data[i] = (unsigned char)stats_rng_u64(rng);
        }
        *(struct bytes *)at = bytes_copy(data, len);
        break;
    }
    case FIELD_digest:
        *(struct digest *)at = random_digest(rng);
        break;
    case FIELD_one: {
        void *sub = xcalloc(1, field->sub->size);
        random_message(field->sub, sub, rng, list_max / 2);
        *(void **)at = sub;
        break;
    }
    default:
        random_array(field, value, rng, list_max);
    }
}

void random_message(const struct message *message, void *value, struct stats_rng *rng,
                    size_t list_max)
{
    size_t field_count;
    const struct field *fields = message->fields(&field_count);
    message_init(message, value);
    for (size_t i = 0; i < field_count; i++) {
        if (fields[i].presence == REQUIRED || stats_rng_below(rng, 3) > 0) {
            random_field(&fields[i], value, rng, list_max);
        }
    }
}
