#include "proto/message_field.h"
#include <math.h>
#include <string.h>

static const size_t element_size[] = {
    [FIELD_f64s] = sizeof(double),
    [FIELD_u64s] = sizeof(uint64_t),
    [FIELD_digests] = sizeof(struct digest),
    [FIELD_texts] = sizeof(char *),
};

bool field_is_array(enum field_type type)
{
    return type == FIELD_f64s || type == FIELD_u64s || type == FIELD_digests ||
           type == FIELD_texts || type == FIELD_list;
}

size_t field_element_size(const struct field *field)
{
    return field->type == FIELD_list ? field->sub->size : element_size[field->type];
}

size_t field_element_count(const struct field *field, const void *value)
{
    size_t count;
    memcpy(&count, (const char *)value + field->count_offset, sizeof count);
    return count;
}

void *field_pointer(const struct field *field, const void *value)
{
    void *pointer;
    memcpy(&pointer, (const char *)value + field->offset, sizeof pointer);
    return pointer;
}

void field_set_pointer(const struct field *field, void *value, void *pointer, size_t count)
{
    memcpy((char *)value + field->offset, &pointer, sizeof pointer);
    if (field_is_array(field->type)) {
        memcpy((char *)value + field->count_offset, &count, sizeof count);
    }
}

static bool is_absent(const struct field *field, const void *value)
{
    const void *at = (const char *)value + field->offset;
    switch (field->type) {
    case FIELD_u64:
    case FIELD_i64:
        return *(const uint64_t *)at == 0;
    case FIELD_f64:
        return isnan(*(const double *)at);
    case FIELD_flag:
        return !*(const bool *)at;
    case FIELD_bytes:
        return ((const struct bytes *)at)->len == 0;
    case FIELD_digest:
        return digest_is_zero(at);
    case FIELD_text:
    case FIELD_one:
        return !field_pointer(field, value);
    default:
        return field_element_count(field, value) == 0;
    }
}

// Whether the empty value of a required field is a value: a zero, an empty list or empty bytes are.
// Only texts, sub-messages and digests have to be there.
static bool may_be_empty(enum field_type type)
{
    return type != FIELD_text && type != FIELD_one && type != FIELD_digest;
}

bool field_is_sent(const struct field *field, const void *value)
{
    return !is_absent(field, value) || (field->presence == REQUIRED && may_be_empty(field->type));
}
