// Decides which generators fill a batch. Usually one generator gives all candidates; of several,
// the one that client/policy/allocation.h chooses. When it has too few left, another one gives the
// rest. The generator that asks the worker comes last, since the number of its candidates is only
// known when the worker has answered.
#include "client/policy/allocation.h"
#include "client/search/pipeline_state.h"
#include "common/mem.h"
#include <math.h>
#include <string.h>

struct strategy_view pipeline_view(const struct pipeline *p, uint64_t visible, size_t number)
{
    return (struct strategy_view){.run_state = p->run_state,
                                  .visible = visible,
                                  .generator = p->generator[number],
                                  .number = number,
                                  .seed = p->run_state->started.seed,
                                  .discards = p->policy->discards};
}

// How many candidates the generator has left; UINT64_MAX for the one that asks the worker.
static uint64_t left_of(const struct pipeline *p, size_t number, bool asks)
{
    if (p->generator[number]->is_llm) {
        return asks && (!p->run_state->asking_over || p->generator_count == 1) ? UINT64_MAX : 0;
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
    const struct generator *generator = p->generator[number];
    struct strbuf source = STRBUF_INIT, name;
    struct run_proposed event = {
        .candidate = p->run_state->candidate_count + 1,
        .parent = choice->parent,
        .point = choice->point + 1,
        .generator = number,
        .screened = screened,
    };
    strbuf_init(&name, 1024);
    generator->ops->source(generator, choice->point, &source);
    generator->ops->name(generator, choice->point, &name);
    event.params_count = generator->ops->params(generator, choice->point, &event.params);
    event.name = strbuf_detach(&name);
    int rc = pipeline_record_proposal(p, &event, strbuf_text(&source), source.len, err);
    strbuf_release(&source);
    return rc;
}

// Records `want` candidates of a generator: what a screening has chosen, and for the rest what the
// strategy chooses.
static int record_part(struct pipeline *p, uint64_t visible, size_t number, size_t want,
                       struct err *err)
{
    struct strategy_choice choice[RUN_BATCH_MAX];
    struct strategy_view view = pipeline_view(p, visible, number);
    size_t screened = 0, count = 0;
    int rc = p->screening.complete ? pipeline_record_screened(p, want, &screened, err) : 0;
    if (rc == 0 && screened < want) {
        count = p->strategy->choose(&view, want - screened, choice);
    }
    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = pipeline_record_choice(p, number, &choice[i], 0, err);
    }
    return rc;
}

int pipeline_record_plan(struct pipeline *p, uint64_t batch, const struct plan *plan,
                         struct err *err)
{
    int rc = 0;
    for (size_t part = 0; part < plan->parts && rc == 0; part++) {
        size_t number = plan->part[part].generator;
        if (!p->generator[number]->is_llm) {
            rc =
                record_part(p, visible_from(p, batch), number, (size_t)plan->part[part].count, err);
        }
    }
    return rc;
}

char *pipeline_exhausted_reason(const struct pipeline *p)
{
    return xstrdup(p->generator_count > 1 ? "no generator has more candidates"
                   : p->asker == 0        ? "no more new candidates came"
                                          : "every candidate considered");
}
