// A reference in Python is recorded for each candidate, with the hidden cases that are the
// candidate's; a sealed one is compiled once for all.
#include "daemon/run/setup.h"
#include "daemon/store/blob.h"
#include "proto/verdict.h"
#include "tests/support/daemon_client.h"
#include "tests/support/gpu_object.h"
#include "tests/support/workshop.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PYTHON "def reference(A):\n    return A, A.abs()\n"
#define SEALED "//@ launch f grid=(1) block=(1) args=(A, B, B_scale)\n"

struct fixture {
    struct workshop w;
    unsigned compiled[3]; // how often, by enum compile_role
    uint64_t seed[3];     // of the last one
    char name[3][64];     // of the last one's source
};

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    struct gpu_info gpu;

    workshop_open(&f->w, 1);
    message_init(&gpu_info_message, &gpu);
    gpu.uuid = (char *)(uintptr_t) "GPU-0";
    gpu.target = (char *)(uintptr_t) "sm_90";
    gpu.device_class = (char *)(uintptr_t) "a gpu";
    devices_add_gpu(&f->w.devices, &gpu, "nvrtc 0.0");
    for (size_t i = 0; i < f->w.devices.count; i++) {
        device_drain(&f->w.devices.device[i], "by hand"); // nothing is measured
    }
    f->w.problem = workshop_put(&f->w, daemon_client_cuda_problem);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    workshop_close(&f->w);
    free(f);
    return 0;
}

// A compilation or a recording under way; NULL: there is none.
static struct execution *making(const struct fixture *f)
{
    struct execution *execution = f->w.executions;

    while (execution && (execution->stopped || (strcmp(execution->name, "cuda-compile") != 0 &&
                                                strcmp(execution->name, "cuda-record") != 0))) {
        execution = execution->next;
    }
    return execution;
}

// Ends one with an object that names its source and hidden cases. What is Python is recorded.
static void make(struct fixture *f, struct execution *execution, const char *refusal_of_reference)
{
    struct compile_plan plan;
    struct compile_outcome outcome;
    struct compiled compiled;

    assert_int_equal(
        message_read(&compile_plan_message, &plan, execution->plan.data, execution->plan.len, NULL),
        0);
    assert_string_equal(execution->name, memmem(plan.source.data, plan.source.len, "def ", 4)
                                             ? "cuda-record"
                                             : "cuda-compile");
    message_init(&compile_outcome_message, &outcome);
    message_init(&compiled_message, &compiled);
    outcome.compiled = &compiled;
    f->compiled[plan.role]++;
    f->seed[plan.role] = plan.hidden_seed;
    (void)snprintf(f->name[plan.role], sizeof(f->name[0]), "%s", plan.name);
    if (refusal_of_reference && plan.role == COMPILE_REFERENCE) {
        compiled.verdict = VERDICT_REJECTED;
        compiled.reason = (char *)(uintptr_t)refusal_of_reference;
    } else {
        char *text = xasprintf("%.*s of %llu", (int)plan.source.len, (char *)plan.source.data,
                               (unsigned long long)plan.hidden_seed);

        compiled.no_machine_code = plan.no_machine_code;
        outcome.object = gpu_object(text, "f 8 8 8");
        free(text);
    }
    workshop_compile_outcome(&f->w, execution, &outcome);
    bytes_clear(&outcome.object);
    message_clear(&compile_plan_message, &plan);
}

static void compile_until(struct fixture *f, const struct job *job, enum job_state state,
                          const char *refusal_of_reference)
{
    while (job->state != state) {
        struct execution *execution = making(f);

        if (execution) {
            make(f, execution, refusal_of_reference);
        } else {
            workshop_turn(&f->w);
        }
    }
}

static struct job *prepare(struct fixture *f, const char *key, const char *source)
{
    struct job *job = workshop_submit(&f->w, JOB_MEASURE, key, source, NULL);

    compile_until(f, job, JOB_READY, NULL);
    return job;
}

static void one_in_python_is_each_candidates_own(void **state)
{
    struct fixture *f = *state;

    f->w.reference = workshop_put(&f->w, PYTHON);
    const struct job *one = prepare(f, "k1", "one");
    uint64_t seed = f->seed[COMPILE_REFERENCE];
    assert_int_equal(seed, f->seed[COMPILE_CANDIDATE]);
    assert_string_equal(f->name[COMPILE_REFERENCE], "reference.py");
    assert_string_equal(f->name[COMPILE_BASELINE], "baseline.cu");
    assert_true(blob_have(f->w.parts.blobs, &one->reference));
    const struct job *two = prepare(f, "k2", "two");
    assert_int_equal(f->seed[COMPILE_REFERENCE], f->seed[COMPILE_CANDIDATE]);
    assert_int_not_equal(f->seed[COMPILE_REFERENCE], seed);
    assert_false(digest_equal(&one->reference, &two->reference));
    assert_int_equal(f->compiled[COMPILE_CANDIDATE], 2);
    assert_int_equal(f->compiled[COMPILE_REFERENCE], 2);
    assert_int_equal(f->compiled[COMPILE_BASELINE], 1);
    // The same candidate again has the same hidden cases, so it is found in the cache.
    const struct job *again = prepare(f, "k3", "one");
    assert_true(digest_equal(&one->reference, &again->reference));
    assert_true(again->compile_seconds == 0);
    assert_int_equal(f->compiled[COMPILE_REFERENCE], 2);
    setup_forget_objects(one->setup, &one->candidate); // what is missing is recorded again
    const struct job *anew = prepare(f, "k5", "one");
    assert_true(digest_equal(&one->reference, &anew->reference));
    assert_int_equal(f->compiled[COMPILE_REFERENCE], 3);
    // Another reference is another recording.
    f->w.reference = workshop_put(&f->w, "# another\n" PYTHON);
    const struct job *other = prepare(f, "k4", "one");
    assert_false(digest_equal(&one->reference, &other->reference));
    assert_true(other->compile_seconds > 0); // which it pays for, though its candidate is cached
    assert_int_equal(f->compiled[COMPILE_REFERENCE], 4);
    assert_int_equal(f->compiled[COMPILE_CANDIDATE], 2);
}

static void without_hidden_cases_it_is_recorded_once_for_all(void **state)
{
    struct fixture *f = *state;
    char *text = xstrdup(daemon_client_cuda_problem);
    char *hidden = strstr(text, ", \"hidden\""), *end = strstr(text, "}}},");

    memset(hidden, ' ', (size_t)(end + 2 - hidden));
    f->w.problem = workshop_put(&f->w, text);
    f->w.reference = workshop_put(&f->w, PYTHON);
    const struct job *one = prepare(f, "k1", "one");
    const struct job *two = prepare(f, "k2", "two");
    assert_int_equal(f->compiled[COMPILE_CANDIDATE], 2);
    assert_int_equal(f->compiled[COMPILE_REFERENCE], 1);
    assert_string_equal(f->name[COMPILE_REFERENCE], "reference.py");
    assert_true(digest_is_zero(&one->reference) && digest_is_zero(&two->reference));
    assert_true(blob_have(f->w.parts.blobs, &one->setup->reference.object));
    free(text);
}

static void a_sealed_one_is_compiled_once_for_all(void **state)
{
    struct fixture *f = *state;

    f->w.reference = workshop_put(&f->w, SEALED);
    const struct job *one = prepare(f, "k1", "one");
    const struct job *two = prepare(f, "k2", "two");
    assert_int_equal(f->compiled[COMPILE_REFERENCE], 1);
    assert_int_equal(f->seed[COMPILE_REFERENCE], 0);
    assert_string_equal(f->name[COMPILE_REFERENCE], "reference.cu");
    assert_true(digest_is_zero(&one->reference) && digest_is_zero(&two->reference));
}

static void what_cannot_be_recorded_is_said_of_the_reference(void **state)
{
    struct fixture *f = *state;
    struct result result;

    f->w.reference = workshop_put(&f->w, PYTHON);
    for (int i = 0; i < 2; i++) { // the second time it is known
        struct job *job =
            workshop_submit(&f->w, JOB_MEASURE, i == 0 ? "k1" : "k2", i == 0 ? "1" : "2", NULL);

        compile_until(f, job, JOB_DONE, "reference.py:2: it reads a result on the host");
        workshop_until_state(&f->w, job, JOB_DONE);
        assert_int_equal(
            message_read(&result_message, &result, job->result.data, job->result.len, NULL), 0);
        assert_int_equal(result.verdict, VERDICT_COMPILE_ERROR);
        assert_string_equal(result.reason, "reference.py of problem copy cannot be recorded: "
                                           "reference.py:2: it reads a result on the host");
        message_clear(&result_message, &result);
    }
    assert_int_equal(f->compiled[COMPILE_REFERENCE], 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_in_python_is_each_candidates_own),
        TEST(without_hidden_cases_it_is_recorded_once_for_all),
        TEST(a_sealed_one_is_compiled_once_for_all),
        TEST(what_cannot_be_recorded_is_said_of_the_reference),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
