// A kcast-exec that compiles nothing and measures nothing, for tests of kcastd. What it does is
// written in the candidate, in lines "//! word argument". The "object" of a source is OBJ plus the
// source, so that measure sees the words as well.
//
//   compile   compile-error, compile-crash, compile-garbage, compile-lie,
//             compile-gate PATH, compile-takes MILLISECONDS (the mean of log-normal times),
//             pad N (an object of N more MiB)
//   measure   log2 X, hill (the log2 speedup follows from the source's first lines of #define),
//             verdict N, bad-control, gate PATH, crash-once PATH, orphans PATH, fds,
//             run-crash, run-exit N, run-hang, run-deaf, run-garbage, run-flood, run-empty,
//             run-kill (as the kernel without memory does), run-close (its output, and stays),
//             lie-verdict, lie-nan, lie-digest, lie-interval, lie-sandbox, takes MILLISECONDS
//   both      real: the kcast-exec that $KCAST_FAKE_REAL names does it instead (reference and
//             baseline have to have the word too); not with "cuda-"
//
// With "cuda-" before the mode it answers one plan after another, by frames, as kcast-exec does; an
// object is then a cuda_object. More words there: tell (the result's reason says what the plan had,
// and which process this is), retire, retire-deaf, run-late (goes on after its outcome).
//
// gate PATH: opens the FIFO PATH for writing, writes its pid and closes (the test, reading, then
// knows that it runs); then opens PATH.go for reading and goes on when the test has opened that for
// writing. Every run appends "mode digest" to $KCAST_FAKE_LOG, and "mode-end digest" before it
// reports. $KCAST_FAKE_PROBE: no-sandbox, crash, garbage, hang, or "if PATH" (crash while there is
// such a file). $KCAST_FAKE_GPUS: how many there are ("2"), and how many of them are unfit ("2,1"),
// and how many of the first let kernels read memory of processes ("2,0,1");
// "garbage"; with $KCAST_FAKE_NVML they have the UUIDs of the fake libnvidia-ml.so.1.
// $KCAST_FAKE_START: what the modes that stay do instead of becoming ready: crash, garbage, or once
// PATH (crash, the first time), or "gate UUID PATH" (a gate before that GPU's is ready).
// $KCAST_FAKE_BAD: the UUID of a GPU on which every measurement is lost, and cuda-health fails.
// $KCAST_FAKE_TOOLCHAIN: the compiler's name and version in the probe's report.
#include "common/digest.h"
#include "common/file.h"
#include "proto/messages.h"
#include "proto/verdict.h"
#include "tests/support/exec_stub.h"
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

// The real kcast-exec goes on in this process, with the same plan. Returns when there is none.
static void become_real(const struct bytes *plan)
{
    const char *path = getenv("KCAST_FAKE_REAL");
    int fd = path && !exec_stub.framed ? memfd_create("plan", MFD_CLOEXEC) : -1;

    if (fd < 0) {
        return;
    }
    struct err err = ERR_INIT;
    if (file_write_fd(fd, plan->data, plan->len, "plan", &err) != 0 ||
        lseek(fd, 0, SEEK_SET) != 0 || dup2(fd, STDIN_FILENO) < 0) {
        exec_die("the plan for the real kcast-exec");
    }
    exec_stub.arguments[0] = (char *)(uintptr_t)path;
    execv(path, exec_stub.arguments);
    exec_die("the real kcast-exec cannot be run");
}

// --- compile

// As the object of a cuda source: one variant, whose cubin is OBJ and the source.
static struct bytes cuda_object_of(const struct compile_plan *plan, const struct strbuf *text)
{
    struct cuda_kernel kernel = {.name = xstrdup("k"), .symbol = xstrdup("k")};
    struct cuda_variant variant = {
        .cubin = bytes_copy(text->data, text->len), .kernels = &kernel, .kernels_count = 1};
    struct cuda_object object = {.source = plan->source,
                                 .target = xstrdup(plan->target ? plan->target : "sm_0"),
                                 .variants = &variant,
                                 .variants_count = 1};

    if (strstr(text->data, "compile-wrong-target")) {
        object.target = xstrdup("sm_1");
    }
    struct strbuf packed = STRBUF_INIT;
    struct err err = ERR_INIT;
    if (message_pack(&cuda_object_message, &object, &packed, &err) != 0) {
        exec_die(err.text);
    }
    return strbuf_detach_bytes(&packed);
}

// What the plan of a cuda source has, for a test to look at.
static char *told_plan(const struct compile_plan *plan)
{
    return xasprintf("language=%s target=%s role=%llu problem=%zu facts=%zu hidden=%llx name=%s "
                     "pid=%d answered=%u\n",
                     plan->language ? plan->language : "none", plan->target ? plan->target : "none",
                     (unsigned long long)plan->role, plan->problem.len, plan->facts_count,
                     (unsigned long long)plan->hidden_seed, plan->name, (int)getpid(),
                     exec_stub.answered);
}

static void pad(const char *text, struct strbuf *object)
{
    char *count = exec_word(text, "pad");
    size_t len = count ? strtoul(count, NULL, 10) << 20 : 0;
    char *zeros = xcalloc(1, len + 1);

    strbuf_add(object, zeros, len);
    free(zeros);
    free(count);
}

#define SPREAD 0.5 // standard deviation of the logarithm of these times

// Seconds that compiling takes, which the text decides: log-normal, some take three times as long.
static double take_time(const char *text)
{
    char *argument = exec_word(text, "compile-takes");
    if (!argument) {
        return 0.01;
    }
    struct digest digest = digest_of(text, strlen(text));
    double sum = digest.byte[0] + digest.byte[1] + digest.byte[2] + digest.byte[3];
    double normal = (sum - 2 * 255) / (255 / sqrt(3)); // nearly
    double seconds = strtod(argument, NULL) * 1e-3 * exp(SPREAD * normal - SPREAD * SPREAD / 2);
    free(argument);
    (void)usleep((useconds_t)(1e6 * seconds));
    return seconds;
}

static void compile(void)
{
    struct bytes input = exec_plan();
    struct compile_plan plan;
    struct err err = ERR_INIT;

    if (message_read(&compile_plan_message, &plan, input.data, input.len, &err) != 0) {
        exec_die(err.text);
    }
    char *text = xstrndup((char *)plan.source.data, plan.source.len);
    if (exec_has(text, "real")) {
        become_real(&input);
    }
    exec_note("compile", text);
    exec_gate(text, "compile-gate");
    exec_bad_compile(text);
    struct compiled compiled;
    message_init(&compiled_message, &compiled);
    struct compile_outcome outcome;
    message_init(&compile_outcome_message, &outcome);
    outcome.compiled = &compiled;
    compiled.seconds = take_time(text);
    struct strbuf object = STRBUF_INIT;
    if (exec_has(text, "compile-error")) {
        compiled.verdict = VERDICT_COMPILE_ERROR;
        compiled.reason = xasprintf("%s:1:1: error: the fake compiler does not like it",
                                    plan.name ? plan.name : "source");
        compiled.log = xstrdup("fake log\n");
    } else {
        strbuf_adds(&object, "OBJ");
        strbuf_add(&object, text, strlen(text));
        pad(text, &object);
        outcome.object =
            exec_stub.framed ? cuda_object_of(&plan, &object) : strbuf_detach_bytes(&object);
        compiled.log = exec_stub.framed ? told_plan(&plan) : NULL;
        compiled.features = xcalloc(1, sizeof(*compiled.features));
        compiled.features_count = 1;
        compiled.features[0].name = xstrdup("length");
        compiled.features[0].value = (double)plan.source.len;
        if (exec_has(text, "compile-lie")) {
            compiled.object = digest_of("lie", 3);
        }
    }
    exec_note("compile-end", text);
    exec_put(&compile_outcome_message, &outcome);
}

// --- measure

static struct estimate *estimate_of(double log2, double half)
{
    struct estimate *estimate = xmalloc(sizeof(*estimate));

    message_init(&estimate_message, estimate);
    estimate->log2 = log2;
    estimate->lo = log2 - half;
    estimate->hi = log2 + half;
    estimate->blocks = 32;
    return estimate;
}

static struct quantiles *quantiles_of(double ns)
{
    struct quantiles *quantiles = xmalloc(sizeof(*quantiles));

    message_init(&quantiles_message, quantiles);
    quantiles->p10 = ns * 0.9;
    quantiles->p50 = ns;
    quantiles->p90 = ns * 1.1;
    return quantiles;
}

// Descriptors beyond 0, 1, 2 as text; empty when there are none.
static char *extra_descriptors(void)
{
    struct strbuf out = STRBUF_INIT;
    DIR *dir = opendir("/proc/self/fd");
    const struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        int fd = (int)strtol(entry->d_name, NULL, 10);

        if (fd > 2 && fd != dirfd(dir)) {
            strbuf_addf(&out, "%d ", fd);
        }
    }
    closedir(dir);
    return strbuf_detach(&out);
}

static void lie(const char *text, struct result *result)
{
    if (exec_has(text, "lie-verdict")) {
        result->verdict = 999;
    }
    if (exec_has(text, "lie-nan")) {
        result->speedup->log2 = NAN;
    }
    if (exec_has(text, "lie-digest")) {
        result->candidate = digest_of("another", 7);
    }
    if (exec_has(text, "lie-interval")) {
        result->speedup->lo = result->speedup->log2 + 1;
    }
    if (exec_has(text, "lie-sandbox")) {
        result->sandbox = xstrdup("off");
    }
}

static void fill_ratio(struct result *result, double log2)
{
    struct case_result *one = xcalloc(1, sizeof(*one));

    message_init(&case_result_message, one);
    one->params = xstrdup("N=1");
    one->weight = 1;
    one->speedup = estimate_of(log2, 0.002);
    one->baseline_ns = quantiles_of(1000);
    one->candidate_ns = quantiles_of(1000 / exp2(log2));
    result->cases = one;
    result->cases_count = 1;
    result->speedup = estimate_of(log2, 0.002);
    result->baseline_ns = quantiles_of(1000);
    result->candidate_ns = quantiles_of(1000 / exp2(log2));
    result->verdict = log2 > 0.002    ? VERDICT_FASTER
                      : log2 < -0.002 ? VERDICT_SLOWER
                                      : VERDICT_EQUIVALENT;
}

static double log2_of(const char *text)
{
    char *word = exec_word(text, "log2");
    double ret = word ? strtod(word, NULL) : exec_has(text, "hill") ? exec_hill(text) : 0.5;

    free(word);
    return ret;
}

static void fill_result(struct result *result, const char *text, const struct measure_plan *plan)
{
    char *verdict = exec_word(text, "verdict");

    message_init(&result_message, result);
    if (verdict) {
        result->verdict = strtoull(verdict, NULL, 10);
        result->reason = xstrdup("the fake judge says so");
    } else {
        fill_ratio(result, log2_of(text));
    }
    if (exec_has(text, "tell")) {
        result->reason =
            xasprintf("uuid=%s pid=%d answered=%u facts=%zu hidden=%llx",
                      exec_stub.uuid ? exec_stub.uuid : "none", (int)getpid(), exec_stub.answered,
                      plan->facts_count, (unsigned long long)plan->hidden_seed);
    }
    if (exec_has(text, "fds")) {
        char *extra = extra_descriptors();

        result->reason = xasprintf("descriptors: %s", extra);
        free(extra);
    }
    if (plan->control) {
        result->control =
            exec_has(text, "bad-control") ? estimate_of(0.1, 0.01) : estimate_of(0, 0.002);
    }
    result->launches = 100;
    result->checks = 110;
    result->clock = xstrdup("fake");
    result->trust = exec_stub.framed ? xstrdup("sealed") : NULL;
    result->sandbox = xstrdup(plan->sandbox_off ? "off" : "on");
    if (exec_has(text, "lie-sandbox")) {
        free(result->sandbox);
    }
    lie(text, result);
    free(verdict);
}

static char *candidate_text(const struct measure_plan *plan)
{
    struct bytes bytes = plan->candidate;
    struct cuda_object object;
    struct err err = ERR_INIT;

    if (exec_stub.framed) {
        if (message_read(&cuda_object_message, &object, bytes.data, bytes.len, &err) != 0) {
            exec_die(err.text);
        }
        bytes = object.variants[0].cubin;
    }
    if (bytes.len < 3 || memcmp(bytes.data, "OBJ", 3) != 0) {
        exec_die("the candidate was not compiled by me");
    }
    return xstrndup((char *)bytes.data + 3, bytes.len - 3);
}

static void health(void)
{
    const char *bad = getenv("KCAST_FAKE_BAD");

    if (exec_stub.uuid && bad && strcmp(exec_stub.uuid, bad) == 0) {
        exec_die("this GPU is bad");
    }
}

static void measure(void)
{
    struct bytes input = exec_plan();
    struct measure_plan plan;
    struct err err = ERR_INIT;

    if (message_read(&measure_plan_message, &plan, input.data, input.len, &err) != 0) {
        exec_die(err.text);
    }
    if (plan.candidate.len < 3 || memcmp(plan.candidate.data, "OBJ", 3) != 0) {
        become_real(&input);
    }
    char *text = candidate_text(&plan);
    exec_note("measure", text);
    health();
    exec_gate(text, "gate");
    exec_bad_run(text);
    struct result result;
    fill_result(&result, text, &plan);
    struct measure_outcome outcome;
    message_init(&measure_outcome_message, &outcome);
    outcome.result = &result;
    outcome.retire = exec_has(text, "retire") || exec_has(text, "retire-deaf");
    exec_note("measure-end", text);
    exec_put(&measure_outcome_message, &outcome);
    if (exec_has(text, "run-late")) {
        exec_put_head(0);
    }
    if (exec_has(text, "retire-deaf")) {
        (void)signal(SIGTERM, SIG_IGN);
        exec_sleep_forever();
    }
}

// --- probe

static void probe(void)
{
    const char *how = getenv("KCAST_FAKE_PROBE");
    const char *toolchain = getenv("KCAST_FAKE_TOOLCHAIN");

    if (how && (strcmp(how, "crash") == 0 ||
                (strncmp(how, "if ", 3) == 0 && access(how + 3, F_OK) == 0))) {
        fprintf(stderr, "the probe has crashed\n");
        _exit(7);
    }
    if (how && strcmp(how, "garbage") == 0) {
        puts("garbage");
        exit(0);
    }
    if (how && strcmp(how, "hang") == 0) {
        exec_sleep_forever();
    }
    struct probe_outcome outcome;
    message_init(&probe_outcome_message, &outcome);
    outcome.sandbox = !(how && strcmp(how, "no-sandbox") == 0);
    outcome.reason = outcome.sandbox ? NULL : xstrdup("user namespaces are not allowed");
    outcome.device_class = xstrdup("fake-cpu");
    outcome.toolchain = xstrdup(toolchain ? toolchain : "fake-cc 1.0");
    exec_put(&probe_outcome_message, &outcome);
}

// --- cuda

static void cuda_probe(void)
{
    const char *text = getenv("KCAST_FAKE_GPUS");
    unsigned long count = 0, unfit = 0, pageable = 0;

    if (text && strcmp(text, "garbage") == 0) {
        puts("garbage");
        exit(0);
    }
    char *end;
    if (text) {
        count = strtoul(text, &end, 10);
        unfit = *end == ',' ? strtoul(end + 1, &end, 10) : 0;
        pageable = *end == ',' ? strtoul(end + 1, NULL, 10) : 0;
    }
    struct cuda_probe_outcome outcome;
    message_init(&cuda_probe_outcome_message, &outcome);
    outcome.toolchain = xstrdup("fake-nvrtc 1.0");
    outcome.reason = count > 0 ? NULL : xstrdup("libcuda.so.1 is not there");
    outcome.gpus = xcalloc(count + 1, sizeof(*outcome.gpus));
    for (; outcome.gpus_count < count; outcome.gpus_count++) {
        struct gpu_info *gpu = &outcome.gpus[outcome.gpus_count];

        message_init(&gpu_info_message, gpu);
        gpu->uuid = xasprintf(getenv("KCAST_FAKE_NVML") ? "GPU-fa4e0000-0000-4000-8000-%012zx"
                                                        : "GPU-fake-%zu",
                              outcome.gpus_count);
        gpu->ordinal = outcome.gpus_count;
        gpu->name = xstrdup("Fake 1");
        gpu->target = xstrdup("sm_90");
        gpu->device_class = xstrdup("Fake 1, sm_90");
        gpu->facts = xcalloc(1, sizeof(*gpu->facts));
        gpu->facts_count = 1;
        gpu->facts[0].name = xstrdup("multiprocessors");
        gpu->facts[0].value = 132;
        gpu->reason = outcome.gpus_count >= count - unfit ? xstrdup("it is too old") : NULL;
        gpu->pageable = outcome.gpus_count < pageable;
    }
    exec_put(&cuda_probe_outcome_message, &outcome);
}

static void serve(void (*answer)(void))
{
    const char *start = getenv("KCAST_FAKE_START");

    exec_stub.framed = true;
    exec_note("start", exec_stub.mode);
    if (start && strncmp(start, "once ", 5) == 0 && !file_exists(start + 5)) {
        close(open(start + 5, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
        start = "crash";
    }
    if (start && strcmp(start, "crash") == 0) {
        exec_die("it does not start");
    }
    if (start && strncmp(start, "gate ", 5) == 0 && exec_stub.uuid) {
        char *text = xasprintf("//! %s\n", start + 5);

        exec_gate(text, exec_stub.uuid);
        free(text);
    }
    exec_put_head(start && strcmp(start, "garbage") == 0 ? 1 : 0);
    for (;;) {
        answer();
        exec_stub.answered++;
    }
}

int main(int argc, char **argv)
{
    exec_stub.mode = argc >= 2 ? argv[1] : "";
    exec_stub.arguments = argv;
    exec_stub.uuid = argc >= 3 && argv[2][0] != '-' ? argv[2] : NULL;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == 1) {
        _exit(1); // too late for the signal
    }
    if (strcmp(exec_stub.mode, "compile") == 0) {
        compile();
    } else if (strcmp(exec_stub.mode, "measure") == 0) {
        measure();
    } else if (strcmp(exec_stub.mode, "probe") == 0) {
        probe();
    } else if (strcmp(exec_stub.mode, "cuda-compile") == 0 ||
               strcmp(exec_stub.mode, "cuda-record") == 0) {
        serve(compile);
    } else if (strcmp(exec_stub.mode, "cuda-measure") == 0 && exec_stub.uuid) {
        serve(measure);
    } else if (strcmp(exec_stub.mode, "cuda-health") == 0 && exec_stub.uuid) {
        health();
    } else if (strcmp(exec_stub.mode, "cuda-probe") == 0) {
        cuda_probe();
    } else {
        exec_die("compile, measure, probe, cuda-compile, cuda-record PYTHON, cuda-measure UUID or "
                 "cuda-probe");
    }
    fflush(stdout);
    _exit(0); // what was allocated goes with the process
}
