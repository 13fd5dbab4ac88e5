// What sharing a large pool costs the daemon: a private kcastd with GPUs that are not there and an
// executor that only takes its time, searches with the weights 1, 1, 2 and 4 in turn that always
// have jobs waiting, and as many verdicts a second as the devices give: 64 of them that take 31 ms
// give 2,000. No result is in a cache. A job goes the whole way of SUBMIT, ledger, queues, device,
// executor, ledger, WAIT and ACK; with CANDIDATES "seen" (the default) its candidate was compiled
// before, with "unseen" its source is new, stored first and compiled, by an executor that takes no
// time for it. The clock starts after SECONDS and runs for SECONDS.
//
// Printed are verdicts a second, the processor time of the daemon's loop (its main thread, in which
// the scheduler runs) and of all its threads as shares of a core, as they were and for 2,000
// verdicts a second, and how far each search's device-seconds are from its share. The executors and
// the searches are not in it. Processor time, not wall time, is what counts on a machine that does
// other things as well.
//  bench_pool [SECONDS [DEVICES [SEARCHES [MS [CANDIDATES [KCASTD-OPTION…]]]]]]   10 64 32 31 seen
#include "client/pool/job_client.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/parse.h"
#include "common/stats.h"
#include "proto/verdict.h"
#include "tests/bench/samples.h"
#include "tests/support/daemon_client.h"
#include <dirent.h>
#include <libgen.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FLIGHT_PER_SHARE 4 // jobs that a search has at the daemon for each device of its share
#define SEEN 16            // candidates of each search that were compiled before
#define OPTIONS_MAX 16
#define THREADS_MAX 64
#define TARGET 2000 // verdicts a second

static const double weights[] = {1, 1, 2, 4};

// One search: it submits a job for every verdict.
struct sharer {
    struct bench *bench;
    struct remote *remote;
    struct job_client *client;
    size_t number;
    struct job_spec spec;
    struct digest candidate[SEEN];
    unsigned ms; // that a measurement takes
    double weight;
    uint64_t serial; // jobs submitted
    double held_s;   // device-seconds while it counts
};

struct bench {
    struct program program;
    struct session *session;
    struct sharer *sharers;
    size_t count;
    size_t devices;
    double weight;    // of all searches
    bool unseen;      // every job has a candidate of its own
    bool counts;      // the clock runs
    bool stops;       // nothing more is submitted
    uint64_t done;    // verdicts since the start
    uv_timer_t pause; // wakes the loop, see wait_until
};

// ---- searches ----

static void submit(struct sharer *sharer);

static void on_verdict(void *owner, uint64_t tag, struct job_info *info, const struct err *error)
{
    struct sharer *sharer = owner;
    struct bench *bench = sharer->bench;

    (void)tag;
    if (error) {
        die(error);
    }
    if (!info->result || !info->result->seconds) {
        fprintf(stderr, "bench_pool: %s\n", info->reason ? info->reason : "a job has no result");
        exit(1);
    }
    bench->done++;
    if (bench->counts) {
        sharer->held_s += info->result->seconds->held;
    }
    job_client_ack(sharer->client, info->job);
    if (!bench->stops) {
        submit(sharer);
    }
}

static struct digest add_text(struct job_client *client, const char *text)
{
    struct digest digest;

    job_client_add_blob(client, text, strlen(text), &digest);
    return digest;
}

// Gives the daemon a source that takes the search's time and is like no other one of this number.
static struct digest add_candidate(struct sharer *sharer, uint64_t number)
{
    char *text = xasprintf("//! takes %u\n// candidate %llu of search %zu\n", sharer->ms,
                           (unsigned long long)number, sharer->number);
    struct digest digest = add_text(sharer->client, text);

    free(text);
    return digest;
}

static void submit(struct sharer *sharer)
{
    char key[32];

    sharer->serial++;
    (void)snprintf(key, sizeof(key), "m%llu", (unsigned long long)sharer->serial);
    sharer->spec.candidate = sharer->bench->unseen ? add_candidate(sharer, SEEN + sharer->serial)
                                                   : sharer->candidate[sharer->serial % SEEN];
    sharer->spec.repeat = sharer->serial;
    job_client_submit(sharer->client, key, &sharer->spec, 0, on_verdict, sharer, 0);
}

static void open_sharer(struct sharer *sharer, size_t number)
{
    struct session *session = sharer->bench->session;
    struct err err = ERR_INIT;
    struct remote *first;
    struct hello_reply hello;
    char name[32];

    sharer->number = number;
    (void)snprintf(name, sizeof(name), "search%zu", number);
    if (session_daemon(session, &first, &err) < 0 ||
        session_remote(session, remote_url(first), &sharer->remote, &err) < 0 ||
        remote_hello_sync(sharer->remote, "kcastd", &hello, &err) < 0) {
        die(&err);
    }
    message_clear(&hello_reply_message, &hello);
    struct job_client *client = job_client_create(session, sharer->remote, name);
    sharer->client = client;
    job_client_set_terms(
        client, &(struct job_client_terms){.weight = sharer->weight, .budget_seconds = NAN});
    message_init(&job_spec_message, &sharer->spec);
    sharer->spec.kind = JOB_MEASURE;
    sharer->spec.problem = add_text(client, daemon_client_cuda_problem);
    sharer->spec.reference = add_text(client, "// the reference of the pool's benchmark\n");
    sharer->spec.baseline = add_text(client, "// the baseline of the pool's benchmark\n");
    for (size_t i = 0; i < SEEN; i++) {
        sharer->candidate[i] = add_candidate(sharer, i);
    }
}

static void open_sharers(struct bench *bench, unsigned ms)
{
    bench->sharers = xcalloc(bench->count, sizeof(*bench->sharers));
    for (size_t i = 0; i < bench->count; i++) {
        struct sharer *sharer = &bench->sharers[i];

        *sharer =
            (struct sharer){.bench = bench, .weight = weights[i % ARRAY_LEN(weights)], .ms = ms};
        bench->weight += sharer->weight;
        open_sharer(sharer, i);
    }
}

static void begin(struct sharer *sharer)
{
    double share = sharer->weight / sharer->bench->weight * (double)sharer->bench->devices;

    for (size_t k = (size_t)ceil(share) * FLIGHT_PER_SHARE; k > 0; k--) {
        submit(sharer);
    }
}

static void close_sharer(struct sharer *sharer)
{
    job_client_cancel_all(sharer->client);
    job_client_close(sharer->client);
    remote_close(sharer->remote);
}

static void close_sharers(struct bench *bench)
{
    for (size_t i = 0; i < bench->count; i++) {
        close_sharer(&bench->sharers[i]);
    }
    free(bench->sharers);
}

// ---- processor time ----

struct thread_time {
    int id;
    double seconds;
};

// Processor time of the daemon's threads.
struct usage {
    struct thread_time thread[THREADS_MAX];
    size_t count;
    double loop, all; // seconds
};

static double seconds_of_thread(int pid, int thread)
{
    char path[64], line[128];
    unsigned long long ns = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", pid, thread);
    FILE *file = fopen(path, "r");
    if (!file || !fgets(line, sizeof(line), file) || sscanf(line, "%llu", &ns) != 1) {
        fprintf(stderr, "bench_pool: %s cannot be read\n", path);
        exit(1);
    }
    fclose(file);
    return (double)ns / NS_PER_S;
}

static void usage_read(struct usage *ret, int pid)
{
    char path[64];
    const struct dirent *entry;

    *ret = (struct usage){.count = 0};
    (void)snprintf(path, sizeof(path), "/proc/%d/task", pid);
    DIR *dir = opendir(path);
    while (dir && (entry = readdir(dir)) && ret->count < THREADS_MAX) {
        int id = (int)strtol(entry->d_name, NULL, 10);

        if (id > 0) {
            struct thread_time *thread = &ret->thread[ret->count++];

            *thread = (struct thread_time){.id = id, .seconds = seconds_of_thread(pid, id)};
            ret->all += thread->seconds;
            ret->loop += id == pid ? thread->seconds : 0;
        }
    }
    if (dir) {
        closedir(dir);
    }
}

// ---- the daemon ----

static void start_daemon(struct bench *bench, size_t options, char *const *option)
{
    char *kcastd = program_path("kcastd"), *fake = program_support_path("fake_exec");
    char *state = xasprintf("--state=%s/state", bench->program.dir);
    char *exec = xasprintf("--exec=%s", fake);
    char *gpus = xasprintf("KCAST_FAKE_GPUS=%zu", bench->devices);
    const char *argv[OPTIONS_MAX + 16] = {kcastd,
                                          state,
                                          exec,
                                          "--listen=tcp://127.0.0.1:0",
                                          "--devices=cuda",
                                          "--parent-death",
                                          "--log-level=warning"};
    const char *const environment[] = {gpus, NULL};
    size_t n = 7;

    for (size_t i = 0; i < options && i < OPTIONS_MAX; i++) {
        argv[n++] = option[i];
    }
    program_start(&bench->program, argv, environment);
    if (!program_wait_ready(&bench->program)) {
        char *log = program_log(&bench->program);

        fprintf(stderr, "bench_pool: kcastd does not start: %s\n", log);
        program_release(&bench->program);
        exit(1);
    }
    free(kcastd);
    free(fake);
    free(state);
    free(exec);
    free(gpus);
}

static void on_pause(uv_timer_t *timer)
{
    uv_stop(timer->loop);
}

// Runs the searches until so many seconds have passed and there are so many verdicts.
static void run_for(struct bench *bench, double seconds, uint64_t verdicts)
{
    uv_loop_t *loop = session_loop(bench->session);
    uint64_t end = uv_hrtime() + (uint64_t)(seconds * NS_PER_S);

    verdicts += bench->done;
    (void)uv_timer_start(&bench->pause, on_pause, 100, 100);
    while (uv_hrtime() < end || bench->done < verdicts) {
        uv_run(loop, UV_RUN_ONCE);
    }
    (void)uv_timer_stop(&bench->pause);
}

// ---- what it came to ----

static void print_usage(const struct usage *before, const struct usage *after, double seconds,
                        double rate)
{
    double loop = after->loop - before->loop, all = after->all - before->all;
    double scale = TARGET / rate;

    printf("loop and scheduler: %.1f %% of a core, %.0f us a verdict; %.1f %% at %d a second\n",
           100 * loop / seconds, loop / seconds / rate * 1e6, 100 * loop / seconds * scale, TARGET);
    printf("all threads: %.1f %% of a core, %.0f us a verdict; %.1f %% at %d a second\n",
           100 * all / seconds, all / seconds / rate * 1e6, 100 * all / seconds * scale, TARGET);
}

static void print_fairness(const struct bench *bench)
{
    double held = 0, points = 0, part = 0, sum = 0, squares = 0;

    for (size_t i = 0; i < bench->count; i++) {
        held += bench->sharers[i].held_s;
    }
    for (size_t i = 0; i < bench->count; i++) {
        const struct sharer *sharer = &bench->sharers[i];
        double share = sharer->weight / bench->weight, got = sharer->held_s / held;

        points = fmax(points, 100 * fabs(got - share));
        part = fmax(part, 100 * fabs(got / share - 1));
        sum += got / share;
        squares += got / share * (got / share);
    }
    printf("device-seconds of a search are off its share by at most %.2f points, which are at most "
           "%.1f %% of it; Jain's index %.4f\n",
           points, part, sum * sum / ((double)bench->count * squares));
}

// A search of its own uses every device until all of them have their processes: else those of the
// others that come first pay for the start, and the rest catch up for a long time, because no
// search may hold many more devices than its share.
static void wake_devices(struct bench *bench, unsigned ms)
{
    struct sharer first = {.bench = bench, .weight = bench->weight, .ms = ms};

    open_sharer(&first, bench->count);
    begin(&first);
    run_for(bench, 1, 20 * bench->devices);
    close_sharer(&first);
}

static void measure(struct bench *bench, double seconds)
{
    struct usage before, after;
    uint64_t done, start;

    for (size_t i = 0; i < bench->count; i++) {
        begin(&bench->sharers[i]);
    }
    // Until everything is compiled, and where processes belong to searches, until they are there.
    run_for(bench, seconds, 20 * bench->devices);
    usage_read(&before, bench->program.pid);
    done = bench->done;
    start = uv_hrtime();
    bench->counts = true;
    run_for(bench, seconds, 1);
    bench->counts = false;
    double took = (double)(uv_hrtime() - start) / NS_PER_S;
    double rate = (double)(bench->done - done) / took;
    usage_read(&after, bench->program.pid);
    printf("%zu devices, %zu searches, candidates %s: %.0f verdicts a second for %.1f s\n",
           bench->devices, bench->count, bench->unseen ? "unseen" : "seen", rate, took);
    print_usage(&before, &after, took, rate);
    print_fairness(bench);
}

int main(int argc, char **argv)
{
    char self[4096];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
    struct err err = ERR_INIT;
    uint64_t seconds = 10, devices = 64, searches = 32, ms = 31;

    if (len <= 0 || (argc > 1 && parse_u64(&seconds, argv[1], 1, 3600, "SECONDS", &err) < 0) ||
        (argc > 2 && parse_u64(&devices, argv[2], 1, 64, "DEVICES", &err) < 0) ||
        (argc > 3 && parse_u64(&searches, argv[3], 1, 1000, "SEARCHES", &err) < 0) ||
        (argc > 4 && parse_u64(&ms, argv[4], 1, 10000, "MS", &err) < 0)) {
        die(&err);
    }
    bool unseen = argc > 5 && strcmp(argv[5], "unseen") == 0;
    if (argc > 5 && !unseen && strcmp(argv[5], "seen") != 0) {
        (void)err_set(&err, ERR_INVALID, "CANDIDATES is %s; it has to be seen or unseen", argv[5]);
        die(&err);
    }
    self[len] = '\0';
    (void)setenv("KCAST_BIN", dirname(self), 0);
    (void)setenv("KCAST_BUILD", dirname(self), 0); // the folder above bin
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    struct bench bench = {.count = (size_t)searches, .devices = (size_t)devices, .unseen = unseen};
    program_init(&bench.program);
    start_daemon(&bench, argc > 6 ? (size_t)argc - 6 : 0, argv + 6);
    struct session_options options = {.quiet = true, .pool = bench.program.url};
    if (session_create(&bench.session, &options, &err) < 0) {
        die(&err);
    }
    (void)uv_timer_init(session_loop(bench.session), &bench.pause);
    open_sharers(&bench, (unsigned)ms);
    wake_devices(&bench, (unsigned)ms);
    measure(&bench, (double)seconds);
    bench.stops = true;
    close_sharers(&bench);
    uv_close((uv_handle_t *)&bench.pause, NULL);
    session_free(bench.session);
    (void)program_stop(&bench.program);
    program_release(&bench.program);
    return 0;
}
