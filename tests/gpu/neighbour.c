#include "tests/gpu/neighbour.h"
#include "common/stats.h"
#include "proto/verdict.h"
#include "tests/bench/samples.h"
#include <stdio.h>
#include <time.h>

#define SERVED_S 1.0 // beside the seconds of timing, which a decision may need many of

struct verdict_time {
    uint64_t at_ns, verdict;
    struct accounts seconds;
};

static void on_verdict(void *owner, uint64_t tag, struct job_info *info, const struct err *error)
{
    struct verdict_time *time = owner;

    (void)tag;
    time->at_ns = uv_hrtime();
    time->verdict = !error && info->result ? info->result->verdict : 0;
    if (time->verdict != 0 && info->result->seconds) {
        time->seconds = *info->result->seconds;
    }
}

bool neighbour_is_served(struct session *session, const struct problem_dir *dir,
                         const struct digest *crashing, const char *name)
{
    // The test before this one has used the prestarted processes. New ones need this time.
    const struct timespec rest = {.tv_sec = 2};
    struct verdict_time crash = {.at_ns = 0}, honest = {.at_ns = 0};

    (void)nanosleep(&rest, NULL);
    struct job_client *pool[2];
    struct err err = ERR_INIT;
    for (size_t i = 0; i < 2; i++) {
        char search[64];

        (void)snprintf(search, sizeof(search), "neighbour-%zu-%llx", i,
                       (unsigned long long)stats_entropy());
        if (samples_open(&pool[i], session, search, &err) < 0) {
            die(&err);
        }
        samples_add_problem(pool[i], dir);
    }
    struct digest digest;
    struct strbuf source = STRBUF_INIT;
    strbuf_add(&source, (const char *)dir->baseline.data, dir->baseline.len);
    strbuf_addf(&source, "// %llx\n", (unsigned long long)stats_entropy());
    job_client_add_blob(pool[1], source.data, source.len, &digest);
    struct job_spec spec;
    // The daemon has the source of the crash already.
    problem_dir_spec(dir, JOB_MEASURE, crashing, &spec);
    spec.repeat = stats_entropy() | 1;
    job_client_submit(pool[0], "crash", &spec, 0, on_verdict, &crash, 0);
    problem_dir_spec(dir, JOB_MEASURE, &digest, &spec);
    job_client_submit(pool[1], "honest", &spec, 0, on_verdict, &honest, 0);
    if (job_client_drain(pool[0], &err) < 0 || job_client_drain(pool[1], &err) < 0) {
        die(&err);
    }
    double later = ((double)honest.at_ns - (double)crash.at_ns) * 1e-9;
    bool right = later - honest.seconds.time <= SERVED_S && verdict_is_ratio(honest.verdict);
    printf("%s after %s (%s) another search's candidate is %s %.3f s later: GPU held %.3f s, "
           "thereof %.3f timing\n",
           right ? "ok  " : "FAIL", name, verdict_name(crash.verdict), verdict_name(honest.verdict),
           later, honest.seconds.held, honest.seconds.time);
    job_client_close(pool[0]);
    job_client_close(pool[1]);
    strbuf_release(&source);
    return right;
}
