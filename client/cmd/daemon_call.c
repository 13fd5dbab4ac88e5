#include "client/cmd/daemon_call.h"
#include "common/printable.h"

#include <stdio.h>

int daemon_call(const struct daemon_link *link, enum op op, const struct message *request_table,
                const void *request, const struct message *reply_table, void *reply,
                uint64_t timeout_ms, struct err *err)
{
    if (!link->remote) {
        return err_set(err, link->why.code, "%s", link->why.text);
    }
    return remote_call_sync(link->remote, op, request_table, request, reply_table, reply,
                            timeout_ms, err);
}

void daemon_call_failed(int *rc, const struct err *why, struct err *err)
{
    if (*rc != 0) {
        printable_printf(stderr, "kcast: %s\n", why->text);
    } else {
        *rc = err_set(err, why->code, "%s", why->text);
    }
}
