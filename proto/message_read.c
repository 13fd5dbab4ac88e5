// Reads any message from msgpack through its descriptor.
//
// First message_precheck walks the bytes without allocating and proves that every length and count
// fits into them. Only then msgpack-c builds its tree of objects, in which texts and bytes stay in
// place, and the struct is filled from the tree. Arrays are allocated after their count was
// compared with the field's max. A struct that cannot be read completely is cleared, so that the
// caller owns all or nothing.
#include "common/utf8.h"
#include "proto/message_field.h"
#include <msgpack.h>
#include <stdlib.h>
#include <string.h>

static int read_struct(const struct message *message, void *value, const msgpack_object *object,
                       struct err *err);

static int wrong_type(const struct message *message, const struct field *field, struct err *err)
{
    return err_set(err, ERR_PROTOCOL, "%s.%s has a value of the wrong type or range", message->name,
                   field->name);
}

static int too_long(const struct message *message, const struct field *field, size_t have,
                    size_t max, struct err *err)
{
    return err_set(err, ERR_PROTOCOL, "%s.%s has length %zu where %zu is allowed", message->name,
                   field->name, have, max);
}

// Whether all of it is UTF-8 without NUL.
static bool is_text(const unsigned char *at, size_t len)
{
    for (size_t i = 0; i < len;) {
        size_t step = utf8_length(at + i, len - i);
        if (at[i] == 0 || step == 0) {
            return false;
        }
        i += step;
    }
    return true;
}

static int read_text(const struct message *message, const struct field *field, size_t max,
                     const msgpack_object *object, char **ret, struct err *err)
{
    if (object->type != MSGPACK_OBJECT_STR) {
        return wrong_type(message, field, err);
    }
    if (object->via.str.size > max) {
        return too_long(message, field, object->via.str.size, max, err);
    }
    if (!is_text((const unsigned char *)object->via.str.ptr, object->via.str.size)) {
        return err_set(err, ERR_PROTOCOL, "%s.%s is no UTF-8 text", message->name, field->name);
    }
    *ret = xstrndup(object->via.str.size > 0 ? object->via.str.ptr : "", object->via.str.size);
    return 0;
}

static bool read_number(const msgpack_object *object, double *ret)
{
    if (object->type == MSGPACK_OBJECT_FLOAT32 || object->type == MSGPACK_OBJECT_FLOAT64) {
        *ret = object->via.f64;
    } else if (object->type == MSGPACK_OBJECT_POSITIVE_INTEGER) {
        *ret = (double)object->via.u64;
    } else if (object->type == MSGPACK_OBJECT_NEGATIVE_INTEGER) {
        *ret = (double)object->via.i64;
    } else {
        return false;
    }
    return true;
}

static bool read_digest(const msgpack_object *object, struct digest *ret)
{
    if (object->type != MSGPACK_OBJECT_BIN || object->via.bin.size != DIGEST_LEN) {
        return false;
    }
    memcpy(ret->byte, object->via.bin.ptr, DIGEST_LEN);
    return true;
}

static int read_element(const struct message *message, const struct field *field, void *at,
                        const msgpack_object *object, struct err *err)
{
    bool good;
    switch (field->type) {
    case FIELD_f64s:
        good = read_number(object, at);
        break;
    case FIELD_u64s:
        good = object->type == MSGPACK_OBJECT_POSITIVE_INTEGER;
        if (good) {
            *(uint64_t *)at = object->via.u64;
        }
        break;
    case FIELD_digests:
        good = read_digest(object, at);
        break;
    case FIELD_texts:
        return read_text(message, field, TEXTS_ELEMENT_MAX, object, at, err);
    default:
        return read_struct(field->sub, at, object, err);
    }
    return good ? 0 : wrong_type(message, field, err);
}

// The array is zeroed and attached before its elements are read, so that message_clear can free it
// when one of them cannot be read.
static int read_array(const struct message *message, const struct field *field, void *value,
                      const msgpack_object *object, struct err *err)
{
    if (object->type != MSGPACK_OBJECT_ARRAY) {
        return wrong_type(message, field, err);
    }
    size_t count = object->via.array.size;
    if (count > field->max) {
        return too_long(message, field, count, field->max, err);
    }
    size_t size = field_element_size(field);
    char *element = count > 0 ? xcalloc(count, size) : NULL;
    field_set_pointer(field, value, element, count);
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = read_element(message, field, element + i * size, &object->via.array.ptr[i], err);
    }
    return rc;
}

static int read_one(const struct field *field, void *value, const msgpack_object *object,
                    struct err *err)
{
    void *sub = xcalloc(1, field->sub->size);
    int rc = read_struct(field->sub, sub, object, err);
    if (rc < 0) {
        free(sub);
        return rc;
    }
    field_set_pointer(field, value, sub, 0);
    return 0;
}

static int read_field(const struct message *message, const struct field *field, void *value,
                      const msgpack_object *object, struct err *err)
{
    void *at = (char *)value + field->offset;
    bool good = true;
    switch (field->type) {
    case FIELD_u64:
        good = object->type == MSGPACK_OBJECT_POSITIVE_INTEGER;
        if (good) {
            *(uint64_t *)at = object->via.u64;
        }
        break;
    case FIELD_i64:
        good = object->type == MSGPACK_OBJECT_NEGATIVE_INTEGER ||
               (object->type == MSGPACK_OBJECT_POSITIVE_INTEGER && object->via.u64 <= INT64_MAX);
        if (good) {
            *(int64_t *)at = object->via.i64;
        }
        break;
    case FIELD_f64:
        good = read_number(object, at);
        break;
    case FIELD_flag:
        good = object->type == MSGPACK_OBJECT_BOOLEAN;
        if (good) {
            *(bool *)at = object->via.boolean;
        }
        break;
    case FIELD_text:
        return read_text(message, field, field->max, object, at, err);
    case FIELD_bytes:
        if (object->type != MSGPACK_OBJECT_BIN) {
            return wrong_type(message, field, err);
        }
        if (object->via.bin.size > field->max) {
            return too_long(message, field, object->via.bin.size, field->max, err);
        }
        *(struct bytes *)at = bytes_copy(object->via.bin.ptr, object->via.bin.size);
        break;
    case FIELD_digest:
        good = read_digest(object, at);
        break;
    case FIELD_one:
        return read_one(field, value, object, err);
    default:
        return read_array(message, field, value, object, err);
    }
    return good ? 0 : wrong_type(message, field, err);
}

static const struct field *field_by_key(const struct message *message, const msgpack_object *key,
                                        size_t *ret_index)
{
    if (key->type != MSGPACK_OBJECT_POSITIVE_INTEGER) {
        return NULL;
    }
    size_t field_count;
    const struct field *fields = message->fields(&field_count);
    for (size_t i = 0; i < field_count; i++) {
        if (fields[i].key == key->via.u64) {
            *ret_index = i;
            return &fields[i];
        }
    }
    return NULL;
}

// Fills *value from a map. On failure *value is cleared.
static int read_struct(const struct message *message, void *value, const msgpack_object *object,
                       struct err *err)
{
    memset(value, 0, message->size);
    if (object->type != MSGPACK_OBJECT_MAP) {
        return err_set(err, ERR_PROTOCOL, "%s is no map", message->name);
    }
    message_init(message, value);
    uint64_t seen = 0; // bit i: field i was read
    int rc = 0;
    for (uint32_t i = 0; i < object->via.map.size && rc == 0; i++) {
        const msgpack_object_kv *pair = &object->via.map.ptr[i];
        size_t index = 0;
        const struct field *field = field_by_key(message, &pair->key, &index);
        if (!field) {
            continue; // a newer version knows this key
        }
        if (seen & 1ULL << index) {
            rc = err_set(err, ERR_PROTOCOL, "%s.%s is given twice", message->name, field->name);
        } else {
            rc = read_field(message, field, value, &pair->val, err);
        }
        seen |= 1ULL << index;
    }
    size_t field_count;
    const struct field *fields = message->fields(&field_count);
    for (size_t i = 0; i < field_count && rc == 0; i++) {
        const struct field *field = &fields[i];
        if (field->presence == REQUIRED && (!(seen & 1ULL << i) || !field_is_sent(field, value))) {
            rc = err_set(err, ERR_PROTOCOL, "%s.%s is required and missing", message->name,
                         field->name);
        }
    }
    if (rc < 0) {
        message_clear(message, value);
    }
    return rc;
}

int message_read(const struct message *message, void *value, const void *data, size_t len,
                 struct err *err)
{
    memset(value, 0, message->size);
    size_t size = 0;
    int rc = message_precheck(data, len, &size, err);
    if (rc < 0) {
        return rc;
    }
    if (size != len) {
        return err_set(err, ERR_PROTOCOL, "%zu bytes follow a message of type %s", len - size,
                       message->name);
    }
    msgpack_zone zone;
    if (!msgpack_zone_init(&zone, MSGPACK_ZONE_CHUNK_SIZE)) {
        return err_set(err, ERR_SYSTEM, "no memory for a message of type %s", message->name);
    }
    msgpack_object object;
    size_t offset = 0;
    if (msgpack_unpack(data, len, &offset, &zone, &object) == MSGPACK_UNPACK_SUCCESS) {
        rc = read_struct(message, value, &object, err);
    } else {
        rc = err_set(err, ERR_PROTOCOL, "a message of type %s cannot be decoded", message->name);
    }
    msgpack_zone_destroy(&zone);
    return rc;
}
