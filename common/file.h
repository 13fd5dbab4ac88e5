// Whole files: read with a limit, written to a temporary name and renamed, directories, locks.
#ifndef COMMON_FILE_H
#define COMMON_FILE_H

#include "common/err.h"
#include "common/mem.h"
#include <stdbool.h>
#include <stddef.h>

// Reads a regular file of at most limit bytes. A NUL follows the data (not counted in len).
// ERR_NOT_FOUND, ERR_LIMIT or ERR_SYSTEM otherwise; the sentence names the path.
MUST_CHECK int file_read(struct bytes *ret, const char *path, size_t limit, struct err *err);

// The same for a file that holds a secret: ERR_DENIED when its group or others may read or change it.
MUST_CHECK int file_read_private(struct bytes *ret, const char *path, size_t limit,
                                 struct err *err);
// Frees bytes that held a secret, and leaves nothing of them in memory.
void file_wipe(struct bytes *secret);

// The same from an open descriptor until its end (pipes too). Retries EINTR.
MUST_CHECK int file_read_fd(struct bytes *ret, int fd, size_t limit, const char *what,
                            struct err *err);

// All of data to fd. Retries EINTR and short writes.
MUST_CHECK int file_write_fd(int fd, const void *data, size_t len, const char *what,
                             struct err *err);

// Writes path + ".tmp.<thread id>" (mode 0644 less umask), fsyncs when durable, renames it over path. On failure path is as
// before and no temporary file is left; only when the sync of the folder fails is the new content in place already.
MUST_CHECK int file_replace(const char *path, const void *data, size_t len, bool durable,
                            struct err *err);

// The same with another temporary name, which only this thread uses, on the same file system. What a process that is killed
// leaves there is its owner's to remove.
MUST_CHECK int file_replace_through(const char *path, const char *temp, const void *data,
                                    size_t len, bool durable, struct err *err);

// mkdir -p, mode 0700 for what is created.
MUST_CHECK int file_make_dirs(const char *path, struct err *err);

// Takes an exclusive flock on path (created if missing) and writes the pid into it. *ret_fd holds the lock until closed.
// ERR_BUSY naming the holder's pid when another process has it; when that process is gone, but a child that it was starting
// still holds the lock, waits for that, 5 s at most.
MUST_CHECK int file_lock(int *ret_fd, const char *path, struct err *err);

bool file_exists(const char *path);
// Removes a directory tree that this program made (does not follow links, stays on one file system). Missing is fine.
MUST_CHECK int file_remove_tree(const char *path, struct err *err);
// A new directory "<TMPDIR or /tmp>/<prefix>.XXXXXX"; *ret is malloc'd.
MUST_CHECK int file_make_temp_dir(char **ret, const char *prefix, struct err *err);
// The last component of path; points into path.
const char *file_base_name(const char *path);
// Another program of ours: beside the running one, else in ../libexec/kernelcast. malloc'd. ERR_NOT_FOUND names both places.
MUST_CHECK int file_own_program(char **ret, const char *name, struct err *err);
// The folder of the running executable, malloc'd.
MUST_CHECK int file_own_dir(char **ret, struct err *err);

#endif
