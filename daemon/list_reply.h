// Answers that are lists of jobs: of STATUS, and of CANCEL. A long list is made in parts, in its
// caller's turn, and few long lists are made at once. Called by dispatch.c.
#ifndef DAEMON_LIST_REPLY_H
#define DAEMON_LIST_REPLY_H

#include "daemon/state/parts.h"
#include "net/rpc/service.h"

struct list_replies; // those that are being made

// `parts` outlives it.
struct list_replies *list_replies_create(const struct daemon_parts *parts);
void list_replies_free(struct list_replies *replies); // none may be pending; NULL is fine
size_t list_replies_pending(const struct list_replies *replies); // exchanges not answered yet

// Each of the two answers the exchange, at once or later: a STATUS with what the caller may see of
// the daemon and the jobs that it asks about, and a CANCEL with these jobs.
void list_reply_status(struct list_replies *replies, struct exchange *exchange,
                       const struct status_request *request);
void list_reply_jobs(struct list_replies *replies, struct exchange *exchange, const uint64_t *jobs,
                     size_t count);

#endif
