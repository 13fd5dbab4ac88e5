// Descriptors from the .def files, names of operations, envelopes.
#include "proto/messages.h"

#include "common/version.h"
#include <stdio.h>

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

// Packs a body into *ret, which stays empty when there is none.
static int pack_body(struct bytes *ret, const struct message *message, const void *body,
                     struct err *err)
{
    struct strbuf packed = STRBUF_INIT;
    int rc = message ? message_pack(message, body, &packed, err) : 0;
    *ret = (struct bytes){0};
    if (rc == 0 && packed.len > 0) {
        *ret = strbuf_detach_bytes(&packed);
    }
    strbuf_release(&packed);
    return rc;
}

int request_pack(struct strbuf *out, uint64_t op, uint64_t id, uint64_t deadline_ms,
                 const struct message *body_message, const void *body, struct err *err)
{
    struct request request = {
        .version = KCAST_PROTOCOL_MAX, .op = op, .id = id, .deadline_ms = deadline_ms};
    int rc = pack_body(&request.body, body_message, body, err);
    if (rc == 0) {
        rc = message_pack(&request_message, &request, out, err);
    }
    bytes_clear(&request.body);
    return rc;
}

int reply_pack(struct strbuf *out, uint64_t id, uint64_t epoch, const struct message *body_message,
               const void *body, struct err *err)
{
    struct reply reply = {.version = KCAST_PROTOCOL_MAX, .id = id, .epoch = epoch};
    int rc = pack_body(&reply.body, body_message, body, err);
    if (rc == 0) {
        rc = message_pack(&reply_message, &reply, out, err);
    }
    bytes_clear(&reply.body);
    return rc;
}

void reply_pack_error(struct strbuf *out, uint64_t id, uint64_t epoch, const struct err *error,
                      uint64_t retry_after_ms)
{
    char name[64], text[ERR_TEXT_MAX];
    snprintf(name, sizeof name, "%s", err_name(error->code));
    snprintf(text, sizeof text, "%s", error->text);
    struct reply reply = {.version = KCAST_PROTOCOL_MAX,
                          .id = id,
                          .epoch = epoch,
                          .error = name,
                          .text = text,
                          .retry_after_ms = retry_after_ms};
    int rc = message_pack(&reply_message, &reply, out, NULL);
    (void)rc; // cannot fail: name and text are within their limits
}
