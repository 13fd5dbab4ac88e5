// Actors: any number of posting threads, and the loop thread. A posting thread appends to `posted`
// and wakes the loop under the same lock, so that a wake-up never meets a handle that is being
// closed. libuv merges wake-ups. One wake-up therefore delivers everything that is in the list.
//
// The loop thread moves `posted` to the end of `batch`, which it alone touches, and delivers from
// there without the lock. A deliver function may post: that mail arrives at the next wake-up. It
// may also call mailbox_close: the nested delivery goes on in the same batch, so that the order
// holds and nothing is delivered twice.
//
// The memory lives until the close callback. Threads that might still post must therefore be joined
// before the loop runs on after mailbox_close.
#include "common/mailbox.h"
#include "common/mem.h"
#include <stdlib.h>

struct mail_list {
    struct mail *first; // oldest
    struct mail *last;  // newest; not defined while first is NULL
};

struct mailbox {
    uv_async_t wake;         // wakes the loop
    uv_mutex_t lock;         // guards posted and closed
    struct mail_list posted; // posted by any thread and not yet seen by the loop thread
    struct mail_list batch;  // being delivered; only the loop thread touches it
    bool closed;             // mail is accepted no more
};

// Moves all mail of `from` to the end of `to`.
static void list_move(struct mail_list *to, struct mail_list *from)
{
    if (!from->first) {
        return;
    }
    if (to->first) {
        to->last->next = from->first;
    } else {
        to->first = from->first;
    }
    to->last = from->last;
    from->first = NULL;
}

static void deliver_all(struct mailbox *box)
{
    uv_mutex_lock(&box->lock);
    list_move(&box->batch, &box->posted);
    uv_mutex_unlock(&box->lock);

    while (box->batch.first) {
        struct mail *mail = box->batch.first;

        box->batch.first = mail->next;
        mail->next = NULL;
        mail->deliver(mail);
    }
}

static void on_wake(uv_async_t *handle)
{
    deliver_all(handle->data);
}

static void on_close(uv_handle_t *handle)
{
    struct mailbox *box = handle->data;

    uv_mutex_destroy(&box->lock);
    free(box);
}

int mailbox_create(struct mailbox **ret, uv_loop_t *loop, struct err *err)
{
    struct mailbox *box = xcalloc(1, sizeof(*box));

    int rc = uv_mutex_init(&box->lock);
    if (rc != 0) {
        free(box);
        return err_set(err, ERR_SYSTEM, "mailbox: %s", uv_strerror(rc));
    }
    rc = uv_async_init(loop, &box->wake, on_wake);
    if (rc != 0) {
        uv_mutex_destroy(&box->lock);
        free(box);
        return err_set(err, ERR_SYSTEM, "mailbox: %s", uv_strerror(rc));
    }
    box->wake.data = box;
    *ret = box;
    return 0;
}

bool mailbox_post(struct mailbox *box, struct mail *mail)
{
    struct mail_list one = {.first = mail, .last = mail};

    uv_mutex_lock(&box->lock);
    bool accepted = !box->closed;
    if (accepted) {
        mail->next = NULL;
        list_move(&box->posted, &one);
        // It fails only for handles of another type.
        (void)uv_async_send(&box->wake);
    }
    uv_mutex_unlock(&box->lock);
    return accepted;
}

void mailbox_close(struct mailbox *box)
{
    if (!box) {
        return;
    }
    uv_mutex_lock(&box->lock);
    bool again = box->closed;
    box->closed = true;
    uv_mutex_unlock(&box->lock);
    if (again) {
        return;
    }
    deliver_all(box);
    uv_close((uv_handle_t *)&box->wake, on_close);
}
