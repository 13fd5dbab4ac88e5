// The only way from another thread into the libuv loop: a list under a lock, and one uv_async that
// wakes the loop. The loop thread owns the mailbox. Any thread may post to it until mailbox_close.
// Mail arrives in the order of posting, and one wake-up may deliver several. The mailbox knows
// nothing of what the mail means.
#ifndef COMMON_MAILBOX_H
#define COMMON_MAILBOX_H

#include "common/err.h"
#include <stdbool.h>
#include <uv.h>

struct mail {
    struct mail *next;                  // used by the mailbox while the mail is posted
    void (*deliver)(struct mail *mail); // runs on the loop thread and owns the mail from then on
};

struct mailbox;
// Creates a mailbox on this loop. mailbox_close frees it.
MUST_CHECK int mailbox_create(struct mailbox **ret, uv_loop_t *loop, struct err *err);
// Posts a mail, from any thread. Returns false after mailbox_close: the mail is not delivered then
// and still belongs to the caller.
bool mailbox_post(struct mailbox *box, struct mail *mail);
// Stops accepting mail, delivers what was posted, and closes the handle, whose close callback frees
// the memory. A thread that might still post must be joined before the loop runs again. NULL is
// allowed.
void mailbox_close(struct mailbox *box);

#endif
