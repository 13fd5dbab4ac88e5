#include "net/rpc/resolve.h"

#include "common/mem.h"
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct resolve {
    uv_getaddrinfo_t request;
    resolve_callback *on_end; // NULL once the lookup was cancelled
    void *owner;
};

static void on_resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *list)
{
    struct resolve *resolve = request->data;
    struct sockaddr_storage addresses[RESOLVE_MAX] = {0};
    size_t count = 0;

    for (const struct addrinfo *info = list; info && count < RESOLVE_MAX; info = info->ai_next) {
        memcpy(&addresses[count++], info->ai_addr, info->ai_addrlen);
    }
    uv_freeaddrinfo(list);
    struct err err = ERR_INIT;
    if (resolve->on_end) {
        if (count == 0) {
            (void)err_set(&err, ERR_UNREACHABLE, "%s",
                          status != 0 ? uv_strerror(status) : "it has no address");
        }
        resolve->on_end(resolve->owner, addresses, count, &err);
    }
    free(resolve);
}

int resolve_start(struct resolve **ret, uv_loop_t *loop, const struct url *url,
                  resolve_callback *on_end, void *owner, struct err *err)
{
    struct resolve *resolve = xcalloc(1, sizeof(*resolve));
    char port[8];

    (void)snprintf(port, sizeof(port), "%u", url->port);
    resolve->request.data = resolve;
    resolve->on_end = on_end;
    resolve->owner = owner;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    int rc = uv_getaddrinfo(loop, &resolve->request, on_resolved, url->host, port, &hints);
    if (rc != 0) {
        free(resolve);
        return err_set(err, ERR_SYSTEM, "%s", uv_strerror(rc));
    }
    *ret = resolve;
    return 0;
}

void resolve_cancel(struct resolve *resolve)
{
    if (resolve) {
        resolve->on_end = NULL;
        (void)uv_cancel((uv_req_t *)&resolve->request);
    }
}
