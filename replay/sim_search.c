// Design note. The run, its events and the decisions are those of a live search, because the same
// pipeline makes them. Three events that a live search records before its first candidate (start,
// session, baseline) are made here from the head of the space. The caller turns the simulation, and
// sim_search_advance lets the pipeline react to what has happened.
#include "replay/sim_search.h"

#include "client/run/improvement.h"
#include "client/run/run.h"
#include "client/run/run_state.h"
#include "client/search/pipeline.h"
#include "common/mem.h"
#include "common/version.h"
#include "replay/audits.h"
#include "replay/sim_worker.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct sim_search {
    struct sim_search_config config;
    struct sim *sim;
    struct run *run;
    struct run_state run_state;
    struct sim_daemon_search *jobs;
    struct sim_worker *sim_worker;
    struct pipeline *pipeline;
    double ended_at; // simulated seconds; NaN: not done
};

// --- the first events

// Returns a digest for the problem of a space that does not record one.
static struct digest identity_of(const struct space_head *head)
{
    return digest_is_zero(&head->problem_json) ? digest_of(head->problem, strlen(head->problem))
                                               : head->problem_json;
}

static int record_start(struct sim_search *search, struct err *err)
{
    const struct sim_search_config *config = &search->config;
    const struct space_head *head = &recorded_space_data(config->recorded)->head;
    struct digest identity = identity_of(head);
    struct run_started event = {
        .problem = xstrdup(head->problem),
        .problem_json = identity,
        .reference = digest_is_zero(&head->reference) ? identity : head->reference,
        .baseline = digest_is_zero(&head->baseline_source) ? identity : head->baseline_source,
        .generator = xstrdup("space"),
        .strategy = xstrdup(config->strategy),
        .policy = xstrdup(config->policy),
        .confidence = config->confidence,
        .end_confidence = config->end_confidence,
        .audit = config->audit,
        .share = config->share,
        .guarantee = config->guarantee ? xstrdup(config->guarantee) : NULL,
        .alpha = config->alpha,
        .trust_rule = config->trust_by_skill ? RUN_TRUST_SKILL : RUN_TRUST_CALLS,
        .rules = config->rules,
        .delta = config->delta,
        .seed = config->seed,
        .budget_seconds = config->budget_seconds,
        .measurements_max = config->measurements,
        .candidates_max = config->candidates,
        .search = xasprintf("replay-%llu", (unsigned long long)config->seed),
        .started_at = NAN,
        .release = xstrdup(KCAST_VERSION),
        .wall_limit_seconds = NAN,
        .batch = config->batch,
        .pool_devices = config->devices,
        .wide = config->wide,
        .widest = config->widest,
        .lag = config->lag,
    };

    cost_weights_put(&config->weights, &event);
    if (config->warm) {
        int rc = run_put_blob(search->run, config->warm->data, config->warm->len, &event.warm, err);
        if (rc != 0) {
            message_clear(&run_started_message, &event);
            return rc;
        }
    }
    return pipeline_record(search->run, &search->run_state, RUN_STARTED, &event, err);
}

static int record_session(struct sim_search *search, struct err *err)
{
    const struct space_head *head = &recorded_space_data(search->config.recorded)->head;
    struct run_session event = {.pool = xstrdup("replay"),
                                .device_class = xstrdup(head->device_class),
                                .at = NAN,
                                .device_facts_count = head->device_facts_count};

    event.device_facts =
        message_copy_all(&fact_message, head->device_facts, head->device_facts_count);
    return pipeline_record(search->run, &search->run_state, RUN_SESSION, &event, err);
}

static int record_baseline(struct sim_search *search, struct err *err)
{
    const struct space_head *head = &recorded_space_data(search->config.recorded)->head;
    struct run_baseline event = {.compiled = xmalloc(sizeof(*event.compiled))};

    if (head->baseline) {
        message_copy(&compiled_message, event.compiled, head->baseline);
    } else {
        message_init(&compiled_message, event.compiled);
    }
    return pipeline_record(search->run, &search->run_state, RUN_BASELINE, &event, err);
}

// --- a search

int sim_search_create(struct sim_search **ret, struct sim *sim, struct sim_daemon *sim_daemon,
                      const struct sim_search_config *config, struct err *err)
{
    struct sim_search *search = xcalloc(1, sizeof(*search));
    const struct generator *generator = recorded_space_generator(config->recorded);

    search->config = *config;
    search->sim = sim;
    search->ended_at = NAN;
    run_state_init(&search->run_state);
    search->jobs = sim_daemon_search_create(sim_daemon, config->recorded);
    search->sim_worker = sim_worker_create(sim, config->forecaster, config->recorded);
    int rc = run_create_in_memory(&search->run, err);
    if (rc != 0) {
        goto out;
    }
    rc = record_start(search, err);
    if (rc != 0) {
        goto out;
    }
    rc = record_session(search, err);
    if (rc != 0) {
        goto out;
    }
    rc = record_baseline(search, err);
    if (rc != 0) {
        goto out;
    }
    rc = pipeline_create(
        &search->pipeline, search->run, &search->run_state, sim_daemon_search_jobs(search->jobs),
        config->forecasts ? config->forecasts : sim_worker_service(search->sim_worker), NULL,
        &generator, 1, err);
    if (rc != 0) {
        goto out;
    }
    rc = sim_search_advance(search, err);
out:
    if (rc != 0) {
        sim_search_free(search);
        return rc;
    }
    *ret = search;
    return 0;
}

void sim_search_free(struct sim_search *search)
{
    if (search) {
        pipeline_free(search->pipeline);
        sim_worker_free(search->sim_worker);
        sim_daemon_search_free(search->jobs);
        run_state_release(&search->run_state);
        run_close(search->run);
        free(search);
    }
}

bool sim_search_done(const struct sim_search *search)
{
    return !isnan(search->ended_at);
}

int sim_search_advance(struct sim_search *search, struct err *err)
{
    if (sim_search_done(search)) {
        return 0;
    }
    int rc = pipeline_advance(search->pipeline, err);
    if (rc == 0 && sim_worker_failure(search->sim_worker)) {
        return err_set(err, ERR_INTERNAL, "%s", sim_worker_failure(search->sim_worker));
    }
    const char *reason;
    if (rc == 0 && pipeline_done(search->pipeline, &reason)) {
        search->ended_at = sim_now(search->sim);
    }
    return rc;
}

const struct run_state *sim_search_run_state(const struct sim_search *search)
{
    return &search->run_state;
}

// --- its outcome

// Counts the candidates that beat the incumbent of their decision by more than the margin, and
// those of them that were not measured. Only a replay can do this, because the space has all
// results.
static void count_missed(const struct sim_search *search, struct search_outcome *ret)
{
    for (size_t i = 0; i < search->run_state.candidate_count; i++) {
        const struct run_state_candidate *c = &search->run_state.candidate[i];
        const struct space_candidate *truth =
            recorded_space_find(search->config.recorded, &c->proposed.source);
        double log2 = truth ? space_log2(truth) : NAN;
        bool decided = c->decided.decision == DECISION_MEASURE ||
                       c->decided.decision == DECISION_AUDIT ||
                       c->decided.decision == DECISION_TRUST;

        if (decided && log2 > c->decided.incumbent_log2 + IMPROVEMENT_MARGIN_LOG2) {
            ret->improvers++;
            ret->missed += c->decided.decision == DECISION_TRUST;
        }
    }
}

void sim_search_outcome(const struct sim_search *search, struct search_outcome *ret)
{
    const struct run_state *run_state = &search->run_state;

    *ret = (struct search_outcome){
        .considered = run_state->considered,
        .measured = run_state->measured,
        .audited = run_state->audited,
        .trusted = run_state->trusted,
        .records = run_state->records,
        .device_seconds = run_state->device_seconds,
        .compile_seconds = run_state->compile_seconds,
        .seconds = search->ended_at,
        .best_log2 = run_state_incumbent_log2(run_state),
        .survey = {NAN},
        .beyond_log2 = NAN,
        .stated_log2 = NAN,
    };
    for (size_t i = 0; i < run_state->incumbent_count; i++) {
        const struct run_incumbent *event = &run_state->incumbent[i].event;

        search_outcome_add_step(ret, &(struct search_step){.device_seconds = event->device_seconds,
                                                           .log2 = event->speedup->log2,
                                                           .considered = event->considered,
                                                           .measured = event->measured});
    }
    count_missed(search, ret);
    looks_count(sim_worker_looks(search->sim_worker), run_state, ret);
    audits_count(search->config.recorded, run_state, ret);
    guarantee_promises(run_state, run_state->candidate_count, &ret->promised, &ret->kept);
    struct guarantee guarantee = guarantee_of_run(run_state);
    ret->beyond_log2 = guarantee.beyond_log2;
    ret->stated_log2 = guarantee.stated_log2;
    if (run_state->surveyed.expected_count == GUARANTEE_LEVELS &&
        run_state->surveyed.forecast > 0) {
        memcpy(ret->survey, run_state->surveyed.expected, sizeof(ret->survey));
    }
}
