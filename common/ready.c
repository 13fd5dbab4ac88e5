// Each call sends one datagram to $NOTIFY_SOCKET and never waits for room there. Failures are
// silent: whoever started the program has a time limit of its own, and a program must not stop
// because nobody listens. Messages are cut at READY_MAX bytes.
#include "common/ready.h"
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define READY_MAX 2048

void ready_notify(const char *format, ...)
{
    const char *path = getenv("NOTIFY_SOCKET");

    if (!path || (path[0] != '/' && path[0] != '@')) {
        return;
    }
    size_t path_len = strlen(path);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (path_len < 2 || path_len >= sizeof(address.sun_path)) {
        return;
    }
    memcpy(address.sun_path, path, path_len);
    if (path[0] == '@') {
        address.sun_path[0] = '\0'; // a name in the abstract name space
    }
    va_list args;
    va_start(args, format);
    char text[READY_MAX];
    int len = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (len <= 0) {
        return;
    }
    if ((size_t)len >= sizeof(text)) {
        len = (int)sizeof(text) - 1;
    }
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return;
    }
    // An abstract name is not NUL-terminated: the length says where it ends.
    ssize_t sent = sendto(fd, text, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT,
                          (const struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + path_len));
    (void)sent;
    close(fd);
}
