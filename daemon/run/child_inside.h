// What child.c (states, signals, end) and child_pipes.c (stdin, stdout, stderr) share. Nobody else
// includes it.
#ifndef DAEMON_RUN_CHILD_INSIDE_H
#define DAEMON_RUN_CHILD_INSIDE_H

#include "daemon/run/child.h"
#include "daemon/run/tail.h"

#define CHILD_CHUNK 65536 // bytes of one read

struct children {
    uv_loop_t *loop;
    char *path;              // of kcast-exec
    struct cgroups *cgroups; // the caller's; NULL: none
    struct child *live;      // list of those whose handles are open
    size_t count;            // length of the list
    char **environment;      // of every child
    char chunk[CHILD_CHUNK]; // shared by all reads, because one is consumed before the next begins
};

enum child_state { CHILD_RUNNING, CHILD_TERMINATING, CHILD_KILLED, CHILD_DRAINING };

struct child {
    struct children *children;
    struct child *prev;
    struct child *next;
    enum child_state state;
    char *mode;
    char *argument;        // NULL: none
    struct cgroup *cgroup; // NULL: none
    uint64_t grace_ms;
    void (*on_output)(void *owner, const char *data, size_t len);
    void (*on_end)(void *owner, const struct child_end *end); // NULL once it has been called
    void *owner;
    uv_process_t process;
    uv_pipe_t input;
    uv_pipe_t output;
    uv_pipe_t errors;
    uv_timer_t timer;
    const char *limit; // completes the reason when the timer of child_limit() fires
    uv_write_t write;
    char head[CHILD_HEAD_MAX]; // being written
    struct bytes body;         // being written
    bool writing;
    bool last_write;   // stdin is closed after it
    struct tail tail;  // of stderr
    bool reaped;       // exit_status and term_signal are set
    bool output_ended; // stdout is at its end
    bool errors_ended; // stderr is at its end
    bool closing;      // its handles are being closed
    int open_handles;
    int64_t exit_status;
    int term_signal;
    struct child_end end; // filled until on_end is called
};

// child_pipes.c: begins to read stdout and stderr.
void child_read_pipes(struct child *child);
// child.c: closes a handle of the child, once.
void child_close_handle(uv_handle_t *handle);
// child.c: goes on to the end if the process has been reaped and both outputs are at their end.
void child_maybe_finish(struct child *child);

#endif
