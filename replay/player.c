#include "replay/player.h"
#include "client/run/improvement.h"
#include "client/run/run.h"
#include "client/run/run_state.h"
#include "client/search/pipeline.h"
#include "common/mem.h"
#include "common/version.h"
#include "replay/sim_worker.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct player {
    struct player_config config;
    struct sim *sim;
    struct run *run;
    struct run_state run_state;
    struct sim_daemon_search *jobs;
    struct sim_worker *sim_worker;
    struct pipeline *pipeline;
    double ended_at; // simulated; NaN: not yet
};

// ---- the first events ----

static struct digest identity_of(const struct space_head *head)
{
    return digest_is_zero(&head->problem_json) ? digest_of(head->problem, strlen(head->problem))
                                               : head->problem_json;
}

static int record_start(struct player *player, struct err *err)
{
    const struct player_config *config = &player->config;
    const struct space_head *head = &catalogue_space(config->catalogue)->head;
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
        .audit = config->audit,
        .share = config->share,
        .guarantee = config->guarantee ? xstrdup(config->guarantee) : NULL,
        .alpha = config->alpha,
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
        .wide = config->wide,
    };

    return pipeline_record(player->run, &player->run_state, RUN_STARTED, &event, err);
}

static int record_session(struct player *player, struct err *err)
{
    const struct space_head *head = &catalogue_space(player->config.catalogue)->head;
    struct run_session event = {.pool = xstrdup("replay"),
                                .device_class = xstrdup(head->device_class),
                                .at = NAN,
                                .device_facts_count = head->device_facts_count};

    event.device_facts = xcalloc(head->device_facts_count + 1, sizeof(*event.device_facts));
    for (size_t i = 0; i < head->device_facts_count; i++) {
        message_copy(&fact_message, &event.device_facts[i], &head->device_facts[i]);
    }
    return pipeline_record(player->run, &player->run_state, RUN_SESSION, &event, err);
}

static int record_baseline(struct player *player, struct err *err)
{
    const struct space_head *head = &catalogue_space(player->config.catalogue)->head;
    struct run_baseline event = {.compiled = xmalloc(sizeof(*event.compiled))};

    if (head->baseline) {
        message_copy(&compiled_message, event.compiled, head->baseline);
    } else {
        message_init(&compiled_message, event.compiled);
    }
    return pipeline_record(player->run, &player->run_state, RUN_BASELINE, &event, err);
}

// ---- a search ----

int player_create(struct player **ret, struct sim *sim, struct sim_daemon *sim_daemon,
                  const struct player_config *config, struct err *err)
{
    struct player *player = xcalloc(1, sizeof(*player));
    const struct generator *generator = catalogue_generator(config->catalogue);

    player->config = *config;
    player->sim = sim;
    player->ended_at = NAN;
    run_state_init(&player->run_state);
    player->jobs = sim_daemon_search_create(sim_daemon, config->catalogue);
    player->sim_worker = sim_worker_create(sim, config->surrogate);
    int rc = run_create_in_memory(&player->run, err);
    if (rc != 0) {
        goto out;
    }
    rc = record_start(player, err);
    if (rc != 0) {
        goto out;
    }
    rc = record_session(player, err);
    if (rc != 0) {
        goto out;
    }
    rc = record_baseline(player, err);
    if (rc != 0) {
        goto out;
    }
    rc = pipeline_create(&player->pipeline, player->run, &player->run_state,
                         sim_daemon_search_jobs(player->jobs),
                         sim_worker_service(player->sim_worker), NULL, &generator, 1, err);
    if (rc != 0) {
        goto out;
    }
    rc = player_advance(player, err);
out:
    if (rc != 0) {
        player_free(player);
        return rc;
    }
    *ret = player;
    return 0;
}

void player_free(struct player *player)
{
    if (player) {
        pipeline_free(player->pipeline);
        sim_worker_free(player->sim_worker);
        sim_daemon_search_free(player->jobs);
        run_state_release(&player->run_state);
        run_close(player->run);
        free(player);
    }
}

bool player_done(const struct player *player)
{
    return !isnan(player->ended_at);
}

int player_advance(struct player *player, struct err *err)
{
    if (player_done(player)) {
        return 0;
    }
    int rc = pipeline_advance(player->pipeline, err);
    if (rc == 0 && sim_worker_failure(player->sim_worker)) {
        return err_set(err, ERR_INTERNAL, "%s", sim_worker_failure(player->sim_worker));
    }
    const char *reason;
    if (rc == 0 && pipeline_done(player->pipeline, &reason)) {
        player->ended_at = sim_now(player->sim);
    }
    return rc;
}

// ---- what came of it ----

// Who knows the space knows what was missed.
static void count_missed(const struct player *player, struct player_outcome *ret)
{
    for (size_t i = 0; i < player->run_state.candidate_count; i++) {
        const struct run_state_candidate *c = &player->run_state.candidate[i];
        const struct space_candidate *truth =
            catalogue_find(player->config.catalogue, &c->proposed.source);
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

void player_outcome(const struct player *player, struct player_outcome *ret)
{
    const struct run_state *run_state = &player->run_state;

    *ret = (struct player_outcome){
        .considered = run_state->considered,
        .measured = run_state->measured,
        .audited = run_state->audited,
        .trusted = run_state->trusted,
        .records = run_state->records,
        .device_seconds = run_state->device_seconds,
        .compile_seconds = run_state->compile_seconds,
        .seconds = player->ended_at,
        .best_log2 = run_state_incumbent_log2(run_state),
    };
    for (size_t i = 0; i < run_state->incumbent_count; i++) {
        const struct run_incumbent *event = &run_state->incumbent[i].event;

        ret->steps += ret->steps < PLAYER_STEPS_MAX;
        ret->step[ret->steps - 1] = (struct player_step){.device_seconds = event->device_seconds,
                                                         .log2 = event->speedup->log2,
                                                         .considered = event->considered,
                                                         .measured = event->measured};
    }
    count_missed(player, ret);
}

const struct player_step *player_step_to(const struct player_outcome *outcome, double log2)
{
    for (size_t i = 0; i < outcome->steps && log2 > 0; i++) {
        if (outcome->step[i].log2 >= log2) {
            return &outcome->step[i];
        }
    }
    return NULL;
}

double player_reached(const struct player_outcome *outcome, double log2)
{
    const struct player_step *step = player_step_to(outcome, log2);

    return step ? step->device_seconds : log2 <= 0 ? 0 : INFINITY;
}
