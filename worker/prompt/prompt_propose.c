#include "worker/prompt/prompt_propose.h"

#include "proto/verdict.h"
#include "worker/prompt/prompt.h"
#include "worker/prompt/prompt_form.h"
#include "worker/prompt/prompt_quote.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX ((size_t)16 << 10) // bytes of what a compiler or a check says

void prompt_propose_rules(struct strbuf *out, enum prompt_language language)
{
    static const struct {
        const char *form, *example, *comment;
    } of[] = {
        [PROMPT_C] = {prompt_form_c, prompt_example_c, "//"},
        [PROMPT_CUDA] = {prompt_form_cuda, prompt_example_cuda, "//"},
        [PROMPT_PYTHON] = {prompt_form_python, prompt_example_python, "#"},
    };

    strbuf_adds(out,
                "You write programs that compute what a baseline computes, faster.\n"
                "S = time of the baseline / time of the program on the same device; over several "
                "benchmark cases it is a weighted geometric mean. Programs that are wrong for any "
                "shape count nothing. Shapes other than the ones named are tested, too, and beside "
                "inputs from \"values\" of problem.json, on which programs are timed, inputs from "
                "each of the distributions under \"also\".\n\n");
    strbuf_adds(out, of[language].form);
    strbuf_adds(out,
                "\nA whole file, for y[r] = a times the sum of row r of x (tensors x, y; params "
                "rows, cols, a):\n```\n");
    strbuf_adds(out, of[language].example);
    strbuf_addf(
        out,
        "```\n\n"
        "First think as long as you need: which case is slowest against its bound, what limits it "
        "(bytes, operations, latency, launches), which change removes that? Then answer with the "
        "programs, each in a block of its own between ``` lines. A block is either a whole file, "
        "or edits of the program that you start from:\n"
        "```\n"
        "%s what is different\n" PROMPT_EDIT_SEARCH "\n"
        "lines of that program exactly as they stand there, enough of them to occur "
        "once\n" PROMPT_EDIT_DIVIDE "\n"
        "the lines that replace them\n" PROMPT_EDIT_REPLACE "\n"
        "```\n"
        "Several edits of one program stand in the same block and are made in their order. Begin "
        "every block with one comment line of at most 80 characters that says what is different "
        "from the program you start from: notes are kept under these words. Nothing else stands "
        "between ``` lines. Make the programs really different from each other and from what has "
        "been tried: another algorithm, memory layout, tiling, vector width, amount of work for "
        "each thread. Do not give an unchanged program back.\n\n",
        of[language].comment);
    prompt_quote_rule(out);
}

// One line of what a change came to.
static void add_note(struct strbuf *out, const struct note *note)
{
    strbuf_addf(out, "#%llu", (unsigned long long)note->candidate);
    if (note->parent > 0) {
        strbuf_addf(out, " from #%llu", (unsigned long long)note->parent);
    } else {
        strbuf_adds(out, " from the baseline");
    }
    strbuf_addf(out, ", %s: ", note->change ? note->change : "no words");
    if (!verdict_is_ratio(note->verdict)) {
        strbuf_addf(out, "%s%s%s", verdict_name(note->verdict), note->reason ? ", " : "",
                    note->reason ? note->reason : "");
    } else if (isnan(note->from_log2)) {
        strbuf_addf(out, "correct now, S = %.4g", exp2(note->log2));
    } else {
        strbuf_addf(out, "S from %.4g to %.4g", exp2(note->from_log2), exp2(note->log2));
    }
}

static void add_notes(struct strbuf *out, const struct search_context *context)
{
    struct strbuf lines = STRBUF_INIT;

    if (context->notes_count == 0) {
        return;
    }
    for (size_t i = 0; i < context->notes_count; i++) {
        struct strbuf one = STRBUF_INIT;

        add_note(&one, &context->notes[i]);
        for (char *at = one.data; at && *at != '\0'; at++) {
            *at = *at == '\n' || *at == '\r' ? ' ' : *at; // a stranger's words may not begin a line
        }
        strbuf_addf(&lines, "%s\n", strbuf_text(&one));
        strbuf_release(&one);
    }
    strbuf_adds(out, "\nNotes on the changes of this search, those that helped most first, then "
                     "the newest that did not:\n");
    prompt_quote_list(out, "notes", strbuf_text(&lines));
    strbuf_release(&lines);
}

void prompt_propose_search(struct strbuf *out, const struct propose_request *request)
{
    const struct forecast_request same = {
        .problem = request->problem,
        .device_class = request->device_class,
        .device_facts = request->device_facts,
        .device_facts_count = request->device_facts_count,
        .baseline_features = request->baseline_features,
        .baseline_features_count = request->baseline_features_count,
        .incumbent_log2 = request->incumbent_log2,
        .context = request->context,
    };

    prompt_search(out, &same);
    add_notes(out, request->context);
}

// ---- the parent ----

// A case of the parent and how fast the parent is in it.
struct case_row {
    const struct bench_case *of;
    double log2;
};

// The slowest against the baseline first; what was not measured last.
static int compare_rows(const void *a, const void *b)
{
    const struct case_row *x = a, *y = b;
    double p = isnan(x->log2) ? INFINITY : x->log2, q = isnan(y->log2) ? INFINITY : y->log2;

    if (p != q) {
        return p < q ? -1 : 1;
    }
    return (x->of > y->of) - (x->of < y->of);
}

static void add_row(struct strbuf *out, const struct case_row *row)
{
    const struct bench_case *of = row->of;

    strbuf_addf(out, "%s: ", of->params);
    if (isnan(row->log2)) {
        strbuf_adds(out, "not measured\n");
        return;
    }
    strbuf_addf(out, "S = %.4g", exp2(row->log2));
    if (of->baseline_ns > 0) {
        double us = of->baseline_ns / exp2(row->log2) / 1e3;

        strbuf_addf(out, ", %.4g us", us);
        if (of->floor_ns > 0) {
            strbuf_addf(out, ", %.3g times the lower bound", us * 1e3 / of->floor_ns);
        }
    }
    strbuf_adds(out, "\n");
}

// The parent's cases, the slowest against the baseline first. With a single case the speedup over
// all is that of the case.
static void add_cases(struct strbuf *out, const struct propose_request *request)
{
    const struct search_context *context = request->context;
    const struct known_source *parent = request->parent;
    struct case_row *row = xcalloc(context->cases_count + 1, sizeof(*row));
    struct strbuf text = STRBUF_INIT;
    bool known = parent->cases_count == context->cases_count;

    for (size_t i = 0; i < context->cases_count; i++) {
        row[i] = (struct case_row){.of = &context->cases[i], .log2 = NAN};
        if (context->cases_count == 1) {
            row[i].log2 = parent->log2;
        } else if (known) {
            row[i].log2 = parent->cases[i];
        }
    }
    qsort(row, context->cases_count, sizeof(*row), compare_rows);
    for (size_t i = 0; i < context->cases_count; i++) {
        add_row(&text, &row[i]);
    }
    if (context->cases_count > 0) {
        strbuf_adds(out, "Its cases, the slowest against the baseline first:\n");
        prompt_quote(out, "its cases", text.data, text.len, WORDS_MAX);
    }
    strbuf_release(&text);
    free(row);
}

static void add_words(struct strbuf *out, const char *what, const char *words)
{
    if (words && words[0] != '\0') {
        prompt_quote(out, what, words, strlen(words), WORDS_MAX);
    }
}

static void add_parent(struct strbuf *out, const struct propose_request *request)
{
    const struct known_source *parent = request->parent;
    bool right = verdict_is_ratio(parent->verdict);

    strbuf_adds(out, "\nStart from this candidate");
    if (right) {
        strbuf_addf(out, ", which has S = %.4g:\n", exp2(parent->log2));
    } else if (parent->verdict == VERDICT_NONE) {
        strbuf_adds(out, ", which was not measured:\n");
    } else {
        strbuf_addf(out, ", which is %s; repair it:\n", verdict_name(parent->verdict));
    }
    prompt_quote(out, "candidate", parent->source.data, parent->source.len, PROMPT_SOURCE_MAX);
    prompt_facts(out, "Its compile facts", parent->features, parent->features_count);
    if (right) {
        add_cases(out, request);
    } else {
        add_words(out, "what is wrong with it", parent->reason);
    }
    // Of a program that is right the compiler's words are its warnings and what it used.
    add_words(out, "what the compiler printed", parent->log);
}

void prompt_parent(struct strbuf *out, const struct propose_request *request)
{
    for (size_t i = 0; i < request->inspirations_count; i++) {
        if (i == 0) {
            strbuf_adds(out, "\nOther good candidates, to take ideas from:\n");
        }
        prompt_known_source(out, "another candidate", &request->inspirations[i]);
    }
    if (request->parent) {
        add_parent(out, request);
    } else {
        strbuf_adds(out, "\nStart from the baseline.\n");
    }
    strbuf_addf(out, "\nWrite %llu faster program%s. (Draw %llu.)\n",
                (unsigned long long)request->count, request->count == 1 ? "" : "s",
                (unsigned long long)request->draw);
}
