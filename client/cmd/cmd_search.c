// kcast search: begins a run and carries it out to its end.
#include "client/command.h"
#include "client/propose/generator_list.h"
#include "client/report/summary.h"
#include "client/search/job_times.h"
#include "client/search/search.h"
#include "client/search/search_start.h"
#include "common/file.h"
#include "common/mem.h"
#include <stdlib.h>

struct options {
    char *run;
    char *generator;
    struct search_options search;
};

static const struct option_row rows[] = {
    {"run", 'r', OPTION_TEXT, offsetof(struct options, run), "FILE", NULL, 0, 0, NULL,
     "run file to create; default: PROBLEM-DATE.run in the current folder"},
    {"generator", 'g', OPTION_TEXT, offsetof(struct options, generator), "KIND", "tunable", 0, 0,
     NULL,
     "where candidates come from: tunable (the problem's template), llm (the worker's language "
     "model), pool:DIR, pool:FILE.jsonl; several, separated by commas, share the search: what "
     "improves more for its cost gets more batches"},
    SEARCH_OPTION_ROWS(offsetof(struct options, search)),
    {0},
};

// Reads the generators' texts, and refuses what cannot work before a run file is created.
static int read_generators(struct session *session, struct generator_list *generators,
                           const char *names, const struct problem_dir *dir,
                           struct pipeline_capacity *ret_capacity, struct err *err)
{
    int rc = generator_list_parse(generators, names, err);
    if (rc != 0) {
        return rc;
    }
    rc = generator_list_read(generators, dir, err);
    if (rc != 0) {
        return rc;
    }
    char *path = xasprintf("%s/template.%s", dir->path, problem_extension(dir->problem));
    struct device_info device = {0};
    rc = search_check(session, generators, dir, path, &device, ret_capacity, err);
    message_clear(&device_info_message, &device);
    free(path);
    return rc;
}

static int run_search(struct session *session, const void *own, char **argument, size_t count,
                      struct err *err)
{
    (void)count;
    const struct options *options = own;
    double began_at = job_times_now();
    char *path = options->run ? xstrdup(options->run) : NULL;
    struct generator_list generators = {0};
    struct pipeline_capacity capacity;
    struct run_state run_state;
    run_state_init(&run_state);
    struct run *run = NULL;
    int exit_code = EXIT_OK;
    struct problem_dir dir;
    int rc = problem_dir_load(&dir, argument[0], err);
    if (rc != 0) {
        goto out;
    }
    if (path && file_exists(path)) {
        rc = err_set(err, ERR_CONFLICT,
                     "%s exists already; choose another --run, or go on with `kcast resume %s`",
                     path, path);
        goto out;
    }
    rc = read_generators(session, &generators, options->generator, &dir, &capacity, err);
    if (rc != 0) {
        goto out;
    }
    rc = search_start(&run, &run_state, &path, &generators, &options->search, &dir, &capacity, err);
    if (rc == 0) {
        rc = search_drive(session, run, &run_state, began_at, err);
    }
    if (rc == 0) {
        exit_code = summary_print(session_options(session), &run_state, path);
    } else if (run) {
        summary_print_resume(session_options(session), path);
    }
out:
    run_close(run);
    run_state_release(&run_state);
    generator_list_release(&generators);
    problem_dir_release(&dir);
    free(path);
    return rc == 0 ? exit_code : err_exit(rc);
}

const struct command cmd_search = {
    .name = "search",
    .arguments = "PROBLEM",
    .help = "Search for the fastest candidate and record every step in a run file",
    .option = rows,
    .options_size = sizeof(struct options),
    .argument_min = 1,
    .argument_max = 1,
    .run = run_search,
};
