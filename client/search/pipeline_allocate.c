// Decides which generators fill a batch. Usually one generator gives all candidates; of several,
// the one that client/policy/allocation.h chooses. When it has too few left, another one gives the
// rest. A generator that asks comes last, since the number of its candidates is only known when the
// answers have come; as it gives what is missing, there is one at most.
#include "client/policy/allocation.h"
#include "client/propose/prospects.h"
#include "client/search/pipeline_state.h"
#include "common/mem.h"
#include <math.h>
#include <string.h>

#define WARM_START 30 // candidates, at most, that a warm search begins with

struct strategy_view pipeline_view(const struct pipeline *p, uint64_t visible, size_t number)
{
    unsigned given = 0;
    for (size_t i = 0; i < p->generator_count; i++) {
        given |= (unsigned)p->generator[i]->is_files << i;
    }
    return (struct strategy_view){.run_state = p->run_state,
                                  .visible = visible,
                                  .generator = p->generator[number],
                                  .number = number,
                                  .given = given,
                                  .seed = p->run_state->started.seed,
                                  .discards =
                                      p->policy->discards && trust_holds(p->run_state, visible)};
}

// How many candidates the generator has left; UINT64_MAX for one that asks.
static uint64_t left_of(const struct pipeline *p, size_t number, bool asks)
{
    if (p->generator[number]->asks) {
        return asks && (!p->run_state->asking[number].over || p->generator_count == 1) ? UINT64_MAX
                                                                                       : 0;
    }
    struct strategy_view view = pipeline_view(p, 0, number);
    uint64_t made = strategy_proposed(&view), all = p->generator[number]->point_count;
    return made < all ? all - made : 0;
}

void pipeline_plan(const struct pipeline *p, uint64_t batch, uint64_t want, bool asks,
                   struct plan *ret)
{
    uint64_t planned[GENERATOR_LIST_MAX] = {0}, left[GENERATOR_LIST_MAX];
    uint64_t next_candidate = p->run_state->candidate_count + 1;
    *ret = (struct plan){.parts = 0};
    bool gone[GENERATOR_LIST_MAX];
    for (size_t i = 0; i < p->generator_count; i++) {
        left[i] = left_of(p, i, asks);
        gone[i] = left[i] == 0;
    }
    while (want > 0) {
        size_t chosen = p->generator_count > 1
                            ? allocation_choose(p->run_state, visible_from(p, batch),
                                                p->generator_count, gone, planned, next_candidate)
                            : gone[0];
        if (chosen == p->generator_count) {
            return;
        }
        uint64_t count = left[chosen] < want ? left[chosen] : want;
        ret->part[ret->parts].generator = chosen;
        ret->part[ret->parts++].count = count;
        planned[chosen] = count;
        gone[chosen] = true; // if candidates are still wanted, it has no more
        want -= count;
        next_candidate += count;
    }
}

int pipeline_record_choice(struct pipeline *p, size_t number, const struct strategy_choice *choice,
                           uint64_t screened, struct err *err)
{
    return pipeline_record_drawn(p, number, choice, screened, 0, NAN, err);
}

int pipeline_record_drawn(struct pipeline *p, size_t number, const struct strategy_choice *choice,
                          uint64_t screened, uint64_t draw, double probability, struct err *err)
{
    const struct generator *generator = p->generator[number];
    struct strbuf source = STRBUF_INIT, name;
    struct run_proposed event = {
        .candidate = p->run_state->candidate_count + 1,
        .parent = choice->parent,
        .point = choice->point + 1,
        .generator = number,
        .screened = screened,
        .draw = draw,
        .draw_probability = probability,
    };
    strbuf_init(&name, 1024);
    generator->ops->source(generator, choice->point, &source);
    generator->ops->name(generator, choice->point, &name);
    event.params_count = generator->ops->params(generator, choice->point, &event.params);
    event.source_facts_count = pipeline_warm_fact(p, number, choice->point, &event.source_facts);
    event.name = strbuf_detach(&name);
    int rc = pipeline_record_proposal(p, &event, strbuf_text(&source), source.len, err);
    strbuf_release(&source);
    return rc;
}

size_t pipeline_warm_fact(const struct pipeline *p, size_t number, size_t point, struct fact **ret)
{
    double log2 = p->warm && number == p->warm_generator ? warm_log2(p->warm, point) : NAN;
    *ret = NULL;
    if (isnan(log2)) {
        return 0;
    }
    *ret = xcalloc(1, sizeof(**ret));
    **ret = (struct fact){.name = xstrdup(WARM_FACT), .value = log2};
    return 1;
}

bool pipeline_is_warm(const struct pipeline *p, const struct strategy_view *view)
{
    return p->warm && view->number == p->warm_generator && warm_holds(p->warm, view);
}

// Chooses points without a screening: those that a warm search begins with, those that are spread
// over the space before the first screening, or the strategy's. Only the last may be fewer.
static size_t choose(const struct pipeline *p, const struct strategy_view *view, size_t want,
                     struct strategy_choice *out)
{
    bool begins = !p->screening.complete && strategy_proposed(view) < WARM_START;
    size_t count = begins && pipeline_is_warm(p, view) ? warm_choose(p->warm, view, want, out) : 0;
    if (count > 0) {
        return count;
    }
    return (pipeline_spreads(p, view->visible, view->number)
                ? prospects_spread
                : p->strategy->choose)(view, want, out);
}

// Records `want` candidates of a generator: what a screening has chosen, and for the rest what is
// spread over the space before the first screening, or what the strategy chooses.
static int record_part(struct pipeline *p, uint64_t visible, size_t number, size_t want,
                       struct err *err)
{
    struct strategy_choice choice[RUN_BATCH_MAX];
    struct strategy_view view = pipeline_view(p, visible, number);
    size_t screened = 0, count = 0;
    int rc = p->screening.complete ? pipeline_record_screened(p, want, &screened, err) : 0;
    if (rc == 0 && screened < want) {
        count = choose(p, &view, want - screened, choice);
    }
    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = pipeline_record_choice(p, number, &choice[i], 0, err);
        rc = rc == 0 ? pipeline_record_ignorance(p, err) : rc;
    }
    return rc;
}

int pipeline_record_plan(struct pipeline *p, uint64_t batch, const struct plan *plan,
                         struct err *err)
{
    int rc = 0;
    for (size_t part = 0; part < plan->parts && rc == 0; part++) {
        size_t number = plan->part[part].generator;
        if (!p->generator[number]->asks) {
            rc = record_part(p, pipeline_proposal_visible(p, batch), number,
                             (size_t)plan->part[part].count, err);
        }
    }
    return rc;
}

char *pipeline_exhausted_reason(const struct pipeline *p)
{
    return xstrdup(p->generator_count > 1  ? "no generator has more candidates"
                   : p->generator[0]->asks ? "no more new candidates came"
                                           : "every candidate considered");
}
