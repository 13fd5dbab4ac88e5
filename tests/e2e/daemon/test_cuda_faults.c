// kcastd, the real kcast-exec and a GPU that fails while jobs run (tests/support/fake_gpu): what
// each fault does to a job, with which sentence, that the daemon goes on, and that the next job is
// served. Skipped where there is no CUDA compiler.
#include "common/file.h"
#include "proto/verdict.h"
#include "tests/support/daemon_client.h"
#include "tests/support/gpu.h"
#include "tests/support/until.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char problem[] =
    "{\"name\": \"p\", \"title\": \"y = a x\", \"license\": \"MIT\", \"language\": \"cuda\","
    "\"params\": [{\"name\": \"n\", \"type\": \"int\"}, {\"name\": \"a\", \"type\": \"f64\"}],"
    "\"tensors\": [{\"name\": \"x\", \"direction\": \"in\", \"dtype\": \"f32\", \"shape\": [\"n\"],"
    "\"values\": {\"distribution\": \"normal\", \"mean\": 0, \"stddev\": 1}},"
    "{\"name\": \"y\", \"direction\": \"out\", \"dtype\": \"f32\", \"shape\": [\"n\"],"
    "\"tolerance\": 4}], \"cases\": {\"check\": [{\"n\": 300, \"a\": 2}],"
    "\"bench\": [{\"params\": {\"n\": 2000, \"a\": 2.5}, \"weight\": 1}],"
    "\"hidden\": {\"n\": {\"min\": 1, \"max\": 3000}}},"
    "\"cache\": \"cold\", \"work\": {\"flops\": \"n\", \"bytes\": \"8*n\"}}";

#define KERNEL(name, parameters, args)                                                             \
    "//@ launch " name " grid=(ceildiv(n, 256)) block=(256) args=(" args ")\n"                     \
    "extern \"C\" __global__ void " name "(" parameters ") {}\n"
#define SCALE(name) KERNEL(name, "const float *x, float *y, int n, float a", "x, y, n, a")
#define REFERENCE                                                                                  \
    KERNEL("fk_ref_scale", "const float *x, double *y, double *s, int n, double a",                \
           "x, y, y_scale, n, a")

struct fixture {
    struct daemon_client *client;
    char *fault, *settings, *libraries; // path; "NAME=value"
    bool no_compiler;
    unsigned jobs; // so far
};

static void set_fault(const struct fixture *fixture, const char *word)
{
    struct err err = ERR_INIT;

    if (!word) {
        (void)unlink(fixture->fault);
    } else {
        assert_int_equal(file_replace(fixture->fault, word, strlen(word), false, &err), 0);
    }
}

// Nothing runs yet.
static struct fixture *make(void **state)
{
    struct fixture *fixture = xcalloc(1, sizeof(*fixture));
    char *folder = gpu_fake_folder();
    void *client;

    (void)daemon_client_set_up(&client);
    fixture->client = client;
    fixture->fault = xasprintf("%s/fault", fixture->client->program.dir);
    fixture->settings = xasprintf("KCAST_FAKE_GPU=noise=0.1;fault=@%s", fixture->fault);
    fixture->libraries = xasprintf("LD_LIBRARY_PATH=%s", folder);
    free(folder);
    fixture->client->real_exec = true;
    fixture->client->option[0] = "--devices=cuda";
    fixture->client->option[1] = "--exec-grace=100ms";
    fixture->client->variable[0] = fixture->settings;
    fixture->client->variable[1] = fixture->libraries;
    *state = fixture;
    return fixture;
}

static bool log_has(const struct fixture *fixture, const char *words)
{
    char *log = program_log(&fixture->client->program);
    bool has = strstr(log, words);

    free(log);
    return has;
}

static unsigned times_in_log(const struct fixture *fixture, const char *words)
{
    char *log = program_log(&fixture->client->program);
    unsigned times = 0;

    for (const char *at = log; (at = strstr(at, words)); at++) {
        times++;
    }
    free(log);
    return times;
}

static int set_up(void **state)
{
    struct fixture *fixture = make(state);

    if (!daemon_client_start(fixture->client)) {
        fixture->no_compiler = log_has(fixture, "no CUDA compiler");
        return fixture->no_compiler ? 0 : -1;
    }
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    void *client = fixture->client;

    set_fault(fixture, NULL);
    int code = daemon_client_tear_down(&client);
    code = fixture->no_compiler ? 0 : code;
    free(fixture->fault);
    free(fixture->settings);
    free(fixture->libraries);
    free(fixture);
    return code;
}

static void need_compiler(const struct fixture *fixture)
{
    if (fixture->no_compiler) {
        printf("skipped because there is no CUDA compiler\n");
        skip();
    }
}

static uint64_t submit(struct fixture *fixture, const char *baseline, const char *candidate,
                       bool fresh)
{
    struct daemon_client *client = fixture->client;
    struct job_spec spec = daemon_client_spec(client, candidate);
    char *key = xasprintf("%u", fixture->jobs);

    spec.problem = daemon_client_put(client, problem, strlen(problem));
    spec.reference = daemon_client_put(client, REFERENCE, strlen(REFERENCE));
    spec.baseline = daemon_client_put(client, baseline, strlen(baseline));
    spec.max_seconds = 200;        // never the clock of this machine
    spec.repeat = ++fixture->jobs; // never a cached result
    spec.fresh = fresh;
    struct submitted reply;
    struct err err = ERR_INIT;
    if (daemon_client_submit(client, "test", key, &spec, &reply, &err) != 0) {
        fail_msg("%s", err.text);
    }
    free(key);
    return reply.job;
}

static void expect(struct fixture *fixture, uint64_t job, enum job_state state,
                   enum verdict verdict, const char *words)
{
    struct job_info info;

    daemon_client_wait(fixture->client, job, &info);
    const char *reason = info.result ? info.result->reason : info.reason;
    reason = reason ? reason : "";
    if (info.state != state || (info.result && info.result->verdict != verdict) ||
        !strstr(reason, words)) {
        fail_msg("%s %s: %s; expected %s: %s", job_state_name(info.state),
                 info.result ? verdict_name(info.result->verdict) : "", reason,
                 job_state_name(state), words);
    }
    message_clear(&job_info_message, &info);
}

static void becomes(struct fixture *fixture, const char *candidate, enum verdict verdict,
                    const char *words)
{
    expect(fixture, submit(fixture, SCALE("fk_scale"), candidate, false), JOB_DONE, verdict, words);
}

static void is_served(struct fixture *fixture)
{
    becomes(fixture, SCALE("fk_scale_fast30"), VERDICT_FASTER, "");
}

// The fault is there for one job, which is lost twice; the next one is served.
static void buries(struct fixture *fixture, const char *fault, bool fresh, const char *words)
{
    set_fault(fixture, fault);
    uint64_t job = submit(fixture, SCALE("fk_scale"), SCALE("fk_scale"), fresh);
    expect(fixture, job, JOB_BURIED, VERDICT_NONE, words);
    set_fault(fixture, NULL);
    is_served(fixture);
}

// ---- faults of the GPU ----

static void a_gpu_that_computes_wrong_loses_the_job(void **state)
{
    need_compiler(*state);
    is_served(*state);
    buries(*state, "sick", false,
           "its executor was lost 2 times, the last time: kcast-exec cuda-measure");
    buries(*state, "sick", false, "the GPU computes wrong values in the health check");
}

static void a_memory_error_loses_the_job(void **state)
{
    need_compiler(*state);
    buries(*state, "dies:1", false, "CUDA_ERROR_ECC_UNCORRECTABLE");
    buries(*state, "dies:20", false, "CUDA_ERROR_ECC_UNCORRECTABLE"); // while it is timed
}

static void memory_that_is_used_up_loses_the_job(void **state)
{
    need_compiler(*state);
    // A process that has measured this problem needs no more memory for it.
    buries(*state, "full:1", true, "MiB of memory left");
    buries(*state, "full:3", true, "MiB of memory left"); // behind what each has when it is ready
}

// Processes that have their context go on; no other one can be had.
static void contexts_that_cannot_be_made_lose_the_job(void **state)
{
    struct fixture *fixture = *state;

    need_compiler(fixture);
    struct job_info info;
    message_init(&job_info_message, &info);
    is_served(fixture);
    set_fault(fixture, "context");
    is_served(fixture);
    // Processes that were ready may serve some more; the first job that is lost is enough, because
    // three in a row would take the GPU out of service.
    do {
        message_clear(&job_info_message, &info);
        daemon_client_wait(fixture->client,
                           submit(fixture, SCALE("fk_scale"), SCALE("fk_scale"), true), &info);
    } while (info.state == JOB_DONE);
    assert_int_equal(info.state, JOB_BURIED);
    assert_non_null(strstr(info.reason, "making a CUDA context: CUDA_ERROR_DEVICE_UNAVAILABLE"));
    message_clear(&job_info_message, &info);
    set_fault(fixture, NULL);
    is_served(fixture);
}

static void a_gpu_that_slows_down_is_measured_all_the_same(void **state)
{
    struct fixture *fixture = *state;

    need_compiler(fixture);
    set_fault(fixture, "slow:1:60");
    is_served(fixture);
    becomes(fixture, SCALE("fk_scale"), VERDICT_EQUIVALENT, "");
    set_fault(fixture, NULL);
    is_served(fixture);
}

// A launch that does not end in time may be the fault of whatever else is on the GPU. It is that of
// the candidate when that happens again.
static void a_gpu_that_stands_still_for_a_moment_makes_no_timeout(void **state)
{
    struct fixture *fixture = *state;

    need_compiler(fixture);
    set_fault(fixture, "stall");
    becomes(fixture, SCALE("fk_scale_fast30_stall"), VERDICT_FASTER, "");
    assert_int_equal(access(fixture->fault, F_OK), -1); // it did stand still
    assert_int_equal(times_in_log(fixture, "job-doubtful"), 1);
    becomes(fixture, SCALE("fk_scale_hang"), VERDICT_TIMEOUT, "did not end within 0.5 seconds");
    assert_int_equal(times_in_log(fixture, "job-doubtful"), 2);
    is_served(fixture);
}

// ---- faults of the candidate ----

static void a_kernel_that_breaks_the_context_breaks_nothing_else(void **state)
{
    static const struct {
        const char *candidate;
        enum verdict verdict;
        const char *words;
    } cases[] = {
        {SCALE("fk_scale_fault"), VERDICT_CRASH, "the candidate ended with CUDA_ERROR_ILLEGAL_ADD"},
        {SCALE("fk_scale_misaligned"), VERDICT_CRASH, "CUDA_ERROR_MISALIGNED_ADDRESS"},
        {SCALE("fk_scale_assert"), VERDICT_CRASH, "CUDA_ERROR_ASSERT"},
        {SCALE("fk_scale_hang"), VERDICT_TIMEOUT, "a launch did not end within 0.5 seconds"},
        {SCALE("fk_scale_toobig"), VERDICT_CRASH, "fk_scale_toobig: it cannot be launched"},
        {SCALE("fk_scale_oob"), VERDICT_WRONG, "it wrote outside y"},
        {SCALE("fk_scale_nothing"), VERDICT_WRONG, "nan, expected"},
        {"//@ scratch s bytes=1024 * 1024 * 1024\n" SCALE("fk_scale"), VERDICT_CRASH,
         "the GPU has no 1024.0 MiB of memory left"},
    };
    struct fixture *fixture = *state;

    need_compiler(fixture);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        becomes(fixture, cases[i].candidate, cases[i].verdict, cases[i].words);
        is_served(fixture);
    }
    assert_false(log_has(fixture, "job-lost"));
    struct status status;
    daemon_client_status(fixture->client, &status);
    assert_string_equal(status.devices[0].state, "ready");
    message_clear(&status_message, &status);
}

// Its state is that of the first launch at every launch.
static void device_variables_do_not_last(void **state)
{
    static const char counts[] =
        "//@ launch fk_scale_state grid=(ceildiv(n, 256)) block=(256) args=(x, y, n, a)\n"
        "__device__ int state;\n"
        "extern \"C\" __global__ void fk_scale_state(const float *x, float *y, int n, float a)\n"
        "{ if (x[0] == a) state = n; y[state] = 0; }\n";

    need_compiler(*state);
    becomes(*state, counts, VERDICT_EQUIVALENT, "");
}

static void a_baseline_that_fails_loses_the_job(void **state)
{
    static const char *const cases[][2] = {
        {SCALE("fk_scale_hang"), "the baseline did not end within 10 seconds"},
        {SCALE("fk_scale_fault"), "the baseline ended with CUDA_ERROR_ILLEGAL_ADDRESS"},
        {SCALE("fk_scale_wrong"), "the baseline disagrees with the reference"},
    };
    struct fixture *fixture = *state;

    need_compiler(fixture);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        expect(fixture, submit(fixture, cases[i][0], SCALE("fk_scale"), false), JOB_BURIED,
               VERDICT_NONE, cases[i][1]);
        is_served(fixture);
    }
}

// ---- the GPU's state ----

static bool device_is(struct fixture *fixture, const char *state, const char *words)
{
    struct status status;

    daemon_client_status(fixture->client, &status);
    bool found =
        strcmp(status.devices[0].state, state) == 0 &&
        (words[0] == '\0' || (status.devices[0].reason && strstr(status.devices[0].reason, words)));
    message_clear(&status_message, &status);
    return found;
}

static void bury_three(struct fixture *fixture, const char *fault)
{
    set_fault(fixture, fault);
    for (int i = 0; i < 3; i++) {
        (void)submit(fixture, SCALE("fk_scale"), SCALE("fk_scale"), false);
    }
}

static void three_lost_jobs_have_it_probed(void **state)
{
    struct fixture *fixture = *state;

    need_compiler(fixture);
    bury_three(fixture, "dies:1"); // which a probe does not find
    for (unsigned i = 1; i <= 3; i++) {
        expect(fixture, i, JOB_BURIED, VERDICT_NONE, "CUDA_ERROR_ECC_UNCORRECTABLE");
    }
    set_fault(fixture, NULL);
    is_served(fixture); // after the probe
    assert_true(log_has(fixture, "probing"));
    UNTIL(device_is(fixture, "ready", ""));
}

static void a_probe_that_fails_puts_it_out_of_service(void **state)
{
    struct fixture *fixture = *state;

    need_compiler(fixture);
    bury_three(fixture, "sick");
    UNTIL(device_is(fixture, "quarantined", "the GPU computes wrong values in the health check"));
}

// ---- at the start ----

static void an_ill_gpu_is_not_offered(void **state)
{
    static const char *const cases[][2] = {
        {"sick", "the GPU computes wrong values in the health check"},
        {"context", "making a CUDA context: CUDA_ERROR_DEVICE_UNAVAILABLE"},
        {"oom:1", "of memory left"},
        {"init", "the CUDA driver finds no GPU: CUDA_ERROR_UNKNOWN"},
        {"no-device", "CUDA_ERROR_NO_DEVICE"},
    };
    struct fixture *fixture = *state;

    need_compiler(fixture);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        daemon_client_disconnect(fixture->client);
        assert_int_equal(program_stop(&fixture->client->program), 0);
        set_fault(fixture, cases[i][0]);
        fixture->client->option[0] = "--devices=auto";
        assert_true(daemon_client_start(fixture->client));
        struct status status;
        daemon_client_status(fixture->client, &status);
        for (size_t d = 0; d < status.devices_count; d++) {
            assert_string_equal(status.devices[d].language, "c");
        }
        message_clear(&status_message, &status);
        if (!log_has(fixture, cases[i][1])) {
            fail_msg("%s", program_log(&fixture->client->program));
        }
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test(name)
    // One daemon for all of these: each leaves a GPU that works.
    const struct CMUnitTest tests[] = {
        TEST(a_gpu_that_computes_wrong_loses_the_job),
        TEST(a_memory_error_loses_the_job),
        TEST(memory_that_is_used_up_loses_the_job),
        TEST(contexts_that_cannot_be_made_lose_the_job),
        TEST(a_gpu_that_slows_down_is_measured_all_the_same),
        TEST(device_variables_do_not_last),
        TEST(a_baseline_that_fails_loses_the_job),
    };
#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest alone[] = {
        TEST(a_gpu_that_stands_still_for_a_moment_makes_no_timeout),
        TEST(a_kernel_that_breaks_the_context_breaks_nothing_else),
        TEST(three_lost_jobs_have_it_probed),
        TEST(a_probe_that_fails_puts_it_out_of_service),
        TEST(an_ill_gpu_is_not_offered),
    };
#undef TEST
    int failed = cmocka_run_group_tests(tests, set_up, tear_down);

    return failed + cmocka_run_group_tests(alone, NULL, NULL);
}
