// Design note. The socket is polled and accepted here and not by libuv's own listener. When there
// are no descriptors left, libuv's listener uses a spare descriptor to accept and close what waits,
// and it spins when another thread takes that spare one. Here polling stops for a moment instead,
// and callers stay in the kernel's queue.
#include "net/rpc/listener.h"

#include "common/mem.h"
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 512    // connections that the kernel queues
#define ACCEPTS_MAX 64 // connections accepted in one turn of the loop
#define PAUSE_MS 100   // until accepting is tried again after it failed

struct listener {
    uv_loop_t *loop;
    uv_poll_t poll;
    uv_timer_t pause; // begins to poll again
    int fd;
    uint16_t port;
    int handles;  // handles that are not closed yet
    bool failing; // on_accept_failed was called, and no accept has succeeded since
    bool closing;
    struct listener_config config;
};

static void on_readable(uv_poll_t *poll, int status, int events);

static void on_pause_over(uv_timer_t *timer)
{
    struct listener *listener = timer->data;

    (void)uv_poll_start(&listener->poll, UV_READABLE, on_readable);
}

// Stops polling for a moment because descriptors or memory are missing.
static void pause_accepting(struct listener *listener, int error)
{
    (void)uv_poll_stop(&listener->poll);
    (void)uv_timer_start(&listener->pause, on_pause_over, PAUSE_MS, 0);
    if (!listener->failing) {
        listener->failing = true;
        listener->config.on_accept_failed(listener->config.owner, strerror(error));
    }
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct listener *listener = poll->data;

    (void)status;
    (void)events;
    for (int i = 0; i < ACCEPTS_MAX && !listener->closing; i++) {
        int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            listener->failing = false;
            listener->config.on_accept(listener->config.owner, fd);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            pause_accepting(listener, errno);
            return;
        } else if (errno == EAGAIN) {
            return;
        } // any other error belongs to this one connection, and the next one is tried
    }
}

// Returns a socket that listens on the address, or -1 with errno set.
static int try_address(const struct addrinfo *info)
{
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, info->ai_protocol);

    if (fd < 0) {
        return -1;
    }
    int on = 1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
        bind(fd, info->ai_addr, info->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0) {
        return fd;
    }
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static int open_socket(int *ret, const struct url *url, const char *text, struct err *err)
{
    char port[8];

    (void)snprintf(port, sizeof(port), "%u", url->port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *list = NULL;
    int rc = getaddrinfo(url->host, port, &hints, &list);
    if (rc != 0) {
        return err_set(err, ERR_SYSTEM, "cannot listen on %s: %s", text, gai_strerror(rc));
    }
    errno = 0;
    int fd = -1;
    for (const struct addrinfo *info = list; info && fd < 0 && errno != EADDRINUSE;
         info = info->ai_next) {
        fd = try_address(info);
    }
    rc = errno;
    freeaddrinfo(list);
    if (fd < 0) {
        return err_set_errno(err, rc == EADDRINUSE ? ERR_BUSY : ERR_SYSTEM, rc,
                             "cannot listen on %s", text);
    }
    *ret = fd;
    return 0;
}

static int read_port(struct listener *listener, const char *text, struct err *err)
{
    struct sockaddr_storage address = {0};
    socklen_t len = sizeof(address);

    if (getsockname(listener->fd, (struct sockaddr *)&address, &len) != 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "cannot listen on %s", text);
    }
    listener->port =
        ntohs(address.ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)&address)->sin6_port
                                            : ((const struct sockaddr_in *)&address)->sin_port);
    return 0;
}

static int start(struct listener *listener, const char *text, struct err *err)
{
    int rc = uv_poll_init(listener->loop, &listener->poll, listener->fd);

    if (rc == 0) {
        listener->handles++;
        listener->poll.data = listener;
        rc = uv_poll_start(&listener->poll, UV_READABLE, on_readable);
    }
    return rc == 0 ? 0 : err_set_errno(err, ERR_SYSTEM, -rc, "cannot wait for callers of %s", text);
}

int listener_create(struct listener **ret, uv_loop_t *loop, const struct url *url, const char *text,
                    const struct listener_config *config, struct err *err)
{
    struct listener *listener = xcalloc(1, sizeof(*listener));
    int rc = open_socket(&listener->fd, url, text, err);

    if (rc != 0) {
        free(listener);
        return rc;
    }
    listener->loop = loop;
    listener->config = *config;
    (void)uv_timer_init(loop, &listener->pause);
    listener->pause.data = listener;
    listener->handles = 1;
    rc = read_port(listener, text, err);
    rc = rc == 0 ? start(listener, text, err) : rc;
    if (rc != 0) {
        listener_close(listener);
        return rc;
    }
    *ret = listener;
    return 0;
}

uint16_t listener_port(const struct listener *listener)
{
    return listener->port;
}

static void on_closed(uv_handle_t *handle)
{
    struct listener *listener = handle->data;

    if (--listener->handles == 0) {
        free(listener);
    }
}

void listener_close(struct listener *listener)
{
    if (!listener) {
        return;
    }
    listener->closing = true;
    if (listener->handles > 1) {
        uv_close((uv_handle_t *)&listener->poll, on_closed);
    }
    uv_close((uv_handle_t *)&listener->pause, on_closed);
    close(listener->fd);
}
