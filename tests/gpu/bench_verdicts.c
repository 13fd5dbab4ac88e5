// How fast a daemon's devices give verdicts, and how soon a new search has its first.
//   bench_verdicts URL POINTS FIRSTS PROBLEM…
// measures POINTS points of the template of each problem (a folder), spread over it, all in one
// search and submitted at once: first as sources that the daemon has never seen, so that compiling
// and the controls of each device are among it, then the same again, everything compiled. Results
// come from no cache. Then, FIRSTS times for each problem, one candidate in a search of its own
// over a connection of its own: from connecting to the verdict, compiled already and not. Lines
// that begin with "=" are the figures: name, a tab, value. tests/gpu/pool.sh calls it.
#include "client/session.h"
#include "common/clock.h"
#include "common/parse.h"
#include "common/stats.h"
#include "problem/template.h"
#include "proto/verdict.h"
#include "tests/bench/samples.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES_MAX 256
#define PROBLEMS_MAX 64
#define FIRSTS_MAX 1000

struct candidates {
    struct problem_dir dir;
    struct template *template;
    size_t points;
    char **source; // one for each point; owned
};

// What a series of measurements came to.
struct pass {
    size_t verdict[16];   // count by enum verdict
    size_t done;          // verdicts of a device
    struct accounts sums; // of these
    double seconds;       // wall time from the first submission to the last verdict
    char *device[DEVICES_MAX];
    size_t of_device[DEVICES_MAX];   // verdicts
    size_t devices;                  // that gave any
    size_t of_problem[PROBLEMS_MAX]; // verdicts
    double held_s[PROBLEMS_MAX];     // device-seconds of these
    double held_verdict_s[16];       // device-seconds by enum verdict
    size_t launches[16];             // timed launches of the candidates, by enum verdict
};

static void count_device(struct pass *pass, const char *device)
{
    size_t i = 0;

    while (i < pass->devices && strcmp(pass->device[i], device) != 0) {
        i++;
    }
    if (i == pass->devices && i < DEVICES_MAX) {
        pass->device[pass->devices++] = xstrdup(device);
    }
    if (i < DEVICES_MAX) {
        pass->of_device[i]++;
    }
}

// A candidate that is wrong is not timed: that phase has no seconds.
static double spent(double seconds)
{
    return isnan(seconds) ? 0 : seconds;
}

static void on_verdict(void *owner, uint64_t tag, struct job_info *info, const struct err *error)
{
    struct pass *pass = owner;

    if (error) {
        die(error);
    }
    const struct result *result = info->result;
    if (!result) {
        fprintf(stderr, "bench_verdicts: %s\n",
                info->reason ? info->reason : "a job ended without a result");
        exit(1);
    }
    pass->verdict[result->verdict % 16]++;
    if (!result->seconds || result->seconds->held <= 0) {
        return; // it did not compile, so that it was not measured
    }
    pass->done++;
    count_device(pass, result->device ? result->device : "none");
    pass->sums.compile += result->seconds->compile;
    pass->sums.start += spent(result->seconds->start);
    pass->sums.inputs += spent(result->seconds->inputs);
    pass->sums.verify += spent(result->seconds->verify);
    pass->sums.time += spent(result->seconds->time);
    pass->sums.held += result->seconds->held;
    pass->of_problem[tag]++;
    pass->held_s[tag] += result->seconds->held;
    pass->held_verdict_s[result->verdict % 16] += result->seconds->held;
    pass->launches[result->verdict % 16] += result->launches;
}

static void pass_release(struct pass *pass)
{
    for (size_t i = 0; i < pass->devices; i++) {
        free(pass->device[i]);
    }
    *pass = (struct pass){.done = 0};
}

// ---- candidates ----

// The sources of `points` points, spread over the template. The tag, which does nothing, makes them
// sources that no daemon has seen.
static void candidates_load(struct candidates *ret, const char *path, size_t points, uint64_t tag)
{
    struct err err = ERR_INIT;

    if (problem_dir_load(&ret->dir, path, &err) < 0) {
        die(&err);
    }
    if (!ret->dir.template_source.data) {
        (void)err_set(&err, ERR_INVALID, "%s has no template; name a problem that has one", path);
        die(&err);
    }
    if (template_parse(&ret->template, (const char *)ret->dir.template_source.data, path, &err) <
        0) {
        die(&err);
    }
    size_t count = template_point_count(ret->template);
    ret->points = points < count ? points : count;
    ret->source = xcalloc(ret->points, sizeof(*ret->source));
    for (size_t i = 0; i < ret->points; i++) {
        struct strbuf source = STRBUF_INIT;

        strbuf_addf(&source, "#define DISTINCT 0x%llx\n", (unsigned long long)tag);
        template_source(ret->template, i * count / ret->points, &source);
        ret->source[i] = strbuf_detach(&source);
    }
}

static void candidates_release(struct candidates *candidates)
{
    for (size_t i = 0; i < candidates->points; i++) {
        free(candidates->source[i]);
    }
    free(candidates->source);
    template_free(candidates->template);
    problem_dir_release(&candidates->dir);
}

static void submit(struct job_client *client, const struct candidates *candidates, size_t problem,
                   const char *source, struct pass *pass)
{
    static uint64_t serial;
    struct digest digest;
    struct job_spec spec;
    char key[32];

    job_client_add_blob(client, source, strlen(source), &digest);
    problem_dir_spec(&candidates->dir, JOB_MEASURE, &digest, &spec);
    spec.repeat = ++serial; // a job that no cache has
    (void)snprintf(key, sizeof(key), "v%llu", (unsigned long long)serial);
    job_client_submit(client, key, &spec, 0, on_verdict, pass, problem);
}

// ---- verdicts a second ----

static void print_pass(const char *name, const struct pass *pass,
                       const struct candidates *candidates, size_t count)
{
    const struct accounts *s = &pass->sums;
    double rest = s->held - s->start - s->verify - s->inputs - s->time;

    printf("%s: %zu verdicts in %.2f s by %zu devices, %.1f a second; devices held %.2f of it\n",
           name, pass->done, pass->seconds, pass->devices, (double)pass->done / pass->seconds,
           s->held / pass->seconds / (double)pass->devices);
    printf("   device held %.1f ms each, compiled for %.0f ms each; ",
           s->held / (double)pass->done * 1e3, s->compile / (double)pass->done * 1e3);
    if (s->start + s->verify + s->time <= 0) {
        printf("the executor does not say what for\n   ");
    } else {
        printf("start %.0f %%, verify %.0f %%, inputs %.0f %%, time %.0f %%, other %.0f %%\n   ",
               100 * s->start / s->held, 100 * s->verify / s->held, 100 * s->inputs / s->held,
               100 * s->time / s->held, 100 * rest / s->held);
    }
    for (size_t i = 0; i < pass->devices; i++) {
        printf(" %s %zu", pass->device[i], pass->of_device[i]);
    }
    printf(";");
    for (uint64_t v = 0; v < ARRAY_LEN(pass->verdict); v++) {
        if (pass->verdict[v] > 0) {
            double n = (double)pass->verdict[v];

            printf(" %s %zu (held %.1f ms, %.1f launches)", verdict_name(v), pass->verdict[v],
                   pass->held_verdict_s[v] / n * 1e3, (double)pass->launches[v] / n);
        }
    }
    printf("\n   held for");
    for (size_t i = 0; i < count; i++) {
        if (pass->of_problem[i] > 0) {
            printf(" %s %.1f ms", candidates[i].dir.problem->name,
                   pass->held_s[i] / (double)pass->of_problem[i] * 1e3);
        }
    }
    printf("\n");
}

static void measure_all(struct job_client *client, const struct candidates *candidates,
                        size_t count, struct pass *pass)
{
    struct err err = ERR_INIT;
    uint64_t start = uv_hrtime();

    *pass = (struct pass){.done = 0};
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < candidates[i].points; k++) {
            submit(client, &candidates[i], i, candidates[i].source[k], pass);
        }
    }
    if (job_client_drain(client, &err) < 0) {
        die(&err);
    }
    pass->seconds = (double)(uv_hrtime() - start) / NS_PER_S;
}

static void bench_verdicts(struct session *session, const struct candidates *candidates,
                           size_t count, uint64_t tag)
{
    struct job_client *client = NULL;
    struct err err = ERR_INIT;
    char search[64];
    struct pass unseen, compiled;

    (void)snprintf(search, sizeof(search), "verdicts-%llx", (unsigned long long)tag);
    if (samples_open(&client, session, search, &err) < 0) {
        die(&err);
    }
    for (size_t i = 0; i < count; i++) {
        samples_add_problem(client, &candidates[i].dir);
    }
    measure_all(client, candidates, count, &unseen);
    print_pass("never seen before, source to verdict", &unseen, candidates, count);
    measure_all(client, candidates, count, &compiled);
    print_pass("compiled before", &compiled, candidates, count);
    job_client_close(client);
    printf("=verdicts a second, compiled before\t%.1f\n", (double)compiled.done / compiled.seconds);
    printf("=verdicts a second, source to verdict\t%.1f\n", (double)unseen.done / unseen.seconds);
    printf("=device held per verdict, ms\t%.1f\n",
           compiled.sums.held / (double)compiled.done * 1e3);
    pass_release(&unseen);
    pass_release(&compiled);
}

// ---- the first verdict of a new search ----

// Seconds from connecting to the verdict; negative when the candidate was not measured.
static double first_verdict(struct session *session, const struct candidates *candidates,
                            const char *source, uint64_t tag)
{
    static unsigned number;
    struct err err = ERR_INIT;
    struct remote *daemon, *remote;
    struct hello_reply hello;
    struct pass pass = {.done = 0};
    char search[64];

    (void)snprintf(search, sizeof(search), "first-%llx-%u", (unsigned long long)tag, ++number);
    if (session_daemon(session, &daemon, &err) < 0) {
        die(&err);
    }
    uint64_t start = uv_hrtime();
    if (session_remote(session, remote_url(daemon), &remote, &err) < 0 ||
        remote_hello_sync(remote, "kcastd", &hello, &err) < 0) {
        die(&err);
    }
    message_clear(&hello_reply_message, &hello);
    struct job_client *client = job_client_create(session, remote, search);
    samples_add_problem(client, &candidates->dir);
    submit(client, candidates, 0, source, &pass);
    if (job_client_drain(client, &err) < 0) {
        die(&err);
    }
    double seconds = (double)(uv_hrtime() - start) / NS_PER_S;
    job_client_close(client);
    remote_close(remote);
    bool measured = pass.done > 0;
    pass_release(&pass);
    return measured ? seconds : -1;
}

static void print_first(const char *name, double *seconds, size_t count)
{
    if (count == 0) {
        fprintf(stderr,
                "bench_verdicts: no candidate of a new search was measured; take more points\n");
        exit(1);
    }
    stats_sort(seconds, count);
    printf("first verdict of a new search, %s: median %.3f s, least %.3f s, most %.3f s of %zu\n",
           name, stats_quantile(seconds, count, 0.5), seconds[0], seconds[count - 1], count);
    printf("=first verdict of a new search, %s, s\t%.3f\n", name,
           stats_quantile(seconds, count, 0.5));
}

static void bench_first(struct session *session, const struct candidates *candidates, size_t count,
                        size_t firsts, uint64_t tag)
{
    double *known = xcalloc(count * firsts, sizeof(*known));
    double *unseen = xcalloc(count * firsts, sizeof(*unseen));
    size_t n = 0;

    for (size_t k = 0; k < firsts; k++) {
        for (size_t i = 0; i < count; i++) {
            const char *source = candidates[i].source[k % candidates[i].points];
            char *other = xasprintf("#define FIRST %zu\n%s", k + 1, source);

            known[n] = first_verdict(session, &candidates[i], source, tag);
            unseen[n] = first_verdict(session, &candidates[i], other, tag);
            n += known[n] >= 0 && unseen[n] >= 0;
            free(other);
        }
    }
    print_first("compiled before", known, n);
    print_first("not compiled", unseen, n);
    free(known);
    free(unseen);
}

int main(int argc, char **argv)
{
    struct err err = ERR_INIT;
    uint64_t points, firsts, tag = stats_entropy();

    if (argc < 5 || parse_u64(&points, argv[2], 1, 10000, "POINTS", &err) < 0 ||
        parse_u64(&firsts, argv[3], 0, FIRSTS_MAX, "FIRSTS", &err) < 0) {
        fprintf(stderr, "usage: bench_verdicts URL POINTS FIRSTS PROBLEM…\n");
        return 2;
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    struct session_options options = {.quiet = true, .pool = argv[1]};
    struct session *session = NULL;
    if (session_create(&session, &options, &err) < 0) {
        die(&err);
    }
    size_t count = (size_t)argc - 4;
    if (count > PROBLEMS_MAX) {
        (void)err_set(&err, ERR_LIMIT, "there are %zu problems; name at most %d", count,
                      PROBLEMS_MAX);
        die(&err);
    }
    struct candidates *candidates = xcalloc(count, sizeof(*candidates));
    for (size_t i = 0; i < count; i++) {
        candidates_load(&candidates[i], argv[4 + i], (size_t)points, tag);
    }
    bench_verdicts(session, candidates, count, tag);
    if (firsts > 0) {
        bench_first(session, candidates, count, (size_t)firsts, tag);
    }
    for (size_t i = 0; i < count; i++) {
        candidates_release(&candidates[i]);
    }
    free(candidates);
    session_free(session);
    return 0;
}
