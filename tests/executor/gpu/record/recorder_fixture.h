// Recording without a GPU, in the recorder's real sandbox. recorder_init leaves it to the test
// which interpreter there is. recorder_set_up has candidates in Python recorded from end to end, by
// one with a stand-in for PyTorch (tests/support/fake_torch) and with a driver that captures graphs
// on the host (tests/support/fake_capture). For tests of the recorder and of its jail, so it is a
// header only.
#ifndef TESTS_EXECUTOR_GPU_RECORD_RECORDER_FIXTURE_H
#define TESTS_EXECUTOR_GPU_RECORD_RECORDER_FIXTURE_H

#include "executor/gpu/record/record.h"
#include "proto/verdict.h"
#include "tests/support/gpu.h"
#include "tests/support/gpu_recording.h"
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define RECORDER_LIMIT 20.0 // seconds of processor time, which nothing here comes near
// The begin of candidates, and of one that scales, to which LAUNCH belongs.
#define HEAD "import os, signal, socket, stat, sys, torch\n"
#define SCALE HEAD "def custom_kernel(data):\n    x, y, a = data\n"
#define LAUNCH "    torch.launch('fk_scale', x, y, x.numel(), a)\n"

struct recorder_fixture {
    struct recorder recorder; // one for all tests: each request has a process of its own
    struct compile_plan plan;
    struct fact facts[2];
    char folder[64]; // with the interpreter, where everybody may go
    char python[128];
    struct problem *problem;
    struct compile_outcome outcome;
    struct cuda_object object; // of the last recording that was read
    struct err err;
};

static inline void recorder_run(const char *const *argv)
{
    int status = -1;
    pid_t pid;

    assert_int_equal(posix_spawn(&pid, argv[0], NULL, NULL, (char *const *)argv, environ), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

// The folder is made and empty; the test sets python, the path that the plan names.
static inline void recorder_init(struct recorder_fixture *f)
{
    *f = (struct recorder_fixture){.recorder = RECORDER_INIT};
    message_init(&compile_plan_message, &f->plan);
    message_init(&compile_outcome_message, &f->outcome);
    message_init(&cuda_object_message, &f->object);
    snprintf(f->folder, sizeof(f->folder), "/tmp/kcast-test-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    assert_int_equal(chmod(f->folder, 0755), 0);
    assert_int_equal(setenv("TMPDIR", f->folder, 1), 0);
    f->problem = gpu_recording_problem();
    f->facts[0] = (struct fact){.name = "l2_bytes", .value = GPU_RECORDING_L2};
    f->facts[1] = (struct fact){.name = "multiprocessors", .value = 132};
    f->plan.problem = (struct bytes){.data = (unsigned char *)(uintptr_t)gpu_recording_problem_text,
                                     .len = strlen(gpu_recording_problem_text)};
    f->plan.target = "sm_90";
    f->plan.role = COMPILE_CANDIDATE;
    f->plan.facts = f->facts;
    f->plan.facts_count = 2;
    f->plan.python = f->python;
    f->plan.max_seconds = RECORDER_LIMIT;
    f->plan.max_output = 32 << 20;
}

// The folder stays.
static inline void recorder_release(struct recorder_fixture *f)
{
    recorder_stop(&f->recorder);
    assert_int_equal(unsetenv("TMPDIR"), 0);
    message_clear(&cuda_object_message, &f->object);
    message_clear(&compile_outcome_message, &f->outcome);
    problem_free(f->problem);
}

static inline int recorder_set_up(void **state)
{
    struct recorder_fixture *f = xcalloc(1, sizeof(*f));
    char *fakes = gpu_fake_folder();

    recorder_init(f);
    recorder_run((const char *const[]){"/bin/sh", "tests/support/recorder_environment.sh",
                                       f->folder, fakes, NULL});
    free(fakes);
    snprintf(f->python, sizeof(f->python), "%s/env/bin/python3", f->folder);
    *state = f;
    return 0;
}

static inline int recorder_tear_down(void **state)
{
    struct recorder_fixture *f = *state;

    recorder_release(f);
    recorder_run((const char *const[]){"/bin/rm", "-rf", f->folder, NULL});
    free(f);
    return 0;
}

static inline int recorder_try(struct recorder_fixture *f, const char *source)
{
    f->plan.source =
        (struct bytes){.data = (unsigned char *)(uintptr_t)source, .len = strlen(source)};
    message_clear(&compile_outcome_message, &f->outcome);
    f->err = (struct err)ERR_INIT;
    return record_cuda(&f->plan, &f->recorder, NULL, &f->outcome, &f->err);
}

static inline const struct compiled *recorder_record(struct recorder_fixture *f, const char *source)
{
    if (recorder_try(f, source) != 0) {
        fail_msg("%s", f->err.text);
    }
    return f->outcome.compiled;
}

static inline void recorder_becomes(struct recorder_fixture *f, const char *source,
                                    enum verdict verdict, const char *words)
{
    const struct compiled *compiled = recorder_record(f, source);
    const char *reason = compiled->reason ? compiled->reason : "";

    if (compiled->verdict != verdict || !strstr(reason, words)) {
        fail_msg("%s: %s; expected %s: %s; of\n%s", verdict_name(compiled->verdict), reason,
                 verdict_name(verdict), words, source);
    }
}

#endif
