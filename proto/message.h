// Messages as tables. A .def file lists MESSAGE(name, FIELD(key, type, name, presence, max) …); from it come the struct, a
// descriptor, and through the descriptor pack, read, clear and equal. On the wire a message is a msgpack map from integer
// keys to values. Unknown keys are skipped; a required key that is missing is an error; a key is never used again for
// something else. Read never allocates from a count it has not checked against the bytes that are there.
//
// Field types and their C form:
//   u64 i64 f64 flag   uint64_t int64_t double bool. Optional and zero (f64: NaN) means absent and is not sent.
//   text               char *, malloc'd, NUL-terminated UTF-8 without NUL inside; NULL is absent. max in bytes.
//   bytes              struct bytes. max in bytes.
//   digest             struct digest; all zero is absent.
//   f64s u64s digests  array: double *name, size_t name_count. max in elements.
//   texts              char **name, size_t name_count. max in elements; each at most TEXTS_ELEMENT_MAX bytes
//   one(T)             struct T *, malloc'd; NULL is absent.      written FIELD_ONE(key, T, name, presence)
//   list(T)            struct T *name, size_t name_count.          written FIELD_LIST(key, T, name, presence, max)
#ifndef PROTO_MESSAGE_H
#define PROTO_MESSAGE_H

#include "common/digest.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MESSAGE_DEPTH_MAX 15
#define MESSAGE_FIELD_MAX 64
#define TEXTS_ELEMENT_MAX 4096

enum field_type {
    FIELD_u64,
    FIELD_i64,
    FIELD_f64,
    FIELD_flag,
    FIELD_text,
    FIELD_bytes,
    FIELD_digest,
    FIELD_f64s,
    FIELD_u64s,
    FIELD_digests,
    FIELD_texts,
    FIELD_one,
    FIELD_list,
};

enum field_presence { OPTIONAL, REQUIRED };

struct message;

struct field {
    uint32_t key;
    enum field_type type;
    enum field_presence presence;
    const char *name;
    size_t offset;             // of the value, or of the pointer of an array
    size_t count_offset;       // of <name>_count, for arrays
    size_t max;                // bytes or elements; 0: none needed
    const struct message *sub; // for one and list
};

struct message {
    const char *name;
    size_t size; // of the struct
    // The fields in the order of the table; at most MESSAGE_FIELD_MAX. A function, because only inside one can the rows
    // of the table know the struct they belong to.
    const struct field *(*fields)(size_t *ret_count);
};

// Makes *value a message in which everything is absent: zero, and NaN for f64. Start every message that is filled by hand so.
void message_init(const struct message *message, void *value);

// Appends the msgpack form of *value. ERR_LIMIT when a field is beyond its max, ERR_INVALID when a required one is absent.
MUST_CHECK int message_pack(const struct message *message, const void *value, struct strbuf *out,
                            struct err *err);

// Reads exactly one message from data. On success *value (uninitialised before) owns what it points to; on failure it is
// zeroed and owns nothing. ERR_PROTOCOL names message and field.
MUST_CHECK int message_read(const struct message *message, void *value, const void *data,
                            size_t len, struct err *err);

// Frees what *value owns and zeroes it.
void message_clear(const struct message *message, void *value);

// Deep equality; NaN equals NaN.
bool message_equal(const struct message *message, const void *a, const void *b);

// Deep copy of *from into *to (uninitialised before).
void message_copy(const struct message *message, void *to, const void *from);

// The message as one JSON object, keys are field names in the order of the table, absent fields left out, digests and
// bytes in hex (bytes beyond 64 as {"bytes": n}), integers of more than 15 digits as strings. message_json_value returns
// it as jansson's value, the caller's (json_decref); message_json appends its text.
struct json_t *message_json_value(const struct message *message, const void *value);
void message_json(const struct message *message, const void *value, struct strbuf *out);

// Walks one msgpack value without allocating: every length must fit into len, depth at most MESSAGE_DEPTH_MAX.
// Returns its size in bytes in *ret_size.
MUST_CHECK int message_precheck(const void *data, size_t len, size_t *ret_size, struct err *err);

#endif
