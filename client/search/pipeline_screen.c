// Batches whose candidates are screened: many points that nobody has compiled are forecast by their
// parameters or, where they have none, by facts about their sources (problem/source_facts.h), and
// those that promise most are proposed. It begins when enough outcomes are visible; until then
// points are spread over the space, so that the model sees every value of every parameter. Where no
// forecasts come, the search's strategy chooses. If that is because the worker can say nothing of
// any point yet, it could say nothing of what they compile to, either: it is not asked again, and
// the next batch need not wait until they have compiled.
//
// What a point promises is its expected improvement on the incumbent over what compiling and
// measuring it is expected to cost (client/policy/costs.h). It counts less the nearer the point
// lies to candidates whose outcomes are not known yet, and to those that were just chosen, since
// they will tell much the same. A share of the places goes to points at random, so that the search
// leaves nothing out for ever.
//
// With an end_confidence the search ends when no point is worth its cost now. A point is not worth
// its cost when the probability that it improves on the incumbent is at most 1 - end_confidence;
// one that costs twice what a candidate has cost on average needs twice the probability. Screenings
// promise too much, since the best of many forecasts was chosen for its errors, too: the
// probability is the forecast's times what earlier promises of this search have come to
// (client/policy/guarantee.h).
//
// Everything that was not proposed stays: each screening draws its points anew, and compares them
// by what is known then. The best that it passes over are among the points of the next one, so that
// in a space of more points than a screening has none that promises much is lost from sight; they
// are in the log (run_screened). What was proposed has its forecast from then and gets no second
// one. The screening of batch k sees what the batch's decisions will see (pipeline.c): it waits
// until batch k - 1 has its forecasts and the worker was told the outcomes of batches up to seen(k)
// and of no others.
#include "client/policy/costs.h"
#include "client/policy/guarantee.h"
#include "client/propose/prospects.h"
#include "client/search/pipeline_state.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include "problem/source_facts.h"
#include <math.h>
#include <stdlib.h>

#define SCREENING_MAX 512 // points of one screening: what a request for forecasts may have
#define OUTCOMES_LEAST 16 // visible outcomes without which nothing is screened
#define WARM_MAX 64       // of these, the best ones elsewhere
#define HANDED_ON_MAX 64  // of these, the best ones that the last screening passed over
#define EXPLORE 0.1       // share of places that go to points at random
#define NEAR 0.35         // distance within which points tell the same, where each axis is 0 to 1
#define STREAM_COIN 0x73637265ULL
#define STREAM_POINT 0x73637270ULL

bool pipeline_knows_enough(const struct pipeline *p, uint64_t visible)
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
           generator_is_comparable(p->generator[plan->part[0].generator]) &&
           pipeline_knows_enough(p, visible_from(p, batch));
}

bool pipeline_spreads(const struct pipeline *p, uint64_t visible, size_t number)
{
    return p->policy->screens && !p->forecasts->absent && p->generator[number]->axis_count > 0 &&
           !pipeline_knows_enough(p, visible);
}

uint64_t pipeline_proposal_sees(const struct pipeline *p, uint64_t batch)
{
    uint64_t seen = seen_by(p, batch), most = p->run_state->started.measurements_max;
    bool ahead = (p->run_state->started.rules & RUN_RULE_AHEAD) && p->generator_count == 1 &&
                 !p->generator[0]->asks && !p->warm && p->batches.past == 0 &&
                 pipeline_spreads(p, 0, 0) && batch_end(p, seen) < OUTCOMES_LEAST &&
                 (most == 0 || batch_end(p, batch) <= most);
    return ahead ? 0 : seen;
}

uint64_t pipeline_proposal_visible(const struct pipeline *p, uint64_t batch)
{
    return batch_last(p, pipeline_proposal_sees(p, batch));
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
    free(p->screening.ignorance);
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
        prospect->promise *= axes == 0 ? 1 : 1 - exp(-square / (NEAR * NEAR));
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

// Why the worker can say nothing of any of so many points, malloc'd; NULL when it can, or does not
// say why not.
static char *ignorance_of(const struct forecast_reply *reply, size_t count)
{
    if (!reply || reply->forecasts_count < count || count == 0) {
        return NULL;
    }
    for (size_t i = 0; i < reply->forecasts_count; i++) {
        const struct forecast *forecast = &reply->forecasts[i];
        if (!(forecast->confidence <= 0) || forecast->trained_rows > 0 || !forecast->reason) {
            return NULL;
        }
    }
    return xstrdup(reply->forecasts[0].reason);
}

static void on_screened(void *owner, struct forecast_reply *reply, const char *reason)
{
    struct pipeline *p = owner;
    struct screening *screening = &p->screening;
    struct measure_cost cost = measure_cost_fit(p->run_state, screening->visible);
    struct cost_weights weights = cost_weights_of(&p->run_state->started);
    double usual = cost_usual(p->run_state, screening->visible, &weights, false);
    (void)reason; // every candidate's own forecast says it, too
    screening->complete = true;
    screening->ignorance = ignorance_of(reply, screening->count);
    for (size_t i = 0; reply && i < reply->forecasts_count; i++) {
        struct forecast *forecast = &reply->forecasts[i];
        if (forecast->id >= 1 && forecast->id <= screening->count && policy_usable(forecast) &&
            forecast->trained_rows > 0) {
            struct prospect *prospect = &screening->prospect[forecast->id - 1];
            double price =
                measure_cost_expect(&cost, &weights, forecast, prospect->compile_seconds);
            prospect->promise = prospect->alone = forecast->expected_improvement / price;
            screening->worth =
                fmax(screening->worth, forecast->p_improves * (usual > 0 ? usual / price : 1));
            prospect->forecast = xmemdup(forecast, sizeof(*forecast));
            *forecast = (struct forecast){0};
            screening->known += isfinite(prospect->promise);
        }
    }
    guarantee_promises(p->run_state, screening->visible, &screening->promised, &screening->kept);
    discount_pending(p);
}

bool pipeline_screening_pays(const struct pipeline *p)
{
    const struct screening *screening = &p->screening;
    const struct run_started *started = &p->run_state->started;
    double end = started->end_confidence, worth = screening->worth;
    if (started->rules & RUN_RULE_KEPT_PROMISES) {
        worth *= guarantee_correction(screening->promised, screening->kept);
    }
    return !(end > 0) || screening->known == 0 || worth > 1 - end;
}

// Tells the compile times of these points which compilations are visible.
static struct compile_times *gather_compilations(struct pipeline *p,
                                                 const struct strategy_view *view)
{
    struct compile_times **times = &p->compile_times[view->number];
    if (!*times) {
        *times = compile_times_create(view->generator->axis_count);
    }
    compile_times_begin(*times);
    for (uint64_t id = 1; id <= view->visible; id++) {
        const struct compiled *compiled = candidate_of(p, id)->compiled;
        size_t point;
        if (compiled && compiled->seconds > 0 && strategy_point(view, id, &point)) {
            double *position = compile_times_add(*times, id, compiled->seconds);
            if (position) {
                view->generator->ops->position(view->generator, point, position);
            }
        }
    }
    return *times;
}

// ---- asking ----

static void fill_source_facts(const struct pipeline *p, const struct generator *generator,
                              size_t point, struct candidate_facts *facts)
{
    struct strbuf source = STRBUF_INIT;
    generator->ops->source(generator, point, &source);
    facts->source_facts_count =
        source_facts(strbuf_text(&source), source.len, p->problem, &facts->source_facts);
    strbuf_release(&source);
}

// Adds a point unless it is one of the first so many. A parent that is known now takes the place of
// the one of before.
static size_t add_choice(const struct strategy_choice *choice, size_t first, size_t count,
                         struct strategy_choice *out)
{
    for (size_t i = 0; i < first; i++) {
        if (out[i].point == choice->point) {
            out[i].parent = choice->parent != 0 ? choice->parent : out[i].parent;
            return count;
        }
    }
    out[count] = *choice;
    return count + 1;
}

// Adds what the last screening of this generator's points has handed on, as far as it is free.
static size_t add_handed_on(const struct pipeline *p, const struct strategy_view *view,
                            size_t count, struct strategy_choice *out)
{
    const struct run_screened *last = &p->run_state->screened[view->number];
    bool *taken = strategy_taken(view);
    size_t first = count;
    for (size_t i = 0; i < last->points_count; i++) {
        size_t point = (size_t)last->points[i];
        if (point < view->generator->point_count && !taken[point]) {
            struct strategy_choice choice = {.point = point, .parent = last->parents[i]};
            count = add_choice(&choice, first, count, out);
        }
    }
    free(taken);
    return count;
}

// The best ones elsewhere of a warm search, what the last screening has handed on, and then those
// of client/propose/prospects.h.
static size_t choose_prospects(const struct pipeline *p, const struct strategy_view *view,
                               struct strategy_choice *out)
{
    struct strategy_choice more[SCREENING_MAX];
    size_t first = pipeline_is_warm(p, view) ? warm_choose(p->warm, view, WARM_MAX, out) : 0;
    bool hands_on = p->run_state->started.rules & RUN_RULE_HANDED_ON;
    first = add_handed_on(p, view, first, out);
    // So many that there are enough without those that are there already.
    size_t n = prospects_choose(view, p->screening.batch,
                                hands_on ? SCREENING_MAX : SCREENING_MAX - first, more);
    size_t count = first;
    for (size_t i = 0; i < n && count < SCREENING_MAX; i++) {
        count = add_choice(&more[i], first, count, out);
    }
    return count;
}

void pipeline_fill_facts(const struct pipeline *p, size_t number, size_t point,
                         struct candidate_facts *facts)
{
    const struct generator *generator = p->generator[number];
    facts->params_count = generator->ops->params(generator, point, &facts->params);
    facts->source_facts_count = pipeline_warm_fact(p, number, point, &facts->source_facts);
    if (facts->params_count == 0) {
        fill_source_facts(p, generator, point, facts);
    }
}

static void fill_prospects(struct pipeline *p, const struct strategy_view *view,
                           struct candidate_facts *facts)
{
    struct screening *screening = &p->screening;
    struct strategy_choice choice[SCREENING_MAX];
    const struct generator *generator = view->generator;
    screening->count = choose_prospects(p, view, choice);
    screening->prospect = xcalloc(screening->count + 1, sizeof(*screening->prospect));
    struct compile_times *times = gather_compilations(p, view);
    for (size_t i = 0; i < screening->count; i++) {
        struct prospect *prospect = &screening->prospect[i];
        prospect->choice = choice[i];
        prospect->promise = NAN;
        generator->ops->position(generator, choice[i].point, prospect->position);
        prospect->compile_seconds =
            compile_times_expect(times, choice[i].point, prospect->position);
        facts[i].id = i + 1;
        pipeline_fill_facts(p, view->number, choice[i].point, &facts[i]);
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
                         NULL, 0, on_screened, p);
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

// Records what is known of the last candidate since it was chosen, unless nothing more happens to
// it: a forecast, which is taken, or, where forecast is NULL, why there is none.
static int record_forecast(struct pipeline *p, struct forecast **forecast, const char *reason,
                           struct err *err)
{
    const struct run_proposed *proposed = &candidate_of(p, p->run_state->candidate_count)->proposed;
    if (proposed->duplicate_of != 0) {
        return 0;
    }
    struct run_forecast event = {.candidate = proposed->candidate,
                                 .incumbent_log2 =
                                     run_state_incumbent_before(p->run_state, p->screening.visible),
                                 .asked_at = p->screening.asked_at};
    if (forecast) {
        event.forecast = *forecast;
        event.forecast->id = event.candidate;
        *forecast = NULL;
    } else {
        event.reason = xstrdup(reason);
    }
    return pipeline_append(p, RUN_FORECAST, &event, err);
}

int pipeline_record_ignorance(struct pipeline *p, struct err *err)
{
    bool wanted = p->screening.ignorance && (p->run_state->started.rules & RUN_RULE_IGNORANT);
    return wanted ? record_forecast(p, NULL, p->screening.ignorance, err) : 0;
}

static int by_promise_alone(const void *a, const void *b)
{
    const struct prospect *left = *(struct prospect *const *)a,
                          *right = *(struct prospect *const *)b;
    if (left->alone != right->alone) {
        return left->alone > right->alone ? -1 : 1;
    }
    return (left->choice.point > right->choice.point) - (left->choice.point < right->choice.point);
}

// Records the best points that were not chosen, for the next screening.
static int record_handed_on(struct pipeline *p, struct err *err)
{
    const struct screening *screening = &p->screening;
    if (!(p->run_state->started.rules & RUN_RULE_HANDED_ON) || screening->known == 0) {
        return 0;
    }
    struct prospect **left = xcalloc(screening->count, sizeof(*left));
    size_t count = 0;
    for (size_t i = 0; i < screening->count; i++) {
        struct prospect *prospect = &screening->prospect[i];
        if (!prospect->taken && isfinite(prospect->promise)) {
            left[count++] = prospect;
        }
    }
    qsort(left, count, sizeof(struct prospect *), by_promise_alone);
    count = count < HANDED_ON_MAX ? count : HANDED_ON_MAX;
    struct run_screened event = {
        .generator = screening->plan.part[0].generator,
        .known = screening->known,
        .points = xcalloc(count + 1, sizeof(*event.points)),
        .points_count = count,
        .parents = xcalloc(count + 1, sizeof(*event.parents)),
        .parents_count = count,
        .worth = screening->worth,
        .promised = screening->promised,
        .kept = screening->kept,
    };
    for (size_t i = 0; i < count; i++) {
        event.points[i] = left[i]->choice.point;
        event.parents[i] = left[i]->choice.parent;
    }
    free(left);
    return pipeline_append(p, RUN_SCREENED, &event, err);
}

int pipeline_record_screened(struct pipeline *p, size_t want, size_t *ret, struct err *err)
{
    struct prospect *prospect;
    int rc = 0;
    for (*ret = 0; rc == 0 && *ret < want && (prospect = take(p)); ++*ret) {
        rc = pipeline_record_choice(p, p->screening.plan.part[0].generator, &prospect->choice,
                                    p->screening.known, err);
        if (rc == 0) {
            rc = record_forecast(p, &prospect->forecast, NULL, err);
        }
    }
    return rc == 0 ? record_handed_on(p, err) : rc;
}
