// kcast tune: finds the best configuration of a kernel for each benchmark case and puts it into a
// wisdom file, from which other programs read it (client/tune/wisdom.h).
#include "client/command.h"
#include "client/output.h"
#include "client/propose/generator_list.h"
#include "client/show.h"
#include "client/tune/tune.h"
#include "common/file.h"
#include "common/mem.h"
#include "common/printable.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct options {
    char *wisdom, *runs, *cases;
    bool all_shapes, again;
    struct search_options search;
};

#define ROW(field) offsetof(struct options, field)

static const struct option_row rows[] = {
    {"wisdom", 'w', OPTION_TEXT, ROW(wisdom), "FILE", WISDOM_DEFAULT, 0, 0, NULL,
     "file that the configurations are added to"},
    {"runs", 0, OPTION_TEXT, ROW(runs), "DIR", NULL, 0, 0, NULL,
     "folder of the run files, made when missing; default: the wisdom file's name with .runs"},
    {"case", 0, OPTION_TEXT, ROW(cases), "SHAPES", NULL, 0, 0, NULL,
     "only benchmark cases with these values: \"M=256 N=256\"; several separated by commas; "
     "default: every case"},
    {"all-shapes", 0, OPTION_FLAG, ROW(all_shapes), NULL, NULL, 0, 0, NULL,
     "one configuration for all cases, by one search; else each case has a search, with all of the "
     "limits below"},
    {"again", 0, OPTION_FLAG, ROW(again), NULL, NULL, 0, 0, NULL,
     "search also what the wisdom file has already"},
    SEARCH_OPTION_ROWS(offsetof(struct options, search)),
    {0},
};

// Reads the template: the named file, the template of the named folder, or the problem's own when
// none is named. *ret and *ret_path are the caller's, also on failure.
static int read_kernel(struct bytes *ret, char **ret_path, const struct problem_dir *dir,
                       const char *named, struct err *err)
{
    struct stat status;
    const char *folder = !named ? dir->path : NULL;
    if (named && stat(named, &status) == 0 && S_ISDIR(status.st_mode)) {
        folder = named;
    }
    *ret_path = folder ? xasprintf("%s/template.%s", folder, problem_extension(dir->problem))
                       : xstrdup(named);
    int rc = file_read(ret, *ret_path, PROBLEM_SOURCE_MAX, err);
    if (rc == 0 && memchr(ret->data, '\0', ret->len)) {
        rc = err_set(err, ERR_INVALID, "%s holds a NUL byte, so it is no kernel", *ret_path);
    }
    return rc;
}

// The default folder of run files: "wisdom.runs" for "wisdom.json"; malloc'd.
static char *runs_folder(const char *wisdom)
{
    size_t len = strlen(wisdom);
    size_t cut = len > 5 && strcmp(wisdom + len - 5, ".json") == 0 ? len - 5 : len;
    return xasprintf("%.*s.runs", (int)cut, wisdom);
}

static void print_text(const char *name, const struct tune_outcome *outcome)
{
    const json_t *entry = outcome->entry, *search = json_object_get(entry, "search");
    const json_t *interval = json_object_get(entry, "ci95");
    const char *define = json_string_value(json_object_get(entry, "define"));
    const char *run = json_string_value(json_object_get(search, "run"));
    printable_printf(stdout, "\n%s\n", name);
    if (!entry) {
        printable_printf(stdout, "  no candidate was correct; `kcast report %s` shows why\n",
                         outcome->run);
        return;
    }
    if (define) {
        printable_printf(stdout, "  best      %s\n", define);
        printable_printf(stdout, "  speedup   %.4gx [%.4g, %.4g] the baseline, measured twice\n",
                         json_number_value(json_object_get(entry, "speedup")),
                         json_number_value(json_array_get(interval, 0)),
                         json_number_value(json_array_get(interval, 1)));
    } else {
        printable_printf(stdout,
                         "  best      the baseline: no configuration was confirmed to be faster\n");
    }
    printable_printf(stdout, "  measured  %lld of %lld considered\n",
                     (long long)json_integer_value(json_object_get(search, "measured")),
                     (long long)json_integer_value(json_object_get(search, "considered")));
    printable_printf(stdout, "  run       %s\n", run ? run : "not known");
    if (outcome->result == TUNE_KNOWN) {
        printable_printf(stdout, "  known already from %s; --again searches again\n",
                         json_string_value(json_object_get(entry, "tuned_at")));
    } else if (outcome->result == TUNE_WORSE) {
        printable_printf(stdout, "  stays: the new search, %s, found nothing faster\n",
                         outcome->run);
    }
}

static void print_outcome(const struct tune *tune, const char *name,
                          const struct tune_outcome *outcome)
{
    if (session_options(tune->session)->json) {
        show_print(json_pack("{s:s, s:s, s:b, s:o, s:o, s:o}", "case", name, "result",
                             tune_result_name(outcome->result), "resumed", outcome->resumed,
                             "wisdom", show_text(tune->wisdom), "run", show_text(outcome->run),
                             "entry", outcome->entry ? json_incref(outcome->entry) : json_null()));
    } else {
        print_text(name, outcome);
    }
    if (!output_flush() && output_is_closed()) {
        session_interrupt(tune->session); // nobody reads what is still to come
    }
}

static void say_interrupted(const struct tune *tune, const struct tune_outcome *outcome)
{
    if (!session_options(tune->session)->quiet && outcome->run) {
        printable_printf(stderr,
                         "kcast: everything so far is kept in %s; the same command goes on\n",
                         outcome->run);
    }
}

// Tunes for benchmark case `bench`, or TUNE_ALL, and prints the outcome. *ret_none becomes true
// when no candidate was correct.
static int tune_and_print(const struct tune *tune, size_t bench, bool *ret_none, struct err *err)
{
    const struct problem *problem = tune->dir->problem;
    struct strbuf name = STRBUF_INIT;
    if (bench == TUNE_ALL) {
        strbuf_addf(&name, "all %zu cases", problem->bench_count);
    } else {
        problem_case_name(problem, &problem->bench[bench], &name);
    }
    struct tune_outcome outcome;
    int rc = tune_one(&outcome, tune, bench, err);
    if (rc == 0) {
        *ret_none |= outcome.result == TUNE_NONE;
        print_outcome(tune, strbuf_text(&name), &outcome);
    } else {
        say_interrupted(tune, &outcome);
    }
    tune_outcome_release(&outcome);
    strbuf_release(&name);
    return rc;
}

// Tunes for the chosen cases one after the other, or for all cases together. Returns an exit code.
static int tune_chosen(const struct tune *tune, const bool chosen[static PROBLEM_CASE_MAX],
                       bool together, struct err *err)
{
    const struct session_options *options = session_options(tune->session);
    const struct problem *problem = tune->dir->problem;
    if (!options->json) {
        printable_printf(stdout, "problem     %s on %s\n", problem->name, tune->device_class);
        printable_printf(stdout, "kernel      %s\n", tune->kernel_path);
        printable_printf(stdout, "wisdom      %s\n", tune->wisdom);
        (void)output_flush();
    }
    bool none = false;
    int rc = 0;
    if (together) {
        rc = tune_and_print(tune, TUNE_ALL, &none, err);
    }
    for (size_t i = 0; rc == 0 && !together && i < problem->bench_count; i++) {
        rc = chosen[i] ? tune_and_print(tune, i, &none, err) : 0;
    }
    if (rc == 0 && !options->json) {
        printable_printf(
            stdout,
            "\nnext: `kcast wisdom %s --problem %s --case SHAPE` prints the line for a shape\n",
            tune->wisdom, problem->name);
    }
    return rc != 0 ? err_exit(rc) : none ? EXIT_NEGATIVE : EXIT_OK;
}

static int run_tune(struct session *session, const void *own, char **argument, size_t count,
                    struct err *err)
{
    const struct options *options = own;
    if (options->all_shapes && options->cases) {
        return err_exit(err_set(err, ERR_USAGE, "--all-shapes and --case exclude each other"));
    }
    struct bytes kernel = {0};
    struct device_info device = {0};
    struct pipeline_capacity capacity;
    char *path = NULL;
    char *runs = options->runs ? xstrdup(options->runs) : runs_folder(options->wisdom);
    int exit_code = EXIT_OK;
    struct problem_dir dir;
    int rc = problem_dir_load(&dir, argument[0], err);
    if (rc != 0) {
        goto out;
    }
    bool chosen[PROBLEM_CASE_MAX];
    rc = tune_select(chosen, dir.problem, options->cases, err);
    if (rc != 0) {
        goto out;
    }
    rc = read_kernel(&kernel, &path, &dir, count > 1 ? argument[1] : NULL, err);
    if (rc != 0) {
        goto out;
    }
    rc = wisdom_check(options->wisdom, err);
    if (rc != 0) {
        goto out;
    }
    struct generator_list generators;
    generator_list_tunable(&generators, &kernel);
    rc = search_check(session, &generators, &dir, path, &device, &capacity, err);
    generator_list_release(&generators);
    if (rc != 0) {
        goto out;
    }
    rc = file_make_dirs(runs, err);
    if (rc != 0) {
        goto out;
    }
    const struct tune tune = {
        .session = session,
        .options = &options->search,
        .dir = &dir,
        .kernel_path = path,
        .kernel = &kernel,
        .device_class = device.device_class,
        .capacity = &capacity,
        .wisdom = options->wisdom,
        .runs = runs,
        .again = options->again,
    };
    exit_code = tune_chosen(&tune, chosen, options->all_shapes, err);
out:
    message_clear(&device_info_message, &device);
    bytes_clear(&kernel);
    problem_dir_release(&dir);
    free(path);
    free(runs);
    return rc == 0 ? exit_code : err_exit(rc);
}

const struct command cmd_tune = {
    .name = "tune",
    .arguments = "PROBLEM [KERNEL]",
    .help = "Find the best configuration of a kernel for each benchmark case, and keep it in a "
            "wisdom file",
    .option = rows,
    .options_size = sizeof(struct options),
    .argument_min = 1,
    .argument_max = 2,
    .run = run_tune,
};
