// All messages of the project: struct <name> and its descriptor <name>_message, generated from the
// .def files. Also the operations that requests name, and the envelopes around requests and
// replies.
#ifndef PROTO_MESSAGES_H
#define PROTO_MESSAGES_H

#include "proto/message.h"

// For each field type, the declaration in the struct.
#define DECL_u64(name) uint64_t name;
#define DECL_i64(name) int64_t name;
#define DECL_f64(name) double name;
#define DECL_flag(name) bool name;
#define DECL_text(name) char *name;
#define DECL_bytes(name) struct bytes name;
#define DECL_digest(name) struct digest name;
#define DECL_f64s(name)                                                                            \
    double *name;                                                                                  \
    size_t name##_count;
#define DECL_u64s(name)                                                                            \
    uint64_t *name;                                                                                \
    size_t name##_count;
#define DECL_digests(name)                                                                         \
    struct digest *name;                                                                           \
    size_t name##_count;
#define DECL_texts(name)                                                                           \
    char **name;                                                                                   \
    size_t name##_count;

#define FIELD(key, type, name, presence, max) DECL_##type(name)
#define FIELD_ONE(key, sub, name, presence) struct sub *name;
#define FIELD_LIST(key, sub, name, presence, max)                                                  \
    struct sub *name;                                                                              \
    size_t name##_count;
#define MESSAGE(name, ...)                                                                         \
    struct name {                                                                                  \
        __VA_ARGS__                                                                                \
    };                                                                                             \
    extern const struct message name##_message;
#include "proto/daemon.def"
#include "proto/envelope.def"
#include "proto/exec.def"
#include "proto/result.def"
#include "proto/run.def"
#include "proto/space.def"
#include "proto/worker.def"
#undef MESSAGE
#undef FIELD
#undef FIELD_ONE
#undef FIELD_LIST

#define REQUEST_TOKEN_MAX 256 // bytes

// All descriptors, for tests, fuzzing and the check of the documentation.
extern const struct message *const all_messages[];
extern const size_t all_messages_count;

// Operations. Each row: number, name, request message, reply message, meaning. A number is never
// used again.
// clang-format off
#define DAEMON_OPS(X)                                                                                    \
    X(1, HELLO, hello_request, hello_reply, "agree on a version, learn limits and features")             \
    X(2, BLOB_PUT, blob_put, empty, "store bytes under their SHA-256")                                   \
    X(3, BLOB_HAVE, blob_have, blob_missing, "which of these are not stored yet")                        \
    X(4, SUBMIT, submit, submitted, "create a job, or find the one that has this key")                   \
    X(5, WAIT, wait, waited, "long poll: until one of these jobs is finished")                           \
    X(6, STATUS, status_request, status, "devices, queue, jobs")                                         \
    X(7, CANCEL, job_ids, job_infos, "stop jobs, wherever they are")                                     \
    X(8, ACK, job_ids, empty, "the results have arrived and may be forgotten")                           \
    X(9, DRAIN, drain, empty, "let devices take no more jobs, or take them again")                       \
    X(20, BUDGET, budget_request, budget_list, "show or set weights and budgets of device time")         \
    X(21, QUARANTINE, quarantine, empty, "let devices take no more jobs until they have passed a probe") \
    X(22, PROBE, probe_request, probed, "try a device now and say what was found")
#define WORKER_OPS(X)                                                                             \
    X(32, FORECAST, forecast_request, forecast_reply, "how fast will these candidates be")        \
    X(33, OBSERVE, observe, observed, "how fast these candidates were")                           \
    X(34, WORKER_STATUS, empty, worker_status, "models, counts")                                  \
    X(35, PROPOSE, propose_request, propose_reply, "new candidates, written by a language model") \
    X(36, RECALL, recall_request, recall_reply, "what is known of other devices and problems")    \
    X(37, RANK, rank_request, rank_reply, "which of these candidates go first, by a language model")
// clang-format on

enum op {
#define X(number, id, request, reply, text) OP_##id = number,
    DAEMON_OPS(X) WORKER_OPS(X)
#undef X
};
// The name of an operation, such as "SUBMIT". "unknown" for any other number.
const char *op_name(uint64_t op);

// Appends a request envelope around a body to out. `head` gives everything but the body and may
// have a version of 0, which becomes this program's. body_message is NULL when there is no body.
// Errors are those of message_pack, and ERR_LIMIT when the body is too large; out is as before
// then.
MUST_CHECK int request_pack(struct strbuf *out, const struct request *head,
                            const struct message *body_message, const void *body, struct err *err);
// Appends a reply envelope around a body to out, in the same way. epoch identifies this run of the
// server.
MUST_CHECK int reply_pack(struct strbuf *out, uint64_t epoch, const struct message *body_message,
                          const void *body, struct err *err);
// Appends a reply that carries an error. retry_after_ms above 0 tells the peer when to try again.
void reply_pack_error(struct strbuf *out, uint64_t epoch, const struct err *error,
                      uint64_t retry_after_ms);

// Finds the token of a request of which only the beginning has arrived, and copies it. Fields of
// numbers may stand before it, and other fields may not. Returns false when there is none, or when
// it is not there wholly. Allocates nothing.
bool request_find_token(const void *data, size_t len, char ret[REQUEST_TOKEN_MAX + 1]);

#endif
