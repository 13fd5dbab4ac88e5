// kcast search: begins a run and drives it to its end.
#include "client/command.h"
#include "client/propose/generator_list.h"
#include "client/report/summary.h"
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

// Reads the generators' texts, and refuses what cannot work.
static int check_first(struct session *session, struct generator_list *generators,
                       const char *names, const struct problem_dir *dir, struct err *err)
{
    char *path = xasprintf("%s/template.%s", dir->path, problem_extension(dir->problem));
    int rc = generator_list_parse(generators, names, err);
    if (rc == 0) {
        rc = generator_list_read(generators, dir, err);
    }
    struct device_info device = {0};
    if (rc == 0) {
        rc = search_check(session, generators, dir, path, &device, err);
    }
    message_clear(&device_info_message, &device);
    free(path);
    return rc;
}

static int run_search(struct session *session, const void *own, char **argument, size_t count,
                      struct err *err)
{
    const struct options *options = own;
    char *path = options->run ? xstrdup(options->run) : NULL;
    (void)count;
    struct run_state run_state;
    run_state_init(&run_state);
    struct problem_dir dir = {0};
    int code = problem_dir_load(&dir, argument[0], err);
    if (code == 0 && path && file_exists(path)) {
        code = err_set(err, ERR_CONFLICT,
                       "%s exists already; choose another --run, or go on with `kcast resume %s`",
                       path, path);
    }
    struct generator_list generators = {0};
    if (code == 0) {
        code = check_first(session, &generators, options->generator, &dir, err);
    }
    struct run *run = NULL;
    if (code == 0) {
        code = search_start(&run, &run_state, &path, &generators, &options->search, &dir, err);
    }
    if (code == 0) {
        code = search_drive(session, run, &run_state, err);
    }
    int rc = EXIT_OK;
    if (code == 0) {
        rc = summary_print(session_options(session), &run_state, path);
    } else {
        rc = err_exit(code);
        if (run) {
            summary_print_resume(session_options(session), path);
        }
    }
    run_close(run);
    run_state_release(&run_state);
    generator_list_release(&generators);
    problem_dir_release(&dir);
    free(path);
    return rc;
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
