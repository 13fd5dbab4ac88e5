#include "executor/sandbox/fd_message.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

int fd_message_send(int socket, const void *data, size_t len, const int *fd, size_t fd_count)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(FD_MESSAGE_MAX * sizeof(int))];
    } control;
    struct iovec piece = {.iov_base = (void *)data, .iov_len = len};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};

    if (fd_count > 0) {
        memset(&control, 0, sizeof(control));
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
        memcpy(CMSG_DATA(header), fd, fd_count * sizeof(int));
    }
    ssize_t n;
    do {
        n = sendmsg(socket, &message, MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    return n == (ssize_t)len ? 0 : -1;
}

ssize_t fd_message_receive(int socket, void *data, size_t size, int *fd, size_t *fd_count)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(FD_MESSAGE_MAX * sizeof(int))];
    } control;
    struct iovec piece = {.iov_base = data, .iov_len = size};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};

    if (fd) {
        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
        *fd_count = 0;
    }
    ssize_t n;
    do {
        n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    if (n > 0 && fd) {
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        if (header && header->cmsg_type == SCM_RIGHTS) {
            *fd_count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            memcpy(fd, CMSG_DATA(header), *fd_count * sizeof(int));
        }
    }
    return n;
}
