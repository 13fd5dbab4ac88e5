// kcast measure: measures the named files. The result of a file is printed as soon as it and those
// of all files before it are known.
#include "client/cmd/candidates.h"
#include "client/command.h"
#include "client/pool/daemon_pool.h"
#include "client/problem/problem_blobs.h"
#include "client/problem/problem_dir.h"
#include "client/session.h"
#include "client/show.h"
#include "common/mem.h"
#include "common/printable.h"
#include "proto/verdict.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct measure_options {
    char *device;
    char *queue_class;
    bool fresh;
    uint64_t launches;
};

static const struct option_row rows[] = {
    {"device", 'd', OPTION_TEXT, offsetof(struct measure_options, device), "CLASS", NULL, 0, 0,
     NULL, "only on devices of this class (see `kcast status`)"},
    {"launches", 0, OPTION_U64, offsetof(struct measure_options, launches), "N", "0", 0, 512, NULL,
     "time at most N launches of a candidate per benchmark case; 0: until it is decided, 512 at "
     "most"},
    {"class", 0, OPTION_CHOICE, offsetof(struct measure_options, queue_class), "CLASS",
     "interactive", 0, 0, QUEUE_CLASS_CHOICES,
     "interactive jobs go first while they are short, scavenge ones when nothing else waits"},
    {"fresh", 0, OPTION_FLAG, offsetof(struct measure_options, fresh), NULL, NULL, 0, 0, NULL,
     "measure again, with new inputs, whatever is known already"},
    {0},
};

struct measuring {
    const struct session_options *options;
    const char *problem;
    struct daemon_pool *daemon_pool;
    struct candidate_file *file;
    size_t count;
    size_t printed; // how many files have been printed, from the first
    size_t correct; // how many of these are correct
};

static void print_human(const char *path, const struct result *result)
{
    char speedup[64], baseline[32], candidate[32];
    bool ratio = verdict_is_ratio(result->verdict) && result->speedup;
    show_speedup(ratio ? result->speedup : NULL, speedup, sizeof(speedup));
    show_ns(result->baseline_ns ? result->baseline_ns->p50 : NAN, baseline, sizeof(baseline));
    show_ns(result->candidate_ns ? result->candidate_ns->p50 : NAN, candidate, sizeof(candidate));
    if (!ratio) {
        printable_printf(stdout, "%s: %s%s%s\n", path, verdict_name(result->verdict),
                         result->reason ? ": " : "", result->reason ? result->reason : "");
        return;
    }
    printable_printf(
        stdout,
        "%s: %s, %s the baseline (baseline %s, candidate %s, %llu launches, error %.3g of %.3g "
        "allowed%s)\n",
        path, verdict_name(result->verdict), speedup, baseline, candidate,
        (unsigned long long)result->launches, result->max_error, result->error_bound,
        result->cached ? ", known from before" : "");
    for (size_t i = 0; result->cases_count > 1 && i < result->cases_count; i++) {
        show_speedup(result->cases[i].speedup, speedup, sizeof(speedup));
        printable_printf(stdout, "    %-32s %s\n", result->cases[i].params, speedup);
    }
}

// Prints the files that are done, in the order of the command line.
static void print_done(struct measuring *m)
{
    for (; m->printed < m->count && m->file[m->printed].done; m->printed++) {
        const struct candidate_file *file = &m->file[m->printed];
        const struct result *result = file->result;
        if (!result) {
            continue; // measure_all reports its error
        }
        m->correct += verdict_is_ratio(result->verdict);
        if (m->options->json) {
            json_t *object =
                json_pack("{s:o, s:s}", "candidate", show_text(file->path), "problem", m->problem);
            json_t *rest = show_result(result);
            json_object_update(object, rest);
            json_decref(rest);
            show_print(object);
        } else {
            print_human(file->path, result);
        }
        fflush(stdout);
    }
}

static void on_measured(void *owner, uint64_t tag, struct job_ref ref, struct job_info *info,
                        const struct err *error)
{
    struct measuring *m = owner;
    struct candidate_file *file = &m->file[tag];
    struct job_service *jobs = daemon_pool_jobs(m->daemon_pool);
    file->done = true;
    if (error) {
        file->error = *error;
    } else if (!info->result) {
        err_set(&file->error, ERR_STOPPED, "the daemon gave the job up (%s): %.500s",
                job_state_name(info->state), info->reason ? info->reason : "no reason given");
        jobs->ack(jobs, ref);
    } else {
        file->result = info->result;
        info->result = NULL;
        jobs->ack(jobs, ref);
    }
    print_done(m);
}

static int measure_all(struct measuring *m, const struct problem_dir *dir,
                       const struct measure_options *options, struct err *err)
{
    struct job_service *jobs = daemon_pool_jobs(m->daemon_pool);
    for (size_t i = 0; i < m->count; i++) {
        struct job_spec spec;
        problem_dir_spec(dir, JOB_MEASURE, &m->file[i].digest, &spec);
        // The cast drops const; the job is only packed.
        spec.device_class = options->device ? options->device
                                            : (char *)(uintptr_t)daemon_pool_class(m->daemon_pool);
        spec.fresh = options->fresh;
        spec.max_launches = options->launches;
        char key[32];
        snprintf(key, sizeof(key), "m%zu", i + 1);
        jobs->submit(jobs, key, &spec, i, on_measured, m, i);
    }
    int rc = daemon_pool_drain(m->daemon_pool, err);
    if (rc == ERR_STOPPED) {
        daemon_pool_cancel_all(m->daemon_pool);
    }
    for (size_t i = 0; i < m->count && rc == 0; i++) {
        if (!m->file[i].result) {
            rc = err_set(err, m->file[i].error.code, "%s: %s", m->file[i].path,
                         m->file[i].error.text);
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
    struct measuring m = {.options = session_options(session), .count = count - 1};
    char *search = candidates_search_name("measure");
    int rc = problem_dir_load(&dir, argument[0], err);
    if (rc != 0) {
        goto out;
    }
    m.problem = dir.problem->name;
    rc = candidates_read(&m.file, argument + 1, m.count, err);
    if (rc != 0) {
        goto out;
    }
    rc = daemon_pool_create(&m.daemon_pool, session, search, NULL, err);
    if (rc != 0) {
        goto out;
    }
    candidates_add(m.file, m.count, m.daemon_pool);
    struct job_client_terms terms = {.weight = NAN, .budget_seconds = NAN};
    (void)queue_class_find(&terms.in, options->queue_class); // its option row has checked it
    daemon_pool_set_terms(m.daemon_pool, &terms);
    problem_blobs_add(m.daemon_pool, &dir);
    rc = daemon_pool_choose(m.daemon_pool, options->device, dir.problem, &device, NULL, err);
    if (rc != 0) {
        goto out;
    }
    rc = measure_all(&m, &dir, options, err);
out:
    daemon_pool_close(m.daemon_pool);
    message_clear(&device_info_message, &device);
    candidates_free(m.file, m.count);
    problem_dir_release(&dir);
    free(search);
    return rc != 0 ? err_exit(rc) : m.correct > 0 ? EXIT_OK : EXIT_NEGATIVE;
}

const struct command cmd_measure = {
    .name = "measure",
    .arguments = "PROBLEM CANDIDATE…",
    .help = "Measure candidates against the problem's baseline",
    .option = rows,
    .options_size = sizeof(struct measure_options),
    .argument_min = 2,
    .argument_max = 4096,
    .run = run_measure,
};
