// Design. Each question is one pass over the candidates of the run state, in their order.
// Everything follows from the run state alone, so the same run gives the same report. Two readings
// need care:
//
//  A number that a message does not give is NaN. estimate_usable() decides whether an estimate can
// be shown.
//
//  The horizontal axis of the chart is device-seconds. A candidate's point stands where its first
// measurement arrived (seconds_before and what it took itself). A step of the best speedup stands
// where the replication of the new best arrived (event.device_seconds).
#include "client/report/report.h"
#include "client/report/report_model.h"
#include "client/report/report_quality.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    const char *meaning;
} fates[FATE_COUNT] = {
#define X(id, name_, text) [FATE_##id] = {name_, text},
    REPORT_FATES(X)
#undef X
};

const char *report_fate_name(enum report_fate fate)
{
    return fates[fate].name;
}

const char *report_fate_meaning(enum report_fate fate)
{
    return fates[fate].meaning;
}

static enum report_fate fate_of_verdict(uint64_t verdict)
{
    switch (verdict) {
    case VERDICT_FASTER:
        return FATE_FASTER;
    case VERDICT_SLOWER:
        return FATE_SLOWER;
    case VERDICT_EQUIVALENT:
        return FATE_EQUIVALENT;
    case VERDICT_INCONCLUSIVE:
        return FATE_INCONCLUSIVE;
    case VERDICT_WRONG:
        return FATE_WRONG;
    case VERDICT_COMPILE_ERROR:
        return FATE_COMPILE_ERROR;
    case VERDICT_CRASH:
        return FATE_CRASH;
    case VERDICT_TIMEOUT:
        return FATE_TIMEOUT;
    case VERDICT_REJECTED:
        return FATE_REJECTED;
    case VERDICT_QUARANTINED:
        return FATE_QUARANTINED;
    default:
        return FATE_PENDING;
    }
}

enum report_fate report_fate_of(const struct run_state_candidate *candidate)
{
    if (candidate->result) {
        return fate_of_verdict(candidate->result->verdict);
    }
    if (candidate->proposed.duplicate_of != 0) {
        return FATE_SAME_SOURCE;
    }
    if (candidate->given_up) {
        return FATE_LOST;
    }
    if (candidate->compiled && candidate->compiled->verdict != VERDICT_NONE) {
        return candidate->compiled->verdict == VERDICT_REJECTED ? FATE_REJECTED
                                                                : FATE_COMPILE_ERROR;
    }
    if (candidate->object_duplicate_of != 0 || candidate->decided.decision == DECISION_REUSE) {
        return FATE_SAME_OBJECT;
    }
    if (candidate->decided.decision == DECISION_TRUST) {
        return FATE_TRUSTED;
    }
    return FATE_PENDING;
}

static bool estimate_usable(const struct result *result)
{
    return result && verdict_is_ratio(result->verdict) && result->speedup &&
           isfinite(result->speedup->log2);
}

const struct estimate *report_estimate(const struct run_state_candidate *candidate)
{
    if (estimate_usable(candidate->record)) {
        return candidate->record->speedup;
    }
    return estimate_usable(candidate->result) ? candidate->result->speedup : NULL;
}

const struct result *report_result(const struct run_state_candidate *candidate)
{
    return estimate_usable(candidate->record) ? candidate->record : candidate->result;
}

static void add_steps(struct report *report)
{
    const struct run_state *run_state = report->run_state;
    report->step = xcalloc(run_state->incumbent_count + 1, sizeof *report->step);
    report->step_count = 1; // the baseline
    for (size_t i = 0; i < run_state->incumbent_count; i++) {
        const struct run_incumbent *event = &run_state->incumbent[i].event;
        if (!event->speedup || !isfinite(event->speedup->log2)) {
            continue;
        }
        const struct report_step *before = &report->step[report->step_count - 1];
        report->step[report->step_count] = (struct report_step){
            .seconds = isfinite(event->device_seconds) ? event->device_seconds : before->seconds,
            .wall_seconds = event->wall_seconds,
            .log2 = event->speedup->log2,
            .lo = event->speedup->lo,
            .hi = event->speedup->hi,
            .candidate = event->candidate,
            .considered = event->considered,
            .measured = event->measured,
        };
        report->step_count++;
    }
    report->best = run_state_best(run_state);
    const struct run_incumbent *last =
        run_state->incumbent_count > 0 ? &run_state->incumbent[run_state->incumbent_count - 1].event
                                       : NULL;
    if (report->best && last && last->speedup) {
        report->speedup = *last->speedup;
    } else {
        report->best = NULL;
    }
}

static int by_order(const void *a, const void *b)
{
    const struct run_state_candidate *left = *(const struct run_state_candidate *const *)a;
    const struct run_state_candidate *right = *(const struct run_state_candidate *const *)b;
    return (left->measured_order > right->measured_order) -
           (left->measured_order < right->measured_order);
}

// Device-seconds that the search had spent when the candidate's first measurement arrived.
static double arrival_seconds(const struct run_state_candidate *candidate)
{
    const struct accounts *seconds = candidate->result->seconds;
    return candidate->seconds_before + (seconds && seconds->held > 0 ? seconds->held : 0);
}

static void add_measured(struct report *report)
{
    const struct run_state *run_state = report->run_state;
    const struct run_state_candidate **order =
        xcalloc(run_state->candidate_count + 1, sizeof *order);
    size_t count = 0;
    for (size_t i = 0; i < run_state->candidate_count; i++) {
        if (run_state->candidate[i].result) {
            order[count++] = &run_state->candidate[i];
        }
    }
    qsort(order, count, sizeof *order, by_order);
    report->measured = xcalloc(count + 1, sizeof *report->measured);
    report->measured_count = count;
    for (size_t i = 0; i < count; i++) {
        const struct estimate *speedup =
            estimate_usable(order[i]->result) ? order[i]->result->speedup : NULL;
        report->any_correct |= speedup ? 1 : 0;
        report->measured[i] = (struct report_measured){
            .candidate = (uint64_t)(order[i] - run_state->candidate) + 1,
            .seconds = arrival_seconds(order[i]),
            .log2 = speedup ? speedup->log2 : NAN,
            .lo = speedup ? speedup->lo : NAN,
            .hi = speedup ? speedup->hi : NAN,
            .fate = report_fate_of(order[i]),
            .audit = order[i]->decided.decision == DECISION_AUDIT,
        };
    }
    free(order);
}

static void add_progress(struct report *report)
{
    const struct run_state *run_state = report->run_state;
    report->progress = xcalloc(run_state->candidate_count + 1, sizeof *report->progress);
    report->progress_count = 1;
    struct report_progress now = {0, 0};
    for (size_t i = 0; i < run_state->candidate_count; i++) {
        now.considered += !run_state_is_replaced(&run_state->candidate[i]);
        now.measured += run_state->candidate[i].result ? 1 : 0;
        report->progress[report->progress_count++] = now;
    }
}

// Inserts the candidate into the table behind all that are better. The incumbent stays on top.
static void insert_top(struct report *report, const struct run_state_candidate *candidate)
{
    const struct run_state *run_state = report->run_state;
    double log2_speedup = report_estimate(candidate)->log2;
    size_t place = report->top_count;
    while (place > 0) {
        const struct run_state_candidate *above = &run_state->candidate[report->top[place - 1] - 1];
        if (above == report->best || report_estimate(above)->log2 >= log2_speedup) {
            break;
        }
        place--;
    }
    if (place == REPORT_BEST_MAX) {
        return;
    }
    if (report->top_count < REPORT_BEST_MAX) {
        report->top_count++;
    }
    memmove(&report->top[place + 1], &report->top[place],
            (report->top_count - 1 - place) * sizeof *report->top);
    report->top[place] = (uint64_t)(candidate - run_state->candidate) + 1;
}

static void add_top(struct report *report)
{
    const struct run_state *run_state = report->run_state;
    if (report->best) {
        report->top[report->top_count++] = (uint64_t)(report->best - run_state->candidate) + 1;
    }
    for (size_t i = 0; i < run_state->candidate_count; i++) {
        if (&run_state->candidate[i] != report->best && report_estimate(&run_state->candidate[i])) {
            insert_top(report, &run_state->candidate[i]);
        }
    }
}

// Results that have a control of their own; a device's control stands in every result until it is
// renewed.
struct controls {
    const struct result **of; // owned
    size_t count;
};

static bool is_same_control(const struct result *a, const struct result *b)
{
    return a->control->log2 == b->control->log2 && a->control->lo == b->control->lo &&
           a->control->hi == b->control->hi && a->device && b->device &&
           strcmp(a->device, b->device) == 0;
}

static void count_control(struct report *report, struct controls *controls,
                          const struct result *result)
{
    for (size_t i = controls->count; i > 0; i--) { // most often it is the last one
        if (is_same_control(controls->of[i - 1], result)) {
            return;
        }
    }
    controls->of = xgrow(controls->of, controls->count, sizeof(*controls->of));
    controls->of[controls->count++] = result;
    report->controls++;
    report->controls_off += result->control->lo > 0 || result->control->hi < 0;
}

static void count_result(struct report *report, struct controls *controls,
                         const struct result *result)
{
    if (!result) {
        return;
    }
    const struct estimate *control = result->control;
    if (control && isfinite(control->lo) && isfinite(control->hi)) {
        count_control(report, controls, result);
    }
    report->sandbox_off |= result->sandbox && strcmp(result->sandbox, "off") == 0;
}

static void count_fates(struct report *report)
{
    const struct run_state *run_state = report->run_state;
    struct controls controls = {.of = NULL};
    report->sandbox_off =
        run_state->session.sandbox && strcmp(run_state->session.sandbox, "off") == 0;
    for (size_t i = 0; i < run_state->candidate_count; i++) {
        const struct run_state_candidate *candidate = &run_state->candidate[i];
        report->fate_count[report_fate_of(candidate)] += !run_state_is_replaced(candidate);
        count_result(report, &controls, candidate->result);
        count_result(report, &controls, candidate->record);
        const struct compiled *compiled = candidate->compiled;
        report->sandbox_off |=
            compiled && compiled->sandbox && strcmp(compiled->sandbox, "off") == 0;
    }
    free(controls.of);
}

void report_init(struct report *report, const struct run_state *run_state)
{
    memset(report, 0, sizeof *report);
    report->run_state = run_state;
    add_steps(report);
    add_measured(report);
    add_progress(report);
    add_top(report);
    count_fates(report);
    report->counts = run_counts_of(run_state);
    report_add_pairs(report);
    report_add_reliability(report);
    report_add_missed(report);
    report_add_against_average(report);
}

void report_release(struct report *report)
{
    free(report->step);
    free(report->measured);
    free(report->progress);
    free(report->pair);
    memset(report, 0, sizeof *report);
}
