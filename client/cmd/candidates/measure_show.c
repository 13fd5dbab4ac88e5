#include "client/cmd/candidates/measure_show.h"

#include "client/diagnostics.h"
#include "client/show.h"
#include "common/printable.h"
#include "proto/verdict.h"
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// What the compiler said, told of the user's file; "" when it said nothing.
static void add_log(struct strbuf *out, const struct candidate_file *file)
{
    const struct compiled *compiled = file->result->compiled;
    if (compiled && compiled->log) {
        diagnostics_rename(out, compiled->log, candidates_name(file), file->header_lines);
    }
}

// Whether the names, which blanks divide, have this one.
static bool has_name(const char *names, const char *name)
{
    size_t len = strlen(name);
    for (const char *at = names; at && *at != '\0'; at += strspn(at, " ")) {
        size_t word = strcspn(at, " ");
        if (word == len && memcmp(at, name, len) == 0) {
            return true;
        }
        at += word;
    }
    return false;
}

// Whether it is written as parameters are.
static bool is_upper(const char *name)
{
    return name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789")] == '\0';
}

// What to do about a name that is not declared and is, or looks like, a parameter: malloc'd, or
// NULL.
static char *advice(const struct candidate_file *file, const char *problem)
{
    const struct compiled *compiled = file->result->compiled;
    const char *reason = file->result->reason ? file->result->reason : "";
    const char *at = compiled && compiled->log ? compiled->log : reason;
    char *text = NULL;
    if (file->result->verdict != VERDICT_COMPILE_ERROR) {
        return NULL;
    }
    for (char *name = diagnostics_undeclared(&at); name && !text;
         name = text ? NULL : diagnostics_undeclared(&at)) {
        if (has_name(file->params, name)) {
            text = xasprintf("%s is a parameter of the template: give it a value with "
                             "--define %s=VALUE, or let `kcast tune %s %s` find the best one",
                             name, name, problem, candidates_name(file));
        } else if (is_upper(name)) {
            text = xasprintf("if %s is a parameter, give it a value with --define %s=VALUE, or "
                             "declare it by a line `//@ tune %s in (1, 2, 4)` for `kcast tune`",
                             name, name, name);
        }
        free(name);
    }
    return text;
}

static void print_reason(const struct candidate_file *file)
{
    const struct result *result = file->result;
    struct strbuf reason = STRBUF_INIT;
    if (result->reason) {
        strbuf_adds(&reason, ": ");
        diagnostics_rename(&reason, result->reason, candidates_name(file), file->header_lines);
    }
    printable_printf(stdout, "%s: %s%s%s\n", candidates_name(file), verdict_name(result->verdict),
                     strbuf_text(&reason), result->unsealed ? SHOW_UNSEALED : "");
    strbuf_release(&reason);
}

static void print_ratio(const struct candidate_file *file)
{
    const struct result *result = file->result;
    char speedup[64], baseline[32], candidate[32];
    show_speedup(result->speedup, speedup, sizeof(speedup));
    show_ns(result->baseline_ns ? result->baseline_ns->p50 : NAN, baseline, sizeof(baseline));
    show_ns(result->candidate_ns ? result->candidate_ns->p50 : NAN, candidate, sizeof(candidate));
    printable_printf(
        stdout,
        "%s: %s, %s the baseline%s (baseline %s, candidate %s, %llu launches, error %.3g of %.3g "
        "allowed%s)\n",
        candidates_name(file), verdict_name(result->verdict), speedup,
        result->unsealed ? SHOW_UNSEALED : "", baseline, candidate,
        (unsigned long long)result->launches, result->max_error, result->error_bound,
        result->cached ? ", known from before" : "");
    for (size_t i = 0; result->cases_count > 1 && i < result->cases_count; i++) {
        show_speedup(result->cases[i].speedup, speedup, sizeof(speedup));
        printable_printf(stdout, "    %-32s %s\n", result->cases[i].params, speedup);
    }
}

void measure_show_text(const struct candidate_file *file, const char *problem)
{
    const struct result *result = file->result;
    struct strbuf log = STRBUF_INIT;
    if (verdict_is_ratio(result->verdict) && result->speedup) {
        print_ratio(file);
    } else {
        print_reason(file);
    }
    add_log(&log, file);
    // Indented, so that no line of the log looks like one of ours.
    for (const char *text = strbuf_text(&log); *text != '\0';) {
        size_t len = strcspn(text, "\n");
        printable_printf(stdout, "    %.*s\n", (int)len, text);
        text += text[len] == '\n' ? len + 1 : len;
    }
    strbuf_release(&log);
    char *next = advice(file, problem);
    if (next) {
        printable_printf(stdout, "    %s\n", next);
    }
    free(next);
}

void measure_show_json(const struct candidate_file *file, const char *problem)
{
    json_t *object =
        json_pack("{s:o, s:o}", "candidate", show_text(file->path), "problem", show_text(problem));
    if (!file->result) {
        json_object_set_new(object, "error", show_error(&file->error));
        show_print(object);
        return;
    }
    json_t *rest = show_result(file->result);
    json_object_update(object, rest);
    json_decref(rest);
    struct strbuf text = STRBUF_INIT;
    if (file->result->reason) {
        diagnostics_rename(&text, file->result->reason, candidates_name(file), file->header_lines);
        json_object_set_new(object, "reason", show_text(strbuf_text(&text)));
        strbuf_reset(&text);
    }
    add_log(&text, file);
    json_object_set_new(object, "diagnostics", diagnostics_json(strbuf_text(&text)));
    json_object_set_new(object, "compiler_output",
                        text.len > 0 ? show_text(strbuf_text(&text)) : json_null());
    char *next = advice(file, problem);
    json_object_set_new(object, "advice", show_text(next));
    free(next);
    strbuf_release(&text);
    show_print(object);
}
