// Spaces from runs. A run file keeps everything; a space keeps what a replay of the search needs.
#include "client/run/run_state.h"
#include "client/space/space.h"
#include "common/mem.h"
#include "common/version.h"
#include "proto/verdict.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Reduces a number to single precision. The other half of a double's bits is noise here and does
// not compress.
static double cut(double value)
{
    return (double)(float)value;
}

static void cut_facts(struct fact *fact, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        fact[i].value = cut(fact[i].value);
    }
}

static void cut_estimate(struct estimate *estimate)
{
    if (estimate) {
        estimate->log2 = cut(estimate->log2);
        estimate->lo = cut(estimate->lo);
        estimate->hi = cut(estimate->hi);
    }
}

static void cut_quantiles(struct quantiles *quantiles)
{
    if (quantiles) {
        quantiles->p10 = cut(quantiles->p10);
        quantiles->p50 = cut(quantiles->p50);
        quantiles->p90 = cut(quantiles->p90);
    }
}

static void cut_accounts(struct accounts *seconds)
{
    if (seconds) {
        double *all[] = {&seconds->queue,  &seconds->compile, &seconds->start, &seconds->inputs,
                         &seconds->verify, &seconds->time,    &seconds->held,  &seconds->wait};

        for (size_t i = 0; i < ARRAY_LEN(all); i++) {
            *all[i] = cut(*all[i]);
        }
    }
}

static void drop_text(char **text)
{
    free(*text);
    *text = NULL;
}

static struct compiled *cut_compiled(const struct compiled *from)
{
    struct compiled *ret = xmalloc(sizeof(*ret));

    message_copy(&compiled_message, ret, from);
    cut_facts(ret->features, ret->features_count);
    ret->seconds = cut(ret->seconds);
    ret->cached = false;
    drop_text(&ret->log);
    drop_text(&ret->toolchain);
    drop_text(&ret->sandbox);
    return ret;
}

static struct result *cut_result(const struct result *from)
{
    struct result *ret = xmalloc(sizeof(*ret));

    message_copy(&result_message, ret, from);
    cut_estimate(ret->speedup);
    cut_quantiles(ret->baseline_ns);
    cut_quantiles(ret->candidate_ns);
    for (size_t i = 0; i < ret->cases_count; i++) {
        cut_estimate(ret->cases[i].speedup);
        cut_quantiles(ret->cases[i].baseline_ns);
        cut_quantiles(ret->cases[i].candidate_ns);
        ret->cases[i].floor_ns = cut(ret->cases[i].floor_ns);
    }
    cut_accounts(ret->seconds);
    ret->max_error = cut(ret->max_error);
    ret->overhead_ns = cut(ret->overhead_ns);
    ret->measured_at = NAN;
    ret->cached = false;
    ret->seed = ret->attempt = 0;
    ret->problem = ret->candidate = (struct digest){{0}};
    drop_text(&ret->device);
    drop_text(&ret->device_class);
    drop_text(&ret->clock);
    drop_text(&ret->output_tail);
    if (ret->compiled) {
        message_clear(&compiled_message, ret->compiled);
        free(ret->compiled);
        ret->compiled = NULL;
    }
    if (ret->control) {
        message_clear(&estimate_message, ret->control);
        free(ret->control);
        ret->control = NULL;
    }
    for (size_t i = 0; i < ret->conditions_count; i++) {
        message_clear(&fact_message, &ret->conditions[i]);
    }
    free(ret->conditions);
    ret->conditions = NULL;
    ret->conditions_count = 0;
    return ret;
}

static bool has_outcome(const struct run_state_candidate *c)
{
    bool failed = c->compiled && c->compiled->verdict != VERDICT_NONE;

    return c->proposed.duplicate_of == 0 && (c->result || failed);
}

// The candidate whose result stands for this one: itself, or the first one with the same object.
static const struct run_state_candidate *measured_of(const struct run_state *run_state,
                                                     const struct run_state_candidate *c)
{
    return c->object_duplicate_of != 0 ? &run_state->candidate[c->object_duplicate_of - 1] : c;
}

static int add_candidate(struct space *space, struct run *run, const struct run_state *run_state,
                         const struct run_state_candidate *c, struct err *err)
{
    struct space_candidate *ret = &space->candidate[space->head.candidates];
    const struct run_state_candidate *measured = measured_of(run_state, c);

    message_init(&space_candidate_message, ret);
    ret->name = c->proposed.name && c->proposed.name[0] != '\0'
                    ? xstrdup(c->proposed.name)
                    : xasprintf("candidate-%llu", (unsigned long long)c->proposed.candidate);
    ret->point = c->proposed.point;
    ret->digest = c->proposed.source;
    ret->params_count = c->proposed.params_count;
    ret->params = message_copy_all(&fact_message, c->proposed.params, ret->params_count);
    if (c->compiled) {
        ret->compiled = cut_compiled(c->compiled);
    }
    if (measured->result) {
        ret->result = cut_result(measured->result);
    }
    if (measured->record) {
        ret->record = cut_result(measured->record);
    }
    space->head.candidates++;
    return space->head.template_source.len > 0 ? 0
                                               : run_get_blob(run, &ret->digest, &ret->source, err);
}

static int make_head(struct space_head *head, struct run *run, const struct run_state *run_state,
                     struct err *err)
{
    const struct run_started *started = &run_state->started;

    message_init(&space_head_message, head);
    head->format = SPACE_FORMAT;
    head->problem = xstrdup(started->problem);
    head->device_class =
        xstrdup(run_state->session.device_class ? run_state->session.device_class : "unknown");
    head->device_facts_count = run_state->session.device_facts_count;
    head->device_facts =
        message_copy_all(&fact_message, run_state->session.device_facts, head->device_facts_count);
    head->problem_json = started->problem_json;
    head->reference = started->reference;
    head->baseline_source = started->baseline;
    head->baseline = run_state->baseline ? cut_compiled(run_state->baseline) : NULL;
    head->origin = xstrdup(started->search);
    head->recorded_at = run_state->first_at;
    head->release = started->release ? xstrdup(started->release) : xstrdup(KCAST_VERSION);
    // With several generators some candidates are not points of the template, so each keeps its
    // source.
    return digest_is_zero(&started->template_source) || strcmp(started->generator, "tunable") != 0
               ? 0
               : run_get_blob(run, &started->template_source, &head->template_source, err);
}

// Adds the source that everything is compared with, if the run has it.
static int add_baseline(struct space_head *head, struct run *run, struct err *err)
{
    struct err why = ERR_INIT;
    int rc = digest_is_zero(&head->baseline_source)
                 ? ERR_NOT_FOUND
                 : run_get_blob(run, &head->baseline_source, &head->baseline_text, &why);
    if (rc != 0) {
        head->baseline_text = (struct bytes){0};
    }
    return rc == 0 || rc == ERR_NOT_FOUND ? 0 : err_set(err, why.code, "%s", why.text);
}

static int by_name(const void *a, const void *b)
{
    const struct space_candidate *const *left = a, *const *right = b;
    int order = strcmp((*left)->name, (*right)->name);

    return order != 0 ? order : (*left > *right) - (*left < *right);
}

// A run tells candidates apart by number, so two may have the same name. In the space the later one
// gets its number behind the name.
static void make_names_unique(struct space *space)
{
    size_t count = (size_t)space->head.candidates;
    struct space_candidate **sorted = xcalloc(count + 1, sizeof(*sorted));

    for (size_t i = 0; i < count; i++) {
        sorted[i] = &space->candidate[i];
    }
    qsort(sorted, count, sizeof(*sorted), by_name);
    char *first = NULL;
    for (size_t i = 0; i < count; i++) {
        if (first && strcmp(first, sorted[i]->name) == 0) {
            char *name =
                xasprintf("%.1000s #%zu", first, (size_t)(sorted[i] - space->candidate) + 1);
            free(sorted[i]->name);
            sorted[i]->name = name;
        } else {
            first = sorted[i]->name;
        }
    }
    free(sorted);
}

static int add_candidates(struct space *space, struct run *run, const struct run_state *run_state,
                          struct err *err)
{
    space->candidate = xcalloc(run_state->candidate_count + 1, sizeof(*space->candidate));
    for (size_t i = 0; i < run_state->candidate_count; i++) {
        const struct run_state_candidate *c = &run_state->candidate[i];
        if (!has_outcome(c) &&
            (c->proposed.duplicate_of != 0 || !has_outcome(measured_of(run_state, c)))) {
            continue;
        }
        int rc = add_candidate(space, run, run_state, c, err);
        if (rc != 0) {
            return rc;
        }
    }
    if (space->head.candidates == 0) {
        return err_set(err, ERR_INVALID, "the run has measured nothing");
    }
    make_names_unique(space);
    return 0;
}

static int make_space(struct space *space, struct run *run, const struct run_state *run_state,
                      struct err *err)
{
    if (!run_state->started.problem) {
        return err_set(err, ERR_INVALID, "the run has not started");
    }
    int rc = make_head(&space->head, run, run_state, err);
    if (rc != 0) {
        return rc;
    }
    rc = add_baseline(&space->head, run, err);
    if (rc != 0) {
        return rc;
    }
    return add_candidates(space, run, run_state, err);
}

int space_of_run(struct space *ret, struct run *run, struct err *err)
{
    struct space space = {.candidate = NULL};
    struct run_state run_state;
    run_state_init(&run_state);
    int rc = run_state_read(&run_state, run, err);
    if (rc == 0) {
        rc = make_space(&space, run, &run_state, err);
    }
    run_state_release(&run_state);
    if (rc != 0) {
        space_release(&space);
        return rc;
    }
    *ret = space;
    return 0;
}
