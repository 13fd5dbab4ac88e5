// kcast measure: measures the named files. The result of a file is printed as soon as it is known.
#include "client/cmd/candidates/candidates.h"
#include "client/cmd/candidates/measure_show.h"
#include "client/command.h"
#include "client/output.h"
#include "client/pool/daemon_pool.h"
#include "client/pool/job_progress.h"
#include "client/problem/problem_blobs.h"
#include "client/problem/problem_dir.h"
#include "client/session.h"
#include "client/show.h"
#include "common/clock.h"
#include "common/mem.h"
#include "proto/verdict.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MEASURED "measured" // what the line on stderr counts

struct measure_options {
    char *device;
    char *defines;
    char *queue_class;
    bool fresh;
    bool unsealed;
    uint64_t launches;
};

static const struct option_row rows[] = {
    {"device", 'd', OPTION_TEXT, offsetof(struct measure_options, device), "CLASS", NULL, 0, 0,
     NULL, "only on devices of this class (see `kcast status`)"},
    {"define", 'D', OPTION_TEXTS, offsetof(struct measure_options, defines), "NAME=VALUE", NULL, 0,
     0, NULL,
     "of a template: the value of one of its parameters, each in an option of its own; of another "
     "source: a #define line before it"},
    {"launches", 0, OPTION_U64, offsetof(struct measure_options, launches), "N", "0", 0, 512, NULL,
     "time at most N launches of a candidate per benchmark case, but no fewer than 16; 0: until it "
     "is decided, 512 at most"},
    {"class", 0, OPTION_CHOICE, offsetof(struct measure_options, queue_class), "CLASS",
     "interactive", 0, 0, QUEUE_CLASS_CHOICES,
     "interactive jobs go first while they are short, scavenge ones when nothing else waits"},
    {"fresh", 0, OPTION_FLAG, offsetof(struct measure_options, fresh), NULL, NULL, 0, 0, NULL,
     "measure again, with new inputs, whatever is known already"},
    {"unsealed", 0, OPTION_FLAG, offsetof(struct measure_options, unsealed), NULL, NULL, 0, 0, NULL,
     "measure with their host code candidates whose launches cannot be recorded; the result says "
     "so (docs/security.md says what they could do)"},
    {0},
};

struct measuring {
    struct session *session;
    const struct session_options *options;
    const char *problem;
    struct daemon_pool *daemon_pool;
    struct candidates candidates;
    size_t done;    // how many files have an answer
    size_t correct; // how many of these are correct
    struct job_progress *job_progress;
};

// Prints the answer to a file, or why there is none.
static void print_answer(struct measuring *m, const struct candidate_file *file)
{
    job_progress_wipe(m->job_progress);
    if (file->result) {
        m->correct += verdict_is_ratio(file->result->verdict);
    }
    if (m->options->json) {
        measure_show_json(file, m->problem);
    } else if (file->result) {
        measure_show_text(file, m->problem);
    } else {
        return; // measure_all tells the first error; others come when it is gone
    }
    if (!output_flush() && output_is_closed()) {
        session_interrupt(m->session); // nobody reads what is still to come
    }
}

static void on_measured(void *owner, uint64_t tag, struct job_ref ref, struct job_info *info,
                        const struct err *error)
{
    struct measuring *m = owner;
    struct candidate_file *file = &m->candidates.file[tag];
    struct job_service *jobs = daemon_pool_jobs(m->daemon_pool);
    file->done = true;
    job_progress_set(m->job_progress, MEASURED, ++m->done, m->candidates.count);
    if (error) {
        file->error = *error;
    } else if (!info->result) {
        err_set(&file->error, info->state == JOB_CANCELLED ? ERR_STOPPED : ERR_SYSTEM,
                "the daemon gave the job up (%s): %.500s", job_state_name(info->state),
                info->reason ? info->reason : "no reason given");
        jobs->ack(jobs, ref);
    } else {
        file->result = info->result;
        info->result = NULL;
        jobs->ack(jobs, ref);
    }
    print_answer(m, file);
}

// ---- measuring ----

static int measure_all(struct measuring *m, const struct problem_dir *dir,
                       const struct measure_options *options, struct err *err)
{
    struct job_service *jobs = daemon_pool_jobs(m->daemon_pool);
    for (size_t i = 0; i < m->candidates.count; i++) {
        struct job_spec spec;
        problem_dir_spec(dir, JOB_MEASURE, &m->candidates.file[i].digest, &spec);
        // The cast drops const; the job is only packed.
        spec.device_class = options->device ? options->device
                                            : (char *)(uintptr_t)daemon_pool_class(m->daemon_pool);
        spec.fresh = options->fresh;
        spec.unsealed = options->unsealed;
        spec.max_launches = options->launches;
        char key[32];
        snprintf(key, sizeof(key), "m%zu", i + 1);
        jobs->submit(jobs, key, &spec, i, on_measured, m, i);
    }
    int rc = daemon_pool_drain(m->daemon_pool, err);
    if (rc == ERR_STOPPED) {
        daemon_pool_cancel_all(m->daemon_pool);
    }
    for (size_t i = 0; i < m->candidates.count && rc == 0; i++) {
        const struct candidate_file *file = &m->candidates.file[i];
        if (!file->result) {
            rc = err_set(err, file->error.code, "%s: %s", candidates_name(file), file->error.text);
        }
    }
    return rc;
}

static int run_measure(struct session *session, const void *own, char **argument, size_t count,
                       struct err *err)
{
    const struct measure_options *options = own;
    struct problem_dir dir = {0};
    struct device_info device = {0};
    struct measuring m = {.session = session, .options = session_options(session)};
    char *search = candidates_search_name("measure");
    int rc = problem_dir_load(&dir, argument[0], err);
    if (rc != 0) {
        goto out;
    }
    m.problem = dir.problem->name;
    rc = candidates_read(&m.candidates, argument + 1, count - 1, problem_extension(dir.problem),
                         options->defines, err);
    if (rc != 0) {
        goto out;
    }
    rc = daemon_pool_create(&m.daemon_pool, session, search, NULL, err);
    if (rc != 0) {
        goto out;
    }
    m.job_progress = job_progress_create(session, m.daemon_pool, MEASURED, stderr, &clock_system);
    job_progress_set(m.job_progress, MEASURED, 0, m.candidates.count);
    candidates_add(&m.candidates, m.daemon_pool);
    struct job_client_terms terms = {
        .weight = NAN, .budget_seconds = NAN, .planned = m.candidates.count};
    (void)queue_class_find(&terms.in, options->queue_class); // its option row has checked it
    daemon_pool_set_terms(m.daemon_pool, &terms);
    problem_blobs_add(m.daemon_pool, &dir);
    rc = daemon_pool_choose(m.daemon_pool, options->device, dir.problem, &device, NULL, err);
    if (rc != 0) {
        goto out;
    }
    rc = measure_all(&m, &dir, options, err);
out:
    job_progress_free(m.job_progress);
    daemon_pool_close(m.daemon_pool);
    message_clear(&device_info_message, &device);
    candidates_free(&m.candidates);
    problem_dir_release(&dir);
    free(search);
    return rc != 0 ? err_exit(rc) : m.correct > 0 ? EXIT_OK : EXIT_NEGATIVE;
}

const struct command cmd_measure = {
    .name = "measure",
    .arguments = "PROBLEM CANDIDATE…",
    .help =
        "Measure candidates against the problem's baseline: files, folders of them, or - for stdin",
    .option = rows,
    .options_size = sizeof(struct measure_options),
    .argument_min = 2,
    .argument_max = 4096,
    .run = run_measure,
};
