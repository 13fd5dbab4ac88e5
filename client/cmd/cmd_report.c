// kcast report: writes an HTML page about a run file, or prints its numbers as JSON.
#include "client/command.h"
#include "client/output.h"
#include "client/report/report_html.h"
#include "client/report/report_json.h"
#include "client/session.h"
#include "common/file.h"
#include "common/printable.h"
#include "problem/candidate_form.h"
#include "problem/problem.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct report_options {
    char *output;
};

static const struct option_row rows[] = {
    {"output", 'o', OPTION_TEXT, offsetof(struct report_options, output), "FILE", NULL, 0, 0, NULL,
     "where the page goes, \"-\" is stdout; default: the run's name with .html"},
    {.name = NULL},
};

// The page's default path: "sgemm.html" for "sgemm.run" and for "sgemm". malloc'd.
static char *default_output(const char *run_path)
{
    size_t len = strlen(run_path);
    if (len > 4 && strcmp(run_path + len - 4, ".run") == 0 && run_path[len - 5] != '/') {
        len -= 4;
    }
    return xasprintf("%.*s.html", (int)len, run_path);
}

// The problem of the run, which the caller frees. NULL when the run file has no readable
// problem.json; then the page has no title, and *lacks says why.
static struct problem *read_problem(struct run *run, const struct run_state *run_state,
                                    struct err *lacks)
{
    struct bytes json = {0};
    struct problem *problem = NULL;
    if (run_get_blob(run, &run_state->started.problem_json, &json, lacks) == 0 &&
        problem_parse(&problem, (const char *)json.data, json.len, "problem.json", lacks) != 0) {
        problem = NULL;
    }
    bytes_clear(&json);
    return problem;
}

static int make_page(struct run *run, const struct report *report, const char *run_path,
                     const char *output, bool quiet, struct err *err)
{
    struct bytes source = {0};
    struct err lacks = ERR_INIT;
    struct problem *problem = read_problem(run, report->run_state, &lacks);
    bool have =
        report->best && run_get_blob(run, &report->best->proposed.source, &source, &lacks) == 0;
    const struct report_page page = {
        .report = report,
        .run_path = run_path,
        .title = problem ? problem->title : NULL,
        .extension = problem ? candidate_ending(problem_extension(problem),
                                                (const char *)source.data, source.len)
                             : NULL,
        .source = have ? (const char *)source.data : NULL,
        .source_len = source.len,
    };
    struct strbuf html = STRBUF_INIT;
    report_html(&html, &page);
    int rc = html.truncated ? err_set(err, ERR_LIMIT, "the report of %s is too large", run_path)
                            : output_page(output, html.data, html.len, quiet, err);
    if (rc == 0 && lacks.code != ERR_NONE) { // the page is there, without what is damaged
        rc = err_set(err, lacks.code, "%s; the report is written without it", lacks.text);
    }
    strbuf_release(&html);
    bytes_clear(&source);
    problem_free(problem);
    return rc;
}

static int report_run(struct session *session, const void *options, char **argument,
                      size_t argument_count, struct err *err)
{
    (void)argument_count;
    const struct report_options *given = options;
    const struct session_options *global = session_options(session);
    struct run_state run_state;
    struct report report = {0};
    struct strbuf json = STRBUF_INIT;
    char *output = NULL;
    run_state_init(&run_state);
    struct run *run = NULL;
    int rc = given->output ? file_check_output(given->output, argument[0], err) : 0;
    rc = rc == 0 ? run_open_read(&run, argument[0], err) : rc;
    session_warn(run ? run_warning(run) : NULL);
    rc = rc == 0 ? run_need_events(run, err) : rc;
    if (rc == 0) {
        rc = run_state_read(&run_state, run, err);
    }
    if (rc != 0) {
        goto out;
    }
    report_init(&report, &run_state);
    if (global->json) {
        report_json(&json, &report);
        rc = output_write(strbuf_text(&json), json.len, err);
    }
    if (rc == 0 && (!global->json || given->output)) {
        output = given->output ? xstrdup(given->output) : default_output(argument[0]);
        rc = make_page(run, &report, argument[0], output, global->quiet, err);
    }
out:
    free(output);
    strbuf_release(&json);
    report_release(&report);
    run_state_release(&run_state);
    run_close(run);
    return rc == 0 ? EXIT_OK : err_exit(rc);
}

const struct command cmd_report = {
    .name = "report",
    .arguments = "RUN",
    .help = "Show a search as one HTML page, or its numbers with --json",
    .option = rows,
    .options_size = sizeof(struct report_options),
    .argument_min = 1,
    .argument_max = 1,
    .run = report_run,
};
