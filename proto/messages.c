// Descriptors from the .def files, names of operations, envelopes.
#include "proto/messages.h"

#include "common/version.h"
#include <stdio.h>
#include <string.h>

// For each field type, the offset of an array's count.
#define COUNT_u64(name) 0
#define COUNT_i64(name) 0
#define COUNT_f64(name) 0
#define COUNT_flag(name) 0
#define COUNT_text(name) 0
#define COUNT_bytes(name) 0
#define COUNT_digest(name) 0
#define COUNT_f64s(name) offsetof(M, name##_count)
#define COUNT_u64s(name) offsetof(M, name##_count)
#define COUNT_digests(name) offsetof(M, name##_count)
#define COUNT_texts(name) offsetof(M, name##_count)

#define FIELD(key, type, name, presence, max)                                                      \
    {key, FIELD_##type, presence, #name, offsetof(M, name), COUNT_##type(name), max, NULL},
#define FIELD_ONE(key, sub, name, presence)                                                        \
    {key, FIELD_one, presence, #name, offsetof(M, name), 0, 0, &sub##_message},
#define FIELD_LIST(key, sub, name, presence, max)                                                  \
    {key, FIELD_list,    presence, #name, offsetof(M, name), offsetof(M, name##_count),            \
     max, &sub##_message},

#define MESSAGE(name, ...)                                                                         \
    static const struct field *name##_fields(size_t *ret_count)                                    \
    {                                                                                              \
        typedef struct name M;                                                                     \
        static const struct field table[] = {__VA_ARGS__};                                         \
        _Static_assert(ARRAY_LEN(table) <= MESSAGE_FIELD_MAX, #name);                              \
        *ret_count = ARRAY_LEN(table);                                                             \
        return table;                                                                              \
    }                                                                                              \
    const struct message name##_message = {#name, sizeof(struct name), name##_fields};
#include "proto/daemon.def"
#include "proto/envelope.def"
#include "proto/exec.def"
#include "proto/result.def"
#include "proto/run.def"
#include "proto/space.def"
#include "proto/worker.def"
#undef MESSAGE

#define MESSAGE(name, ...) &name##_message,
const struct message *const all_messages[] = {
#include "proto/daemon.def"
#include "proto/envelope.def"
#include "proto/exec.def"
#include "proto/result.def"
#include "proto/run.def"
#include "proto/space.def"
#include "proto/worker.def"
};
const size_t all_messages_count = ARRAY_LEN(all_messages);

const char *op_name(uint64_t op)
{
    switch (op) {
#define X(number, id, request, reply, text)                                                        \
    case OP_##id:                                                                                  \
        return #id;
        DAEMON_OPS(X)
        WORKER_OPS(X)
#undef X
    default:
        return "unknown";
    }
}

#define BODY_MAX 16777216 // bytes, of both envelopes
#define REQUEST_TOKEN 5   // keys in proto/envelope.def
#define REQUEST_BODY 6
#define REPLY_BODY 7

// The body is the last field of its envelope and is packed where it stays, since it may be large.
// The envelope is packed without it first; then its count of fields, a fixmap's, is raised, and key
// and length are put before the body when its length is known.
static int pack_body(struct strbuf *out, size_t envelope, unsigned char key,
                     const struct message *message, const void *body, struct err *err)
{
    unsigned char head[] = {key, 0xc6, 0, 0, 0, 0}; // bin 32
    size_t at = out->len + sizeof(head);

    strbuf_add(out, head, sizeof(head));
    int rc = message_pack(message, body, out, err);
    if (rc != 0) {
        return rc;
    }
    size_t len = out->len - at;
    if (len > BODY_MAX) {
        return err_set(err, ERR_LIMIT, "a %s of %zu bytes, and %d are allowed", message->name, len,
                       BODY_MAX);
    }
    for (size_t i = 0; i < 4; i++) {
        out->data[at - 1 - i] = (char)(unsigned char)(len >> 8 * i);
    }
    out->data[envelope]++;
    return 0;
}

// Packs envelope and body. On failure out is as before.
static int pack_both(struct strbuf *out, const struct message *envelope_message,
                     const void *envelope, unsigned char key, const struct message *body_message,
                     const void *body, struct err *err)
{
    size_t before = out->len;
    int rc = message_pack(envelope_message, envelope, out, err);

    if (rc == 0 && body_message) {
        rc = pack_body(out, before, key, body_message, body, err);
    }
    if (rc != 0) {
        out->len = before;
    }
    return rc;
}

int request_pack(struct strbuf *out, const struct request *head, const struct message *body_message,
                 const void *body, struct err *err)
{
    struct request request = *head;

    request.version = head->version > 0 ? head->version : KCAST_PROTOCOL_MAX;
    return pack_both(out, &request_message, &request, REQUEST_BODY, body_message, body, err);
}

int reply_pack(struct strbuf *out, uint64_t epoch, const struct message *body_message,
               const void *body, struct err *err)
{
    struct reply reply = {.version = KCAST_PROTOCOL_MAX, .epoch = epoch};

    return pack_both(out, &reply_message, &reply, REPLY_BODY, body_message, body, err);
}

void reply_pack_error(struct strbuf *out, uint64_t epoch, const struct err *error,
                      uint64_t retry_after_ms)
{
    char name[64], text[ERR_TEXT_MAX];
    snprintf(name, sizeof name, "%s", err_name(error->code));
    snprintf(text, sizeof text, "%s", error->text);
    struct reply reply = {.version = KCAST_PROTOCOL_MAX,
                          .epoch = epoch,
                          .error = name,
                          .text = text,
                          .retry_after_ms = retry_after_ms};
    int rc = message_pack(&reply_message, &reply, out, NULL);
    (void)rc; // cannot fail: name and text are within their limits
}

// Moves behind a number or a flag. Returns false when there is something else, or it is cut off.
static bool skip_number(const unsigned char **at, const unsigned char *end)
{
    static const unsigned char width[] = {1, 2, 4, 8, 1, 2, 4, 8}; // uint 8 to 64, int 8 to 64

    if (*at == end) {
        return false;
    }
    unsigned char lead = *(*at)++;
    if (lead <= 0x7f || lead >= 0xe0 || lead == 0xc2 || lead == 0xc3) {
        return true;
    }
    if (lead < 0xcc || lead > 0xd3 || end - *at < width[lead - 0xcc]) {
        return false;
    }
    *at += width[lead - 0xcc];
    return true;
}

// Reads the head of a text. Returns its length, or SIZE_MAX when there is no text.
static size_t text_length(const unsigned char **at, const unsigned char *end)
{
    size_t left = (size_t)(end - *at);

    if (left >= 1 && (**at & 0xe0) == 0xa0) {
        return *(*at)++ & 0x1f;
    }
    if (left >= 2 && **at == 0xd9) {
        *at += 2;
        return (*at)[-1];
    }
    if (left >= 3 && **at == 0xda) {
        *at += 3;
        return (size_t)(*at)[-2] << 8 | (*at)[-1];
    }
    return SIZE_MAX;
}

bool request_find_token(const void *data, size_t len, char ret[REQUEST_TOKEN_MAX + 1])
{
    const unsigned char *at = data;
    const unsigned char *end = at + len;

    if (len == 0 || (*at & 0xf0) != 0x80) {
        return false;
    }
    for (unsigned fields = *at++ & 0x0f; fields > 0 && at < end; fields--) {
        unsigned char key = *at++;

        if (key == REQUEST_TOKEN) {
            size_t token_len = text_length(&at, end);

            if (token_len > REQUEST_TOKEN_MAX || (size_t)(end - at) < token_len) {
                return false;
            }
            memcpy(ret, at, token_len);
            ret[token_len] = '\0';
            return true;
        }
        if (key > 0x7f || !skip_number(&at, end)) {
            return false;
        }
    }
    return false;
}
