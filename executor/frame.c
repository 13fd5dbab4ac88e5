#include "executor/frame.h"
#include "common/file.h"
#include <errno.h>
#include <stdint.h>
#include <unistd.h>

#define HEAD 4 // bytes of length

// Reads len bytes, or fewer when the stream ends. *ret_got is how many.
static int read_whole(int fd, unsigned char *to, size_t len, size_t *ret_got, struct err *err)
{
    *ret_got = 0;
    while (*ret_got < len) {
        ssize_t n = read(fd, to + *ret_got, len - *ret_got);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return err_set_errno(err, ERR_SYSTEM, errno, "reading a frame");
        }
        if (n == 0) {
            break;
        }
        *ret_got += (size_t)n;
    }
    return 0;
}

int frame_read(int fd, struct bytes *ret, size_t max, bool *ret_ended, struct err *err)
{
    unsigned char head[HEAD];
    size_t got;
    int rc = read_whole(fd, head, HEAD, &got, err);

    *ret_ended = rc == 0 && got == 0;
    if (rc != 0 || *ret_ended) {
        return rc;
    }
    struct bytes bytes = {.len = 0};
    for (size_t i = 0; i < HEAD; i++) {
        bytes.len |= (size_t)head[i] << (8 * i);
    }
    if (got < HEAD) {
        return err_set(err, ERR_PROTOCOL, "a frame ends within its length");
    }
    if (bytes.len > max) {
        return err_set(err, ERR_LIMIT, "a frame of %zu bytes; the limit is %zu", bytes.len, max);
    }
    bytes.data = xmalloc(bytes.len + 1);
    rc = read_whole(fd, bytes.data, bytes.len, &got, err);
    if (rc == 0 && got < bytes.len) {
        rc = err_set(err, ERR_PROTOCOL, "a frame of %zu bytes ends after %zu", bytes.len, got);
    }
    if (rc != 0) {
        bytes_clear(&bytes);
        return rc;
    }
    *ret = bytes;
    return 0;
}

int frame_write(int fd, const struct bytes *bytes, struct err *err)
{
    if (bytes->len > UINT32_MAX) {
        return err_set(err, ERR_LIMIT, "a frame of %zu bytes; the limit is 4 GiB", bytes->len);
    }
    unsigned char head[HEAD];
    for (size_t i = 0; i < HEAD; i++) {
        head[i] = (unsigned char)(bytes->len >> (8 * i));
    }
    int rc = file_write_fd(fd, head, HEAD, "a frame", err);
    return rc == 0 && bytes->len > 0 ? file_write_fd(fd, bytes->data, bytes->len, "a frame", err)
                                     : rc;
}

int frame_serve(int in, int out, size_t max,
                int (*answer)(void *owner, const struct bytes *plan, struct bytes *ret,
                              bool *ret_last, struct err *err),
                void *owner, struct err *err)
{
    const struct bytes ready = {.len = 0};
    bool last = false;
    int rc = frame_write(out, &ready, err);

    while (rc == 0 && !last) {
        struct bytes plan, outcome;
        bool ended;

        rc = frame_read(in, &plan, max, &ended, err);
        if (rc != 0 || ended) {
            break;
        }
        rc = answer(owner, &plan, &outcome, &last, err);
        if (rc == 0) {
            rc = frame_write(out, &outcome, err);
            bytes_clear(&outcome);
        }
        bytes_clear(&plan);
    }
    return rc;
}
