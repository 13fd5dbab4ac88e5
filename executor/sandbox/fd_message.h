// Messages with file descriptors over a Unix socket, between processes of one program. The zygote
// and the oracle use it.
#ifndef EXECUTOR_SANDBOX_FD_MESSAGE_H
#define EXECUTOR_SANDBOX_FD_MESSAGE_H

#include <stddef.h>
#include <sys/types.h>

#define FD_MESSAGE_MAX 120 // descriptors in a message

// Sends `len` bytes, at least one, in one piece, with copies of fd_count descriptors. Returns 0, or
// -1 with errno.
int fd_message_send(int socket, const void *data, size_t len, const int *fd, size_t fd_count);
// Receives at most `size` bytes and the descriptors that came with them, which then belong to the
// caller and are closed by exec. fd has room for FD_MESSAGE_MAX; NULL: none are wanted. Returns the
// number of bytes, 0 at the end of the stream, -1 with errno.
ssize_t fd_message_receive(int socket, void *data, size_t size, int *fd, size_t *fd_count);

#endif
