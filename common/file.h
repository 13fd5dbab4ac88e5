// Files and folders of the local file system: read whole files with a limit, replace them
// atomically, make and remove folders, lock between processes. Every program uses it. It knows
// nothing of what the files hold.
//
// All paths are NUL-terminated. Error sentences name the path. The files in common/file/
// implement this header: file.c, file_lock.c, file_standard.c and
// file_tree.c (folders).
#ifndef COMMON_FILE_H
#define COMMON_FILE_H

#include "common/err.h"
#include "common/mem.h"
#include <stdbool.h>
#include <stddef.h>

// Reads a regular file of at most limit bytes into *ret, which the caller clears. A NUL follows the
// data and is not counted in len. ERR_NOT_FOUND, ERR_INVALID (no regular file), ERR_LIMIT or
// ERR_SYSTEM on failure.
MUST_CHECK int file_read(struct bytes *ret, const char *path, size_t limit, struct err *err);

// Like file_read, for a file that holds a secret: ERR_DENIED when its group or others have any
// permission on it, or when it belongs to a user other than root and the one who runs the program.
// Every secret is read by this function: keys, tokens, the daemon's secret.
MUST_CHECK int file_read_private(struct bytes *ret, const char *path, size_t limit,
                                 struct err *err);
// The same for a file that may belong to anybody, because root looks after it for its owner.
MUST_CHECK int file_read_private_of_anybody(struct bytes *ret, const char *path, size_t limit,
                                            struct err *err);
// Overwrites a secret in memory, then frees it.
void file_wipe(struct bytes *secret);

// Like file_read, from an open descriptor until its end; pipes too. `what` names the source in the
// error sentence. Does not close fd.
MUST_CHECK int file_read_fd(struct bytes *ret, int fd, size_t limit, const char *what,
                            struct err *err);

// Writes all of data to fd, however many writes that takes. `what` names the destination in the
// error sentence. Does not close fd.
MUST_CHECK int file_write_fd(int fd, const void *data, size_t len, const char *what,
                             struct err *err);

// Replaces the file at path: writes path + ".tmp.<thread id>" (mode 0644 less the umask), syncs it
// when durable is true, and renames it over path. On failure path is as before, the sentence names
// path, and no temporary file is left. One exception: when only the sync of the folder fails, the
// new content is in place.
MUST_CHECK int file_replace(const char *path, const void *data, size_t len, bool durable,
                            struct err *err);

// Writes a file whose name a user has given: follows symbolic links, replaces a regular file as
// file_replace does, and writes into a device or a fifo, which stays what it is.
MUST_CHECK int file_write_named(const char *path, const void *data, size_t len, bool durable,
                                struct err *err);
// ERR_USAGE when a command would write to the file that it reads, `input`.
MUST_CHECK int file_check_output(const char *path, const char *input, struct err *err);

// Like file_replace, with the temporary name chosen by the caller. It must be on the same file
// system and used by this thread alone. A process that is killed leaves the temporary file behind;
// its removal is the caller's task.
MUST_CHECK int file_replace_through(const char *path, const char *temp, const void *data,
                                    size_t len, bool durable, struct err *err);

// Creates the folder and its missing parents with mode 0700. A folder that exists is no error.
MUST_CHECK int file_make_dirs(const char *path, struct err *err);

// Takes an exclusive flock on the file at path, which is created if missing, and writes the pid
// into it. The lock lasts until *ret_fd is closed. ERR_BUSY when another process holds it; the
// sentence has that process's pid. When the holder has died, but a child that it was starting still
// shares the lock, waits for that child, at most 5 s.
MUST_CHECK int file_lock(int *ret_fd, const char *path, struct err *err);

// Fills those of stdin, stdout and stderr that are closed (`kcast status >&-`) with /dev/null,
// opened so that reading this stdin and writing this stdout or stderr fail with EBADF, as they
// would have done: nothing is lost in silence. Every program's main calls it before anything is
// opened, since a socket with one of these numbers would get what is printed, and libuv aborts when
// it closes it. Ends the process with exit code 9 on failure.
void file_open_standard(void);

// Flushes stdout, when everything has been printed. An error when something was not or could not be
// written, such as ERR_NO_SPACE on a full disk.
MUST_CHECK int file_flush_stdout(struct err *err);

// Whether stat(2) succeeds on path. Follows links.
bool file_exists(const char *path);

// Removes a file or a folder with everything in it. Does not follow links and stays on one file
// system. Does nothing when path does not exist. Goes on after an error and returns the first one.
MUST_CHECK int file_remove_tree(const char *path, struct err *err);

// The folder for temporary files: TMPDIR of the environment, else /tmp.
const char *file_temp_folder(void);

// Creates a new folder "<prefix>.XXXXXX" there. The caller frees *ret.
MUST_CHECK int file_make_temp_dir(char **ret, const char *prefix, struct err *err);

// The last component of path, as a pointer into path.
const char *file_base_name(const char *path);

// The path of another program of this project: in the folder of the running one, else in
// ../libexec/kernelcast. The caller frees *ret. ERR_NOT_FOUND names both places.
MUST_CHECK int file_own_program(char **ret, const char *name, struct err *err);

// The folder of the running executable. The caller frees *ret.
MUST_CHECK int file_own_dir(char **ret, struct err *err);

#endif
