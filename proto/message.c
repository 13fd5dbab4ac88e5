// Pack, read, clear, compare, copy and print any message through its descriptor.
//
// Reading happens in two steps. message_precheck walks the bytes without allocating and proves that every length and
// count fits into what is there and that nesting is bounded; only then msgpack-c builds its object tree (strings and
// binaries stay in place), from which the struct is filled. Arrays are allocated after their count was held against the
// field's max. A struct that fails half-way is cleared, so that the caller owns all or nothing.
#include "proto/message.h"

#include <math.h>
#include <msgpack.h>
#include <stdlib.h>
#include <string.h>

static const size_t element_size[] = {
    [FIELD_f64s] = sizeof(double),
    [FIELD_u64s] = sizeof(uint64_t),
    [FIELD_digests] = sizeof(struct digest),
    [FIELD_texts] = sizeof(char *),
};

static bool is_array(enum field_type type)
{
    return type == FIELD_f64s || type == FIELD_u64s || type == FIELD_digests ||
           type == FIELD_texts || type == FIELD_list;
}

static size_t size_of_element(const struct field *field)
{
    return field->type == FIELD_list ? field->sub->size : element_size[field->type];
}

static size_t count_of(const struct field *field, const void *value)
{
    size_t count;
    memcpy(&count, (const char *)value + field->count_offset, sizeof count);
    return count;
}

static void *pointer_of(const struct field *field, const void *value)
{
    void *pointer;
    memcpy(&pointer, (const char *)value + field->offset, sizeof pointer);
    return pointer;
}

static void set_pointer(const struct field *field, void *value, void *pointer, size_t count)
{
    memcpy((char *)value + field->offset, &pointer, sizeof pointer);
    if (is_array(field->type)) {
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
        return !pointer_of(field, value);
    default:
        return count_of(field, value) == 0;
    }
}

// Scalars have no absence when they are required: zero is a value, an empty list or binary too.
static bool may_be_empty(enum field_type type)
{
    return type != FIELD_text && type != FIELD_one && type != FIELD_digest;
}

// ---- walking bytes ----

struct walk {
    const unsigned char *at, *end;
};

static uint64_t big_endian(const unsigned char *at, size_t width)
{
    uint64_t value = 0;
    for (size_t i = 0; i < width; i++) {
        value = value << 8 | at[i];
    }
    return value;
}

// How a leading byte continues: `width` bytes of length, then length bytes of payload plus `extra`, or `children` values per
// counted element.
struct lead {
    size_t width, extra, children;
    uint64_t length;
    bool valid;
};

static struct lead lead_of(unsigned char c)
{
    if (c <= 0x7f || c >= 0xe0 || c == 0xc0 || c == 0xc2 || c == 0xc3) {
        return (struct lead){.valid = true};
    }
    if (c <= 0x8f) {
        return (struct lead){.children = 2, .length = c & 0x0f, .valid = true};
    }
    if (c <= 0x9f) {
        return (struct lead){.children = 1, .length = c & 0x0f, .valid = true};
    }
    if (c <= 0xbf) {
        return (struct lead){.length = c & 0x1f, .valid = true};
    }
    static const struct lead table[] = {
        [0xc4 - 0xc0] = {.width = 1, .valid = true},
        [0xc5 - 0xc0] = {.width = 2, .valid = true},
        [0xc6 - 0xc0] = {.width = 4, .valid = true},
        [0xca - 0xc0] = {.length = 4, .valid = true},
        [0xcb - 0xc0] = {.length = 8, .valid = true},
        [0xcc - 0xc0] = {.length = 1, .valid = true},
        [0xcd - 0xc0] = {.length = 2, .valid = true},
        [0xce - 0xc0] = {.length = 4, .valid = true},
        [0xcf - 0xc0] = {.length = 8, .valid = true},
        [0xd0 - 0xc0] = {.length = 1, .valid = true},
        [0xd1 - 0xc0] = {.length = 2, .valid = true},
        [0xd2 - 0xc0] = {.length = 4, .valid = true},
        [0xd3 - 0xc0] = {.length = 8, .valid = true},
        [0xd9 - 0xc0] = {.width = 1, .valid = true},
        [0xda - 0xc0] = {.width = 2, .valid = true},
        [0xdb - 0xc0] = {.width = 4, .valid = true},
        [0xdc - 0xc0] = {.width = 2, .children = 1, .valid = true},
        [0xdd - 0xc0] = {.width = 4, .children = 1, .valid = true},
        [0xde - 0xc0] = {.width = 2, .children = 2, .valid = true},
        [0xdf - 0xc0] = {.width = 4, .children = 2, .valid = true},
    };
    return table[c - 0xc0]; // extension types and 0xc1 stay invalid: no message uses them
}

static int walk_value(struct walk *walk, int depth, struct err *err)
{
    if (depth > MESSAGE_DEPTH_MAX) {
        return err_set(err, ERR_PROTOCOL, "a message nests deeper than %d levels",
                       MESSAGE_DEPTH_MAX);
    }
    if (walk->at == walk->end) {
        return err_set(err, ERR_PROTOCOL, "a message ends in the middle");
    }
    struct lead lead = lead_of(*walk->at);
    if (!lead.valid) {
        return err_set(err, ERR_PROTOCOL, "a message has a value of an unknown type (0x%02x)",
                       *walk->at);
    }
    walk->at++;
    size_t left = (size_t)(walk->end - walk->at);
    if (lead.width > left) {
        return err_set(err, ERR_PROTOCOL, "a message ends in the middle");
    }
    uint64_t length = lead.width > 0 ? big_endian(walk->at, lead.width) : lead.length;
    walk->at += lead.width;
    left -= lead.width;
    if (length * (lead.children > 0 ? lead.children : 1) > left) // each child has at least one byte
    {
        return err_set(err, ERR_PROTOCOL,
                       "a message claims %llu elements or bytes where %zu bytes are left",
                       (unsigned long long)length, left);
    }
    if (lead.children == 0) {
        walk->at += length;
        return 0;
    }
    for (uint64_t i = 0; i < length * lead.children; i++) {
        int rc = walk_value(walk, depth + 1, err);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

int message_precheck(const void *data, size_t len, size_t *ret_size, struct err *err)
{
    struct walk walk = {.at = data, .end = (const unsigned char *)data + len};
    int rc = walk_value(&walk, 0, err);
    if (rc == 0) {
        *ret_size = (size_t)(walk.at - (const unsigned char *)data);
    }
    return rc;
}

// ---- packing ----

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
    size_t count = count_of(field, value);
    if (count > field->max) {
        return err_set(err, ERR_LIMIT, "%s.%s has %zu elements where %zu are allowed",
                       message->name, field->name, count, field->max);
    }
    const char *element = pointer_of(field, value);
    msgpack_pack_array(packer, count);
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = pack_element(field, element + i * size_of_element(field), packer, message, err);
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
        return pack_text(field, pointer_of(field, value), field->max, packer, message, err);
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
        return pack_struct(field->sub, pointer_of(field, value), packer, err);
    default:
        return pack_array(field, value, packer, message, err);
    }
}

static bool is_sent(const struct field *field, const void *value)
{
    return !is_absent(field, value) || (field->presence == REQUIRED && may_be_empty(field->type));
}

static int pack_struct(const struct message *message, const void *value, msgpack_packer *packer,
                       struct err *err)
{
    size_t count = 0, field_count;
    const struct field *fields = message->fields(&field_count);
    uint64_t sent = 0; // by index
    for (size_t i = 0; i < field_count; i++) {
        const struct field *field = &fields[i];
        if (is_sent(field, value)) {
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

// ---- reading ----

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

// UTF-8 of 1 to 4 bytes, no surrogates, no overlong forms, no NUL.
static bool is_text(const unsigned char *at, size_t len)
{
    for (size_t i = 0; i < len;) {
        unsigned char c = at[i];
        size_t more = c < 0x80                 ? 0
                      : c >= 0xc2 && c <= 0xdf ? 1
                      : (c & 0xf0) == 0xe0     ? 2
                      : c >= 0xf0 && c <= 0xf4 ? 3
                                               : 9;
        if (c == 0 || more == 9 || more >= len - i) {
            return false;
        }
        for (size_t k = 1; k <= more; k++) {
            if ((at[i + k] & 0xc0) != 0x80) {
                return false;
            }
        }
        if ((c == 0xe0 && at[i + 1] < 0xa0) || (c == 0xed && at[i + 1] > 0x9f) ||
            (c == 0xf0 && at[i + 1] < 0x90) || (c == 0xf4 && at[i + 1] > 0x8f)) {
            return false;
        }
        i += more + 1;
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

// The array is attached before its elements are read (zeroed, so that message_clear can free it half-read).
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
    size_t size = size_of_element(field);
    char *element = count > 0 ? xcalloc(count, size) : NULL;
    set_pointer(field, value, element, count);
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
    set_pointer(field, value, sub, 0);
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

// On failure *value is cleared.
static int read_struct(const struct message *message, void *value, const msgpack_object *object,
                       struct err *err)
{
    memset(value, 0, message->size);
    if (object->type != MSGPACK_OBJECT_MAP) {
        return err_set(err, ERR_PROTOCOL, "%s is no map", message->name);
    }
    message_init(message, value);
    uint64_t seen = 0;
    int rc = 0;
    for (uint32_t i = 0; i < object->via.map.size && rc == 0; i++) {
        const msgpack_object_kv *pair = &object->via.map.ptr[i];
        size_t index = 0;
        const struct field *field = field_by_key(message, &pair->key, &index);
        if (!field) {
            continue; // from a newer version
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
        if (field->presence == REQUIRED && (!(seen & 1ULL << i) || !is_sent(field, value))) {
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

// ---- clear, equal, copy ----

static void clear_array(const struct field *field, void *value)
{
    char *element = pointer_of(field, value);
    size_t count = count_of(field, value);
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
            free(pointer_of(field, value));
        } else if (field->type == FIELD_bytes) {
            bytes_clear(at);
        } else if (field->type == FIELD_one) {
            void *sub = pointer_of(field, value);
            if (sub) {
                message_clear(field->sub, sub);
            }
            free(sub);
        } else if (is_array(field->type)) {
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
    size_t count = count_of(field, a), size = size_of_element(field);
    if (count != count_of(field, b)) {
        return false;
    }
    const char *p = pointer_of(field, a), *q = pointer_of(field, b);
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
        return text_equal(pointer_of(field, a), pointer_of(field, b));
    case FIELD_bytes: {
        const struct bytes *x = p, *y = q;
        return x->len == y->len && (x->len == 0 || memcmp(x->data, y->data, x->len) == 0);
    }
    case FIELD_digest:
        return digest_equal(p, q);
    case FIELD_one: {
        const void *x = pointer_of(field, a), *y = pointer_of(field, b);
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
    size_t count = count_of(field, from), size = size_of_element(field);
    const char *source = pointer_of(field, from);
    char *copy = count > 0 ? xmemdup(source, count * size) : NULL;
    for (size_t i = 0; i < count; i++) {
        if (field->type == FIELD_list) {
            message_copy(field->sub, copy + i * size, source + i * size);
        } else if (field->type == FIELD_texts) {
            ((char **)copy)[i] = xstrdup(((char *const *)source)[i]);
        }
    }
    set_pointer(field, to, copy, count);
}

void message_copy(const struct message *message, void *to, const void *from)
{
    memcpy(to, from, message->size);
    size_t field_count;
    const struct field *fields = message->fields(&field_count);
    for (size_t i = 0; i < field_count; i++) {
        const struct field *field = &fields[i];
        const void *pointer =
            is_array(field->type) || field->type == FIELD_text || field->type == FIELD_one
                ? pointer_of(field, from)
                : NULL;
        if (field->type == FIELD_bytes) {
            const struct bytes *bytes = (const void *)((const char *)from + field->offset);
            *(struct bytes *)((char *)to + field->offset) = bytes_copy(bytes->data, bytes->len);
        } else if (is_array(field->type)) {
            copy_array(field, to, from);
        } else if (field->type == FIELD_text && pointer) {
            set_pointer(field, to, xstrdup(pointer), 0);
        } else if (field->type == FIELD_one && pointer) {
            void *sub = xmalloc(field->sub->size);
            message_copy(field->sub, sub, pointer);
            set_pointer(field, to, sub, 0);
        }
    }
}
