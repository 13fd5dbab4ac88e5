// The soak test: a daemon, many clients, and kills at random.
//
//  soak SECONDS CLIENTS [SEED [tls]]
//
// With "tls" everything is encrypted, and the clients belong to several tenants. The program prints
// the seed first, a table last, and between them a sentence for each violation. With violations it
// ends with 1 and keeps its folder. The order of kills follows from the seed; the moments of the
// kills do not, because they depend on the machine.
#include "common/clock.h"
#include "common/file.h"
#include "common/parse.h"
#include "tests/soak/client.h"
#include "tests/soak/connect.h"
#include "tests/soak/soak.h"
#include "tests/support/own_url.h"
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define TICK_US 10000
// The shares of the time between which the daemon is left alone, to watch its memory.
#define CALM_FROM 0.35
#define CALM_TO 0.75
#define SETTLED_NS (5 * NS_PER_S) // descriptors that do not change for so long are at rest
#define SETTLE_MAX_NS (120 * NS_PER_S)
#define DRAIN_MAX_NS (120 * NS_PER_S) // longest time in which no client finishes
#define WAL_MAX ((uint64_t)64 << 20)
// Growth that is allowed: 2 MiB for the pages that SQLite keeps, which come in the first minutes,
// and 2 MiB for the heap's arenas.
#define RESIDENT_DRIFT_KIB 4096.0
#define RESIDENT_LATE_DRIFT_KIB 2048.0 // in a long life
// A life is long from this many seconds.
#define LATE_S 300
#define DESCRIPTOR_DRIFT 16.0
// Descriptors are compared in a life of this part of the time at least: in a shorter one, where
// restarts take long, clients are still connecting.
#define LIFE_LEAST 0.25
#define PROBE_MAX ((size_t)1 << 20)

void soak_violation(struct soak *soak, const char *format, ...)
{
    soak->violations++;
    va_list args;
    if (soak->violations <= 50) {
        printf("VIOLATION after %.0f s: ", soak_elapsed(soak));
        va_start(args, format);
        (void)vprintf(format, args);
        va_end(args);
        printf("\n");
        (void)fflush(stdout);
    }
}

double soak_elapsed(const struct soak *soak)
{
    return clock_seconds(clock_now_ns(&clock_system) - soak->started_ns);
}

// ---- kills ----

struct event {
    double mean_s;
    double next_s;
};

// Whether the event is due; if so, draws when it is due again.
static bool due(struct soak *soak, struct event *event)
{
    double at_s = soak_elapsed(soak);
    bool is = at_s >= event->next_s;

    if (is) {
        event->next_s = at_s - log(1 - stats_rng_unit(&soak->rng)) * event->mean_s;
    }
    return is;
}

static bool is_calm(const struct soak *soak)
{
    double part = soak_elapsed(soak) / soak->seconds;

    return part > CALM_FROM && part < CALM_TO;
}

static void restart_daemon(struct soak *soak)
{
    bool well = stats_rng_below(&soak->rng, 6) == 0;

    soak_thaw(soak, true);
    soak->daemon_stops += well;
    soak->daemon_kills += !well;
    soak_end_daemon(soak, well);
    soak_start_daemon(soak);
}

static void disturb(struct soak *soak)
{
    double long_run = soak->seconds > 300 ? 2 : 1;
    struct event client = {.mean_s = 80.0 / soak->clients};
    struct event executor = {.mean_s = 1.5};
    struct event daemon = {.mean_s = 5 * long_run, .next_s = 5};
    struct event freeze = {.mean_s = 2};
    double next_look_s = 1;
    unsigned looks = 0;

    while (soak_elapsed(soak) < soak->seconds && soak->violations == 0) {
        soak_reap(soak);
        soak_thaw(soak, false);
        if (due(soak, &client)) {
            soak_kill_client(soak);
        }
        if (due(soak, &executor)) {
            soak_kill_executor(soak);
        }
        if (due(soak, &freeze)) {
            soak_freeze_one(soak);
        }
        if (!is_calm(soak) && due(soak, &daemon)) {
            restart_daemon(soak);
        }
        if (soak_elapsed(soak) >= next_look_s) {
            next_look_s = soak_elapsed(soak) + 1; // none is made up for after a slow restart
            soak_sample(soak);
            if (++looks % 5 == 0) {
                soak_thaw(soak, true); // a frozen process could not answer
                soak_probe_quarantined(soak);
            }
        }
        (void)usleep(TICK_US);
    }
}

// ---- the end ----

static unsigned running(const struct soak *soak)
{
    unsigned count = 0;

    for (unsigned i = 0; i < soak->clients; i++) {
        count += !soak->client[i].ended;
    }
    return count;
}

// Stops all kills and lets the clients finish what they have begun.
static void drain(struct soak *soak)
{
    char *path = xasprintf("%s/%s", soak->dir, SOAK_STOP);
    uint64_t moved_ns = clock_now_ns(&clock_system);
    unsigned left = running(soak);

    soak_thaw(soak, true);
    struct err err = ERR_INIT;
    if (file_replace(path, "", 0, false, &err) != 0) {
        soak_violation(soak, "%s", err.text);
    }
    while (running(soak) > 0) {
        soak_reap(soak);
        soak_probe_quarantined(soak);
        if (running(soak) != left) {
            left = running(soak);
            moved_ns = clock_now_ns(&clock_system);
        }
        if (clock_now_ns(&clock_system) - moved_ns > DRAIN_MAX_NS) {
            soak_violation(soak, "%u clients do not come to an end", left);
            break;
        }
        (void)usleep(10 * TICK_US);
    }
    free(path);
}

static void kill_clients(struct soak *soak)
{
    for (unsigned i = 0; i < soak->clients; i++) {
        if (soak->client[i].pid > 0) {
            (void)kill(soak->client[i].pid, SIGKILL);
        }
    }
}

// The descriptors of an idle daemon once they have stayed the same for a while: connections of
// clients that have just ended may still be closing.
static double settled_descriptors(const struct soak *soak)
{
    double count = soak_descriptors(soak);
    uint64_t begun_ns = clock_now_ns(&clock_system), since_ns = begun_ns;

    while (clock_now_ns(&clock_system) - since_ns < SETTLED_NS &&
           clock_now_ns(&clock_system) - begun_ns < SETTLE_MAX_NS) {
        (void)usleep(10 * TICK_US);
        double now = soak_descriptors(soak);
        if (now != count) {
            count = now;
            since_ns = clock_now_ns(&clock_system);
        }
    }
    return count;
}

// A daemon at rest that has been through all this must not hold more than a fresh one.
static void compare_with_fresh(struct soak *soak)
{
    double used, fresh;

    if (!soak_wait_idle(soak)) {
        return;
    }
    used = settled_descriptors(soak);
    soak_end_daemon(soak, true);
    soak_start_daemon(soak);
    if (!soak_wait_idle(soak)) {
        return;
    }
    fresh = settled_descriptors(soak);
    if (used > fresh) {
        soak_violation(soak, "at rest it holds %.0f descriptors, after a restart %.0f", used,
                       fresh);
    }
}

static void check_drift(struct soak *soak, const struct soak_drift *drift)
{
    double growth = drift->resident_after_kib - drift->resident_before_kib;
    double allowed = drift->seconds < LATE_S ? RESIDENT_DRIFT_KIB : RESIDENT_LATE_DRIFT_KIB;

    if (!soak->sanitized && growth > allowed) {
        soak_violation(soak, "its memory grew from %.1f to %.1f MiB",
                       drift->resident_before_kib / 1024, drift->resident_after_kib / 1024);
    }
    if (drift->seconds >= LIFE_LEAST * soak->seconds &&
        drift->descriptors_after > drift->descriptors_before + DESCRIPTOR_DRIFT) {
        soak_violation(soak, "its descriptors grew from %.0f to %.0f", drift->descriptors_before,
                       drift->descriptors_after);
    }
    if (soak->wal_max > WAL_MAX) {
        soak_violation(soak, "the ledger's log grew to %llu bytes",
                       (unsigned long long)soak->wal_max);
    }
}

static void print_table(const struct soak *soak, const struct soak_totals *totals,
                        const struct soak_drift *drift)
{
    unsigned lives = 0;

    for (unsigned i = 0; i < soak->clients; i++) {
        lives += soak->client[i].lives;
    }
    printf("seconds, clients                %.0f, %u\n", soak_elapsed(soak), soak->clients);
    printf("jobs submitted, accepted        %llu, %llu (%llu refused: budget)\n",
           (unsigned long long)totals->submitted, (unsigned long long)totals->accepted,
           (unsigned long long)totals->refused);
    printf("results delivered, acknowledged %llu, %llu\n", (unsigned long long)totals->delivered,
           (unsigned long long)totals->acknowledged);
    printf("done, cancelled, buried         %llu, %llu, %llu (%llu for kills from outside)\n",
           (unsigned long long)totals->done, (unsigned long long)totals->cancelled,
           (unsigned long long)totals->buried, (unsigned long long)totals->buried_innocent);
    printf("fake measurements, done again   %llu, %llu\n", (unsigned long long)totals->runs,
           (unsigned long long)totals->runs_again);
    printf("results of the real kcast-exec  %llu\n", (unsigned long long)totals->real);
    printf("kills: clients, executors       %u, %u (clients were started %u times)\n",
           soak->client_kills, soak->executor_kills, lives);
    printf("daemon: killed, stopped         %u, %u\n", soak->daemon_kills, soak->daemon_stops);
    printf("frozen; devices brought back    %u; %u\n", soak->freezes, soak->probes);
    printf("longest life of the daemon      %.0f s\n", drift->seconds);
    printf("resident, 2nd and last quarter  %.1f, %.1f MiB%s\n", drift->resident_before_kib / 1024,
           drift->resident_after_kib / 1024, soak->sanitized ? " (a sanitizer's)" : "");
    printf("descriptors, the same           %.0f, %.0f\n", drift->descriptors_before,
           drift->descriptors_after);
    printf("ledger's log, at most           %.1f MiB\n", (double)soak->wal_max / (1 << 20));
    printf("violations                      %u\n", soak->violations);
}

// ---- the program ----

// Whether kcast-exec can measure here, which needs a sandbox.
static bool has_sandbox(void)
{
    char *path = program_path("kcast-exec");
    const char *argv[] = {path, "probe", NULL};
    struct program program;

    program_init(&program);
    program_start(&program, argv, NULL);
    char *output = xasprintf("%s/stdout", program.dir);
    struct probe_outcome report;
    struct bytes said = {0};
    bool has = false;
    if (program_wait(&program) == 0 && file_read(&said, output, PROBE_MAX, NULL) == 0 &&
        message_read(&probe_outcome_message, &report, said.data, said.len, NULL) == 0) {
        has = report.sandbox;
        message_clear(&probe_outcome_message, &report);
    }
    bytes_clear(&said);
    free(output);
    free(path);
    program_release(&program);
    return has;
}

static void set_up(struct soak *soak)
{
    const char *variant = getenv("KCAST_VARIANT");

    (void)signal(SIGPIPE, SIG_IGN);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    soak->sanitized = variant && (strcmp(variant, "asan") == 0 || strcmp(variant, "tsan") == 0);
    soak->real = has_sandbox();
    stats_rng_init(&soak->rng, soak->seed, 0);
    soak->client = xcalloc(soak->clients, sizeof(*soak->client));
    program_init(&soak->daemon);
    soak->dir = xstrdup(soak->daemon.dir);
    soak->state = xasprintf("%s/state", soak->dir);
    // The port is below the range from which the kernel chooses ports.
    soak->url =
        xasprintf("%s://%s:%d", soak->tls ? "tls" : "tcp", own_host(), 20000 + getpid() % 10000);
    if (soak->tls) {
        soak_make_certificates(soak);
    }
    (void)uv_loop_init(&soak->loop);
    soak->remote = soak_connect(&soak->loop, soak->url, soak->dir, SOAK_ADMIN);
    soak->started_ns = clock_now_ns(&clock_system);
}

static int run(struct soak *soak)
{
    set_up(soak);
    soak_start_daemon(soak);
    for (unsigned i = 0; i < soak->clients; i++) {
        soak_start_client(soak, i);
    }
    disturb(soak);
    if (soak->violations == 0) {
        drain(soak);
    }
    struct soak_drift drift = soak_drift(soak);
    check_drift(soak, &drift);
    if (soak->violations == 0) {
        compare_with_fresh(soak);
    }
    kill_clients(soak);
    soak_end_daemon(soak, true);
    remote_close(soak->remote);
    (void)uv_run(&soak->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&soak->loop);
    struct soak_totals totals = {0};
    soak_verify(soak, &totals);
    if (soak->violations == 0) {
        soak_check_files(soak);
    }
    print_table(soak, &totals, &drift);
    if (soak->violations > 0) {
        printf("seed %llu; what is left is in %s\n", (unsigned long long)soak->seed, soak->dir);
        (void)fflush(stdout);
        _exit(EXIT_FAILURE); // a sanitizer's report of what is not freed would bury it
    }
    program_release(&soak->daemon);
    free(soak->client);
    free(soak->sample);
    free(soak->dir);
    free(soak->state);
    free(soak->url);
    return EXIT_SUCCESS;
}

static uint64_t number(const char *text, uint64_t min, uint64_t max, const char *what)
{
    struct err err = ERR_INIT;
    uint64_t value;

    if (parse_u64(&value, text, min, max, what, &err) != 0) {
        fprintf(stderr, "soak: %s\n", err.text);
        exit(EXIT_USAGE);
    }
    return value;
}

static int be_client(char **argv)
{
    struct client_plan plan = {
        .dir = argv[2],
        .url = argv[3],
        .seed = number(argv[4], 0, UINT64_MAX, "the seed"),
        .number = (unsigned)number(argv[5], 0, SOAK_CLIENTS_MAX, "the client's number"),
        .life = (unsigned)number(argv[6], 0, UINT32_MAX, "the client's life"),
        .real = argv[7][0] == '1',
        .think_ms = (unsigned)number(argv[8], 0, 600000, "the time to think"),
    };

    return client_run(&plan);
}

int main(int argc, char **argv)
{
    if (argc == 9 && strcmp(argv[1], "client") == 0) {
        return be_client(argv);
    }
    if (argc < 3 || argc > 5 || (argc == 5 && strcmp(argv[4], "tls") != 0)) {
        fprintf(stderr, "usage: soak SECONDS CLIENTS [SEED [tls]]\n");
        return EXIT_USAGE;
    }
    struct soak soak = {0};
    soak.seconds = (double)number(argv[1], 10, 86400, "SECONDS");
    soak.clients = (unsigned)number(argv[2], 1, SOAK_CLIENTS_MAX, "CLIENTS");
    soak.tls = argc == 5;
    soak.seed = argc >= 4 ? number(argv[3], 0, UINT64_MAX, "SEED") : stats_entropy() >> 32;
    printf("seed %llu\n", (unsigned long long)soak.seed);
    (void)fflush(stdout);
    return run(&soak);
}
