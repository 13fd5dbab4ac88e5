// kcast search: begins a run and carries it out to its end.
#include "client/cmd/event_print.h"
#include "client/command.h"
#include "client/forecast/proposer.h"
#include "client/forecast/recall.h"
#include "client/propose/generator_list.h"
#include "client/propose/warm.h"
#include "client/report/summary.h"
#include "client/search/job_times.h"
#include "client/search/search.h"
#include "client/search/search_start.h"
#include "client/space/space_warm.h"
#include "common/file.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include <stdlib.h>
#include <string.h>

struct options {
    char *run;
    char *generator;
    char *warm;
    struct search_options search;
};

static const struct option_row rows[] = {
    {"run", 'r', OPTION_TEXT, offsetof(struct options, run), "FILE", NULL, 0, 0, NULL,
     "run file to create; default: PROBLEM-DATE.run in the current folder"},
    {"generator", 'g', OPTION_TEXT, offsetof(struct options, generator), "KIND", "tunable", 0, 0,
     NULL,
     "where candidates come from: tunable (the problem's template), llm (the worker's language "
     "model), exec:COMMAND (any program), pool:DIR (its files), pool:FILE.jsonl (its lines, "
     "objects "
     "with \"source\" and \"name\"); several, separated by commas, share the search: what improves "
     "more for its cost gets more batches"},
    SEARCH_ROW(offsetof(struct options, search), "exec-jobs", 0, OPTION_U64, exec_jobs, "N", "2", 1,
               PROPOSER_ROUND_MAX, NULL,
               "run a program of --generator exec: up to N times at once"),
    SEARCH_ROW(offsetof(struct options, search), "exec-time", 0, OPTION_DURATION, exec_ns, "TIME",
               "10m", 0, 0, NULL, "kill such a program when it has not ended after so long"),
    SEARCH_ROW(
        offsetof(struct options, search), "surplus", 0, OPTION_U64, surplus, "N", "1", 1, 16, NULL,
        "ask programs and language models for N times the candidates that a batch takes; the "
        "worker compares their sources or asks a language model for their order, the best are "
        "compiled first and the others wait"),
    SEARCH_ROW(offsetof(struct options, search), "unsealed", 0, OPTION_FLAG, unsealed, NULL, NULL,
               0, 0, NULL,
               "measure with their host code candidates whose launches cannot be recorded; they "
               "are marked and become no records (docs/security.md says what they could do)"),
    SEARCH_ROW(offsetof(struct options, search), "accept-unsealed", 0, OPTION_FLAG, accept_unsealed,
               NULL, NULL, 0, 0, NULL,
               "with --unsealed: let such candidates become records all the same"),
    {"warm", 0, OPTION_TEXT, offsetof(struct options, warm), "SPACE,…", NULL, 0, 0, NULL,
     "begin with what spaces of other devices or problems with the same parameters know, those of "
     "the same vendor first; \"worker\" stands for all that the worker has learnt of such; ten "
     "outcomes decide whether that holds here"},
    SEARCH_OPTION_ROWS(offsetof(struct options, search)),
    {0},
};

// Reads the generators' texts, and refuses what cannot work before a run file is created.
static int read_generators(struct session *session, struct generator_list *generators,
                           const char *names, const struct problem_dir *dir,
                           struct pipeline_capacity *ret_capacity, char **ret_device_class,
                           struct err *err)
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
    *ret_device_class = rc == 0 ? xstrdup(device.device_class ? device.device_class : "") : NULL;
    message_clear(&device_info_message, &device);
    free(path);
    return rc;
}

// The list without the item "worker", malloc'd; NULL when nothing else is in it. *ret_worker: it
// was.
static char *take_worker(const char *list, bool *ret_worker)
{
    char *copy = xstrdup(list), *rest = copy, *item;
    struct strbuf paths = STRBUF_INIT;
    size_t count = 0;
    *ret_worker = false;
    while ((item = strsep(&rest, ","))) {
        if (strcmp(item, "worker") == 0) {
            *ret_worker = true;
        } else {
            strbuf_adds(&paths, count++ > 0 ? "," : "");
            strbuf_adds(&paths, item);
        }
    }
    free(copy);
    char *ret = count > 0 ? strbuf_detach(&paths) : NULL;
    strbuf_release(&paths);
    return ret;
}

// Asks the worker what it knows of other devices and problems whose candidates have the parameters
// of this generator's points, and makes the text of it and of the spaces.
static int recall_warm(struct bytes *ret, struct session *session, const char *paths,
                       const char *device_class, const struct problem_dir *dir,
                       const struct generator *generator, struct err *err)
{
    struct fact *fact;
    struct recall_reply reply = {0};
    size_t count = generator->ops->params(generator, 0, &fact);
    char **name = xcalloc(count + 1, sizeof(*name));
    for (size_t i = 0; i < count; i++) {
        name[i] = fact[i].name;
    }
    const struct recall_request request = {.problem = dir->problem->name,
                                           .problem_digest = dir->json_digest,
                                           .device_class = (char *)(uintptr_t)device_class,
                                           .params = name,
                                           .params_count = count};
    const struct space_warm_known known = {
        .reply = &reply, .param = (const char *const *)name, .params = count};
    int rc = recall_ask(&reply, session, &request, err);
    if (rc == 0 && reply.groups_count == 0 && !paths) {
        rc = err_set(err, ERR_INVALID,
                     "--warm worker: the worker knows no other device or problem with the "
                     "parameters of this search; leave it out, or name a space");
    }
    if (rc == 0 && reply.groups_count == 0) {
        session_warn("--warm: the worker knows no other device or problem with the parameters of "
                     "this search; it begins with the spaces alone");
    }
    if (rc == 0) {
        rc = space_warm_text(ret, paths, device_class, &known, err);
    }
    message_clear(&recall_reply_message, &reply);
    free(name);
    for (size_t i = 0; i < count; i++) {
        free(fact[i].name);
    }
    free(fact);
    return rc;
}

// Reads what --warm names, and refuses what no generator can begin with.
static int read_warm(struct bytes *ret, struct session *session, const char *list,
                     const char *device_class, const struct problem_dir *dir,
                     const struct generator_list *generators, struct err *err)
{
    size_t number =
        warm_generator((const struct generator *const *)generators->generator, generators->count);
    if (number == generators->count) {
        return err_set(err, ERR_USAGE, "--warm needs a generator whose candidates have parameters");
    }
    bool worker;
    char *paths = take_worker(list, &worker);
    int rc = worker ? recall_warm(ret, session, paths, device_class, dir,
                                  generators->generator[number], err)
                    : space_warm_text(ret, list, device_class, NULL, err);
    free(paths);
    struct warm *warm = NULL;
    if (rc == 0) {
        rc = warm_create(&warm, ret, "--warm", generators->generator[number], err);
    }
    warm_free(warm);
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
    struct search_options search = options->search;
    struct bytes warm = {0};
    char *device_class = NULL;
    struct run_state run_state;
    run_state_init(&run_state);
    struct run *run = NULL;
    int exit_code = EXIT_OK;
    struct problem_dir dir = {0};
    int rc = search.accept_unsealed && !search.unsealed
                 ? err_set(err, ERR_USAGE,
                           "--accept-unsealed is for what --unsealed lets run; give both")
                 : problem_dir_load(&dir, argument[0], err);
    if (rc != 0) {
        goto out;
    }
    if (path && file_exists(path)) {
        rc = err_set(err, ERR_CONFLICT,
                     "%s exists already; choose another --run, or go on with `kcast resume %s`",
                     path, path);
        goto out;
    }
    rc = read_generators(session, &generators, options->generator, &dir, &capacity, &device_class,
                         err);
    if (rc != 0) {
        goto out;
    }
    if (options->warm) {
        rc = read_warm(&warm, session, options->warm, device_class, &dir, &generators, err);
        if (rc != 0) {
            goto out;
        }
        search.warm = &warm;
    }
    rc = search_start(&run, &run_state, &path, &generators, &search, &dir, &capacity, err);
    if (rc == 0) {
        const struct search_observer observer = {event_print, session, 0};
        bool json = session_options(session)->json;
        rc = search_drive(session, run, &run_state, began_at, json ? &observer : NULL, err);
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
    bytes_clear(&warm);
    free(device_class);
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
