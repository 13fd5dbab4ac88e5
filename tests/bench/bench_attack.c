// What one tenant can do to another. A private kcastd on tls://, whose devices are drained and of
// whose blobs 64 MiB are kept; the tenant mallory has queued 4096 jobs. It then attacks in every
// way that attack.c knows, one after the other. Meanwhile another tenant makes one call after the
// other and times it: small ones that the loop answers (STATUS, WAIT, BLOB_HAVE, SUBMIT of a known
// job), and some that wait for the disk (SUBMIT of a new job, BLOB_PUT). An administrator connects
// anew. Last the daemon's peak resident memory since the attack began, and what the blobs take.
//  bench_attack [SECONDS [NAME]]        of each attack, default 5; only those whose name has NAME
#include "common/clock.h"
#include "common/file.h"
#include "common/parse.h"
#include "common/stats.h"
#include "net/auth/tokens.h"
#include "net/rpc/service.h"
#include "net/tls/authority.h"
#include "net/url.h"
#include "tests/bench/attack.h"
#include "tests/bench/samples.h"
#include "tests/support/program.h"
#include <fcntl.h>
#include <ftw.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define JOBS 4096
#define FLIGHT 64
#define CALL_MS 60000
#define CALLS_MAX 1000000
#define BLOBS_MAX "64M"

enum who { MALLORY, OTHER, ADMIN, PEOPLE };

struct bench {
    struct program program;
    uv_loop_t loop;
    struct problem_dir problem;
    struct tls *tls;
    char *token[PEOPLE];
    struct remote *remote[PEOPLE];
    struct target target;
    uint64_t job;         // of the other tenant
    uint64_t next_repeat; // so that no cache has a job
    uv_timer_t pause;
    double *loop_ms; // CALLS_MAX elements
    double *disk_ms;
};

static void check(int rc, const struct err *err)
{
    if (rc != 0) {
        die(err);
    }
}

// --- the team and its daemon

static void make_team(struct bench *bench)
{
    static const char *const names[PEOPLE] = {"mallory", "other", "admin"};
    static const char *const hosts[] = {"127.0.0.1", "::1"};
    const char *dir = bench->program.dir;
    int64_t now_s = (int64_t)time(NULL);
    struct authority *authority;
    struct err err = ERR_INIT;
    char *path = xasprintf("%s/ca", dir);
    bool made;

    check(file_make_dirs(path, &err), &err);
    check(authority_open(&authority, path, now_s, &made, &err), &err);
    free(path);
    for (int server = 0; server < 2; server++) {
        const struct certificate_spec spec = {.name = server ? "server" : "caller",
                                              .hosts = server ? hosts : NULL,
                                              .host_count = server ? ARRAY_LEN(hosts) : 0,
                                              .from_s = now_s - 3600,
                                              .to_s = now_s + 86400};
        path = xasprintf("%s/%s", dir, spec.name);
        check(authority_issue(authority, path, &spec, &made, &err), &err);
        free(path);
    }
    authority_free(authority);
    struct tokens *tokens = tokens_create();
    for (int i = 0; i < PEOPLE; i++) {
        check(tokens_add(tokens, names[i], i == ADMIN ? CALLER_ADMIN : CALLER_SUBMIT, now_s, 0,
                         &bench->token[i], &err),
              &err);
    }
    struct strbuf text = STRBUF_INIT;
    tokens_write(tokens, &text);
    path = xasprintf("%s/tokens", dir);
    check(file_replace(path, text.data, text.len, false, &err), &err);
    (void)chmod(path, 0600);
    free(path);
    strbuf_release(&text);
    tokens_free(tokens);
}

static void start_daemon(struct bench *bench)
{
    const char *dir = bench->program.dir;
    char *argv[] = {program_path("kcastd"),
                    xasprintf("--state=%s/state", dir),
                    xasprintf("--tls-ca=%s/server/ca.pem", dir),
                    xasprintf("--tls-cert=%s/server/cert.pem", dir),
                    xasprintf("--tls-key=%s/server/key.pem", dir),
                    xasprintf("--tokens=%s/tokens", dir),
                    xstrdup("--listen=tls://[::]:0"),
                    xstrdup("--http=127.0.0.1:0"),
                    xstrdup("--devices=cpu:1"),
                    xstrdup("--parent-death"),
                    xstrdup("--queue-max=100000"),
                    xstrdup("--blobs-max=" BLOBS_MAX),
                    xstrdup("--log-level=error"),
                    NULL};

    program_start(&bench->program, (const char *const *)argv, NULL);
    if (!program_wait_ready(&bench->program)) {
        fprintf(stderr, "benchmark: kcastd has ended: %s\n", program_log(&bench->program));
        exit(1);
    }
    for (size_t i = 0; argv[i]; i++) {
        free(argv[i]);
    }
    char *ca = xasprintf("%s/caller/ca.pem", dir);
    char *cert = xasprintf("%s/caller/cert.pem", dir);
    char *key = xasprintf("%s/caller/key.pem", dir);
    struct err err = ERR_INIT;
    check(tls_create(&bench->tls, TLS_CALLER,
                     &(struct tls_files){.ca = ca, .cert = cert, .key = key}, &err),
          &err);
    free(ca);
    free(cert);
    free(key);
}

static struct remote *open_remote(struct bench *bench, enum who who)
{
    struct remote *remote;
    struct hello_reply hello;
    struct err err = ERR_INIT;

    struct url url;
    check(url_parse(&url, bench->program.url, &err), &err);
    char *text = xasprintf("tls://[::1]:%u", url.port); // the attacker has another address
    check(remote_create_tls(&remote, &bench->loop, text, bench->tls, bench->token[who], &err),
          &err);
    free(text);
    check(remote_hello_sync(remote, "kcastd", &hello, &err), &err);
    message_clear(&hello_reply_message, &hello);
    return remote;
}

// Calls until it succeeds; what a caller does that is told to come again, or that loses its
// connection. Returns how long that took in milliseconds.
static double call(struct remote *remote, enum op op, const struct message *message,
                   const void *body, const struct message *answer, void *reply)
{
    uint64_t start_ns = uv_hrtime();
    struct err err = ERR_INIT;

    while (remote_call_sync(remote, op, message, body, answer, reply, CALL_MS, &err) != 0) {
        if (err.code != ERR_BUSY && err.code != ERR_UNREACHABLE) {
            die(&err);
        }
        err_clear(&err);
    }
    return (double)(uv_hrtime() - start_ns) / NS_PER_MS;
}

static void put(struct remote *remote, const struct bytes *data)
{
    struct blob_put body = {.digest = digest_of(data->data, data->len), .data = *data};
    struct empty empty;

    (void)call(remote, OP_BLOB_PUT, &blob_put_message, &body, &empty_message, &empty);
}

// --- jobs

struct submitting {
    struct bench *bench;
    struct remote *remote;
    uint64_t first;
    size_t sent, answered, wanted;
};

static void submit_next(struct submitting *submitting);

static void on_submitted(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    struct submitting *submitting = owner;
    const struct submitted *submitted = reply;

    (void)retry_after_ms;
    if (error) {
        die(error);
    }
    if (submitting->answered++ == 0) {
        submitting->first = submitted->job;
    }
    if (submitting->sent < submitting->wanted) {
        submit_next(submitting);
    }
}

static struct job_spec new_spec(struct bench *bench)
{
    struct job_spec spec;

    problem_dir_spec(&bench->problem, JOB_MEASURE, &bench->problem.baseline_digest, &spec);
    spec.repeat = ++bench->next_repeat;
    return spec;
}

static void submit_next(struct submitting *submitting)
{
    struct job_spec spec = new_spec(submitting->bench);
    struct submit body;
    char key[32];

    message_init(&submit_message, &body);
    (void)snprintf(key, sizeof(key), "k%llu", (unsigned long long)spec.repeat);
    body.search = (char *)(uintptr_t) "queued"; // packed, never changed
    body.key = key;
    body.spec = &spec;
    submitting->sent++;
    remote_call(submitting->remote, OP_SUBMIT, &submit_message, &body, &submitted_message, CALL_MS,
                on_submitted, submitting);
}

// Returns the number of the first job.
static uint64_t submit_many(struct bench *bench, enum who who, size_t count)
{
    struct submitting submitting = {.bench = bench, .remote = bench->remote[who], .wanted = count};

    while (submitting.sent < count && submitting.sent < FLIGHT) {
        submit_next(&submitting);
    }
    while (submitting.answered < count) {
        (void)uv_run(&bench->loop, UV_RUN_ONCE);
    }
    return submitting.first;
}

static void prepare(struct bench *bench)
{
    struct status_request nothing = {0};
    struct status status;
    struct empty empty;
    struct err err = ERR_INIT;
    struct url url;

    for (int i = 0; i < PEOPLE; i++) {
        bench->remote[i] = open_remote(bench, i);
    }
    (void)call(bench->remote[ADMIN], OP_STATUS, &status_request_message, &nothing, &status_message,
               &status);
    struct drain drain = {.devices = &status.devices[0].name, .devices_count = 1};
    (void)call(bench->remote[ADMIN], OP_DRAIN, &drain_message, &drain, &empty_message, &empty);
    bench->target.http_port = (uint16_t)strtoul(strrchr(status.http, ':') + 1, NULL, 10);
    message_clear(&status_message, &status);
    put(bench->remote[OTHER], &bench->problem.json);
    put(bench->remote[OTHER], &bench->problem.reference);
    put(bench->remote[OTHER], &bench->problem.baseline);
    bench->job = submit_many(bench, OTHER, 1);
    bench->target.first_job = submit_many(bench, MALLORY, JOBS);
    bench->target.job_count = JOBS;
    bench->target.known = bench->problem.json_digest;
    check(url_parse(&url, bench->program.url, &err), &err);
    bench->target.host = "127.0.0.1";
    bench->target.port = url.port;
    bench->target.tls = bench->tls;
    bench->target.token = bench->token[MALLORY];
}

// --- what the other tenant sees

static double call_small(struct bench *bench, size_t number)
{
    struct remote *remote = bench->remote[OTHER];
    struct status_request one = {.jobs = &bench->job, .jobs_count = 1};
    struct wait wait = {.jobs = &bench->job, .jobs_count = 1, .max_ms = 0};
    struct blob_have have = {.digests = &bench->problem.json_digest, .digests_count = 1};
    struct status status;
    struct waited waited;
    struct blob_missing missing;
    double ms;

    if (number % 3 == 0) {
        ms = call(remote, OP_STATUS, &status_request_message, &one, &status_message, &status);
        message_clear(&status_message, &status);
    } else if (number % 3 == 1) {
        ms = call(remote, OP_WAIT, &wait_message, &wait, &waited_message, &waited);
        message_clear(&waited_message, &waited);
    } else {
        ms = call(remote, OP_BLOB_HAVE, &blob_have_message, &have, &blob_missing_message, &missing);
        message_clear(&blob_missing_message, &missing);
    }
    return ms;
}

static double call_disk(struct bench *bench)
{
    uint64_t start_ns = uv_hrtime();

    (void)submit_many(bench, OTHER, 1);
    return (double)(uv_hrtime() - start_ns) / NS_PER_MS;
}

static double peak_mib(pid_t pid, bool begin)
{
    char *path = xasprintf("/proc/%d/%s", (int)pid, begin ? "clear_refs" : "status");
    FILE *file = fopen(path, begin ? "we" : "re");
    char line[256];
    double kib = 0;

    free(path);
    if (!file) {
        return -1;
    }
    if (begin) {
        (void)fputs("5", file); // resets the peak
    }
    while (!begin && fgets(line, sizeof(line), file)) {
        if (strncmp(line, "VmHWM:", 6) == 0) {
            kib = strtod(line + 6, NULL);
        }
    }
    (void)fclose(file);
    return kib / 1024;
}

static uint64_t bytes_seen; // by add_file

static int add_file(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)path;
    (void)where;
    bytes_seen += type == FTW_F ? (uint64_t)info->st_blocks * 512 : 0;
    return 0;
}

static double blobs_mib(const struct bench *bench)
{
    char *dir = xasprintf("%s/state/blobs", bench->program.dir);

    bytes_seen = 0;
    (void)nftw(dir, add_file, 8, FTW_PHYS);
    free(dir);
    return (double)bytes_seen / (1 << 20);
}

static void print_times(const char *name, double *ms, size_t count)
{
    stats_sort(ms, count);
    printf(" %s %6zu: p50 %6.2f p99 %7.2f most %7.2f ms", name, count,
           stats_quantile(ms, count, 0.5), stats_quantile(ms, count, 0.99),
           stats_quantile(ms, count, 1));
}

static void on_pause_over(uv_timer_t *timer)
{
    *(bool *)timer->data = true;
}

// Turns the loop for about a millisecond.
static void pause_ms(struct bench *bench)
{
    bool over = false;

    bench->pause.data = &over;
    (void)uv_timer_start(&bench->pause, on_pause_over, 1, 0);
    while (!over) {
        (void)uv_run(&bench->loop, UV_RUN_ONCE);
    }
}

static void run(struct bench *bench, const struct attack *attack, double seconds)
{
    (void)fflush(stdout);
    (void)peak_mib(bench->program.pid, true);
    pid_t child = fork();

    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        attack_run(attack, &bench->target);
    }
    uint64_t start_ns = uv_hrtime();
    uint64_t stop_ns = start_ns + (uint64_t)(seconds * NS_PER_S);
    size_t calls = 0;
    size_t disk = 0;
    while (uv_hrtime() < stop_ns && calls < CALLS_MAX) {
        bench->loop_ms[calls] = call_small(bench, calls);
        calls++;
        if (calls % 20 == 0) {
            bench->disk_ms[disk++] = call_disk(bench);
        }
        pause_ms(bench); // a caller that asks little
    }
    uint64_t connect_ns = uv_hrtime();
    struct remote *admin = open_remote(bench, ADMIN);
    double connected_ms = (double)(uv_hrtime() - connect_ns) / NS_PER_MS;
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
    remote_close(admin);
    double load[1] = {0};
    (void)getloadavg(load, 1);
    printf("%-36s", attack->name);
    print_times("small", bench->loop_ms, calls);
    print_times(" disk", bench->disk_ms, disk);
    printf("  administrator in %.1f ms, peak %.0f MiB, blobs %.0f MiB, load %.1f\n", connected_ms,
           peak_mib(bench->program.pid, false), blobs_mib(bench), load[0]);
}

int main(int argc, char **argv)
{
    struct bench bench = {.tls = NULL};
    struct err err = ERR_INIT;
    double seconds = 5;

    (void)signal(SIGPIPE, SIG_IGN);
    service_raise_file_limit();
    if (argc > 1) {
        check(parse_f64(&seconds, argv[1], 0.1, 600, "SECONDS", &err), &err);
    }
    char *self = xstrdup(argv[0]);
    (void)setenv("KCAST_BIN", dirname(self), 0);
    free(self);
    check(problem_dir_load(&bench.problem, "tests/data/bench/tiny", &err), &err);
    (void)uv_loop_init(&bench.loop);
    (void)uv_timer_init(&bench.loop, &bench.pause);
    program_init(&bench.program);
    make_team(&bench);
    start_daemon(&bench);
    prepare(&bench);
    bench.loop_ms = xcalloc(CALLS_MAX, sizeof(*bench.loop_ms));
    bench.disk_ms = xcalloc(CALLS_MAX, sizeof(*bench.disk_ms));
    for (size_t i = 0; i < attack_count; i++) {
        if (argc < 3 || strstr(attacks[i].name, argv[2])) {
            run(&bench, &attacks[i], seconds);
        }
    }
    free(bench.loop_ms);
    free(bench.disk_ms);
    for (int i = 0; i < PEOPLE; i++) {
        remote_close(bench.remote[i]);
        free(bench.token[i]);
    }
    uv_close((uv_handle_t *)&bench.pause, NULL);
    (void)uv_run(&bench.loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&bench.loop);
    tls_release(bench.tls);
    problem_dir_release(&bench.problem);
    program_release(&bench.program);
    return 0;
}
