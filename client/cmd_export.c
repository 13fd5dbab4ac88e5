// kcast export: everything that a run file knows, one JSON object per line on stdout; or what it has
// measured, as a space.
#include "client/command.h"
#include "client/report.h"
#include "client/report_json.h"
#include "client/session.h"
#include "client/space.h"
#include "common/file.h"
#include "common/mem.h"
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FLUSH_AT ((size_t)1 << 20) // bytes gathered before they are written

struct export_options {
    char *format;
    char *output;
    bool events;
};

static const struct option_row rows[] = {
    {"format", 0, OPTION_CHOICE, offsetof(struct export_options, format), "FORMAT", "jsonl", 0, 0,
     "jsonl|space",
     "jsonl: one JSON object per line on stdout; space: a file for `kcast replay`, with what was measured"},
    {"output", 'o', OPTION_TEXT, offsetof(struct export_options, output), "FILE", NULL, 0, 0, NULL,
     "where a space goes; default: the run's name with .space"},
    {"events", 0, OPTION_FLAG, offsetof(struct export_options, events), NULL, NULL, 0, 0, NULL,
     "one object per event instead of one per candidate"},
    {.name = NULL},
};

// Writes what has been gathered once there is much of it, or at the end.
static int flush(struct strbuf *out, bool end, struct err *err)
{
    if (out->len == 0 || (out->len < FLUSH_AT && !end))
        return 0;
    int code = file_write_fd(STDOUT_FILENO, strbuf_text(out), out->len, "stdout", err);
    strbuf_reset(out);
    return code;
}

static int on_event(void *owner, struct run_event *event, struct err *err)
{
    report_json_event(owner, event);
    return flush(owner, false, err);
}

static int export_candidates(struct run *run, struct strbuf *out, struct err *err)
{
    struct fold fold;
    struct report report;
    fold_init(&fold);
    int code = fold_run(&fold, run, err);
    if (code != 0)
        goto out;
    report_init(&report, &fold);
    for (uint64_t number = 1; number <= fold.candidate_count && code == 0; number++) {
        struct bytes source = {0};
        struct err missing = ERR_INIT;
        bool have =
            run_get_blob(run, &fold.candidate[number - 1].proposed.source, &source, &missing) == 0;
        report_json_candidate(out, &report, number, have ? &source : NULL);
        bytes_clear(&source);
        code = flush(out, false, err);
    }
    report_release(&report);
out:
    fold_release(&fold);
    return code;
}

// NAME.run -> NAME.space
static char *space_path(const char *run_path)
{
    const char *name = file_base_name(run_path), *dot = strrchr(name, '.');
    size_t len = dot != NULL && dot != name ? (size_t)(dot - run_path) : strlen(run_path);

    return xasprintf("%.*s" SPACE_SUFFIX, (int)len, run_path);
}

static int export_space(struct session *session, struct run *run, const char *run_path,
                        const char *output, struct err *err)
{
    char *path = output != NULL ? xstrdup(output) : space_path(run_path);
    struct space space;
    int code = space_of_run(&space, run, err);
    if (code == 0) {
        code = space_write(&space, path, err);
        if (code == 0 && !session_options(session)->quiet)
            fprintf(stderr, "kcast: wrote %llu candidates to %s\n",
                    (unsigned long long)space.head.candidates, path);
        space_release(&space);
    } else
        code = err_wrap(err, "%s", run_path);
    free(path);
    return code;
}

static int export_run(struct session *session, const void *options, char **argument,
                      size_t argument_count, struct err *err)
{
    (void)argument_count;
    const struct export_options *given = options;
    struct run *run = NULL;
    struct strbuf out = STRBUF_INIT;
    int code = run_open_read(&run, argument[0], err);
    if (code == 0 && strcmp(given->format, "space") == 0)
        code = export_space(session, run, argument[0], given->output, err);
    else if (code == 0)
        code = given->events ? run_replay(run, 0, on_event, &out, err)
                             : export_candidates(run, &out, err);
    if (code == 0)
        code = flush(&out, true, err);
    strbuf_release(&out);
    run_close(run);
    return code == 0 ? EXIT_OK : err_exit(code);
}

const struct command cmd_export = {
    .name = "export",
    .arguments = "RUN",
    .help = "Print every candidate, or every event, of a search as JSON lines, or write a space",
    .option = rows,
    .options_size = sizeof(struct export_options),
    .argument_min = 1,
    .argument_max = 1,
    .run = export_run,
};
