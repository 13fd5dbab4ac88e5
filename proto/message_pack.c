// Packs any message into msgpack through its descriptor.
#include "proto/message_field.h"
#include <msgpack.h>
#include <string.h>

// Writes packed bytes to a strbuf, as msgpack-c calls it.
static int append(void *out, const char *data, size_t len)
{
    strbuf_add(out, data, len);
    return 0;
}

static int pack_struct(const struct message *message, const void *value, msgpack_packer *packer,
                       struct err *err);

static int pack_text(const struct field *field, const char *text, size_t max,
                     msgpack_packer *packer, const struct message *message, struct err *err)
{
    size_t len = strlen(text);
    if (len > max) {
        return err_set(err, ERR_LIMIT, "%s.%s has %zu bytes where %zu are allowed", message->name,
                       field->name, len, max);
    }
    msgpack_pack_str(packer, len);
    msgpack_pack_str_body(packer, text, len);
    return 0;
}

static int pack_element(const struct field *field, const void *at, msgpack_packer *packer,
                        const struct message *message, struct err *err)
{
    switch (field->type) {
    case FIELD_f64s:
        return msgpack_pack_double(packer, *(const double *)at);
    case FIELD_u64s:
        return msgpack_pack_uint64(packer, *(const uint64_t *)at);
    case FIELD_digests:
        msgpack_pack_bin(packer, DIGEST_LEN);
        return msgpack_pack_bin_body(packer, at, DIGEST_LEN);
    case FIELD_texts:
        return pack_text(field, *(char *const *)at, TEXTS_ELEMENT_MAX, packer, message, err);
    default:
        return pack_struct(field->sub, at, packer, err);
    }
}

static int pack_array(const struct field *field, const void *value, msgpack_packer *packer,
                      const struct message *message, struct err *err)
{
    size_t count = field_element_count(field, value);
    if (count > field->max) {
        return err_set(err, ERR_LIMIT, "%s.%s has %zu elements where %zu are allowed",
                       message->name, field->name, count, field->max);
    }
    const char *element = field_pointer(field, value);
    msgpack_pack_array(packer, count);
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = pack_element(field, element + i * field_element_size(field), packer, message, err);
    }
    return rc;
}

static int pack_field(const struct field *field, const void *value, msgpack_packer *packer,
                      const struct message *message, struct err *err)
{
    const void *at = (const char *)value + field->offset;
    switch (field->type) {
    case FIELD_u64:
        return msgpack_pack_uint64(packer, *(const uint64_t *)at);
    case FIELD_i64:
        return msgpack_pack_int64(packer, *(const int64_t *)at);
    case FIELD_f64:
        return msgpack_pack_double(packer, *(const double *)at);
    case FIELD_flag:
        return *(const bool *)at ? msgpack_pack_true(packer) : msgpack_pack_false(packer);
    case FIELD_text:
        return pack_text(field, field_pointer(field, value), field->max, packer, message, err);
    case FIELD_bytes: {
        const struct bytes *bytes = at;
        if (bytes->len > field->max) {
            return err_set(err, ERR_LIMIT, "%s.%s has %zu bytes where %zu are allowed",
                           message->name, field->name, bytes->len, field->max);
        }
        msgpack_pack_bin(packer, bytes->len);
        return msgpack_pack_bin_body(packer, bytes->data, bytes->len);
    }
    case FIELD_digest:
        msgpack_pack_bin(packer, DIGEST_LEN);
        return msgpack_pack_bin_body(packer, at, DIGEST_LEN);
    case FIELD_one:
        return pack_struct(field->sub, field_pointer(field, value), packer, err);
    default:
        return pack_array(field, value, packer, message, err);
    }
}

static int pack_struct(const struct message *message, const void *value, msgpack_packer *packer,
                       struct err *err)
{
    size_t count = 0, field_count;
    const struct field *fields = message->fields(&field_count);
    uint64_t sent = 0; // bit i: field i is sent
    for (size_t i = 0; i < field_count; i++) {
        const struct field *field = &fields[i];
        if (field_is_sent(field, value)) {
            sent |= UINT64_C(1) << i;
            count++;
        } else if (field->presence == REQUIRED) {
            return err_set(err, ERR_INVALID, "%s.%s is required and absent", message->name,
                           field->name);
        }
    }
    msgpack_pack_map(packer, count);
    for (size_t i = 0; i < field_count; i++) {
        const struct field *field = &fields[i];
        if ((sent & UINT64_C(1) << i) == 0) {
            continue;
        }
        msgpack_pack_uint32(packer, field->key);
        int rc = pack_field(field, value, packer, message, err);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

int message_pack(const struct message *message, const void *value, struct strbuf *out,
                 struct err *err)
{
    msgpack_packer packer;
    msgpack_packer_init(&packer, out, append);
    int rc = pack_struct(message, value, &packer, err);
    if (rc == 0 && out->truncated) {
        rc = err_set(err, ERR_LIMIT, "a packed %s is larger than %zu bytes", message->name,
                     out->max);
    }
    return rc;
}
