#include "client/report/summary.h"

#include "client/output.h"
#include "client/policy/allocation.h"
#include "client/policy/false_omission.h"
#include "client/policy/guarantee.h"
#include "client/policy/play_off.h"
#include "client/policy/risk.h"
#include "client/propose/generator_list.h"
#include "client/report/run_counts.h"
#include "client/report/run_json.h"
#include "client/report/run_unsealed.h"
#include "client/report/run_width.h"
#include "client/run/wall_time.h"
#include "client/show.h"
#include "common/mem.h"
#include "common/printable.h"
#include "common/strbuf.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define DEVICES_SHOWN 16

// The fastest candidate that was measured and is correct; NULL when there is none. Barred ones
// count only when asked for.
static const struct run_state_candidate *find_fastest(const struct run_state *run_state,
                                                      bool barred)
{
    const struct run_state_candidate *fastest = NULL;
    for (size_t i = 0; i < run_state->candidate_count; i++) {
        const struct run_state_candidate *candidate = &run_state->candidate[i];
        if (candidate->result && verdict_is_ratio(candidate->result->verdict) &&
            candidate->result->speedup && (barred || !candidate->barred) &&
            (!fastest || candidate->result->speedup->log2 > fastest->result->speedup->log2)) {
            fastest = candidate;
        }
    }
    return fastest;
}

static const char *name_of(const struct run_state_candidate *candidate)
{
    return candidate->proposed.name ? candidate->proposed.name : "without a name";
}

static json_t *best_object(const struct run_state *run_state)
{
    const struct run_state_candidate *best = run_state_best(run_state);
    if (!best) {
        return json_null();
    }
    const struct estimate *speedup = best->record->speedup;
    return json_pack("{s:I, s:o, s:o, s:o, s:o, s:b, s:o}", "candidate",
                     (json_int_t)best->proposed.candidate, "name", show_text(best->proposed.name),
                     "speedup", show_ratio(speedup->log2), "ci95", show_interval(speedup), "digest",
                     show_digest(&best->proposed.source), "unsealed", (int)best->record->unsealed,
                     "params", show_facts(best->proposed.params, best->proposed.params_count));
}

// The estimated and bounded share of discarded candidates that would have improved. This is
// computed afterwards; it is not the guarantee that was given beforehand.
static json_t *risk_object(const struct run_state *run_state)
{
    struct false_omission missed = false_omission_of_run(run_state);

    return json_pack("{s:I, s:I, s:I, s:o, s:o, s:f}", "discarded", (json_int_t)missed.discarded,
                     "audited", (json_int_t)missed.audited, "improvers",
                     (json_int_t)missed.improvers, "share",
                     show_number(missed.shown ? missed.share : NAN), "at_most",
                     missed.estimated ? show_number(missed.upper) : json_null(), "confidence",
                     FALSE_OMISSION_CONFIDENCE);
}

static json_t *make_object(const struct run_state *run_state, const char *path)
{
    struct run_counts counts = run_counts_of(run_state);
    return json_pack(
        "{s:o, s:s, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:s, s:o, "
        "s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:{s:I, s:I, s:I, s:I, s:f}}", //
        "best", best_object(run_state),                                                   //
        "problem", run_state->started.problem,                                            //
        "counts", run_counts_json(&counts),                                               //
        "saving", show_number(counts.saving),                                             //
        "considered", (json_int_t)run_state->considered,                                  //
        "compile_failed", (json_int_t)run_state->compile_failed,                          //
        "forecast", (json_int_t)run_state->forecasts,                                     //
        "measured", (json_int_t)run_state->measured,                                      //
        "audited", (json_int_t)run_state->audited,                                        //
        "trusted", (json_int_t)run_state->trusted,                                        //
        "reused", (json_int_t)run_state->reused,                                          //
        "records", (json_int_t)run_state->records,                                        //
        "device_seconds", show_number(run_state->device_seconds),                         //
        "wall_seconds", show_number(run_state->wall_seconds),                             //
        "reason", show_text(run_state->finish_reason),                                    //
        "run", path,                                                                      //
        "risk", risk_object(run_state),                                                   //
        "guarantee", run_json_guarantee(run_state),                                       //
        "trust", run_json_trust(run_state),                                               //
        "left", run_json_left(run_state),                                                 //
        "unsealed", run_unsealed_json(run_state),                                         //
        "play_off", run_json_play_off(run_state),                                         //
        "generators", run_json_generators(run_state),                                     //
        "wall", run_json_wall(run_state),                                                 //
        "work", run_json_work(run_state),                                                 //
        "devices", run_json_devices(run_state),                                           //
        "width", run_width_json(&run_state->started),                                     //
        "llm", "proposals", (json_int_t)run_state->proposals, "known",                    //
        (json_int_t)run_state->known, "input_tokens",                                     //
        (json_int_t)run_state->input_tokens, "output_tokens",                             //
        (json_int_t)run_state->output_tokens, "cost", run_state->model_cost);
}

static void describe_best(const struct run_state *run_state, struct strbuf *out)
{
    const struct run_state_candidate *best = run_state_best(run_state),
                                     *fastest = find_fastest(run_state, false);
    char text[64];
    if (best) {
        show_speedup(best->record->speedup, text, sizeof(text));
        strbuf_addf(out, "candidate %llu (%s), %s the baseline%s",
                    (unsigned long long)best->proposed.candidate, name_of(best), text,
                    best->record->unsealed ? SHOW_UNSEALED : "");
    } else if (fastest) {
        show_speedup(fastest->result->speedup, text, sizeof(text));
        strbuf_addf(out,
                    "nothing faster than the baseline; candidate %llu (%s) came nearest with %s",
                    (unsigned long long)fastest->proposed.candidate, name_of(fastest), text);
    } else {
        strbuf_adds(out, find_fastest(run_state, true) ? "only candidates that ran unsealed"
                                                       : "no candidate was correct");
    }
}

// What is said of a row of the counts beyond its number: what a forecast saved, what was measured
// twice; "" for the others.
static void describe_row(const struct run_state *run_state, const struct run_counts *counts,
                         enum run_count_row row, char *out, size_t size)
{
    *out = '\0';
    if (row == RUN_COUNT_MEASURED) {
        snprintf(out, size, "; %llu again before a record counted",
                 (unsigned long long)run_state->records);
    } else if (row == RUN_COUNT_TRUSTED && counts->saving >= RUN_COUNTS_SAVING_LEAST) {
        snprintf(out, size, ": %.1f times fewer measurements", counts->saving);
    }
}

// Prints what became of the candidates: rows whose sum is what was considered.
static void print_counts(const struct run_state *run_state)
{
    static const struct {
        const char *label, *text;
    } rows[RUN_COUNT_ROW_COUNT] = {
        [RUN_COUNT_MEASURED] = {"measured", ", besides audits"},
        [RUN_COUNT_AUDIT] = {"audits", " measured though their forecasts would have left them out"},
        [RUN_COUNT_TRUSTED] = {"trusted", " forecasts, without measuring"},
        [RUN_COUNT_NOT_COMPILED] = {"failed", " did not compile"},
        [RUN_COUNT_DUPLICATE] = {"duplicates", " had the source or the object of another"},
        [RUN_COUNT_NOT_REACHED] = {"not reached", " before the search ended"},
        [RUN_COUNT_NO_RESULT] = {"no result", " were given up by the daemon, or are under way"},
    };
    struct run_counts counts = run_counts_of(run_state);
    char more[64];
    printable_printf(stdout, "considered  %llu, each in one of the rows below\n",
                     (unsigned long long)counts.considered);
    if (counts.screened > 0) {
        printable_printf(
            stdout,
            "screened    %llu of them, chosen by forecasts from up to %llu points each "
            "time, before any was compiled\n",
            (unsigned long long)counts.screened, (unsigned long long)counts.compared);
    }
    if (counts.ranked > 0) {
        printable_printf(stdout,
                         "ranked      %llu of them, taken from up to %llu proposals each time, "
                         "before any was compiled\n",
                         (unsigned long long)counts.ranked, (unsigned long long)counts.proposals);
    }
    if (counts.waiting > 0) {
        printable_printf(stdout, "waiting     %llu more proposals, none of them compiled\n",
                         (unsigned long long)counts.waiting);
    }
    for (enum run_count_row row = 0; row < RUN_COUNT_ROW_COUNT; row++) {
        if (row != RUN_COUNT_NO_RESULT || counts.row[row] > 0) {
            describe_row(run_state, &counts, row, more, sizeof(more));
            printable_printf(stdout, "%-11s %llu%s%s\n", rows[row].label,
                             (unsigned long long)counts.row[row], rows[row].text, more);
        }
    }
}

static void print_play_off(const struct run_state *run_state)
{
    struct strbuf text = STRBUF_INIT;
    char seconds[64], most[64];
    play_off_describe(run_state, &text);
    show_seconds(run_state->play_off_seconds, seconds, sizeof(seconds));
    show_seconds(run_state->play_off.seconds_max, most, sizeof(most));
    if (text.len > 0) {
        bool limit = isfinite(run_state->play_off.seconds_max);
        printable_printf(stdout, "play-off    %s; %s of device time%s%s%s\n", strbuf_text(&text),
                         seconds, limit ? ", of " : "", limit ? most : "", limit ? " left" : "");
    }
    strbuf_release(&text);
}

static void print_unsealed(const struct run_state *run_state)
{
    char *sentence = run_unsealed_sentence(run_state);
    if (sentence) {
        printable_printf(stdout, "unsealed    %s\n", sentence);
    }
    free(sentence);
}

static void print_guarantee(const struct run_state *run_state)
{
    struct guarantee left = guarantee_of_run(run_state);
    if (*left.text) {
        printable_printf(stdout, "guarantee   %s\n", left.text);
    }
    char *sentence = risk_sentence(run_state);
    if (sentence) {
        printable_printf(
            stdout, "guarantee   %s%s\n", sentence,
            run_state->certified.alarms > 0 ? "; an alarm had everything measured again" : "");
    }
    free(sentence);
}

// Prints how far each forecaster was trusted in the end, the latest first.
static void print_trust(const struct run_state *run_state)
{
    for (size_t i = run_state->trust_count; i > 0; i--) {
        const struct run_trusted *trust = &run_state->trust[i - 1];
        printable_printf(stdout, "%s%s",
                         i == run_state->trust_count ? "trust       " : "            ",
                         trust->text);
        if (trust->alarms > 0) {
            printable_printf(stdout, "; alarms that ended it: %llu",
                             (unsigned long long)trust->alarms);
        }
        printable_printf(stdout, "\n");
    }
}

// Prints what each generator contributed, if the search has several.
static void print_generators(const struct run_state *run_state)
{
    struct generator_list list;
    if (generator_list_parse(&list, run_state->started.generator, NULL) != 0) {
        return;
    }
    struct allocation_share share[GENERATOR_LIST_MAX];
    allocation_shares(run_state, run_state->candidate_count, list.count, share);
    char cost[64];
    for (size_t i = 0; i < list.count && list.count > 1; i++) {
        show_seconds(share[i].cost, cost, sizeof(cost));
        printable_printf(
            stdout,
            "%s  %s: %llu considered, %llu measured, best raised %llu times, by a factor of %.3f "
            "together, at a cost of %s\n",
            i == 0 ? "generators" : "          ", list.kind[i],
            (unsigned long long)share[i].considered, (unsigned long long)share[i].measured,
            (unsigned long long)share[i].improvements, exp2(share[i].gain_log2), cost);
    }
    generator_list_release(&list);
}

// Prints where the time went, and for which part of it each device was held.
static void print_time(const struct run_state *run_state)
{
    double seconds[WALL_PART_COUNT], wall = run_state->wall_seconds;
    if (!wall_time_is_recorded(run_state)) {
        printable_printf(stdout, "time        not recorded, by an older kcast\n");
        return;
    }
    wall_time_parts(run_state, seconds);
    const char *before = "time        ";
    for (enum wall_part part = 0; part < WALL_PART_COUNT && wall > 0; part++) {
        if (seconds[part] / wall >= 0.0005) {
            printable_printf(stdout, "%s%s %.1f %%", before, wall_part_text(part),
                             100 * seconds[part] / wall);
            before = ", ";
        }
    }
    printable_printf(stdout, "\n");
    for (size_t i = 0; i < run_state->device_count && i < DEVICES_SHOWN; i++) {
        const struct run_state_device *device = &run_state->device[i];
        printable_printf(stdout, "%s%s%s%s held %.1f %%", i == 0 ? "devices     " : ", ",
                         device->name, device->pool ? " at " : "", device->pool ? device->pool : "",
                         wall > 0 ? 100 * device->held_seconds / wall : 0);
    }
    if (run_state->device_count > 0) {
        printable_printf(stdout, "%s of that time\n",
                         run_state->device_count > DEVICES_SHOWN ? ", and others," : "");
    }
}

static void print_table(const struct run_state *run_state, const char *path)
{
    const struct run_state_candidate *best = run_state_best(run_state);
    struct false_omission missed = false_omission_of_run(run_state);
    struct strbuf text = STRBUF_INIT;
    char seconds[64], wall[64];
    describe_best(run_state, &text);
    char *width = run_width_text(&run_state->started);
    show_seconds(run_state->device_seconds, seconds, sizeof(seconds));
    show_seconds(run_state->wall_seconds, wall, sizeof(wall));
    printable_printf(stdout, "problem     %s on %s\n", run_state->started.problem,
                     run_state->session.device_class ? run_state->session.device_class
                                                     : "an unknown device");
    printable_printf(stdout, "best        %s\n", strbuf_text(&text));
    for (size_t i = 0; best && i < best->proposed.params_count; i++) {
        printable_printf(stdout, "%s%s = %.15g", i == 0 ? "parameters  " : ", ",
                         best->proposed.params[i].name, best->proposed.params[i].value);
    }
    if (best && best->proposed.params_count > 0) {
        printable_printf(stdout, "\n");
    }
    print_counts(run_state);
    print_generators(run_state);
    print_play_off(run_state);
    print_unsealed(run_state);
    print_guarantee(run_state);
    print_trust(run_state);
    if (missed.discarded > 0) {
        printable_printf(stdout, "missed      %s\n", missed.text);
    }
    if (run_state->proposals > 0) {
        printable_printf(
            stdout,
            "proposed    %llu in answers to questions, of which %llu were there already but for "
            "blanks and comments\n",
            (unsigned long long)run_state->proposals, (unsigned long long)run_state->known);
    }
    if (run_state->input_tokens + run_state->output_tokens > 0) {
        printable_printf(stdout, "asked       %llu tokens in, %llu out, at a cost of %.4g\n",
                         (unsigned long long)run_state->input_tokens,
                         (unsigned long long)run_state->output_tokens, run_state->model_cost);
    }
    printable_printf(stdout, "spent       %s of device time, %s in all; ended: %s\n", seconds, wall,
                     run_state->finish_reason ? run_state->finish_reason : "not finished");
    printable_printf(stdout, "under way   %s\n", width);
    print_time(run_state);
    printable_printf(stdout, "\nnext: `kcast report %s -o report.html` shows how it went", path);
    if (best) {
        printable_printf(stdout, "; `kcast export %s` writes the candidates out", path);
    }
    printable_printf(stdout, "\n");
    free(width);
    strbuf_release(&text);
}

int summary_print(const struct session_options *options, const struct run_state *run_state,
                  const char *path)
{
    char seconds[64];
    show_seconds(run_state->device_seconds, seconds, sizeof(seconds));
    struct strbuf text = STRBUF_INIT;
    describe_best(run_state, &text);
    strbuf_addf(&text, "; considered %llu, measured %llu, trusted %llu, %s of device time; %s",
                (unsigned long long)run_state->considered, (unsigned long long)run_state->measured,
                (unsigned long long)run_state->trusted, seconds, path);
    if (options->json) {
        show_print(make_object(run_state, path));
    } else {
        print_table(run_state, path);
        (void)output_flush();
    }
    if (!options->quiet) {
        printable_printf(stderr, "kcast: %s\n", strbuf_text(&text));
    }
    strbuf_release(&text);
    return find_fastest(run_state, true) ? EXIT_OK : EXIT_NEGATIVE;
}

void summary_print_resume(const struct session_options *options, const char *path)
{
    if (!options->quiet) {
        printable_printf(stderr, "kcast: everything so far is kept; go on with `kcast resume %s`\n",
                         path);
    }
}
