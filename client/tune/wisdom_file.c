// The wisdom file on disk. It is read whole and replaced whole, by one writer at a time.
//
// The lock is on a file beside it. A lock on the wisdom file itself would be useless: the file is
// replaced, so a process that had waited for the lock would hold a lock on the old file.
#include "client/tune/wisdom.h"

#include "common/file.h"
#include "common/mem.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

int wisdom_read(struct wisdom *ret, const char *path, bool may_be_missing, struct err *err)
{
    *ret = (struct wisdom){0};
    if (may_be_missing && !file_exists(path)) {
        return 0;
    }
    struct bytes bytes = {0};
    int rc = file_read(&bytes, path, WISDOM_BYTES_MAX, err);
    if (rc == 0) {
        rc = wisdom_parse(ret, (const char *)bytes.data, bytes.len, path, err);
    }
    bytes_clear(&bytes);
    return rc;
}

// Blocks until it has the lock. *ret_fd holds the lock until it is closed.
static int lock(int *ret_fd, const char *path, struct err *err)
{
    char *name = xasprintf("%s.lock", path);
    int rc = 0;
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0644);
    if (fd < 0) {
        rc = err_set_errno(err, ERR_SYSTEM, errno,
                           "%s: cannot be created; choose a --wisdom in a folder that can be "
                           "written",
                           name);
        goto out;
    }
    int failed;
    do {
        failed = flock(fd, LOCK_EX);
    } while (failed != 0 && errno == EINTR);
    if (failed != 0) {
        rc = err_set_errno(err, ERR_SYSTEM, errno, "%s: cannot be locked", name);
        close(fd);
        goto out;
    }
    *ret_fd = fd;
out:
    free(name);
    return rc;
}

int wisdom_merge_take(const char *path, struct wisdom_entry *entry, bool *ret_kept, struct err *err)
{
    struct wisdom wisdom = {0};
    struct strbuf text = STRBUF_INIT;
    int fd = -1;
    int rc = lock(&fd, path, err);
    if (rc != 0) {
        goto out;
    }
    rc = wisdom_read(&wisdom, path, true, err);
    if (rc != 0) {
        goto out;
    }
    if (wisdom.count == WISDOM_ENTRY_MAX && !wisdom_find(&wisdom, entry)) {
        rc = err_set(err, ERR_LIMIT, "%s: it has %d entries already; begin another file", path,
                     WISDOM_ENTRY_MAX);
        goto out;
    }
    wisdom_put_take(&wisdom, entry, ret_kept);
    entry = NULL;
    wisdom_text(&wisdom, &text);
    rc = text.truncated || text.len > WISDOM_BYTES_MAX
             ? err_set(err, ERR_LIMIT,
                       "%s: it would be larger than 64 MiB; begin another "
                       "file",
                       path)
             : file_write_named(path, strbuf_text(&text), text.len, true, err);
out:
    if (fd >= 0) {
        close(fd);
    }
    wisdom_entry_free(entry);
    wisdom_release(&wisdom);
    strbuf_release(&text);
    return rc;
}

int wisdom_check(const char *path, struct err *err)
{
    struct wisdom wisdom = {0};
    int rc = wisdom_read(&wisdom, path, true, err);
    wisdom_release(&wisdom);
    if (rc != 0) {
        return rc;
    }
    int fd;
    rc = lock(&fd, path, err);
    if (rc == 0) {
        close(fd);
    }
    return rc;
}
