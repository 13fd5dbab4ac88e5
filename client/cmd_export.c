// kcast export: everything that a run file knows, one JSON object per line on stdout.
#include "client/command.h"
#include "client/report.h"
#include "client/report_json.h"
#include "client/session.h"
#include "common/file.h"
#include <stddef.h>
#include <unistd.h>

#define FLUSH_AT ((size_t)1 << 20) // bytes gathered before they are written

struct export_options {
    char *format;
    bool events;
};

static const struct option_row rows[] = {
    {"format", 0, OPTION_CHOICE, offsetof(struct export_options, format), "FORMAT", "jsonl", 0, 0,
     "jsonl", "jsonl: one JSON object per line"},
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

static int export_run(struct session *session, const void *options, char **argument,
                      size_t argument_count, struct err *err)
{
    (void)session;
    (void)argument_count;
    const struct export_options *given = options;
    struct run *run = NULL;
    struct strbuf out = STRBUF_INIT;
    int code = run_open_read(&run, argument[0], err);
    if (code == 0)
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
    .help = "Print every candidate, or every event, of a search as JSON lines",
    .option = rows,
    .options_size = sizeof(struct export_options),
    .argument_min = 1,
    .argument_max = 1,
    .run = export_run,
};
