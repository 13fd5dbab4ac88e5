// A message as JSON, for people and scripts. One direction only: nothing in kernelcast reads it
// back. The message's table is walked; numbers, escapes and order are jansson's business.
#include "proto/message.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_SHOWN_MAX 64
#define INTEGER_MAX INT64_MAX // of jansson; what is larger becomes a text
#define WHOLE_MAX 0x1p53      // every whole number up to here is exact in a double

static json_t *integer(bool negative, uint64_t magnitude)
{
    if (magnitude <= (uint64_t)INTEGER_MAX) {
        return json_integer(negative ? -(json_int_t)magnitude : (json_int_t)magnitude);
    }
    return json_sprintf("%s%llu", negative ? "-" : "", (unsigned long long)magnitude);
}

// JSON has no NaN and no infinities. What is whole is written without a point.
static json_t *real(double value)
{
    if (!isfinite(value)) {
        return json_null();
    }
    return value == trunc(value) && fabs(value) <= WHOLE_MAX ? json_integer((json_int_t)value)
                                                             : json_real(value);
}

static json_t *hex(const unsigned char *data, size_t len)
{
    char text[2 * BYTES_SHOWN_MAX + 1] = "";
    for (size_t i = 0; i < len; i++) {
        snprintf(text + 2 * i, 3, "%02x", data[i]);
    }
    return json_string(text);
}

// jansson takes UTF-8 alone, which is all that a text may be on the wire. Of others ASCII is kept.
static json_t *text_of(const char *text)
{
    json_t *ret = json_string(text);
    if (!ret) {
        char *ascii = xstrdup(text);
        for (char *at = ascii; *at != '\0'; at++) {
            *at = (unsigned char)*at < 0x80 ? *at : '?';
        }
        ret = json_string(ascii);
        free(ascii);
    }
    return ret;
}

static json_t *element_of(const struct field *field, const void *at)
{
    switch (field->type) {
    case FIELD_f64s:
        return real(*(const double *)at);
    case FIELD_u64s:
        return integer(false, *(const uint64_t *)at);
    case FIELD_digests:
        return hex(((const struct digest *)at)->byte, DIGEST_LEN);
    case FIELD_texts:
        return text_of(*(char *const *)at);
    default:
        return message_json_value(field->sub, at);
    }
}

static json_t *array_of(const struct field *field, const void *value)
{
    static const size_t size[] = {[FIELD_f64s] = sizeof(double),
                                  [FIELD_u64s] = sizeof(uint64_t),
                                  [FIELD_digests] = sizeof(struct digest),
                                  [FIELD_texts] = sizeof(char *)};
    const size_t step = field->type == FIELD_list ? field->sub->size : size[field->type];
    json_t *ret = json_array();
    const char *element;
    memcpy(&element, (const char *)value + field->offset, sizeof(element));
    size_t count;
    memcpy(&count, (const char *)value + field->count_offset, sizeof(count));
    for (size_t i = 0; i < count; i++) {
        (void)json_array_append_new(ret, element_of(field, element + i * step));
    }
    return ret;
}

static json_t *bytes_of(const struct bytes *bytes)
{
    return bytes->len > BYTES_SHOWN_MAX ? json_pack("{s:I}", "bytes", (json_int_t)bytes->len)
                                        : hex(bytes->data, bytes->len);
}

static json_t *value_of(const struct field *field, const void *value)
{
    const void *at = (const char *)value + field->offset;
    switch (field->type) {
    case FIELD_u64:
        return integer(false, *(const uint64_t *)at);
    case FIELD_i64: {
        int64_t number = *(const int64_t *)at;
        return integer(number < 0, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
    }
    case FIELD_f64:
        return real(*(const double *)at);
    case FIELD_flag:
        return json_boolean(*(const bool *)at);
    case FIELD_text:
        return text_of(*(char *const *)at);
    case FIELD_digest:
        return hex(((const struct digest *)at)->byte, DIGEST_LEN);
    case FIELD_bytes:
        return bytes_of(at);
    case FIELD_one:
        return message_json_value(field->sub, *(void *const *)at);
    default:
        return array_of(field, value);
    }
}

static bool is_shown(const struct field *field, const void *value)
{
    const void *at = (const char *)value + field->offset;
    if (field->type == FIELD_text || field->type == FIELD_one) {
        return *(void *const *)at;
    }
    if (field->type == FIELD_digest) {
        return !digest_is_zero(at);
    }
    if (field->type == FIELD_bytes) {
        return ((const struct bytes *)at)->len > 0;
    }
    if (field->type == FIELD_f64) {
        return !isnan(*(const double *)at);
    }
    if (field->type < FIELD_f64s) {
        return true;
    }
    size_t count = 0;
    memcpy(&count, (const char *)value + field->count_offset, sizeof(count));
    return count > 0;
}

json_t *message_json_value(const struct message *message, const void *value)
{
    json_t *ret = json_object();
    size_t field_count;
    const struct field *fields = message->fields(&field_count);
    for (size_t i = 0; i < field_count; i++) {
        if (is_shown(&fields[i], value)) {
            (void)json_object_set_new(ret, fields[i].name, value_of(&fields[i], value));
        }
    }
    return ret;
}

static int add(const char *text, size_t len, void *out)
{
    strbuf_add(out, text, len);
    return 0;
}

void message_json(const struct message *message, const void *value, struct strbuf *out)
{
    json_t *json = message_json_value(message, value);
    (void)json_dump_callback(json, add, out, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_decref(json);
}
