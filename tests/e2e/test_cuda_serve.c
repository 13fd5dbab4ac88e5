// kcast-exec cuda-measure and its frames, with a GPU that is not there: ready, plans and reports,
// and how the process ends. Skipped where there is no CUDA compiler.
#include "common/mem.h"
#include "proto/verdict.h"
#include "tests/support/gpu.h"
#include "tests/support/gpu_object.h"
#include "tests/support/program.h"
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT_S 120 // for one test: nothing here should wait
#define SIZES " 8 8 4 4"

static const char problem[] =
    "{\"name\": \"p\", \"title\": \"y = a x\", \"license\": \"MIT\", \"language\": \"cuda\","
    "\"params\": [{\"name\": \"n\", \"type\": \"int\"}, {\"name\": \"a\", \"type\": \"f64\"}],"
    "\"tensors\": [{\"name\": \"x\", \"direction\": \"in\", \"dtype\": \"f32\", \"shape\": [\"n\"],"
    "\"values\": {\"distribution\": \"normal\", \"mean\": 0, \"stddev\": 1}},"
    "{\"name\": \"y\", \"direction\": \"out\", \"dtype\": \"f32\", \"shape\": [\"n\"],"
    "\"tolerance\": 4}], \"cases\": {\"check\": [{\"n\": 300, \"a\": 2}],"
    "\"bench\": [{\"params\": {\"n\": 2000, \"a\": 2.5}, \"weight\": 1}]},"
    "\"cache\": \"warm\", \"work\": {\"flops\": \"n\", \"bytes\": \"8*n\"}}";

struct server {
    pid_t pid;
    int in, out; // its stdin and stdout
    FILE *log;   // its stderr
};

static void run_server(const struct server *server, int in, int out, const char *mode,
                       const char *settings)
{
    char *path = program_path("kcast-exec"), *folder = gpu_fake_folder();

    setenv("KCAST_FAKE_GPU", settings, 1);
    setenv("LD_LIBRARY_PATH", folder, 1);
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(fileno(server->log), STDERR_FILENO);
    execl(path, path, mode, "0", (char *)NULL);
    _exit(127);
}

static void start(struct server *server, const char *mode, const char *settings)
{
    int in[2], out[2];

    alarm(LIMIT_S);
    server->log = tmpfile();
    assert_non_null(server->log);
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    server->pid = fork();
    assert_true(server->pid >= 0);
    if (server->pid == 0) {
        run_server(server, in[0], out[1], mode, settings);
    }
    close(in[0]);
    close(out[1]);
    server->in = in[1];
    server->out = out[0];
}

static bool read_all(int fd, void *data, size_t len)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = read(fd, (char *)data + done, len - done);

        if (n <= 0) {
            return false;
        }
        done += (size_t)n;
    }
    return true;
}

// A frame of its stdout; false at the end of it.
static bool read_frame(const struct server *server, struct bytes *ret)
{
    unsigned char head[4];

    if (!read_all(server->out, head, sizeof(head))) {
        return false;
    }
    ret->len = (size_t)head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16;
    ret->data = xmalloc(ret->len + 1);
    assert_true(read_all(server->out, ret->data, ret->len));
    return true;
}

static void write_frame(const struct server *server, const void *data, size_t len)
{
    unsigned char head[4] = {(unsigned char)len, (unsigned char)(len >> 8),
                             (unsigned char)(len >> 16), 0};

    assert_int_equal(write(server->in, head, 4), 4);
    assert_int_equal(write(server->in, data, len), (ssize_t)len);
}

static void await_ready(const struct server *server)
{
    struct bytes frame;

    assert_true(read_frame(server, &frame));
    assert_int_equal(frame.len, 0);
    bytes_clear(&frame);
}

static struct bytes object(const char *kernel)
{
    char *source = xasprintf("//@ launch %s grid=(1) block=(256) args=(x, y, n, a)\n", kernel);
    char *kernels = xasprintf("%s" SIZES, kernel);
    struct bytes packed = gpu_object(source, kernels);

    free(source);
    free(kernels);
    return packed;
}

static void ask(const struct server *server, const char *baseline, const char *candidate)
{
    struct measure_plan plan;

    message_init(&measure_plan_message, &plan);
    plan.problem = bytes_copy(problem, strlen(problem));
    plan.reference = gpu_object("//@ launch fk_ref_scale grid=(1) block=(256)"
                                " args=(x, y, y_scale, n, a)\n",
                                "fk_ref_scale 8 8 8 4 8");
    plan.baseline = object(baseline);
    plan.candidate = object(candidate);
    plan.seed = 3;
    plan.max_seconds = 1e6;
    plan.launch_seconds = 1;
    struct strbuf packed = STRBUF_INIT;
    struct err err = ERR_INIT;
    assert_int_equal(message_pack(&measure_plan_message, &plan, &packed, &err), 0);
    write_frame(server, packed.data, packed.len);
    strbuf_release(&packed);
    message_clear(&measure_plan_message, &plan);
}

static void expect(const struct server *server, enum verdict verdict, const char *words,
                   bool retire)
{
    struct bytes frame;

    assert_true(read_frame(server, &frame));
    struct measure_outcome report;
    struct err err = ERR_INIT;
    assert_int_equal(message_read(&measure_outcome_message, &report, frame.data, frame.len, &err),
                     0);
    if (report.result->verdict != verdict || report.retire != retire ||
        (words && !strstr(report.result->reason, words))) {
        fail_msg("%s: %s", verdict_name(report.result->verdict), report.result->reason);
    }
    message_clear(&measure_outcome_message, &report);
    bytes_clear(&frame);
}

// Nothing more comes, and the process ends with this code and, on stderr, this sentence ("": none).
static void expect_end(struct server *server, int code, const char *words)
{
    struct bytes frame = {.len = 0};

    assert_false(read_frame(server, &frame));
    int status = 0;
    assert_int_equal(waitpid(server->pid, &status, 0), server->pid);
    rewind(server->log);
    char log[4096];
    size_t len = fread(log, 1, sizeof(log) - 1, server->log);
    log[len] = '\0';
    if (!WIFEXITED(status) || WEXITSTATUS(status) != code || (words[0] == '\0') != (len == 0) ||
        !strstr(log, words)) {
        fail_msg("status %x: %s; expected %d: %s", status, log, code, words);
    }
    close(server->in);
    close(server->out);
    fclose(server->log);
    alarm(0);
}

// Ends its stdin: it has no more plans to expect.
static void end_plans(struct server *server)
{
    close(server->in);
    server->in = -1;
}

static void plans_are_answered_until_stdin_ends(void **state)
{
    (void)state;
    struct server server;
    start(&server, "cuda-measure", "noise=0.2");
    await_ready(&server);
    ask(&server, "fk_scale", "fk_scale_fast30");
    expect(&server, VERDICT_FASTER, NULL, false);
    ask(&server, "fk_scale", "fk_scale_wrong");
    expect(&server, VERDICT_WRONG, "y[299] is", false);
    ask(&server, "fk_scale", "fk_scale");
    expect(&server, VERDICT_EQUIVALENT, NULL, false);
    end_plans(&server);
    expect_end(&server, EXIT_OK, "");
}

// It ends by itself after the report that says so.
static void a_fault_ends_it_after_its_report(void **state)
{
    (void)state;
    struct server server;
    start(&server, "cuda-measure", "");
    await_ready(&server);
    ask(&server, "fk_scale", "fk_scale_fault");
    expect(&server, VERDICT_CRASH, "CUDA_ERROR_ILLEGAL_ADDRESS", true);
    expect_end(&server, EXIT_OK, "");
}

static void a_hang_ends_it_after_its_report(void **state)
{
    (void)state;
    struct server server;
    start(&server, "cuda-measure", "");
    await_ready(&server);
    ask(&server, "fk_scale", "fk_scale_hang");
    expect(&server, VERDICT_TIMEOUT, "a launch did not end within 0.5 seconds, for n=300", true);
    expect_end(&server, EXIT_OK, "");
}

static void what_is_not_the_candidates_fault_ends_it_with_a_sentence(void **state)
{
    static const struct {
        const char *settings, *baseline;
        int code;
        const char *words;
    } cases[] = {
        {"", "fk_scale_hang", EXIT_SYSTEM, "kcast-exec: the baseline did not end within 1 sec"},
        {"", "fk_scale_assert", EXIT_SYSTEM, "kcast-exec: the baseline ended with CUDA_ERROR_ASS"},
        {"", "fk_scale_wrong", EXIT_INVALID, "kcast-exec: the baseline disagrees with the refer"},
        {"fault=dies:2", "fk_scale", EXIT_SYSTEM, "CUDA_ERROR_ECC_UNCORRECTABLE"},
    };

    (void)state;
    struct server server;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        start(&server, "cuda-measure", cases[i].settings);
        await_ready(&server);
        ask(&server, cases[i].baseline, "fk_scale");
        expect_end(&server, cases[i].code, cases[i].words);
    }
}

static void a_gpu_that_cannot_be_had_is_no_ready(void **state)
{
    static const struct {
        const char *settings;
        int code;
        const char *words;
    } cases[] = {
        {"fault=context", EXIT_SYSTEM, "kcast-exec: making a CUDA context: CUDA_ERROR_DEVICE_UNAV"},
        {"fault=sick", EXIT_SYSTEM, "kcast-exec: the GPU computes wrong values"},
        {"fault=oom:2", EXIT_INVALID, "kcast-exec: the GPU has no 64.0 MiB of memory left"},
        {"count=0", EXIT_INVALID, "kcast-exec: the CUDA driver knows of no GPU"},
    };

    (void)state;
    struct server server;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        start(&server, "cuda-measure", cases[i].settings);
        expect_end(&server, cases[i].code, cases[i].words);
        start(&server, "cuda-health", cases[i].settings);
        expect_end(&server, cases[i].code, cases[i].words);
    }
}

static void what_is_no_plan_ends_it(void **state)
{
    (void)state;
    struct server server;
    start(&server, "cuda-measure", "");
    await_ready(&server);
    write_frame(&server, "no plan", 7);
    expect_end(&server, EXIT_PROTOCOL, "a message of type measure_plan");
    start(&server, "cuda-measure", "");
    await_ready(&server);
    assert_int_equal(write(server.in, "\7", 1), 1);
    end_plans(&server);
    expect_end(&server, EXIT_PROTOCOL, "kcast-exec: ");
}

// All frames fit into a pipe's buffer or are read; a process that has gone is no signal for us.
static int find_compiler(void **state)
{
    (void)state;
    (void)signal(SIGPIPE, SIG_IGN);
    struct server server;
    start(&server, "cuda-measure", "");
    end_plans(&server);
    while (waitpid(server.pid, NULL, 0) < 0) {
    }
    alarm(0);
    rewind(server.log);
    char line[512] = "";
    if (fgets(line, sizeof(line), server.log) && strstr(line, "no CUDA compiler")) {
        printf("skipped because %s", line);
        exit(0);
    }
    close(server.out);
    fclose(server.log);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_are_answered_until_stdin_ends),
        cmocka_unit_test(a_fault_ends_it_after_its_report),
        cmocka_unit_test(a_hang_ends_it_after_its_report),
        cmocka_unit_test(what_is_not_the_candidates_fault_ends_it_with_a_sentence),
        cmocka_unit_test(a_gpu_that_cannot_be_had_is_no_ready),
        cmocka_unit_test(what_is_no_plan_ends_it),
    };

    return cmocka_run_group_tests(tests, find_compiler, NULL);
}
