// The survey: at the end of a search everything that was never measured is forecast once more, by
// its parameters, with all that was learnt, and against the final incumbent. From it the last
// audits are drawn, and client/policy/guarantee.h says by it what may have been missed.
//
// Audits are drawn one after the other, without putting back, each with a probability of its own
// that is logged: three quarters of it are the same for all that are left, one goes by what they
// promise, so that the best discards are likely to be measured and every one may be
// (client/policy/certify.h). Where screenings choose, they are drawn from the points that were
// never proposed, as long as there are any, elsewhere from the candidates whose forecast was
// trusted.
#include "client/policy/certify.h"
#include "client/policy/guarantee.h"
#include "client/propose/prospects.h"
#include "client/search/pipeline_state.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SURVEY_MAX 4096 // of one survey; more are drawn at random, neighbours of the best first
#define REQUEST_MAX 512 // of one request for forecasts
#define DRAW_SURVEY (UINT64_C(1) << 40) // prospects_choose's number of the first survey's points
#define STREAM_DRAW 0x61756472ULL

struct surveyed_item {
    uint64_t candidate; // 0: a point that was never proposed
    size_t generator;
    struct strategy_choice choice; // of that point
    struct forecast *forecast;     // owned; NULL: none
    double promise;                // expected improvement, log2; 0 without a forecast
    uint64_t draw;                 // place among the audits; 0: not drawn
    double probability;            // of that draw
    bool reached;                  // see last_reached; of a candidate
    bool drawable;
};

struct survey {
    struct surveyed_item *item;
    size_t count, unmeasured;
    size_t asked; // items 0 … asked - 1 were asked for
    double beyond_log2[GUARANTEE_LEVELS], expected[GUARANTEE_LEVELS];
    size_t forecast;
    double uniform; // share of a draw's probability that is the same for all
    char *obstacle;
    bool busy, complete;
};

void pipeline_clear_survey(struct pipeline *p)
{
    struct survey *survey = p->survey;
    for (size_t i = 0; survey && i < survey->count; i++) {
        if (survey->item[i].forecast) {
            message_clear(&forecast_message, survey->item[i].forecast);
            free(survey->item[i].forecast);
        }
    }
    if (survey) {
        free(survey->item);
        free(survey->obstacle);
        free(survey);
    }
    p->survey = NULL;
}

// ---- what was never measured ----

// The last candidate that was decided about before a limit ended the search. Which of those after
// it have compiled by then depends on what is fast, so that counts for nothing.
static uint64_t last_reached(const struct pipeline *p)
{
    uint64_t last = searched_count(p);
    while (p->stop && last > 0 && candidate_of(p, last)->decided.decision == 0) {
        last--;
    }
    return last;
}

// Whether the candidate may yet be measured, and nothing is known of what would come of it.
static bool is_unmeasured(const struct run_state_candidate *candidate, bool reached)
{
    return !candidate->result && !candidate->given_up && candidate->proposed.duplicate_of == 0 &&
           !is_measuring(candidate) &&
           (!reached || (candidate->object_duplicate_of == 0 && candidate->compiled &&
                         candidate->compiled->verdict == VERDICT_NONE));
}

static struct surveyed_item *add_item(struct survey *survey)
{
    survey->unmeasured++;
    if (survey->count == SURVEY_MAX) {
        return NULL;
    }
    survey->item[survey->count] = (struct surveyed_item){.candidate = 0};
    return &survey->item[survey->count++];
}

static void add_candidates(const struct pipeline *p, struct survey *survey)
{
    uint64_t reached = last_reached(p), searched = searched_count(p);
    for (uint64_t id = 1; id <= p->run_state->candidate_count; id++) {
        bool counts = (id <= reached || id > searched) && !candidate_of(p, id)->put_off;
        struct surveyed_item *item =
            is_unmeasured(candidate_of(p, id), counts) ? add_item(survey) : NULL;
        if (item) {
            item->candidate = id;
            item->reached = counts;
            item->generator = (size_t)candidate_of(p, id)->proposed.generator;
        }
    }
}

static void add_point(struct survey *survey, size_t number, const struct strategy_choice *choice)
{
    struct surveyed_item *item = add_item(survey);
    if (item) {
        item->generator = number;
        item->choice = *choice;
    }
}

// Adds the points of a generator that were never proposed; where there are too many, the neighbours
// of the best and random ones.
static void add_points(const struct pipeline *p, struct survey *survey, size_t number)
{
    struct strategy_view view = pipeline_view(p, p->run_state->candidate_count, number);
    size_t all = view.generator->point_count, room = SURVEY_MAX - survey->count;
    size_t left = all - (size_t)strategy_proposed(&view);
    if (left > room) {
        struct strategy_choice *choice = xcalloc(room + 1, sizeof(*choice));
        size_t count = prospects_choose(
            &view, DRAW_SURVEY + 2 * p->run_state->extensions + p->run_state->surveys, room,
            choice);
        for (size_t i = 0; i < count; i++) {
            add_point(survey, number, &choice[i]);
        }
        survey->unmeasured += left - count;
        free(choice);
        return;
    }
    bool *taken = strategy_taken(&view);
    for (size_t point = 0; point < all; point++) {
        if (!taken[point]) {
            add_point(survey, number, &(struct strategy_choice){.point = point});
        }
    }
    free(taken);
}

static struct survey *find_unmeasured(const struct pipeline *p)
{
    struct survey *survey = xcalloc(1, sizeof(*survey));
    survey->item = xcalloc(SURVEY_MAX, sizeof(*survey->item));
    guarantee_levels(survey->beyond_log2);
    add_candidates(p, survey);
    for (size_t i = 0; i < p->generator_count; i++) {
        if (!p->generator[i]->asks) {
            add_points(p, survey, i);
        }
    }
    return survey;
}

// ---- asking ----

// The promise of a candidate that has no new forecast is that of its old one, beyond the incumbent
// of now.
static double old_promise(const struct pipeline *p, const struct surveyed_item *item)
{
    const struct forecast *forecast =
        item->candidate > 0 ? candidate_of(p, item->candidate)->forecast : NULL;
    double promise =
        policy_usable(forecast)
            ? policy_expected_improvement(forecast, run_state_incumbent_log2(p->run_state))
            : 0;
    return promise > 0 ? promise : 0;
}

// Takes a forecast over. p of the margins are taken to be independent, so that no more than
// -log(1 - p) of each has to be added up.
static void take_forecast(struct survey *survey, struct surveyed_item *item,
                          struct forecast *forecast)
{
    if (!policy_usable(forecast) || forecast->trained_rows == 0 ||
        forecast->p_beyond_count != GUARANTEE_LEVELS) {
        return;
    }
    for (size_t i = 0; i < GUARANTEE_LEVELS; i++) {
        double below = 1 - fmin(fmax(forecast->p_beyond[i], 0), 1);
        survey->expected[i] -= log(fmax(below, 1e-6));
    }
    item->promise = fmax(forecast->expected_improvement, 0);
    item->forecast = xmemdup(forecast, sizeof(*forecast));
    *forecast = (struct forecast){0};
    survey->forecast++;
}

static void on_surveyed(void *owner, struct forecast_reply *reply, const char *reason)
{
    struct pipeline *p = owner;
    struct survey *survey = p->survey;
    survey->busy = false;
    if (!reply) {
        survey->obstacle = xstrdup(reason ? reason : "the worker did not say why");
        survey->complete = true;
        return;
    }
    for (size_t i = 0; i < reply->forecasts_count; i++) {
        struct forecast *forecast = &reply->forecasts[i];
        if (forecast->id >= 1 && forecast->id <= survey->count) {
            take_forecast(survey, &survey->item[forecast->id - 1], forecast);
        }
    }
}

// Fills in what is known of an item. False: it is not a point of a generator that is screened.
static bool fill_facts(const struct pipeline *p, size_t number, struct candidate_facts *ret)
{
    const struct surveyed_item *item = &p->survey->item[number];
    const struct generator *generator = p->generator[item->generator];
    size_t point = item->choice.point;
    *ret = (struct candidate_facts){.id = number + 1};
    if (!generator_is_comparable(generator)) {
        return false;
    }
    if (item->candidate > 0) {
        struct strategy_view view = pipeline_view(p, 0, item->generator);
        if (!strategy_point(&view, item->candidate, &point)) {
            return false;
        }
    }
    pipeline_fill_facts(p, item->generator, point, ret);
    return ret->params_count > 0 || ret->source_facts_count > 0;
}

// Asks for the next items.
static void ask(struct pipeline *p)
{
    struct survey *survey = p->survey;
    struct candidate_facts *facts = xcalloc(REQUEST_MAX, sizeof(*facts));
    size_t count = 0;
    for (; survey->asked < survey->count && count < REQUEST_MAX; survey->asked++) {
        if (fill_facts(p, survey->asked, &facts[count])) {
            count++;
        } else {
            message_clear(&candidate_facts_message, &facts[count]);
        }
    }
    survey->complete = count == 0;
    if (count > 0) {
        survey->busy = true;
        p->forecasts->screen(p->forecasts, p->run_state, facts, count,
                             p->run_state->candidate_count, survey->beyond_log2, GUARANTEE_LEVELS,
                             on_surveyed, p);
    }
    for (size_t i = 0; i < count; i++) {
        message_clear(&candidate_facts_message, &facts[i]);
    }
    free(facts);
}

bool pipeline_survey(struct pipeline *p)
{
    if (!p->survey) {
        p->survey = find_unmeasured(p);
        p->survey->complete = p->survey->count == 0;
    }
    struct survey *survey = p->survey;
    if (!survey->complete && !survey->busy && !p->forecasts->busy) {
        ask(p);
    }
    return survey->complete;
}

// ---- drawing ----

// Draws one of the items that are left; NULL: none are.
static struct surveyed_item *draw_one(const struct pipeline *p, uint64_t draw)
{
    struct survey *survey = p->survey;
    double left = 0, promise = 0;
    for (size_t i = 0; i < survey->count; i++) {
        const struct surveyed_item *item = &survey->item[i];
        if (item->drawable && item->draw == 0) {
            left++;
            promise += item->promise;
        }
    }
    double uniform = survey->uniform, chance = 0;
    uint64_t place = (p->run_state->extensions << 32) + draw; // each end draws anew
    double at =
        (double)(stats_philox(p->run_state->started.seed, STREAM_DRAW, place) >> 11) * 0x1p-53;
    struct surveyed_item *drawn = NULL;
    for (size_t i = 0; i < survey->count && (!drawn || chance <= at); i++) {
        struct surveyed_item *item = &survey->item[i];
        if (item->drawable && item->draw == 0) {
            item->probability = uniform / left;
            item->probability += (1 - uniform) * (promise > 0 ? item->promise / promise : 1 / left);
            chance += item->probability;
            drawn = item;
        }
    }
    return drawn;
}

// Records that a candidate that exists already is measured.
static int record_redecision(struct pipeline *p, const struct surveyed_item *item, struct err *err)
{
    const struct run_state_candidate *candidate = candidate_of(p, item->candidate);
    double confidence = candidate->decided.decision != 0 ? candidate->decided.confidence
                        : candidate->forecast            ? candidate->forecast->confidence
                                                         : NAN;
    struct run_decided event = {
        .candidate = item->candidate,
        .decision = DECISION_AUDIT,
        .propensity = item->probability,
        .confidence = confidence,
        .incumbent_log2 = run_state_incumbent_log2(p->run_state),
        .threshold = NAN,
        .draw = item->draw,
        .reason = xstrdup("drawn as an audit, at the end, from what was never measured")};
    return pipeline_append(p, RUN_DECIDED, &event, err);
}

// Records a point as a candidate that is to be measured, with its forecast.
static int record_point(struct pipeline *p, struct surveyed_item *item, struct err *err)
{
    int rc = pipeline_record_drawn(p, item->generator, &item->choice, p->survey->forecast,
                                   item->draw, item->probability, err);
    uint64_t id = p->run_state->candidate_count;
    if (rc != 0 || !item->forecast || candidate_of(p, id)->proposed.duplicate_of != 0) {
        return rc;
    }
    struct run_forecast event = {.candidate = id,
                                 .forecast = item->forecast,
                                 .incumbent_log2 = run_state_incumbent_log2(p->run_state),
                                 .asked_at = NAN};
    item->forecast = NULL;
    event.forecast->id = id;
    return pipeline_append(p, RUN_FORECAST, &event, err);
}

static int by_draw(const void *a, const void *b)
{
    const struct surveyed_item *left = a, *right = b;
    return (left->draw > right->draw) - (left->draw < right->draw);
}

// Settles what may be drawn and what each promises. Returns how many may be. *ret_points: they are
// points that were never proposed.
static size_t find_drawable(const struct pipeline *p, struct survey *survey, bool *ret_points)
{
    bool points = false;
    size_t count = 0;
    survey->uniform = 1;
    for (size_t i = 0; i < survey->count && pipeline_draws_points(p); i++) {
        points |= survey->item[i].candidate == 0;
    }
    for (size_t i = 0; i < survey->count; i++) {
        struct surveyed_item *item = &survey->item[i];
        item->promise = item->forecast ? item->promise : old_promise(p, item);
        item->drawable = points ? item->candidate == 0 : item->reached;
        count += item->drawable;
        survey->uniform =
            item->drawable && item->promise > 0 ? CERTIFY_DRAW_UNIFORM : survey->uniform;
    }
    *ret_points = points;
    return count;
}

int pipeline_record_survey(struct pipeline *p, uint64_t audits, uint64_t points_max,
                           struct err *err)
{
    struct survey *survey = p->survey;
    uint64_t count = 0, population;
    bool points;
    struct surveyed_item *item;
    population = find_drawable(p, survey, &points);
    audits = points && audits > points_max ? points_max : audits;
    while (count < audits && (item = draw_one(p, count + 1))) {
        item->draw = ++count;
    }
    struct run_surveyed event = {
        .after = p->run_state->candidate_count,
        .unmeasured = survey->unmeasured,
        .population = population,
        .forecast = survey->forecast,
        .audits = count,
        .incumbent_log2 = run_state_incumbent_log2(p->run_state),
        .beyond_log2 = xmemdup(survey->beyond_log2, sizeof(survey->beyond_log2)),
        .beyond_log2_count = GUARANTEE_LEVELS,
        .expected = xmemdup(survey->expected, sizeof(survey->expected)),
        .expected_count = GUARANTEE_LEVELS,
        .reason = xstrdup(p->stop ? p->stop : p->exhausted),
        .stopped = p->stop,
        .obstacle = survey->obstacle,
        .uniform = survey->uniform,
    };
    survey->obstacle = NULL;
    int rc = run_begin(p->run, err);
    if (rc == 0) {
        rc = pipeline_append(p, RUN_SURVEYED, &event, err);
    } else {
        message_clear(&run_surveyed_message, &event);
    }
    qsort(survey->item, survey->count, sizeof(*survey->item), by_draw);
    for (size_t i = survey->count - count; rc == 0 && i < survey->count; i++) {
        rc = survey->item[i].candidate > 0 ? record_redecision(p, &survey->item[i], err)
                                           : record_point(p, &survey->item[i], err);
    }
    rc = pipeline_commit(p, rc, err);
    pipeline_clear_survey(p);
    return rc;
}
