// A test's view of kcastd: starts it with a state directory that survives its restarts, and calls
// its operations one at a time. Calls that are expected to succeed end the test with the error's
// sentence when they do not.
#ifndef TESTS_SUPPORT_DAEMON_CLIENT_H
#define TESTS_SUPPORT_DAEMON_CLIENT_H

#include "net/rpc/remote.h"
#include "tests/support/program.h"
#include <uv.h>

#define DAEMON_OPTION_MAX 16

struct daemon_client {
    struct program program;
    uv_loop_t loop;
    struct remote *remote;
    char *state;                             // state directory, in program.dir
    char *log;                               // what the fake executor writes
    const char *option[DAEMON_OPTION_MAX];   // more options (one device unless they say otherwise),
                                             // NULL-terminated
    const char *variable[DAEMON_OPTION_MAX]; // environment, NULL-terminated
    bool real_exec;                          // kcast-exec instead of the fake one
    bool no_wait; // start does not wait until it is ready, and does not connect
};

// cmocka fixtures: *state is a client that is initialised, or started as well.
int daemon_client_set_up(void **state);
int daemon_client_set_up_started(void **state);
int daemon_client_tear_down(void **state);

// Nothing runs yet: options and variables may be set.
void daemon_client_init(struct daemon_client *client);
// Starts kcastd and connects; false when it ended before it was ready.
bool daemon_client_start(struct daemon_client *client);
// Connects to one that was started with no_wait and is ready now.
void daemon_client_connect(struct daemon_client *client);
// Ends the connection; the program goes on.
void daemon_client_disconnect(struct daemon_client *client);
void daemon_client_release(struct daemon_client *client); // kills it if it runs

// 0 or the error's code. reply as remote_call_sync; message_clear it.
int daemon_client_call(struct daemon_client *client, enum op op, const struct message *body_message,
                       const void *body, const struct message *answer_message, void *reply,
                       struct err *err);
// Stores bytes; their digest.
struct digest daemon_client_put(struct daemon_client *client, const void *data, size_t len);
// A MEASURE spec about a small problem whose blobs have been stored. candidate: source.
struct job_spec daemon_client_spec(struct daemon_client *client, const char *candidate);
// Returns the source as the key of a job, which has no control characters; until the next call.
const char *daemon_client_key_of(const char *source);
int daemon_client_submit(struct daemon_client *client, const char *search, const char *key,
                         const struct job_spec *spec, struct submitted *ret, struct err *err);
// The same for a SUBMIT that must be accepted.
struct submitted daemon_client_submit_ok(struct daemon_client *client, const char *search,
                                         const char *key, const struct job_spec *spec);
// The number of a job that must be accepted.
uint64_t daemon_client_accepted(struct daemon_client *client, const char *key,
                                const char *candidate);
// One WAIT for these jobs; *ret is the caller's (message_clear).
void daemon_client_wait_once(struct daemon_client *client, const uint64_t *jobs, size_t count,
                             uint64_t max_ms, struct waited *ret);
// Waits until this job is finished; *ret is the caller's (message_clear).
void daemon_client_wait(struct daemon_client *client, uint64_t job, struct job_info *ret);
// The same, and checks its end: the state, and for DONE the verdict (0: any).
void daemon_client_expect(struct daemon_client *client, uint64_t job, uint64_t state,
                          uint64_t verdict);
// A WAIT that is parked while the test goes on, on the client's loop; zeroed at first.
struct long_poll {
    size_t answers;
    size_t jobs;    // of the last answer
    uint64_t first; // of them; 0: none
};
void daemon_client_park(struct daemon_client *client, uint64_t *jobs, size_t count, uint64_t max_ms,
                        struct long_poll *poll);
void daemon_client_cancel(struct daemon_client *client, uint64_t job, struct job_info *ret);
void daemon_client_ack(struct daemon_client *client, uint64_t job);
void daemon_client_status(struct daemon_client *client, struct status *ret);
// Until the job is in `state`, which it must not have left again in between.
void daemon_client_until(struct daemon_client *client, uint64_t job, uint64_t state);

// Lines of the fake executor's log that begin with mode ("measure") and are about this candidate
// (NULL: any).
size_t daemon_client_runs(const struct daemon_client *client, const char *mode,
                          const char *candidate);

// A gate of the fake executor (see fake_exec.c): two FIFOs under the program's directory.
char *daemon_client_gate(struct daemon_client *client,
                         const char *name);      // makes them; the path, malloc'd
pid_t daemon_client_gate_wait(const char *path); // until the executor is there; its pid
void daemon_client_gate_open(const char *path);  // lets it go on

extern const char daemon_client_problem[];      // the small problem's JSON
extern const char daemon_client_cuda_problem[]; // the same in CUDA

#endif
