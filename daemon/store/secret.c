#include "daemon/store/secret.h"
#include "common/file.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

// The secret is written under another name and renamed, so that path never holds a part of it.
static int create(const struct secret *secret, const char *path, struct err *err)
{
    char *part = xasprintf("%s.new", path);
    (void)unlink(part); // what a daemon that was killed left, with whatever mode it has now
    int fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int rc = fd < 0 ? err_set_errno(err, ERR_SYSTEM, errno, "%s", part)
                    : file_write_fd(fd, secret->byte, SECRET_LEN, part, err);

    if (rc == 0 && (fsync(fd) != 0 || rename(part, path) != 0)) {
        rc = err_set_errno(err, ERR_SYSTEM, errno, "%s", path);
    }
    if (fd >= 0) {
        close(fd);
    }
    free(part);
    return rc;
}

int secret_open(struct secret *ret, const char *path, struct err *err)
{
    struct secret secret;
    struct bytes found = {0};
    int rc;

    if (!file_exists(path)) {
        if (getrandom(secret.byte, SECRET_LEN, 0) != SECRET_LEN) {
            return err_set_errno(err, ERR_SYSTEM, errno, "no random bytes are to be had");
        }
        rc = create(&secret, path, err);
    } else {
        rc = file_read_private(&found, path, SECRET_LEN + 1, err);
        if (rc == 0 && found.len != SECRET_LEN) {
            rc = err_set(err, ERR_CORRUPT, "%s: not the %d bytes of a secret; remove it", path,
                         SECRET_LEN);
        } else if (rc == 0) {
            memcpy(secret.byte, found.data, SECRET_LEN);
        }
        file_wipe(&found);
    }
    if (rc == 0) {
        *ret = secret;
    }
    return rc;
}

uint64_t secret_hidden_seed(const struct secret *secret, const struct digest *problem,
                            const struct digest *source)
{
    unsigned char all[SECRET_LEN + 2 * DIGEST_LEN];

    memcpy(all, secret->byte, SECRET_LEN);
    memcpy(all + SECRET_LEN, problem->byte, DIGEST_LEN);
    memcpy(all + SECRET_LEN + DIGEST_LEN, source->byte, DIGEST_LEN);
    struct digest digest = digest_of(all, sizeof(all));
    uint64_t seed = 0;
    for (size_t i = 8; i-- > 0;) {
        seed = seed << 8 | digest.byte[i];
    }
    return seed;
}
