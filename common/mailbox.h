// The only way from another thread into the libuv loop: a locked list and one uv_async. Messages arrive in posting order,
// several per wake-up. The loop thread owns the mailbox; any thread may post until mailbox_close. A thread that might still post
// later must be joined before the loop runs again after mailbox_close, because that frees the memory.
#ifndef COMMON_MAILBOX_H
#define COMMON_MAILBOX_H

#include "common/err.h"
#include <stdbool.h>
#include <uv.h>

struct mail {
    struct mail *next;                  // the mailbox's, while posted
    void (*deliver)(struct mail *mail); // runs on the loop thread; owns mail from then on
};

struct mailbox;
MUST_CHECK int mailbox_create(struct mailbox **ret, uv_loop_t *loop, struct err *err);
// Thread-safe. After mailbox_close the mail is not delivered; returns false then and the caller keeps it.
bool mailbox_post(struct mailbox *box, struct mail *mail);
// Stops accepting, delivers what was posted, closes the handle; memory is freed in its close callback.
void mailbox_close(struct mailbox *box);

#endif
