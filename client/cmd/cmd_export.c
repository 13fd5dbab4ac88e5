// kcast export: prints the candidates or events of a run file as JSON lines, or writes what the run
// has measured as a space. Also prints the candidates of a space, as JSON lines or in the format of
// GPU Forecasters.
#include "client/command.h"
#include "client/output.h"
#include "client/report/report.h"
#include "client/report/report_json.h"
#include "client/session.h"
#include "client/space/space.h"
#include "client/space/space_json.h"
#include "client/space/space_source.h"
#include "common/file.h"
#include "common/mem.h"
#include "common/printable.h"
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLUSH_AT ((size_t)1 << 20)   // bytes that are collected before they are written
#define DAMAGED_MAX 100              // events of a run that are told one by one
#define ANCHOR_MAX ((size_t)4 << 20) // bytes of a baseline's source

struct export_options {
    char *format;
    char *output;
    bool events;
    char *baseline;
};

static const struct option_row rows[] = {
    {"format", 0, OPTION_CHOICE, offsetof(struct export_options, format), "FORMAT", "jsonl", 0, 0,
     "jsonl|space|gpu-forecasters",
     "jsonl: one JSON object per candidate on stdout; space: a file for `kcast replay`, with what "
     "a run "
     "has measured; gpu-forecasters: rows of their evaluation set, of correct candidates, on "
     "stdout"},
    {"output", 'o', OPTION_TEXT, offsetof(struct export_options, output), "FILE", NULL, 0, 0, NULL,
     "where a space goes; default: the run's name with .space"},
    {"events", 0, OPTION_FLAG, offsetof(struct export_options, events), NULL, NULL, 0, 0, NULL,
     "of a run: one object per event instead of one per candidate; those that are damaged are told "
     "and left out, with exit code 3"},
    {"baseline", 0, OPTION_TEXT, offsetof(struct export_options, baseline), "FILE", NULL, 0, 0,
     NULL, "for gpu-forecasters: the source of the baseline, when the space does not hold it"},
    {.name = NULL},
};

// Writes what has been collected to stdout if it is at least FLUSH_AT bytes, or at the end.
static int flush(struct strbuf *out, bool end, struct err *err)
{
    if (out->len == 0 || (out->len < FLUSH_AT && !end)) {
        return 0;
    }
    int rc = output_write(strbuf_text(out), out->len, err);
    strbuf_reset(out);
    return rc;
}

// The events of a run that have been printed.
struct printed {
    struct strbuf *out;
    uint64_t last; // number of the last one
};

static int on_event(void *owner, struct run_event *event, struct err *err)
{
    struct printed *printed = owner;
    printed->last = event->sequence;
    report_json_event(printed->out, event);
    return flush(printed->out, false, err);
}

// Prints every event that is whole, and says of the others what is wrong with them.
static int export_events(struct run *run, const char *path, struct strbuf *out, struct err *err)
{
    struct printed printed = {.out = out};
    uint64_t after = 0, damaged = 0;
    int rc = ERR_CORRUPT;
    while (rc == ERR_CORRUPT && damaged < DAMAGED_MAX) {
        struct err defect = ERR_INIT;
        rc = run_replay(run, after, on_event, &printed, &defect);
        if (rc == ERR_CORRUPT) {
            damaged++;
            printable_printf(stderr, "kcast: %s\n", defect.text);
            after = (printed.last > after ? printed.last : after) + 1;
            rc = after < run_last(run) ? rc : 0;
        } else if (rc != 0) {
            err_set(err, defect.code, "%s", defect.text);
        }
    }
    int flushed = rc == 0 || rc == ERR_CORRUPT ? flush(out, true, err) : rc;
    return flushed != 0 || damaged == 0
               ? flushed
               : err_set(err, ERR_CORRUPT,
                         "%s: %llu events are missing or damaged%s; what is printed is whole", path,
                         (unsigned long long)damaged,
                         damaged < DAMAGED_MAX ? "" : " or more, and what follows was not read");
}

// Prints every candidate. A source that cannot be read is told in its object, and of all together
// in the sentence with which the command ends.
static int export_candidates(struct run *run, const char *path, struct strbuf *out, struct err *err)
{
    struct run_state run_state;
    struct report report;
    struct err first = ERR_INIT;
    uint64_t damaged = 0;
    run_state_init(&run_state);
    int rc = run_state_read(&run_state, run, err);
    if (rc != 0) {
        goto out;
    }
    report_init(&report, &run_state);
    for (uint64_t number = 1; number <= run_state.candidate_count && rc == 0; number++) {
        struct bytes source = {0};
        struct err missing = ERR_INIT;
        bool have = run_get_blob(run, &run_state.candidate[number - 1].proposed.source, &source,
                                 &missing) == 0;
        report_json_candidate(out, &report, number, have ? &source : NULL, &missing);
        damaged += !have;
        if (!have && first.code == ERR_NONE) {
            first = missing;
        }
        bytes_clear(&source);
        rc = flush(out, false, err);
    }
    report_release(&report);
    if (rc == 0 && damaged > 0) {
        rc = err_set(err, ERR_CORRUPT,
                     "%s: the sources of %llu candidates are missing or damaged (%.300s); the rest "
                     "is printed",
                     path, (unsigned long long)damaged, first.text);
    }
out:
    run_state_release(&run_state);
    return rc;
}

static int write_space(struct session *session, const struct space *space, const char *run_path,
                       const char *output, struct err *err)
{
    char *path = output ? xstrdup(output) : space_path_of(run_path);
    int rc = file_check_output(path, run_path, err);
    rc = rc == 0 ? space_write(space, path, err) : rc;
    if (rc == 0 && !session_options(session)->quiet) {
        printable_printf(stderr, "kcast: wrote %llu candidates to %s\n",
                         (unsigned long long)space->head.candidates, path);
    }
    free(path);
    return rc;
}

// Reads the source of the baseline that speedups are relative to: from the space, or from `file`
// when one is given. *ret is the caller's.
static int read_anchor(struct bytes *ret, const struct space *space, const char *path,
                       const char *file, struct err *err)
{
    const struct bytes *kept = &space->head.baseline_text;
    const struct digest *known = &space->head.baseline_source;
    if (!file && kept->len == 0) {
        return err_set(err, ERR_INVALID,
                       "%s: it does not hold its baseline's source; give the file with --baseline",
                       path);
    }
    if (!file) {
        *ret = bytes_copy(kept->data, kept->len);
        return 0;
    }
    int rc = file_read(ret, file, ANCHOR_MAX, err);
    if (rc != 0) {
        return rc;
    }
    struct digest digest = digest_of(ret->data, ret->len);
    if (!digest_is_zero(known) && !digest_equal(&digest, known)) {
        bytes_clear(ret);
        rc = err_set(err, ERR_INVALID, "%s: not the baseline that %s was measured against", file,
                     path);
    }
    return rc;
}

static int export_pairs(struct session *session, const struct space *space, const char *path,
                        const char *baseline, struct strbuf *out, struct err *err)
{
    struct bytes anchor = {0};
    struct space_sources sources = {0};
    int rc = read_anchor(&anchor, space, path, baseline, err);
    if (rc != 0) {
        return rc;
    }
    rc = space_sources_init(&sources, space, path, err);
    uint64_t written = 0;
    for (size_t i = 0; i < space->head.candidates && rc == 0; i++) {
        struct strbuf source = STRBUF_INIT;
        bool known = false;
        if (isnormal(exp2(space_log2(&space->candidate[i])))) { // false for NaN: not correct
            rc = space_sources_get(&sources, i, &source, &known, err);
        }
        if (rc == 0 && known) {
            space_json_pair(out, space, i, &anchor, &source);
            rc = flush(out, false, err);
            written++;
        }
        strbuf_release(&source);
    }
    if (rc == 0 && written == 0) {
        rc = err_set(err, ERR_INVALID, "%s: no candidate is correct and of a known source", path);
    }
    if (rc == 0 && !session_options(session)->quiet) {
        printable_printf(
            stderr, "kcast: %llu rows; %llu candidates are not correct or of no known source\n",
            (unsigned long long)written, (unsigned long long)(space->head.candidates - written));
    }
    space_sources_release(&sources);
    bytes_clear(&anchor);
    return rc;
}

static int export_jsonl(const struct space *space, struct strbuf *out, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; i < space->head.candidates && rc == 0; i++) {
        space_json_candidate(out, space, i);
        rc = flush(out, false, err);
    }
    return rc;
}

static int export_of_space(struct session *session, const struct export_options *given,
                           const char *path, struct strbuf *out, struct err *err)
{
    if (given->events) {
        return err_set(err, ERR_USAGE, "%s: a space has no events; a run file has", path);
    }
    if (strcmp(given->format, "space") == 0) {
        return err_set(err, ERR_USAGE, "%s: it is a space already", path);
    }
    struct space space;
    int rc = space_read(&space, path, err);
    if (rc != 0) {
        return rc;
    }
    rc = strcmp(given->format, "jsonl") == 0
             ? export_jsonl(&space, out, err)
             : export_pairs(session, &space, path, given->baseline, out, err);
    space_release(&space);
    return rc;
}

static int export_of_run(struct session *session, const struct export_options *given,
                         const char *path, struct strbuf *out, struct err *err)
{
    struct run *run = NULL;
    struct space space;
    int rc = run_open_read(&run, path, err);
    session_warn(run ? run_warning(run) : NULL);
    rc = rc == 0 ? run_need_events(run, err) : rc;
    if (rc == 0 && strcmp(given->format, "jsonl") == 0) {
        rc = given->events ? export_events(run, path, out, err)
                           : export_candidates(run, path, out, err);
    } else if (rc == 0) {
        rc = space_of_run(&space, run, err);
        if (rc != 0) {
            err_wrap(err, "%s", path);
        } else {
            rc = strcmp(given->format, "space") == 0
                     ? write_space(session, &space, path, given->output, err)
                     : export_pairs(session, &space, path, given->baseline, out, err);
            space_release(&space);
        }
    }
    run_close(run);
    return rc;
}

static int export_any(struct session *session, const void *options, char **argument,
                      size_t argument_count, struct err *err)
{
    (void)argument_count;
    const struct export_options *given = options;
    struct strbuf out = STRBUF_INIT;
    int rc = space_is(argument[0]) ? export_of_space(session, given, argument[0], &out, err)
                                   : export_of_run(session, given, argument[0], &out, err);
    if (rc == 0) {
        rc = flush(&out, true, err);
    }
    strbuf_release(&out);
    return rc == 0 ? EXIT_OK : err_exit(rc);
}

const struct command cmd_export = {
    .name = "export",
    .arguments = "RUN|SPACE",
    .help = "Print the candidates of a search or a space, or a search's events, as JSON lines; or "
            "write a space",
    .option = rows,
    .options_size = sizeof(struct export_options),
    .argument_min = 1,
    .argument_max = 1,
    .run = export_any,
};
