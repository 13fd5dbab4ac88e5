// Initialises, clears, compares and copies any message through its descriptor.
#include "proto/message.h"
#include "proto/message_field.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

void message_init(const struct message *message, void *value)
{
    size_t field_count;
    const struct field *fields = message->fields(&field_count);
    memset(value, 0, message->size);
    for (size_t i = 0; i < field_count; i++) {
        if (fields[i].type == FIELD_f64) {
            *(double *)((char *)value + fields[i].offset) = (double)NAN;
        }
    }
}

static void clear_array(const struct field *field, void *value)
{
    char *element = field_pointer(field, value);
    size_t count = field_element_count(field, value);
    for (size_t i = 0; i < count && element; i++) {
        if (field->type == FIELD_list) {
            message_clear(field->sub, element + i * field->sub->size);
        } else if (field->type == FIELD_texts) {
            free(((char **)element)[i]);
        }
    }
    free(element);
}

void message_clear(const struct message *message, void *value)
{
    size_t field_count;
    const struct field *fields = message->fields(&field_count);
    for (size_t i = 0; i < field_count; i++) {
        const struct field *field = &fields[i];
        void *at = (char *)value + field->offset;
        if (field->type == FIELD_text) {
            free(field_pointer(field, value));
        } else if (field->type == FIELD_bytes) {
            bytes_clear(at);
        } else if (field->type == FIELD_one) {
            void *sub = field_pointer(field, value);
            if (sub) {
                message_clear(field->sub, sub);
            }
            free(sub);
        } else if (field_is_array(field->type)) {
            clear_array(field, value);
        }
    }
    memset(value, 0, message->size);
}

static bool f64_equal(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static bool text_equal(const char *a, const char *b)
{
    return !a || !b ? a == b : strcmp(a, b) == 0;
}

static bool array_equal(const struct field *field, const void *a, const void *b)
{
    size_t count = field_element_count(field, a), size = field_element_size(field);
    if (count != field_element_count(field, b)) {
        return false;
    }
    const char *p = field_pointer(field, a), *q = field_pointer(field, b);
    for (size_t i = 0; i < count; i++, p += size, q += size) {
        bool equal = field->type == FIELD_f64s   ? f64_equal(*(const double *)p, *(const double *)q)
                     : field->type == FIELD_list ? message_equal(field->sub, p, q)
                     : field->type == FIELD_texts ? text_equal(*(char *const *)p, *(char *const *)q)
                                                  : memcmp(p, q, size) == 0;
        if (!equal) {
            return false;
        }
    }
    return true;
}

static bool field_equal(const struct field *field, const void *a, const void *b)
{
    const void *p = (const char *)a + field->offset, *q = (const char *)b + field->offset;
    switch (field->type) {
    case FIELD_u64:
    case FIELD_i64:
        return *(const uint64_t *)p == *(const uint64_t *)q;
    case FIELD_f64:
        return f64_equal(*(const double *)p, *(const double *)q);
    case FIELD_flag:
        return *(const bool *)p == *(const bool *)q;
    case FIELD_text:
        return text_equal(field_pointer(field, a), field_pointer(field, b));
    case FIELD_bytes: {
        const struct bytes *x = p, *y = q;
        return x->len == y->len && (x->len == 0 || memcmp(x->data, y->data, x->len) == 0);
    }
    case FIELD_digest:
        return digest_equal(p, q);
    case FIELD_one: {
        const void *x = field_pointer(field, a), *y = field_pointer(field, b);
        return !x || !y ? x == y : message_equal(field->sub, x, y);
    }
    default:
        return array_equal(field, a, b);
    }
}

bool message_equal(const struct message *message, const void *a, const void *b)
{
    size_t field_count;
    const struct field *fields = message->fields(&field_count);
    for (size_t i = 0; i < field_count; i++) {
        if (!field_equal(&fields[i], a, b)) {
            return false;
        }
    }
    return true;
}

static void copy_array(const struct field *field, void *to, const void *from)
{
    size_t count = field_element_count(field, from), size = field_element_size(field);
    const char *source = field_pointer(field, from);
    char *copy = count > 0 ? xmemdup(source, count * size) : NULL;
    for (size_t i = 0; i < count; i++) {
        if (field->type == FIELD_list) {
            message_copy(field->sub, copy + i * size, source + i * size);
        } else if (field->type == FIELD_texts) {
            ((char **)copy)[i] = xstrdup(((char *const *)source)[i]);
        }
    }
    field_set_pointer(field, to, copy, count);
}

void message_copy(const struct message *message, void *to, const void *from)
{
    memcpy(to, from, message->size);
    size_t field_count;
    const struct field *fields = message->fields(&field_count);
    for (size_t i = 0; i < field_count; i++) {
        const struct field *field = &fields[i];
        const void *pointer =
            field_is_array(field->type) || field->type == FIELD_text || field->type == FIELD_one
                ? field_pointer(field, from)
                : NULL;
        if (field->type == FIELD_bytes) {
            const struct bytes *bytes = (const void *)((const char *)from + field->offset);
            *(struct bytes *)((char *)to + field->offset) = bytes_copy(bytes->data, bytes->len);
        } else if (field_is_array(field->type)) {
            copy_array(field, to, from);
        } else if (field->type == FIELD_text && pointer) {
            field_set_pointer(field, to, xstrdup(pointer), 0);
        } else if (field->type == FIELD_one && pointer) {
            void *sub = xmalloc(field->sub->size);
            message_copy(field->sub, sub, pointer);
            field_set_pointer(field, to, sub, 0);
        }
    }
}

void *message_copy_all(const struct message *message, const void *from, size_t count)
{
    char *ret = xcalloc(count + 1, message->size);

    for (size_t i = 0; i < count; i++) {
        message_copy(message, ret + i * message->size, (const char *)from + i * message->size);
    }
    return ret;
}
