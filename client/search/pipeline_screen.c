// Batches whose candidates are screened: many points that nobody has compiled are forecast by their
// parameters alone, and those that promise most are proposed. It begins when enough outcomes are
// visible; where no forecasts come, the search's strategy chooses.
//
// What a point promises is its expected improvement on the incumbent per device-second that
// measuring it is expected to take. It counts less the nearer the point lies to candidates whose
// outcomes are not known yet, and to those that were just chosen, since they will tell much the
// same. A share of the places goes to points at random, so that the search leaves nothing out for
// ever.
//
// Everything that was not proposed stays: each screening draws its points anew, and compares them by
// what is known then. What was proposed has its forecast from then and gets no second one. The
// screening of batch k sees what the batch's decisions will see (pipeline.c): it waits until batch
// k - 1 has its forecasts and the worker was told the outcomes of batches up to seen(k) and of no
// others.
#include "client/propose/prospects.h"
#include "client/search/pipeline_state.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>

#define SCREENING_MAX 512 // points of one screening: what a request for forecasts may have
#define OUTCOMES_LEAST 16 // visible outcomes without which nothing is screened
#define EXPLORE 0.1       // share of places that go to points at random
#define NEAR 0.35         // distance within which points tell the same, where each axis is 0 to 1
#define STREAM_COIN 0x73637265ULL
#define STREAM_POINT 0x73637270ULL

static bool enough_outcomes(const struct pipeline *p, uint64_t visible)
{
    uint64_t count = 0;
    for (uint64_t id = 1; id <= visible && count < OUTCOMES_LEAST; id++) {
        count += candidate_of(p, id)->result ? 1 : 0;
    }
    return count == OUTCOMES_LEAST;
}

bool pipeline_screens(const struct pipeline *p, uint64_t batch, const struct plan *plan)
{
    return p->policy->screens && !p->forecasts->absent && plan->parts == 1 &&
           p->generator[plan->part[0].generator]->axis_count > 0 &&
           enough_outcomes(p, visible_from(p, batch));
}

bool pipeline_may_screen(const struct pipeline *p, uint64_t batch)
{
    return !p->forecasts->busy && p->forecast + 1 >= batch && p->told_batch >= seen_by(p, batch);
}

void pipeline_clear_screening(struct pipeline *p)
{
    for (size_t i = 0; i < p->screening.count; i++) {
        struct forecast *forecast = p->screening.prospect[i].forecast;
        if (forecast) {
            message_clear(&forecast_message, forecast);
            free(forecast);
        }
    }
    free(p->screening.prospect);
    p->screening = (struct screening){0};
}

static struct strategy_view view_of(const struct pipeline *p)
{
    return pipeline_view(p, p->screening.visible, p->screening.plan.part[0].generator);
}

// ---- promises ----

// Has points count less the nearer they lie to this position.
static void discount(struct screening *screening, size_t axes, const double *position)
{
    for (size_t i = 0; i < screening->count; i++) {
        struct prospect *prospect = &screening->prospect[i];
        double square = 0;
        for (size_t axis = 0; axis < axes; axis++) {
            double difference = prospect->position[axis] - position[axis];
            square += difference * difference;
        }
        prospect->promise *= 1 - exp(-square / (NEAR * NEAR));
    }
}

// Discounts for every candidate whose outcome is not known yet.
static void discount_pending(struct pipeline *p)
{
    struct strategy_view view = view_of(p);
    double position[GENERATOR_AXIS_MAX];
    size_t point;
    for (uint64_t id = p->screening.visible + 1; id <= p->run_state->candidate_count; id++) {
        if (strategy_point(&view, id, &point)) {
            view.generator->ops->position(view.generator, point, position);
            discount(&p->screening, view.generator->axis_count, position);
        }
    }
}

static void on_screened(void *owner, struct forecast_reply *reply, const char *reason)
{
    struct pipeline *p = owner;
    struct screening *screening = &p->screening;
    struct measure_cost cost = policy_cost(p->run_state, screening->visible);
    (void)reason; // every candidate's own forecast says it, too
    screening->complete = true;
    for (size_t i = 0; reply && i < reply->forecasts_count; i++) {
        struct forecast *forecast = &reply->forecasts[i];
        if (forecast->id >= 1 && forecast->id <= screening->count && policy_usable(forecast) &&
            forecast->trained_rows > 0) {
            struct prospect *prospect = &screening->prospect[forecast->id - 1];
            prospect->promise = forecast->expected_improvement / policy_seconds(&cost, forecast);
            prospect->forecast = xmemdup(forecast, sizeof(*forecast));
            *forecast = (struct forecast){0};
            screening->known += isfinite(prospect->promise);
        }
    }
    discount_pending(p);
}

// ---- asking ----

static void fill_prospects(struct pipeline *p, const struct strategy_view *view,
                           struct candidate_facts *facts)
{
    struct screening *screening = &p->screening;
    struct strategy_choice choice[SCREENING_MAX];
    const struct generator *generator = view->generator;
    screening->count = prospects_choose(view, screening->batch, SCREENING_MAX, choice);
    screening->prospect = xcalloc(screening->count + 1, sizeof(*screening->prospect));
    for (size_t i = 0; i < screening->count; i++) {
        struct prospect *prospect = &screening->prospect[i];
        prospect->choice = choice[i];
        prospect->promise = NAN;
        generator->ops->position(generator, choice[i].point, prospect->position);
        facts[i].id = i + 1;
        facts[i].params_count =
            generator->ops->params(generator, choice[i].point, &facts[i].params);
    }
}

void pipeline_screen(struct pipeline *p, uint64_t batch, const struct plan *plan)
{
    struct candidate_facts *facts = xcalloc(SCREENING_MAX, sizeof(*facts));
    struct screening *screening = &p->screening;
    *screening = (struct screening){.under_way = true,
                                    .plan = *plan,
                                    .batch = batch,
                                    .visible = visible_from(p, batch),
                                    .asked_at = pipeline_now(p)};
    struct strategy_view view = view_of(p);
    fill_prospects(p, &view, facts);
    p->forecasts->screen(p->forecasts, p->run_state, facts, screening->count, screening->visible,
                         on_screened, p);
    for (size_t i = 0; i < screening->count; i++) {
        message_clear(&candidate_facts_message, &facts[i]);
    }
    free(facts);
}

// ---- choosing ----

// The free point that promises most or, by chance, the next free one from a random place on.
static struct prospect *find(const struct screening *screening, const struct strategy_view *view,
                             uint64_t slot)
{
    bool chance = strategy_uniform(view, STREAM_COIN, slot) < EXPLORE;
    size_t start = (size_t)(strategy_uniform(view, STREAM_POINT, slot) * (double)screening->count);
    struct prospect *best = NULL;
    for (size_t i = 0; i < screening->count; i++) {
        struct prospect *prospect = &screening->prospect[(start + i) % screening->count];
        if (!prospect->taken && isfinite(prospect->promise) &&
            (!best || (!chance && prospect->promise > best->promise))) {
            best = prospect;
        }
    }
    return best;
}

static struct prospect *take(struct pipeline *p)
{
    struct strategy_view view = view_of(p);
    struct prospect *best = find(&p->screening, &view, p->run_state->candidate_count + 1);
    if (best) {
        best->taken = true;
        discount(&p->screening, view.generator->axis_count, best->position);
    }
    return best;
}

// Records the forecast by which the last candidate was chosen, unless nothing more happens to it.
static int record_forecast(struct pipeline *p, struct prospect *prospect, struct err *err)
{
    const struct run_proposed *proposed = &candidate_of(p, p->run_state->candidate_count)->proposed;
    if (proposed->duplicate_of != 0) {
        return 0;
    }
    struct run_forecast event = {.candidate = proposed->candidate,
                                 .forecast = prospect->forecast,
                                 .incumbent_log2 =
                                     run_state_incumbent_before(p->run_state, p->screening.visible),
                                 .asked_at = p->screening.asked_at};
    prospect->forecast = NULL;
    event.forecast->id = event.candidate;
    return pipeline_append(p, RUN_FORECAST, &event, err);
}

int pipeline_record_screened(struct pipeline *p, size_t want, size_t *ret, struct err *err)
{
    struct prospect *prospect;
    int rc = 0;
    for (*ret = 0; rc == 0 && *ret < want && (prospect = take(p)); ++*ret) {
        rc = pipeline_record_choice(p, p->screening.plan.part[0].generator, &prospect->choice,
                                    p->screening.known, err);
        if (rc == 0) {
            rc = record_forecast(p, prospect, err);
        }
    }
    return rc;
}
