// A kcast-exec that compiles nothing and measures nothing, for tests of kcastd. What it does is
// written in the candidate, in lines "//! word argument". The "object" of a source is OBJ plus the
// source, so that measure sees the words as well.
//
//   compile   compile-error, compile-crash, compile-hang, compile-garbage, compile-lie,
//             compile-gate PATH
//   measure   log2 X, verdict N, bad-control, gate PATH, crash-once PATH, orphans PATH, fds,
//             run-crash, run-exit N, run-hang, run-deaf, run-garbage, run-flood, run-empty,
//             run-kill (as the kernel without memory does), run-close (its output, and stays),
//             lie-verdict, lie-nan, lie-digest, lie-interval, lie-sandbox, takes MILLISECONDS
//   both      real: the kcast-exec that $KCAST_FAKE_REAL names does it instead (reference and
//             baseline have to have the word too); not with "cuda-"
//
// With "cuda-" before the mode it answers one plan after another, by frames, as kcast-exec does; an
// object is then a cuda_object. More words there: tell (the result's reason says what the plan had,
// and which process this is), retire, retire-deaf, run-late (goes on after its report).
//
// gate PATH: opens the FIFO PATH for writing, writes its pid and closes (the test, reading, then
// knows that it runs); then opens PATH.go for reading and goes on when the test has opened that for
// writing. Every run appends "mode digest" to $KCAST_FAKE_LOG, and "mode-end digest" before it
// reports. $KCAST_FAKE_PROBE: no-sandbox, crash, garbage, hang, or "if PATH" (crash while there is
// such a file). $KCAST_FAKE_GPUS: how many there are ("2"), and how many of them are unfit ("2,1");
// "garbage"; with $KCAST_FAKE_NVML they have the UUIDs of the fake libnvidia-ml.so.1.
// $KCAST_FAKE_START: what the modes that stay do instead of becoming ready: crash, garbage, or once
// PATH (crash, the first time). $KCAST_FAKE_BAD: the UUID of a GPU on which every measurement is
// lost, and cuda-health fails. $KCAST_FAKE_TOOLCHAIN: the compiler's name and version in the probe's
// report.
#include "common/digest.h"
#include "common/file.h"
#include "proto/messages.h"
#include "proto/verdict.h"
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

#define INPUT_MAX ((size_t)256 << 20)

static const char *mode;
static const char *uuid; // cuda-measure
static bool framed;
static unsigned answered; // plans
static char **arguments;  // of main

static void die(const char *text)
{
    fprintf(stderr, "fake-exec: %s\n", text);
    _exit(9);
}

// The argument of "//! word" in text, malloc'd; NULL when the word is not there.
static char *word(const char *text, const char *name)
{
    char *mark = xasprintf("//! %s", name);
    const char *at = text;
    char *found = NULL;

    while (!found && (at = strstr(at, mark))) {
        at += strlen(mark);
        if (*at == ' ' || *at == '\n' || *at == '\0') {
            at += strspn(at, " ");
            found = xstrndup(at, strcspn(at, "\n"));
        }
    }
    free(mark);
    return found;
}

static bool has(const char *text, const char *name)
{
    char *argument = word(text, name);
    bool is_there = argument;

    free(argument);
    return is_there;
}

static void note(const char *what, const char *text)
{
    const char *path = getenv("KCAST_FAKE_LOG");
    struct digest digest = digest_of(text, strlen(text));
    char hex[DIGEST_HEX_LEN + 1];
    char line[128];
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;

    if (fd >= 0) {
        digest_hex(&digest, hex);
        (void)snprintf(line, sizeof(line), "%s%s %.16s\n", framed ? "cuda-" : "", what, hex);
        if (write(fd, line, strlen(line)) < 0) {
            die("log");
        }
        close(fd);
    }
}

static void pass_gate(const char *path)
{
    char *go = xasprintf("%s.go", path);
    char pid[32];
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    (void)snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
    if (fd < 0 || write(fd, pid, strlen(pid)) < 0) {
        die("gate");
    }
    close(fd);
    fd = open(go, O_RDONLY | O_CLOEXEC);
    close(fd);
    free(go);
}

static void maybe_gate(const char *text, const char *name)
{
    char *path = word(text, name);

    if (path) {
        pass_gate(path);
        free(path);
    }
}

static void sleep_forever(void)
{
    for (;;) {
        (void)pause();
    }
}

static void put_head(size_t len)
{
    unsigned char head[4] = {(unsigned char)len, (unsigned char)(len >> 8),
                             (unsigned char)(len >> 16), (unsigned char)(len >> 24)};
    struct err err = ERR_INIT;

    if (file_write_fd(STDOUT_FILENO, head, sizeof(head), "stdout", &err) != 0) {
        die(err.text);
    }
}

static void put(const struct message *message, const void *value)
{
    struct strbuf packed = STRBUF_INIT;
    struct err err = ERR_INIT;

    if (message_pack(message, value, &packed, &err) != 0) {
        die(err.text);
    }
    if (framed) {
        put_head(packed.len);
    }
    if (file_write_fd(STDOUT_FILENO, packed.data, packed.len, "stdout", &err) != 0) {
        die(err.text);
    }
    strbuf_release(&packed);
}

// False at the end of stdin before the first byte.
static bool get_all(void *data, size_t len)
{
    size_t have = 0;

    while (have < len) {
        ssize_t n = read(STDIN_FILENO, (char *)data + have, len - have);

        if (n <= 0 && have == 0) {
            return false;
        }
        if (n <= 0) {
            die("stdin ended within a frame");
        }
        have += (size_t)n;
    }
    return true;
}

static struct bytes get_frame(void)
{
    unsigned char head[4];

    if (!get_all(head, sizeof(head))) {
        _exit(0);
    }
    struct bytes plan = {0};
    plan.len =
        (size_t)head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
    plan.data = xmalloc(plan.len + 1);
    if (plan.len > 0 && !get_all(plan.data, plan.len)) {
        die("stdin ended within a frame");
    }
    return plan;
}

static struct bytes get_plan(void)
{
    if (framed) {
        return get_frame();
    }

    struct bytes plan = {0};
    struct err err = ERR_INIT;
    if (file_read_fd(&plan, STDIN_FILENO, INPUT_MAX, "stdin", &err) != 0) {
        die(err.text);
    }
    return plan;
}

// The real kcast-exec goes on in this process, with the same plan. Returns when there is none.
static void become_real(const struct bytes *plan)
{
    const char *path = getenv("KCAST_FAKE_REAL");
    int fd = path && !framed ? memfd_create("plan", MFD_CLOEXEC) : -1;

    if (fd < 0) {
        return;
    }
    struct err err = ERR_INIT;
    if (file_write_fd(fd, plan->data, plan->len, "plan", &err) != 0 ||
        lseek(fd, 0, SEEK_SET) != 0 || dup2(fd, STDIN_FILENO) < 0) {
        die("the plan for the real kcast-exec");
    }
    arguments[0] = (char *)(uintptr_t)path;
    execv(path, arguments);
    die("the real kcast-exec cannot be run");
}

// --- compile

static void bad_compile(const char *text)
{
    if (has(text, "compile-crash")) {
        abort();
    }
    if (has(text, "compile-hang")) {
        sleep_forever();
    }
    if (has(text, "compile-garbage")) {
        puts("this is no report");
        exit(0);
    }
}

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
        die(err.text);
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
                     (unsigned long long)plan->hidden_seed, plan->name, (int)getpid(), answered);
}

static void compile(void)
{
    struct bytes input = get_plan();
    struct compile_plan plan;
    struct err err = ERR_INIT;

    if (message_read(&compile_plan_message, &plan, input.data, input.len, &err) != 0) {
        die(err.text);
    }
    char *text = xstrndup((char *)plan.source.data, plan.source.len);
    if (has(text, "real")) {
        become_real(&input);
    }
    note("compile", text);
    maybe_gate(text, "compile-gate");
    bad_compile(text);
    struct compiled compiled;
    message_init(&compiled_message, &compiled);
    struct compile_outcome outcome;
    message_init(&compile_outcome_message, &outcome);
    outcome.compiled = &compiled;
    compiled.seconds = 0.01;
    struct strbuf object = STRBUF_INIT;
    if (has(text, "compile-error")) {
        compiled.verdict = VERDICT_COMPILE_ERROR;
        compiled.reason = xasprintf("%s:1:1: error: the fake compiler does not like it",
                                    plan.name ? plan.name : "source");
        compiled.log = xstrdup("fake log\n");
    } else {
        strbuf_adds(&object, "OBJ");
        strbuf_add(&object, text, strlen(text));
        outcome.object = framed ? cuda_object_of(&plan, &object) : strbuf_detach_bytes(&object);
        compiled.log = framed ? told_plan(&plan) : NULL;
        compiled.features = xcalloc(1, sizeof(*compiled.features));
        compiled.features_count = 1;
        compiled.features[0].name = xstrdup("length");
        compiled.features[0].value = (double)plan.source.len;
        if (has(text, "compile-lie")) {
            compiled.object = digest_of("lie", 3);
        }
    }
    note("compile-end", text);
    put(&compile_outcome_message, &outcome);
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

// A descendant in a session of its own that holds nothing of ours open; its pid is in the file.
static void make_orphan(const char *path)
{
    pid_t pid = fork();

    if (pid == 0) {
        (void)setsid();
        (void)signal(SIGTERM, SIG_IGN);
        close(0);
        close(1);
        close(2);
        FILE *file = fopen(path, "w");
        if (file) {
            fprintf(file, "%d\n", (int)getpid());
            (void)fclose(file);
        }
        sleep_forever();
    }
    while (!file_exists(path)) {
        (void)usleep(1000);
    }
}

static void flood(void)
{
    static char block[1 << 16];

    memset(block, 'x', sizeof(block));
    for (int i = 0; i < 16384; i++) {
        if (write(STDOUT_FILENO, block, sizeof(block)) < 0) {
            _exit(1);
        }
    }
    _exit(0);
}

// As without a sanitizer that would rather print something and abort.
static void crash(void)
{
    (void)signal(SIGSEGV, SIG_DFL);
    (void)raise(SIGSEGV);
}

static void bad_run(const char *text)
{
    char *argument;

    if ((argument = word(text, "crash-once"))) {
        if (!file_exists(argument)) {
            close(open(argument, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
            crash();
        }
        free(argument);
    }
    if ((argument = word(text, "takes"))) {
        (void)usleep((useconds_t)(1000 * strtoul(argument, NULL, 10)));
        free(argument);
    }
    if ((argument = word(text, "orphans"))) {
        make_orphan(argument);
        free(argument);
    }
    if ((argument = word(text, "run-exit"))) {
        fprintf(stderr, "first line\nthe reason is on the last line\n");
        _exit(atoi(argument)); // NOLINT: a test's own text
    }
    if (has(text, "run-crash")) {
        crash();
    }
    if (has(text, "run-deaf")) {
        (void)signal(SIGTERM, SIG_IGN);
        note("deaf", text);
        sleep_forever();
    }
    if (has(text, "run-hang")) {
        sleep_forever();
    }
    if (has(text, "run-garbage")) {
        puts("\xdd\xff\xff\xff\xff garbage");
        fflush(stdout);
        if (framed) {
            sleep_forever();
        }
        exit(0);
    }
    if (has(text, "run-flood")) {
        flood();
    }
    if (has(text, "run-empty")) {
        _exit(0);
    }
    if (has(text, "run-kill")) {
        (void)raise(SIGKILL);
    }
    if (has(text, "run-close")) {
        close(STDOUT_FILENO);
        sleep_forever();
    }
}

// Descriptors beyond 0, 1, 2 as text; empty when there are none.
static char *extra_descriptors(void)
{
    struct strbuf out = STRBUF_INIT;
    DIR *dir = opendir("/proc/self/fd");
    const struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        int fd = atoi(entry->d_name); // NOLINT: the kernel's numbers

        if (fd > 2 && fd != dirfd(dir)) {
            strbuf_addf(&out, "%d ", fd);
        }
    }
    closedir(dir);
    return strbuf_detach(&out);
}

static void lie(const char *text, struct result *result)
{
    if (has(text, "lie-verdict")) {
        result->verdict = 999;
    }
    if (has(text, "lie-nan")) {
        result->speedup->log2 = NAN;
    }
    if (has(text, "lie-digest")) {
        result->candidate = digest_of("another", 7);
    }
    if (has(text, "lie-interval")) {
        result->speedup->lo = result->speedup->log2 + 1;
    }
    if (has(text, "lie-sandbox")) {
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

static void fill_result(struct result *result, const char *text, const struct measure_plan *plan)
{
    char *log2 = word(text, "log2");
    char *verdict = word(text, "verdict");

    message_init(&result_message, result);
    if (verdict) {
        result->verdict = strtoull(verdict, NULL, 10);
        result->reason = xstrdup("the fake judge says so");
    } else {
        fill_ratio(result, log2 ? strtod(log2, NULL) : 0.5);
    }
    if (has(text, "tell")) {
        result->reason = xasprintf("uuid=%s pid=%d answered=%u facts=%zu hidden=%llx",
                                   uuid ? uuid : "none", (int)getpid(), answered, plan->facts_count,
                                   (unsigned long long)plan->hidden_seed);
    }
    if (has(text, "fds")) {
        char *extra = extra_descriptors();

        result->reason = xasprintf("descriptors: %s", extra);
        free(extra);
    }
    if (plan->control) {
        result->control = has(text, "bad-control") ? estimate_of(0.1, 0.01) : estimate_of(0, 0.002);
    }
    result->launches = 100;
    result->checks = 110;
    result->clock = xstrdup("fake");
    result->trust = framed ? xstrdup("sealed") : NULL;
    result->sandbox = xstrdup(plan->sandbox_off ? "off" : "on");
    if (has(text, "lie-sandbox")) {
        free(result->sandbox);
    }
    lie(text, result);
    free(log2);
    free(verdict);
}

static char *candidate_text(const struct measure_plan *plan)
{
    struct bytes bytes = plan->candidate;
    struct cuda_object object;
    struct err err = ERR_INIT;

    if (framed) {
        if (message_read(&cuda_object_message, &object, bytes.data, bytes.len, &err) != 0) {
            die(err.text);
        }
        bytes = object.variants[0].cubin;
    }
    if (bytes.len < 3 || memcmp(bytes.data, "OBJ", 3) != 0) {
        die("the candidate was not compiled by me");
    }
    return xstrndup((char *)bytes.data + 3, bytes.len - 3);
}

static void health(void)
{
    const char *bad = getenv("KCAST_FAKE_BAD");

    if (uuid && bad && strcmp(uuid, bad) == 0) {
        die("this GPU is bad");
    }
}

static void measure(void)
{
    struct bytes input = get_plan();
    struct measure_plan plan;
    struct err err = ERR_INIT;

    if (message_read(&measure_plan_message, &plan, input.data, input.len, &err) != 0) {
        die(err.text);
    }
    if (plan.candidate.len < 3 || memcmp(plan.candidate.data, "OBJ", 3) != 0) {
        become_real(&input);
    }
    char *text = candidate_text(&plan);
    note("measure", text);
    health();
    maybe_gate(text, "gate");
    bad_run(text);
    struct result result;
    fill_result(&result, text, &plan);
    struct measure_outcome outcome;
    message_init(&measure_outcome_message, &outcome);
    outcome.result = &result;
    outcome.retire = has(text, "retire") || has(text, "retire-deaf");
    note("measure-end", text);
    put(&measure_outcome_message, &outcome);
    if (has(text, "run-late")) {
        put_head(0);
    }
    if (has(text, "retire-deaf")) {
        (void)signal(SIGTERM, SIG_IGN);
        sleep_forever();
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
        sleep_forever();
    }
    struct probe_outcome outcome;
    message_init(&probe_outcome_message, &outcome);
    outcome.sandbox = !(how && strcmp(how, "no-sandbox") == 0);
    outcome.reason = outcome.sandbox ? NULL : xstrdup("user namespaces are not allowed");
    outcome.device_class = xstrdup("fake-cpu");
    outcome.toolchain = xstrdup(toolchain ? toolchain : "fake-cc 1.0");
    put(&probe_outcome_message, &outcome);
}

// --- cuda

static void cuda_probe(void)
{
    const char *text = getenv("KCAST_FAKE_GPUS");
    unsigned long count = 0, unfit = 0;

    if (text && strcmp(text, "garbage") == 0) {
        puts("garbage");
        exit(0);
    }
    char *end;
    if (text) {
        count = strtoul(text, &end, 10);
        unfit = *end == ',' ? strtoul(end + 1, NULL, 10) : 0;
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
    }
    put(&cuda_probe_outcome_message, &outcome);
}

static void serve(void (*answer)(void))
{
    const char *start = getenv("KCAST_FAKE_START");

    framed = true;
    note("start", mode);
    if (start && strncmp(start, "once ", 5) == 0 && !file_exists(start + 5)) {
        close(open(start + 5, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
        start = "crash";
    }
    if (start && strcmp(start, "crash") == 0) {
        die("it does not start");
    }
    put_head(start && strcmp(start, "garbage") == 0 ? 1 : 0);
    for (;;) {
        answer();
        answered++;
    }
}

int main(int argc, char **argv)
{
    mode = argc >= 2 ? argv[1] : "";
    arguments = argv;
    uuid = argc >= 3 && argv[2][0] != '-' ? argv[2] : NULL;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == 1) {
        _exit(1); // too late for the signal
    }
    if (strcmp(mode, "compile") == 0) {
        compile();
    } else if (strcmp(mode, "measure") == 0) {
        measure();
    } else if (strcmp(mode, "probe") == 0) {
        probe();
    } else if (strcmp(mode, "cuda-compile") == 0) {
        serve(compile);
    } else if (strcmp(mode, "cuda-measure") == 0 && uuid) {
        serve(measure);
    } else if (strcmp(mode, "cuda-health") == 0 && uuid) {
        health();
    } else if (strcmp(mode, "cuda-probe") == 0) {
        cuda_probe();
    } else {
        die("compile, measure, probe, cuda-compile, cuda-measure UUID or cuda-probe");
    }
    fflush(stdout);
    _exit(0); // what was allocated goes with the process
}
