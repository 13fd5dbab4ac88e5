// kcast eval: compares forecasts with their outcomes, from a run file or from JSON lines.
#include "client/command.h"
#include "client/eval/eval.h"
#include "client/eval/eval_show.h"
#include "client/output.h"
#include "client/session.h"
#include "common/file.h"
#include "common/printable.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

struct eval_options {
    char *output;
    double risk;
    uint64_t draws;
    uint64_t seed;
};

static const struct option_row rows[] = {
    {"output", 'o', OPTION_TEXT, offsetof(struct eval_options, output), "FILE", NULL, 0, 0, NULL,
     "also write a page with charts; \"-\" is stdout, which then has nothing else"},
    {"risk", 0, OPTION_F64, offsetof(struct eval_options, risk), "SHARE", "0.1", 0, 0.99, NULL,
     "share of wrong calls that coverage_at_risk allows"},
    {"draws", 0, OPTION_U64, offsetof(struct eval_options, draws), "COUNT", "2000", 0, 100000, NULL,
     "bootstrap draws for the intervals; 0: none"},
    {"seed", 0, OPTION_U64, offsetof(struct eval_options, seed), "NUMBER", "1", 0, 0, NULL,
     "of the bootstrap; the same file and seed give the same intervals"},
    {.name = NULL},
};

// Whether the file is an SQLite database, as run files are. False for a file that cannot be read.
static bool is_run(const char *path)
{
    static const char magic[] = "SQLite format 3";
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return false;
    }
    char head[sizeof magic] = "";
    ssize_t got = read(fd, head, sizeof head);
    close(fd);
    return got == (ssize_t)sizeof head && memcmp(head, magic, sizeof magic) == 0;
}

static int read_run(struct eval *eval, const char *path, struct err *err)
{
    struct run_state run_state;
    run_state_init(&run_state);
    struct run *run = NULL;
    int rc = run_open_read(&run, path, err);
    session_warn(run ? run_warning(run) : NULL);
    rc = rc == 0 ? run_need_events(run, err) : rc;
    if (rc != 0) {
        goto out;
    }
    rc = run_state_read(&run_state, run, err);
    if (rc != 0) {
        goto out;
    }
    rc = eval_read_run_state(eval, &run_state, path, err);
    if (rc != 0) {
        goto out;
    }
    if (eval->set_count == 0) {
        rc = err_set(err, ERR_INVALID,
                     "%s holds no forecasts: no worker was asked, or none answered", path);
    }
out:
    run_state_release(&run_state);
    run_close(run);
    return rc;
}

static int read_lines(struct eval *eval, const char *path, struct err *err)
{
    struct bytes text = {0};
    int rc = file_read(&text, path, EVAL_FILE_MAX, err);
    if (rc == 0) {
        rc = eval_read_lines(eval, (const char *)text.data, text.len, path, err);
    }
    bytes_clear(&text);
    return rc;
}

static bool was_stopped(void *owner)
{
    struct session *session = owner;
    uv_run(session_loop(session), UV_RUN_NOWAIT);
    return session_interrupted(session);
}

static int write_page(const struct eval_page *page, const char *path, bool quiet, struct err *err)
{
    struct strbuf html = STRBUF_INIT;
    eval_html(&html, page);
    int rc = html.truncated ? err_set(err, ERR_LIMIT, "the page of %s is too large", page->path)
                            : output_page(path, html.data, html.len, quiet, err);
    strbuf_release(&html);
    return rc;
}

static int write_numbers(const struct eval_page *page, bool json, struct err *err)
{
    struct strbuf out = STRBUF_INIT;
    if (json) {
        eval_json(&out, page);
    } else {
        eval_table(&out, page);
    }
    int rc = output_write(strbuf_text(&out), out.len, err);
    strbuf_release(&out);
    return rc;
}

static int eval_run(struct session *session, const void *options, char **argument, size_t count,
                    struct err *err)
{
    (void)count;
    const struct eval_options *given = options;
    const struct session_options *global = session_options(session);
    struct eval eval;
    const struct eval_page page = {&eval, argument[0], given->risk, given->draws, given->seed};
    const struct score_options score = {given->risk, (size_t)given->draws, given->seed, was_stopped,
                                        session};
    eval_init(&eval);
    int rc = given->output ? file_check_output(given->output, argument[0], err) : 0;
    if (rc == 0) {
        rc = is_run(argument[0]) ? read_run(&eval, argument[0], err)
                                 : read_lines(&eval, argument[0], err);
    }
    if (rc != 0) {
        goto out;
    }
    eval_compute(&eval, &score);
    if (session_interrupted(session)) {
        rc = err_set(err, ERR_STOPPED, "interrupted; nothing was written");
        goto out;
    }
    if (!given->output || strcmp(given->output, "-") != 0) {
        rc = write_numbers(&page, global->json, err);
    }
    if (rc == 0 && given->output) {
        rc = write_page(&page, given->output, global->quiet, err);
    }
out:
    eval_release(&eval);
    return rc == 0 ? EXIT_OK : err_exit(rc);
}

const struct command cmd_eval = {
    .name = "eval",
    .arguments = "FILE",
    .help = "Judge forecasts against their outcomes, from a run file or JSON lines",
    .option = rows,
    .options_size = sizeof(struct eval_options),
    .argument_min = 1,
    .argument_max = 1,
    .run = eval_run,
};
