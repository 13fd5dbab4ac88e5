// Messages as tables. A .def file lists each message as MESSAGE(name, FIELD(key, type, name,
// presence, max) ...). From it come the struct, a descriptor, and through the descriptor packing,
// reading, clearing, comparing, copying and JSON. Every program uses these functions. They know no
// particular message.
//
// On the wire a message is a msgpack map from integer keys to values. A reader skips keys that it
// does not know. A required key that is missing is an error. A key is never used again for
// something else. Reading never allocates by a count that was not compared with the bytes that are
// there.
//
// Field types and their form in C:
//   u64 i64 f64 flag   uint64_t, int64_t, double, bool. An optional field is absent, and not sent,
//                      when it is zero (f64: NaN).
//   text               char *, malloc'd UTF-8 without NUL inside. NULL is absent. max in bytes.
//   bytes              struct bytes. max in bytes.
//   digest             struct digest. All zero is absent.
//   f64s u64s digests  an array: double *name, size_t name_count. max in elements.
//   texts              char **name, size_t name_count. max in elements, each of at most
//                      TEXTS_ELEMENT_MAX bytes.
//   one(T)             struct T *, malloc'd. NULL is absent. Written FIELD_ONE(key, T, name,
//                      presence).
//   list(T)            struct T *name, size_t name_count. Written FIELD_LIST(key, T, name,
//                      presence, max).
#ifndef PROTO_MESSAGE_H
#define PROTO_MESSAGE_H

#include "common/digest.h"
#include "common/err.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MESSAGE_DEPTH_MAX 15   // levels of nesting
#define MESSAGE_FIELD_MAX 64   // fields of one message
#define TEXTS_ELEMENT_MAX 4096 // bytes of one element of a texts field

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

// One field of a message.
struct field {
    uint32_t key; // on the wire
    enum field_type type;
    enum field_presence presence;
    const char *name;
    size_t offset;             // of the value in the struct, or of an array's pointer
    size_t count_offset;       // of <name>_count in the struct, for arrays
    size_t max;                // bytes or elements; 0 for types without a limit
    const struct message *sub; // the nested message of one and list
};

// The descriptor of a message.
struct message {
    const char *name;
    size_t size; // of the struct
    // The fields in the order of the table, at most MESSAGE_FIELD_MAX. This is a function because
    // only inside a function can the rows of the table name the struct that they belong to.
    const struct field *(*fields)(size_t *ret_count);
};

// Makes *value a message in which everything is absent: zero, and NaN for f64. Call it before a
// message is filled field by field.
void message_init(const struct message *message, void *value);

// Appends the msgpack form of *value to out. ERR_LIMIT when a field exceeds its max or out its
// bound, ERR_INVALID when a required field is absent. out may hold a part of the message after a
// failure.
MUST_CHECK int message_pack(const struct message *message, const void *value, struct strbuf *out,
                            struct err *err);

// Reads exactly one message from data. On success *value owns what it points to; free that with
// message_clear. On failure *value is zeroed and owns nothing. *value need not be initialised
// before. ERR_PROTOCOL names message and field.
MUST_CHECK int message_read(const struct message *message, void *value, const void *data,
                            size_t len, struct err *err);

// Frees what *value owns and zeroes it.
void message_clear(const struct message *message, void *value);

// Whether all fields are equal, nested messages included. NaN equals NaN.
bool message_equal(const struct message *message, const void *a, const void *b);

// Makes *to a deep copy of *from. *to need not be initialised before.
void message_copy(const struct message *message, void *to, const void *from);
// Returns deep copies of the `count` messages of an array, malloc'd, with room for one more.
void *message_copy_all(const struct message *message, const void *from, size_t count);

// The message as one JSON object. The keys are the names of the fields in the order of the table;
// absent fields are left out. Digests and bytes are in hexadecimal, bytes longer than 64 appear as
// {"bytes": n}, integers of more than 63 bits as strings. message_json_value returns a jansson
// value that the caller releases by json_decref; message_json appends its text.
struct json_t *message_json_value(const struct message *message, const void *value);
void message_json(const struct message *message, const void *value, struct strbuf *out);

// Checks one packed value without allocating: every length fits into len, the depth is at most
// MESSAGE_DEPTH_MAX, every type is known. *ret_size becomes its size in bytes. ERR_PROTOCOL
// otherwise.
MUST_CHECK int message_precheck(const void *data, size_t len, size_t *ret_size, struct err *err);

#endif
