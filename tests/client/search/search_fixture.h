// What the tests of searches share: whole searches by the real kcast against a daemon and a worker
// that invent their answers (tests/client/fake_daemon.h).
#ifndef TESTS_CLIENT_SEARCH_SEARCH_FIXTURE_H
#define TESTS_CLIENT_SEARCH_SEARCH_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/run/run.h"
#include "client/run/run_state.h"
#include "common/file.h"
#include "tests/client/fake_daemon.h"
#include <fcntl.h>
#include <jansson.h>

#define ARGUMENT_MAX 32

struct fixture {
    struct fake_process fake;
    char *folder; // a temporary folder
    char *kcast;
    char *problem;
};

struct kcast_result {
    int status; // exit code, or the negative number of the signal
    char *out, *err;
};

static inline int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    const char *bin = getenv("KCAST_BIN"), *root = getenv("KCAST_ROOT");
    f->kcast = bin ? xasprintf("%s/kcast", bin) : xstrdup("build/debug/bin/kcast");
    f->problem = xasprintf("%s/tests/data/client/hill", root ? root : ".");
    fake_start(&f->fake, 7);
    struct err error = ERR_INIT;
    if (file_make_temp_dir(&f->folder, "kcast-test", &error) != 0) {
        return -1;
    }
    *state = f;
    return 0;
}

static inline int tear_down(void **state)
{
    struct fixture *f = *state;
    fake_stop(&f->fake);
    struct err error = ERR_INIT;
    int rc = file_remove_tree(f->folder, &error);
    free(f->folder);
    free(f->kcast);
    free(f->problem);
    free(f);
    return rc;
}

// Has another daemon and worker serve from now on, which know of no job.
static inline void serve_as(struct fixture *f, const struct fake_behaviour *behaviour)
{
    fake_stop(&f->fake);
    fake_start_as(&f->fake, 7, own_url(), behaviour);
}

static inline char *read_text(const char *path)
{
    struct bytes data;
    struct err error = ERR_INIT;
    assert_int_equal(file_read(&data, path, 1 << 24, &error), 0);
    return (char *)data.data;
}

// Starts kcast with --pool, --worker and these arguments, which NULL ends. Its output goes to files
// in the folder.
static inline pid_t spawn(struct fixture *f, const char *fault, const char *const *argument)
{
    char *argv[ARGUMENT_MAX] = {f->kcast, xasprintf("--pool=%s", f->fake.pool),
                                xasprintf("--worker=%s", f->fake.worker)};
    char *out = xasprintf("%s/out", f->folder), *err = xasprintf("%s/err", f->folder);
    for (size_t i = 0; argument[i] && i + 4 < ARGUMENT_MAX; i++) {
        argv[3 + i] = (char *)(uintptr_t)argument[i];
    }
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (fault) {
            setenv("KCAST_DIE_AT", fault, 1);
        }
        dup2(open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
        dup2(open(err, O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
        execv(argv[0], argv);
        _exit(127);
    }
    free(argv[1]);
    free(argv[2]);
    free(out);
    free(err);
    return pid;
}

static inline void collect(struct fixture *f, pid_t pid, struct kcast_result *ret)
{
    int status;
    char *out = xasprintf("%s/out", f->folder), *err = xasprintf("%s/err", f->folder);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    ret->status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    ret->out = read_text(out);
    ret->err = read_text(err);
    free(out);
    free(err);
}

static inline void clear(struct kcast_result *outcome)
{
    free(outcome->out);
    free(outcome->err);
}

// The summary of a search: the last object of its JSON lines; before it come its events.
static inline json_t *summary_of(const struct kcast_result *outcome)
{
    size_t len = strlen(outcome->out);
    while (len > 1 && outcome->out[len - 2] != '\n') {
        len--;
    }
    return json_loads(outcome->out + (len > 0 ? len - 1 : 0), 0, NULL);
}

// Runs kcast and checks its exit code.
static inline void expect(struct fixture *f, int status, const char *fault,
                          const char *const *argument)
{
    struct kcast_result outcome;
    collect(f, spawn(f, fault, argument), &outcome);
    if (outcome.status != status) {
        print_error("kcast %s (fault %s) ended with %d instead of %d: %s\n", argument[0],
                    fault ? fault : "none", outcome.status, status, outcome.err);
    }
    assert_int_equal(outcome.status, status);
    clear(&outcome);
}

static inline void forget(struct fixture *f)
{
    kill(f->fake.pid, SIGUSR1);
}

static inline char *run_path(struct fixture *f, const char *name)
{
    return xasprintf("%s/%s.run", f->folder, name);
}

// Writes candidates that are no better than the baseline, one JSON line each. Returns the path.
static inline char *useless_pool(struct fixture *f)
{
    char *path = xasprintf("%s/useless.jsonl", f->folder);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    for (int i = 0; i < 60; i++) {
        fprintf(out,
                "{\"name\":\"u%d\",\"source\":\"#define A 1\\n#define B 2\\n#define C %d\\n\"}\n",
                i, 100 + i);
    }
    fclose(out);
    return path;
}

static inline void search(struct fixture *f, int status, const char *fault, const char *path)
{
    const char *const argument[] = {"search", f->problem,     "--run", path,      "--seed",
                                    "11",     "--candidates", "28",    "--batch", "4",
                                    "--json", "--audit",      "0.3",   "--quiet", NULL};
    forget(f);
    expect(f, status, fault, argument);
}

static inline void resume(struct fixture *f, int status, const char *path)
{
    const char *const argument[] = {"resume", path, "--json", NULL};
    expect(f, status, NULL, argument);
}

static inline void load(struct run_state *run_state, const char *path)
{
    run_state_init(run_state);
    struct run *run = NULL;
    struct err error = ERR_INIT;
    if (run_open_read(&run, path, &error) != 0 || run_state_read(run_state, run, &error) != 0) {
        fail_msg("%s", error.text);
    }
    run_close(run);
}

// The number of jobs that the daemon has run.
static inline uint64_t jobs_run(struct fixture *f)
{
    const char *const argument[] = {"status", "--json", NULL};
    struct kcast_result outcome;
    collect(f, spawn(f, NULL, argument), &outcome);
    assert_int_equal(outcome.status, 0);
    json_auto_t *object = json_loads(outcome.out, 0, NULL);
    assert_non_null(object);
    uint64_t jobs = (uint64_t)json_integer_value(json_object_get(object, "results_cached"));
    clear(&outcome);
    return jobs;
}

// Checks that two runs have the same proposals, decisions and incumbents.
static inline void assert_same_decisions(const struct run_state *a, const struct run_state *b,
                                         const char *fault)
{
    bool same =
        a->candidate_count == b->candidate_count && a->incumbent_count == b->incumbent_count;
    for (size_t i = 0; same && i < a->candidate_count; i++) {
        const struct run_state_candidate *x = &a->candidate[i], *y = &b->candidate[i];
        same = digest_equal(&x->proposed.source, &y->proposed.source) &&
               x->proposed.generator == y->proposed.generator &&
               x->decided.decision == y->decided.decision &&
               x->object_duplicate_of == y->object_duplicate_of && (!x->record) == (!y->record) &&
               (!x->result) == (!y->result) &&
               (!x->decided.reason || strcmp(x->decided.reason, y->decided.reason) == 0);
        if (!same) {
            print_error("fault %s: candidate %zu differs: %s / %s\n", fault, i + 1,
                        x->decided.reason ? x->decided.reason : "-",
                        y->decided.reason ? y->decided.reason : "-");
        }
    }
    for (size_t i = 0; same && i < a->incumbent_count; i++) {
        same = a->incumbent[i].event.candidate == b->incumbent[i].event.candidate;
    }
    if (!same) {
        fail_msg("fault %s: the decisions differ", fault);
    }
}

#endif
