// One of our programs under test: started with a private NOTIFY_SOCKET, its own temporary
// directory, and its stderr in a file. Waiting is for events (a datagram, the end of the process),
// never for time to pass; the limits only keep a broken test from hanging. Everything that goes
// wrong here ends the test program with a sentence.
#ifndef TESTS_SUPPORT_PROGRAM_H
#define TESTS_SUPPORT_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define PROGRAM_LIMIT_MS 60000 // for everything that should happen at once (sanitizers are slow)

struct program {
    pid_t pid;      // 0: not running
    int pid_fd;     // readable when it has ended
    int notify_fd;  // its NOTIFY_SOCKET
    char *dir;      // temporary, removed by program_release
    char *log_path; // its stderr since the last start
    char *url;      // from READY's STATUS; NULL before
    char *status;   // the last STATUS; NULL before
    bool stopping;  // it has said STOPPING=1
    int exit_code;  // after its end: the code, or minus the signal
};

// Where things are: $KCAST_BIN/name (build/debug/bin by default), $KCAST_BUILD/tests/support/name.
// malloc'd.
char *program_path(const char *name);
char *program_support_path(const char *name);

// Makes the directory and the socket. Nothing runs yet.
void program_init(struct program *program);
// Starts argv[0] with the parent's environment plus `environment` ("NAME=value", NULL-terminated;
// may be NULL). May be called again after the end.
void program_start(struct program *program, const char *const *argv,
                   const char *const *environment);
// Until READY=1. False when the program ends before.
bool program_wait_ready(struct program *program);
// The next datagram on its NOTIFY_SOCKET. False when it ends before.
bool program_read_note(struct program *program);
// Until it ends; its exit code, or minus the signal.
int program_wait(struct program *program);
int program_stop(struct program *program); // SIGTERM, and the same
int program_kill(struct program *program); // SIGKILL, and the same
// What it has written to stderr, and to stdout, since the last start; malloc'd.
char *program_log(const struct program *program);
char *program_output(const struct program *program);
// Kills it if it runs, removes the directory.
void program_release(struct program *program);

// Whether a process of this number exists and is no zombie.
bool program_alive(pid_t pid);
// The children of a process (of its main thread), at most max; returns how many.
size_t program_children(pid_t parent, pid_t *pids, size_t max);

#endif
