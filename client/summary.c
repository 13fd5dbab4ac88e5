#include "client/summary.h"

#include "client/allot.h"
#include "client/generator_list.h"
#include "client/missed.h"
#include "client/risk.h"
#include "client/show.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// The fastest of those that were measured and correct; NULL when there is none.
static const struct fold_candidate *find_fastest(const struct fold *fold)
{
    const struct fold_candidate *fastest = NULL;
    for (size_t i = 0; i < fold->candidate_count; i++) {
        const struct fold_candidate *candidate = &fold->candidate[i];
        if (candidate->result != NULL && verdict_is_ratio(candidate->result->verdict) &&
            candidate->result->speedup != NULL &&
            (fastest == NULL ||
             candidate->result->speedup->log2 > fastest->result->speedup->log2)) {
            fastest = candidate;
        }
    }
    return fastest;
}

static const char *name_of(const struct fold_candidate *candidate)
{
    return candidate->proposed.name != NULL ? candidate->proposed.name : "without a name";
}

static json_t *best_object(const struct fold *fold)
{
    const struct fold_candidate *best = fold_best(fold);
    if (best == NULL) {
        return json_null();
    }
    const struct estimate *speedup = best->record->speedup;
    return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o}", "candidate",
                     (json_int_t)best->proposed.candidate, "name", show_text(best->proposed.name),
                     "speedup", show_ratio(speedup->log2), "ci95", show_interval(speedup), "digest",
                     show_digest(&best->proposed.source), "params",
                     show_facts(best->proposed.params, best->proposed.params_count));
}

// What of the discarded would have improved: estimated and bounded, not guaranteed beforehand.
static json_t *risk_object(const struct fold *fold)
{
    struct certify_missed missed = missed_of(fold);

    return json_pack("{s:I, s:I, s:I, s:o, s:o, s:f}", "discarded", (json_int_t)missed.discarded,
                     "audited", (json_int_t)missed.audited, "improvers",
                     (json_int_t)missed.improvers, "share", show_number(missed.share), "at_most",
                     missed.estimated ? show_number(missed.upper) : json_null(), "confidence",
                     MISSED_CONFIDENCE);
}

static json_t *make_object(const struct fold *fold, const char *path)
{
    return json_pack("{s:o, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:s, s:o, "
                     "s:o, s:o, s:{s:I, s:I, s:I, s:I, s:f}}",                                                     //
                     "best", best_object(fold),                                                //
                     "problem", fold->started.problem,                                         //
                     "considered", (json_int_t)fold->considered,                               //
                     "compile_failed", (json_int_t)fold->compile_failed,                       //
                     "forecast", (json_int_t)fold->forecasts,                                  //
                     "measured", (json_int_t)fold->measured,                                   //
                     "audited", (json_int_t)fold->audited,                                     //
                     "trusted", (json_int_t)fold->trusted,                                     //
                     "reused", (json_int_t)fold->reused,                                       //
                     "records", (json_int_t)fold->records,                                     //
                     "device_seconds", show_number(fold->device_seconds),                      //
                     "wall_seconds", show_number(fold->wall_seconds),                          //
                     "reason", show_text(fold->finish_reason),                                 //
                     "run", path,                                                              //
                     "risk", risk_object(fold),                                                //
                     "guarantee", show_guarantee(fold),                                        //
                     "generators", show_generators(fold),                                      //
                     "llm", "proposals", (json_int_t)fold->proposals, "known",                 //
                     (json_int_t)fold->known, "input_tokens",                                  //
                     (json_int_t)fold->input_tokens, "output_tokens",                          //
                     (json_int_t)fold->output_tokens, "cost", fold->model_cost);
}

static void describe_best(const struct fold *fold, struct strbuf *out)
{
    const struct fold_candidate *best = fold_best(fold), *fastest = find_fastest(fold);
    char text[64];
    if (best != NULL) {
        show_speedup(best->record->speedup, text, sizeof(text));
        strbuf_addf(out, "candidate %llu (%s), %s the baseline",
                    (unsigned long long)best->proposed.candidate, name_of(best), text);
    } else if (fastest != NULL) {
        show_speedup(fastest->result->speedup, text, sizeof(text));
        strbuf_addf(out,
                    "nothing faster than the baseline; candidate %llu (%s) came nearest with %s",
                    (unsigned long long)fastest->proposed.candidate, name_of(fastest), text);
    } else {
        strbuf_adds(out, "no candidate was correct");
    }
}

static void print_guarantee(const struct fold *fold)
{
    char *sentence = risk_sentence(fold);
    if (sentence != NULL) {
        printf("guarantee   %s%s\n", sentence,
               fold->certified.alarms > 0 ? "; an alarm had everything measured again" : "");
    }
    free(sentence);
}

// Only of a search that has several.
static void print_generators(const struct fold *fold)
{
    struct allot_share share[GENERATOR_LIST_MAX];
    struct generator_list list;
    char cost[64];
    if (generator_list_parse(&list, fold->started.generator, NULL) != 0) {
        return;
    }
    allot_shares(fold, fold->candidate_count, list.count, share);
    for (size_t i = 0; i < list.count && list.count > 1; i++) {
        show_seconds(share[i].cost, cost, sizeof(cost));
        printf("%s  %s: %llu considered, %llu measured, best raised %llu times, by a factor of %.3f "
               "together, at a cost of %s\n",
               i == 0 ? "generators" : "          ", list.kind[i],
               (unsigned long long)share[i].considered, (unsigned long long)share[i].measured,
               (unsigned long long)share[i].improvements, exp2(share[i].gain_log2), cost);
    }
    generator_list_release(&list);
}

static void print_table(const struct fold *fold, const char *path)
{
    const struct fold_candidate *best = fold_best(fold);
    struct certify_missed missed = missed_of(fold);
    struct strbuf text = STRBUF_INIT;
    char seconds[64], wall[64];
    describe_best(fold, &text);
    show_seconds(fold->device_seconds, seconds, sizeof(seconds));
    show_seconds(fold->wall_seconds, wall, sizeof(wall));
    printf("problem     %s on %s\n", fold->started.problem,
           fold->session.device_class != NULL ? fold->session.device_class : "an unknown device");
    printf("best        %s\n", strbuf_text(&text));
    for (size_t i = 0; best != NULL && i < best->proposed.params_count; i++) {
        printf("%s%s = %.15g", i == 0 ? "parameters  " : ", ", best->proposed.params[i].name,
               best->proposed.params[i].value);
    }
    printf("%s", best != NULL && best->proposed.params_count > 0 ? "\n" : "");
    printf("considered  %llu (%llu did not compile, %llu were the same object as another)\n",
           (unsigned long long)fold->considered, (unsigned long long)fold->compile_failed,
           (unsigned long long)fold->reused);
    printf("measured    %llu, %llu of them as audits of trusted forecasts; %llu again before a record counted\n",
           (unsigned long long)fold->measured, (unsigned long long)fold->audited,
           (unsigned long long)fold->records);
    print_generators(fold);
    printf("trusted     %llu forecasts, without measuring\n", (unsigned long long)fold->trusted);
    print_guarantee(fold);
    if (missed.discarded > 0) {
        printf("missed      %s\n", missed.text);
    }
    if (fold->proposals > 0) {
        printf("proposed    %llu by a language model, of which %llu were there already but for blanks and comments\n",
               (unsigned long long)fold->proposals, (unsigned long long)fold->known);
    }
    if (fold->input_tokens + fold->output_tokens > 0) {
        printf("asked       %llu tokens in, %llu out, at a cost of %.4g\n",
               (unsigned long long)fold->input_tokens, (unsigned long long)fold->output_tokens,
               fold->model_cost);
    }
    printf("spent       %s of device time, %s in all; ended: %s\n", seconds, wall,
           fold->finish_reason != NULL ? fold->finish_reason : "not finished");
    printf("\nnext: `kcast report %s -o report.html` shows how it went", path);
    if (best != NULL) {
        printf("; `kcast export %s` writes the candidates out", path);
    }
    printf("\n");
    strbuf_release(&text);
}

int summary_print(const struct session_options *options, const struct fold *fold, const char *path)
{
    struct strbuf text = STRBUF_INIT;
    char seconds[64];
    show_seconds(fold->device_seconds, seconds, sizeof(seconds));
    describe_best(fold, &text);
    strbuf_addf(&text, "; considered %llu, measured %llu, trusted %llu, %s of device time; %s",
                (unsigned long long)fold->considered, (unsigned long long)fold->measured,
                (unsigned long long)fold->trusted, seconds, path);
    if (options->json) {
        show_print(make_object(fold, path));
    } else {
        print_table(fold, path);
        fflush(stdout);
    }
    if (!options->quiet) {
        fprintf(stderr, "kcast: %s\n", strbuf_text(&text));
    }
    strbuf_release(&text);
    return find_fastest(fold) != NULL ? EXIT_OK : EXIT_NEGATIVE;
}

void summary_print_resume(const struct session_options *options, const char *path)
{
    if (!options->quiet) {
        fprintf(stderr, "kcast: everything so far is kept; go on with `kcast resume %s`\n", path);
    }
}
