// Design. The objects are built as jansson values, so that nesting and escaping cannot go wrong.
// jansson refuses NaN and invalid UTF-8, so every number passes show_number() and every text passes
// text().
#include "client/report/report_json.h"
#include "client/policy/false_omission.h"
#include "client/report/report_text.h"
#include "client/report/run_json.h"
#include "client/report/run_unsealed.h"
#include "client/report/run_width.h"
#include "client/show.h"
#include "proto/verdict.h"
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static json_t *count(uint64_t value)
{
    return json_integer(value <= INT64_MAX ? (json_int_t)value : (json_int_t)INT64_MAX);
}

static json_t *text(const char *value)
{
    return value ? text_json(value, strlen(value)) : json_null();
}

static json_t *message_value(const struct message *message, const void *value)
{
    return value ? message_json_value(message, value) : json_null();
}

static json_t *interval(double low, double high)
{
    json_t *ret = json_array();
    json_array_append_new(ret, show_number(low));
    json_array_append_new(ret, show_number(high));
    return ret;
}

// Sets "speedup", "ci95" and "log2_speedup" of the object from the estimate, which may be NULL.
static void set_speedup(json_t *object, const struct estimate *estimate)
{
    bool known = estimate;
    json_object_set_new(object, "speedup", show_number(known ? exp2(estimate->log2) : NAN));
    json_object_set_new(
        object, "ci95",
        interval(known ? exp2(estimate->lo) : NAN, known ? exp2(estimate->hi) : NAN));
    json_object_set_new(object, "log2_speedup", show_number(known ? estimate->log2 : NAN));
}

static json_t *best_of(const struct report *report)
{
    if (!report->best) {
        return json_null();
    }
    json_t *ret = json_object();
    json_object_set_new(ret, "candidate",
                        count((uint64_t)(report->best - report->run_state->candidate) + 1));
    json_object_set_new(ret, "name", text(report->best->proposed.name));
    json_object_set_new(ret, "source", show_digest(&report->best->proposed.source));
    json_object_set_new(ret, "unsealed", json_boolean(report_result(report->best)->unsealed));
    set_speedup(ret, &report->speedup);
    return ret;
}

static json_t *reliability(const struct report_reliability *from)
{
    json_t *ret = json_object(), *bands = json_array();
    json_object_set_new(ret, "count", count(from->count));
    json_object_set_new(ret, "weight", show_number(from->weight));
    json_object_set_new(ret, "ece", show_number(from->ece));
    json_object_set_new(ret, "brier", show_number(from->brier));
    json_object_set_new(ret, "observed", show_number(from->observed));
    for (size_t i = 0; i < REPORT_BAND_COUNT; i++) {
        const struct report_band *band = &from->band[i];
        if (band->count == 0) {
            continue;
        }
        json_t *row = json_object();
        json_object_set_new(row, "from", show_number((double)i / REPORT_BAND_COUNT));
        json_object_set_new(row, "to", show_number((double)(i + 1) / REPORT_BAND_COUNT));
        json_object_set_new(row, "count", count(band->count));
        json_object_set_new(row, "weight", show_number(band->weight));
        json_object_set_new(row, "forecast", show_number(band->forecast));
        json_object_set_new(row, "observed", show_number(band->observed));
        json_object_set_new(row, "ci95", interval(band->lo, band->hi));
        json_array_append_new(bands, row);
    }
    json_object_set_new(ret, "bands", bands);
    return ret;
}

static json_t *forecasts_of(const struct report *report)
{
    json_t *ret = json_object(), *coverage = json_array();
    json_object_set_new(ret, "made", count(report->run_state->forecasts));
    json_object_set_new(ret, "compared", count(report->pair_count));
    json_object_set_new(ret, "median_error_log2", show_number(report->pair_error));
    json_object_set_new(ret, "rank_correlation", show_number(report->pair_rank));
    for (size_t i = 0; i < REPORT_COVER_COUNT; i++) {
        json_t *row = json_object();
        json_object_set_new(row, "nominal", show_number(report->cover[i].nominal));
        json_object_set_new(row, "inside", count(report->cover[i].inside));
        json_object_set_new(row, "count", count(report->cover[i].count));
        json_array_append_new(coverage, row);
    }
    json_object_set_new(ret, "coverage", coverage);
    json_object_set_new(ret, "correct", reliability(&report->correct));
    json_object_set_new(ret, "call", reliability(&report->call));
    json_object_set_new(ret, "calls_without_record", count(report->calls_without_record));
    return ret;
}

static json_t *against_average_of(const struct report_against_average *against)
{
    json_t *ret = json_object();
    json_object_set_new(ret, "compared", count(against->count));
    json_object_set_new(ret, "closer", count(against->closer));
    json_object_set_new(ret, "closer_ci95", interval(against->lo, against->hi));
    json_object_set_new(ret, "error_log2", show_number(against->error));
    json_object_set_new(ret, "average_error_log2", show_number(against->average_error));
    return ret;
}

static json_t *missed_of(const struct report_missed *missed)
{
    json_t *ret = json_object();
    json_object_set_new(ret, "trusted", count(missed->trusted));
    json_object_set_new(ret, "audited", count(missed->audited));
    json_object_set_new(ret, "improvers", count(missed->improvers));
    json_object_set_new(ret, "unmeasured", count(missed->unmeasured));
    json_object_set_new(ret, "confidence", show_number(FALSE_OMISSION_CONFIDENCE));
    json_object_set_new(ret, "share", show_number(missed->shown ? missed->share : NAN));
    json_object_set_new(ret, "share_at_most", show_number(missed->share_hi));
    json_object_set_new(ret, "estimate", show_number(missed->shown ? missed->estimate : NAN));
    json_object_set_new(ret, "estimate_at_most", show_number(missed->estimate_hi));
    return ret;
}

static json_t *steps_of(const struct report *report)
{
    json_t *ret = json_array();
    for (size_t i = 0; i < report->step_count; i++) {
        const struct report_step *step = &report->step[i];
        const struct estimate estimate = {step->log2, step->lo, step->hi, 0};
        json_t *row = json_object();
        json_object_set_new(row, "device_seconds", show_number(step->seconds));
        json_object_set_new(row, "wall_seconds", show_number(step->wall_seconds));
        json_object_set_new(row, "candidate", count(step->candidate));
        json_object_set_new(row, "considered", count(step->considered));
        json_object_set_new(row, "measured", count(step->measured));
        set_speedup(row, &estimate);
        json_array_append_new(ret, row);
    }
    return ret;
}

static json_t *top_of(const struct report *report)
{
    json_t *ret = json_array();
    for (size_t i = 0; i < report->top_count; i++) {
        const struct run_state_candidate *candidate =
            &report->run_state->candidate[report->top[i] - 1];
        json_t *row = json_object();
        json_object_set_new(row, "candidate", count(report->top[i]));
        json_object_set_new(row, "name", text(candidate->proposed.name));
        json_object_set_new(row, "verdict", text(verdict_name(report_result(candidate)->verdict)));
        json_object_set_new(row, "replicated",
                            json_boolean(report_result(candidate) == candidate->record));
        json_object_set_new(row, "unsealed", json_boolean(report_result(candidate)->unsealed));
        set_speedup(row, report_estimate(candidate));
        json_array_append_new(ret, row);
    }
    return ret;
}

static json_t *fates_of(const struct report *report)
{
    json_t *ret = json_object();
    for (size_t i = 0; i < FATE_COUNT; i++) {
        json_object_set_new(ret, report_fate_name((enum report_fate)i),
                            count(report->fate_count[i]));
    }
    return ret;
}

void report_json(struct strbuf *out, const struct report *report)
{
    const struct run_state *run_state = report->run_state;
    json_t *object = json_object();
    json_object_set_new(object, "problem", text(run_state->started.problem));
    json_object_set_new(object, "search", text(run_state->started.search));
    json_object_set_new(object, "device_class", text(run_state->session.device_class));
    json_object_set_new(object, "sandbox",
                        text(report->sandbox_off ? "off" : run_state->session.sandbox));
    json_object_set_new(object, "finished", json_boolean(run_state->finished));
    json_object_set_new(object, "reason", text(run_state->finish_reason));
    json_object_set_new(object, "best", best_of(report));
    json_object_set_new(object, "counts", run_counts_json(&report->counts));
    json_object_set_new(object, "candidates", count(run_state->candidate_count));
    json_object_set_new(object, "considered", count(run_state->considered));
    json_object_set_new(object, "compiled", count(run_state->compiled_ok));
    json_object_set_new(object, "compile_failed", count(run_state->compile_failed));
    json_object_set_new(object, "forecast", count(run_state->forecasts));
    json_object_set_new(object, "measured", count(run_state->measured));
    json_object_set_new(object, "replicated", count(run_state->records));
    json_object_set_new(object, "trusted", count(run_state->trusted));
    json_object_set_new(object, "audited", count(run_state->audited));
    json_object_set_new(object, "reused", count(run_state->reused));
    json_object_set_new(object, "saving", show_number(report->counts.saving));
    json_object_set_new(object, "device_seconds", show_number(run_state->device_seconds));
    json_object_set_new(object, "compile_seconds", show_number(run_state->compile_seconds));
    json_object_set_new(object, "wall_seconds", show_number(run_state->wall_seconds));
    json_object_set_new(object, "wall", run_json_wall(run_state));
    json_object_set_new(object, "work", run_json_work(run_state));
    json_object_set_new(object, "devices", run_json_devices(run_state));
    json_object_set_new(object, "tally", fates_of(report));
    json_object_set_new(object, "controls", count(report->controls));
    json_object_set_new(object, "controls_off", count(report->controls_off));
    json_object_set_new(object, "guarantee", run_json_guarantee(run_state));
    json_object_set_new(object, "trust", run_json_trust(run_state));
    json_object_set_new(object, "missed", missed_of(&report->missed));
    if (run_state->surveys > 0) { // reports of runs of before stay as they were
        json_object_set_new(object, "left", run_json_left(run_state));
    }
    json_object_set_new(object, "unsealed", run_unsealed_json(run_state));
    if (run_state->play_off.candidates_count > 0) {
        json_object_set_new(object, "play_off", run_json_play_off(run_state));
    }
    json_object_set_new(object, "forecasts", forecasts_of(report));
    json_object_set_new(object, "against_average", against_average_of(&report->against_average));
    json_object_set_new(object, "generators", run_json_generators(run_state));
    if (run_state->started.lag != 0) { // reports of runs of before stay as they were
        json_object_set_new(object, "width", run_width_json(&run_state->started));
    }
    json_object_set_new(object, "steps", steps_of(report));
    json_object_set_new(object, "top", top_of(report));
    show_add_line(out, show_with_schema(object));
}

static const char *decision_name(uint64_t decision)
{
    static const char *const name[] = {NULL, "measure", "trust", "audit", "reuse"};
    return decision < sizeof name / sizeof *name ? name[decision] : NULL;
}

static json_t *params_of(const struct run_proposed *proposed)
{
    json_t *ret = json_object();
    for (size_t i = 0; i < proposed->params_count; i++) {
        struct strbuf key = STRBUF_INIT;
        text_add_utf8(&key, proposed->params[i].name, strlen(proposed->params[i].name));
        json_object_set_new(ret, strbuf_text(&key), show_fact(proposed->params[i].value));
        strbuf_release(&key);
    }
    return ret;
}

static json_t *decided_of(const struct run_decided *decided)
{
    if (decided->decision == 0) {
        return json_null();
    }
    json_t *ret = json_object();
    json_object_set_new(ret, "decision", text(decision_name(decided->decision)));
    json_object_set_new(ret, "propensity", show_number(decided->propensity));
    json_object_set_new(ret, "confidence", show_number(decided->confidence));
    json_object_set_new(ret, "incumbent_log2", show_number(decided->incumbent_log2));
    json_object_set_new(ret, "reason", text(decided->reason));
    return ret;
}

static json_t *number_or_null(uint64_t value)
{
    return value != 0 ? count(value) : json_null();
}

void report_json_candidate(struct strbuf *out, const struct report *report, uint64_t id,
                           const struct bytes *source, const struct err *missing)
{
    const struct run_state *run_state = report->run_state;
    const struct run_state_candidate *candidate = &run_state->candidate[id - 1];
    json_t *object = json_object();
    json_object_set_new(object, "candidate", count(id));
    json_object_set_new(object, "problem", text(run_state->started.problem));
    json_object_set_new(object, "problem_digest", show_digest(&run_state->started.problem_json));
    json_object_set_new(object, "device_class", text(run_state->session.device_class));
    json_object_set_new(object, "name", text(candidate->proposed.name));
    json_object_set_new(object, "parent", number_or_null(candidate->proposed.parent));
    json_object_set_new(object, "params", params_of(&candidate->proposed));
    json_object_set_new(object, "fate", text(report_fate_name(report_fate_of(candidate))));
    json_object_set_new(object, "best", json_boolean(candidate == report->best));
    set_speedup(object, report_estimate(candidate));
    json_object_set_new(object, "same_source_as", number_or_null(candidate->proposed.duplicate_of));
    json_object_set_new(object, "same_object_as", number_or_null(candidate->object_duplicate_of));
    json_object_set_new(object, "measured_order", number_or_null(candidate->measured_order));
    json_object_set_new(
        object, "seconds_before",
        show_number(candidate->measured_order != 0 ? candidate->seconds_before : NAN));
    json_object_set_new(object, "decided", decided_of(&candidate->decided));
    json_object_set_new(object, "forecast", message_value(&forecast_message, candidate->forecast));
    json_object_set_new(object, "forecast_reason", text(candidate->forecast_reason));
    json_object_set_new(object, "compiled", message_value(&compiled_message, candidate->compiled));
    json_object_set_new(object, "result", message_value(&result_message, candidate->result));
    json_object_set_new(object, "record", message_value(&result_message, candidate->record));
    json_object_set_new(object, "source_digest", show_digest(&candidate->proposed.source));
    json_object_set_new(object, "source",
                        source ? text_json((const char *)source->data, source->len) : json_null());
    if (!source) {
        json_object_set_new(object, "source_error", show_error(missing));
    }
    show_add_line(out, show_with_schema(object));
}

// The end of an event's object: the verdict in its body by name, since the body is the message of
// the run file, with numbers of the wire, and the body.
static void add_body(json_t *object, const struct run_event *event)
{
    json_t *body = message_value(event->message, event->body);
    json_t *of = json_object_get(body, "result");
    of = of ? of : json_object_get(body, "compiled");
    const json_t *verdict = json_object_get(of, "verdict");
    if (verdict) {
        json_object_set_new(object, "verdict",
                            text(verdict_name((uint64_t)json_integer_value(verdict))));
    }
    json_object_set_new(object, "body", body);
}

void report_json_event(struct strbuf *out, const struct run_event *event)
{
    json_t *object = json_object();
    json_object_set_new(object, "sequence", count(event->sequence));
    json_object_set_new(object, "at", show_number(event->at));
    json_object_set_new(object, "event", text(run_event_name(event->kind)));
    json_object_set_new(object, "kind", text(run_event_name(event->kind))); // its name from before
    add_body(object, event);
    show_add_line(out, show_with_schema(object));
}

json_t *report_json_event_object(const struct run_event *event)
{
    json_t *object = json_object();
    json_object_set_new(object, "event", text(run_event_name(event->kind)));
    json_object_set_new(object, "sequence", count(event->sequence));
    json_object_set_new(object, "at", show_number(event->at));
    add_body(object, event);
    return object;
}
