// Runs of the fake executor through the real executors, and who answered them.
#ifndef TESTS_SUPPORT_DAEMON_EXECUTOR_RUNS_H
#define TESTS_SUPPORT_DAEMON_EXECUTOR_RUNS_H

#include "daemon/run/executors.h"
#include "proto/messages.h"

struct runs_fixture {
    uv_loop_t loop;
    struct executors *executors;
    char *dir;
    char *log; // of the fake executor
    unsigned pending;
};

struct executor_run {
    struct runs_fixture *fixture;
    struct executor *executor;
    struct executor_end end;
    bool ended;
};

int runs_set_up(void **state);
void runs_open_executors(struct runs_fixture *f);
int runs_tear_down(void **state);
struct bytes runs_pack(const struct message *message, const void *value);
// A plan whose candidate says these words; they tell the fake executor what to do.
struct bytes runs_plan_of(const char *words, bool cuda);
// Keeps the end in the struct executor_run that is its owner.
void runs_on_end(void *owner, struct executor_end *end);
// Whether the outcome says that its process must not be used again.
bool runs_is_last(void *owner, const struct bytes *outcome);
struct executor_config runs_cuda_config(const char *search);
// Starts a run with this plan; runs_wait_for waits for its end, and runs_ask does both.
void runs_begin(struct runs_fixture *f, struct executor_run *run, struct executor_config config,
                const char *words);
void runs_wait_for(struct runs_fixture *f);
void runs_ask(struct runs_fixture *f, struct executor_run *run, struct executor_config config,
              const char *words);
// What the process that answered says about itself: its pid, and how many it had answered before.
void runs_teller(struct executor_run *run, int *ret_pid, unsigned *ret_answered);
// Runs a plan and returns the pid of the process that answered it, its answer number `answered`.
int runs_pid_of(struct runs_fixture *f, struct executor_config config, unsigned answered);
// Runs a plan that gives no outcome, for a reason that contains the text.
void runs_expect_lost(struct runs_fixture *f, struct executor_config config, const char *words,
                      const char *text);
// How many processes of this mode have been started, by the log of the fake executor.
size_t runs_starts(const struct runs_fixture *f, const char *mode);
void runs_until_started(struct runs_fixture *f, const char *mode, size_t count);

#endif
