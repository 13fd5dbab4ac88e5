// A message as JSON, for people and scripts. One direction only: nothing in kernelcast reads it back.
#include "proto/message.h"

#include <math.h>
#include <string.h>

#define BYTES_SHOWN_MAX 64

static void add_text(const char *text, struct strbuf *out)
{
    strbuf_addc(out, '"');
    for (const unsigned char *c = (const unsigned char *)text; *c != 0; c++) {
        if (*c == '"' || *c == '\\') {
            strbuf_addf(out, "\\%c", *c);
        } else if (*c < 0x20 || *c == 0x7f) {
            strbuf_addf(out, "\\u%04x", *c);
        } else {
            strbuf_addc(out, (char)*c);
        }
    }
    strbuf_addc(out, '"');
}

// JSON has no NaN and no infinities.
static void add_f64(double value, struct strbuf *out)
{
    if (isfinite(value)) {
        strbuf_addf(out, "%.17g", value);
    } else {
        strbuf_adds(out, "null");
    }
}

static void add_hex(const unsigned char *data, size_t len, struct strbuf *out)
{
    strbuf_addc(out, '"');
    for (size_t i = 0; i < len; i++) {
        strbuf_addf(out, "%02x", data[i]);
    }
    strbuf_addc(out, '"');
}

static void add_element(const struct field *field, const void *at, struct strbuf *out)
{
    switch (field->type) {
    case FIELD_f64s:
        add_f64(*(const double *)at, out);
        break;
    case FIELD_u64s:
        strbuf_addf(out, "%llu", (unsigned long long)*(const uint64_t *)at);
        break;
    case FIELD_digests:
        add_hex(((const struct digest *)at)->byte, DIGEST_LEN, out);
        break;
    case FIELD_texts:
        add_text(*(char *const *)at, out);
        break;
    default:
        message_json(field->sub, at, out);
    }
}

static void add_array(const struct field *field, const void *value, struct strbuf *out)
{
    static const size_t size[] = {[FIELD_f64s] = sizeof(double),
                                  [FIELD_u64s] = sizeof(uint64_t),
                                  [FIELD_digests] = sizeof(struct digest),
                                  [FIELD_texts] = sizeof(char *)};
    const size_t step = field->type == FIELD_list ? field->sub->size : size[field->type];
    const char *element;
    memcpy(&element, (const char *)value + field->offset, sizeof element);
    size_t count;
    memcpy(&count, (const char *)value + field->count_offset, sizeof count);
    strbuf_addc(out, '[');
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            strbuf_addc(out, ',');
        }
        add_element(field, element + i * step, out);
    }
    strbuf_addc(out, ']');
}

static void add_value(const struct field *field, const void *value, struct strbuf *out)
{
    const void *at = (const char *)value + field->offset;
    switch (field->type) {
    case FIELD_u64:
        strbuf_addf(out, "%llu", (unsigned long long)*(const uint64_t *)at);
        break;
    case FIELD_i64:
        strbuf_addf(out, "%lld", (long long)*(const int64_t *)at);
        break;
    case FIELD_f64:
        add_f64(*(const double *)at, out);
        break;
    case FIELD_flag:
        strbuf_adds(out, *(const bool *)at ? "true" : "false");
        break;
    case FIELD_text:
        add_text(*(char *const *)at, out);
        break;
    case FIELD_digest:
        add_hex(((const struct digest *)at)->byte, DIGEST_LEN, out);
        break;
    case FIELD_bytes: {
        const struct bytes *bytes = at;
        if (bytes->len > BYTES_SHOWN_MAX) {
            strbuf_addf(out, "{\"bytes\":%zu}", bytes->len);
        } else {
            add_hex(bytes->data, bytes->len, out);
        }
        break;
    }
    case FIELD_one:
        message_json(field->sub, *(void *const *)at, out);
        break;
    default:
        add_array(field, value, out);
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
    memcpy(&count, (const char *)value + field->count_offset, sizeof count);
    return count > 0;
}

void message_json(const struct message *message, const void *value, struct strbuf *out)
{
    strbuf_addc(out, '{');
    size_t field_count;
    const struct field *fields = message->fields(&field_count);
    bool first = true;
    for (size_t i = 0; i < field_count; i++) {
        const struct field *field = &fields[i];
        if (!is_shown(field, value)) {
            continue;
        }
        strbuf_addf(out, "%s\"%s\":", first ? "" : ",", field->name);
        add_value(field, value, out);
        first = false;
    }
    strbuf_addc(out, '}');
}
