// Design. The driver is the reaper of all orphans of its processes, so that none can hide. Its
// children are the daemon, the clients, and what a killed daemon has left, which must end soon. The
// daemon's URL is an address of 127.0.0.0/8 that nobody else uses, since it must be the same after
// each restart.
#include "common/clock.h"
#include "common/file.h"
#include "common/mem.h"
#include "tests/soak/client.h"
#include "tests/soak/soak.h"
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ORPHAN_MAX_NS (20 * NS_PER_S) // a killed daemon's executors end much earlier

static uint64_t now(void)
{
    return clock_now_ns(&clock_system);
}

// ---- the daemon ----

// The options that --listen=tls:// needs; owned.
struct tls_options {
    char *ca, *cert, *key, *tokens;
};

static struct tls_options tls_options(const struct soak *soak)
{
    return (struct tls_options){
        .ca = xasprintf("--tls-ca=%s/pool/server/ca.pem", soak->dir),
        .cert = xasprintf("--tls-cert=%s/pool/server/cert.pem", soak->dir),
        .key = xasprintf("--tls-key=%s/pool/server/key.pem", soak->dir),
        .tokens = xasprintf("--tokens=%s/pool/tokens", soak->dir),
    };
}

static void start_with(struct soak *soak, const char *program, const char *const *environment)
{
    char *exec_file = program_support_path("fake_exec");
    char *exec = xasprintf("--exec=%s", exec_file);
    char *state = xasprintf("--state=%s", soak->state);
    char *listen = xasprintf("--listen=%s", soak->url);
    char *jobs = xasprintf("--compile-jobs=%d", SOAK_COMPILERS);
    struct tls_options tls = tls_options(soak);
    const char *argv[] = {program,
                          exec,
                          state,
                          listen,
                          jobs,
                          "--devices=cpu:1+cuda",
                          "--exec-slack=10s",
                          "--exec-grace=200ms",
                          "--queue-max=40",
                          "--parent-death",
                          soak->tls ? tls.ca : NULL,
                          tls.cert,
                          tls.key,
                          tls.tokens,
                          NULL};

    program_start(&soak->daemon, argv, environment);
    free(tls.ca);
    free(tls.cert);
    free(tls.key);
    free(tls.tokens);
    free(jobs);
    free(listen);
    free(state);
    free(exec);
    free(exec_file);
}

void soak_start_daemon(struct soak *soak)
{
    char *program = program_path("kcastd");
    char *real_file = program_path("kcast-exec");
    char *real = xasprintf("KCAST_FAKE_REAL=%s", real_file);
    char *log = xasprintf("KCAST_FAKE_LOG=%s/%s", soak->dir, SOAK_LOG);
    char *gpus = xasprintf("KCAST_FAKE_GPUS=%d", SOAK_GPUS);
    const char *environment[] = {log, gpus, soak->real ? real : NULL, NULL};

    start_with(soak, program, environment);
    if (!program_wait_ready(&soak->daemon)) {
        char *said = program_log(&soak->daemon);

        soak_violation(soak, "the daemon does not start again: %s", said);
        free(said);
        exit(EXIT_FAILURE);
    }
    soak->epoch_ns = now();
    free(gpus);
    free(log);
    free(real);
    free(real_file);
    free(program);
}

void soak_end_daemon(struct soak *soak, bool well)
{
    int code = well ? program_stop(&soak->daemon) : program_kill(&soak->daemon);

    if (code != (well ? 0 : -SIGKILL)) {
        char *log = program_log(&soak->daemon);
        size_t len = strlen(log);

        soak_violation(soak, "the daemon ended with %d instead of %d: …%s", code,
                       well ? 0 : -SIGKILL, len > 6000 ? log + len - 6000 : log);
        free(log);
    }
    soak->epoch++;
    soak->zombie_count = 0;
}

// ---- clients ----

void soak_start_client(struct soak *soak, unsigned number)
{
    struct soak_client *client = &soak->client[number];
    char *seed = xasprintf("%llu", (unsigned long long)soak->seed);
    char *text = xasprintf("%u", number);
    char *life = xasprintf("%u", client->lives++);
    char *think = xasprintf("%u", 20 * soak->clients);
    const char *argv[] = {"soak", "client", soak->dir, soak->url,
                          seed,   text,     life,      soak->real ? "1" : "0",
                          think,  NULL};
    int rc = posix_spawn(&client->pid, "/proc/self/exe", NULL, NULL, (char *const *)(uintptr_t)argv,
                         environ);

    if (rc != 0) {
        fprintf(stderr, "soak: a client cannot be started: %s\n", strerror(rc));
        exit(EXIT_FAILURE);
    }
    free(seed);
    free(text);
    free(life);
    free(think);
}

static void on_client_end(struct soak *soak, unsigned number, int status)
{
    struct soak_client *client = &soak->client[number];

    client->pid = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        client->ended = true;
    } else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
        soak_start_client(soak, number);
    } else {
        client->ended = true;
        soak_violation(soak, "client %u ended with status %#x; its journal says why", number,
                       (unsigned)status);
    }
}

void soak_reap(struct soak *soak)
{
    siginfo_t info = {0};

    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
        pid_t pid = info.si_pid;

        if (pid == soak->daemon.pid) {
            // Nobody has killed the daemon, so this is a violation unless it ended with 0.
            soak_end_daemon(soak, true);
            soak_violation(soak, "the daemon has ended by itself");
            exit(EXIT_FAILURE);
        }
        int status = 0;
        (void)waitpid(pid, &status, 0);
        unsigned number = 0;
        while (number < soak->clients && soak->client[number].pid != pid) {
            number++;
        }
        if (number < soak->clients) {
            on_client_end(soak, number, status);
        }
        info = (siginfo_t){0};
    }
}

static bool is_ours(const struct soak *soak, pid_t pid)
{
    if (pid == soak->daemon.pid) {
        return true;
    }
    for (unsigned i = 0; i < soak->clients; i++) {
        if (soak->client[i].pid == pid) {
            return true;
        }
    }
    return false;
}

void soak_find_orphans(struct soak *soak)
{
    static pid_t pids[SOAK_CLIENTS_MAX + SOAK_CHILDREN_MAX];
    static struct soak_stopped found[SOAK_CHILDREN_MAX];
    size_t count = program_children(getpid(), pids, ARRAY_LEN(pids));
    size_t used = 0;

    for (size_t i = 0; i < count && used < SOAK_CHILDREN_MAX; i++) {
        uint64_t since_ns = now();

        if (is_ours(soak, pids[i])) {
            continue;
        }
        for (size_t k = 0; k < soak->orphan_count; k++) {
            if (soak->orphan[k].pid == pids[i]) {
                since_ns = soak->orphan[k].until_ns;
            }
        }
        if (now() - since_ns > ORPHAN_MAX_NS && program_alive(pids[i])) {
            soak_violation(soak, "process %d lives on without the daemon that started it",
                           (int)pids[i]);
            (void)kill(pids[i], SIGKILL);
        }
        found[used++] = (struct soak_stopped){.pid = pids[i], .until_ns = since_ns};
    }
    memcpy(soak->orphan, found, used * sizeof(*found));
    soak->orphan_count = used;
}

// ---- disturbances ----

static pid_t random_client(struct soak *soak)
{
    return soak->client[stats_rng_below(&soak->rng, soak->clients)].pid;
}

// A random child of the daemon's main thread, which starts all executors.
static pid_t random_executor(struct soak *soak)
{
    pid_t pids[SOAK_CHILDREN_MAX];
    size_t count = program_children(soak->daemon.pid, pids, ARRAY_LEN(pids));

    return count > 0 ? pids[stats_rng_below(&soak->rng, count)] : 0;
}

void soak_kill_client(struct soak *soak)
{
    pid_t pid = random_client(soak);

    if (pid > 0 && kill(pid, SIGKILL) == 0) {
        soak->client_kills++;
    }
}

void soak_kill_executor(struct soak *soak)
{
    pid_t pid = random_executor(soak);

    if (pid > 0 && kill(pid, SIGKILL) == 0) {
        soak->executor_kills++;
    }
}

void soak_freeze_one(struct soak *soak)
{
    uint64_t at = stats_rng_below(&soak->rng, 10);
    pid_t pid = at < 6 ? random_client(soak) : at < 9 ? random_executor(soak) : soak->daemon.pid;
    uint64_t ms = 50 + stats_rng_below(&soak->rng, 1500);

    if (pid > 0 && soak->stopped_count < SOAK_STOPPED_MAX && kill(pid, SIGSTOP) == 0) {
        soak->stopped[soak->stopped_count++] =
            (struct soak_stopped){.pid = pid, .until_ns = now() + ms * NS_PER_MS};
        soak->freezes++;
    }
}

void soak_thaw(struct soak *soak, bool all)
{
    size_t kept = 0;

    for (size_t i = 0; i < soak->stopped_count; i++) {
        if (all || soak->stopped[i].until_ns <= now()) {
            (void)kill(soak->stopped[i].pid, SIGCONT);
        } else {
            soak->stopped[kept++] = soak->stopped[i];
        }
    }
    soak->stopped_count = kept;
}
