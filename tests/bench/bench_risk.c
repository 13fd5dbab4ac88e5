// Policy risk on recorded candidates whose risk at any threshold is known. In each space the static
// model learns from 200 candidates, or from only 20, and forecasts whether the others exceed the
// upper quartile of these. The policy then decides about candidates drawn from the others, with
// replacement.
//  bench_risk SPACE…     500 streams per space, model and guarantee. Printed are how often a
//                        threshold in force has a greater risk than allowed, the same for the
//                        threshold that only looks good enough on the outcomes before it, and
//                        what a decision costs.
#include "client/policy/policy.h"
#include "client/policy/risk.h"
#include "common/mem.h"
#include "common/stats.h"
#include "tests/bench/samples.h"
#include "tests/bench/trained_model.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MODELS 5
#define STREAMS 100 // streams of each model
#define DRAWN 1000  // candidates of a stream
#define TRAINED_MAX 200
#define ALPHA 0.1
#define DELTA 0.1
#define AUDIT 0.05
#define TIMED 10000
#define STREAM_RISK 0x7269736bULL

// The candidates that a model has not learnt from, with its forecasts.
struct population {
    struct forecast *forecast;
    bool *improves;
    size_t count;
};

struct score {
    size_t streams, certified, violated;
    double risk;      // sum over certified streams of the risk at the last threshold in force
    double discarded; // the same sum of the share of candidates below the threshold
    double outcomes;  // sum of the outcomes before the first certificate
    size_t naive, naive_violated;
    double naive_risk;
};

static struct population populate(const struct space *space, size_t trained, uint64_t seed)
{
    struct trained_model model;
    trained_model_init(&model, space, trained, TRAINED_MAX, seed, STREAM_RISK);
    struct population ret;
    ret.count = model.count - trained;
    ret.forecast = xcalloc(ret.count, sizeof(*ret.forecast));
    ret.improves = xcalloc(ret.count, sizeof(*ret.improves));
    for (size_t i = 0; i < ret.count; i++) {
        const struct space_candidate *c = trained_model_candidate(&model, i);
        struct forecast_reply reply;
        trained_model_forecast(&model, c, &reply);
        ret.forecast[i] = (struct forecast){.p_improves = reply.forecasts[0].p_improves,
                                            // The policy does not look at the confidence.
                                            .confidence = 0.5,
                                            .trained_rows = reply.forecasts[0].trained_rows};
        // False for a wrong candidate, whose log2 is NaN.
        ret.improves[i] = trained_model_outcome(c) > model.target;
        message_clear(&forecast_reply_message, &reply);
    }
    trained_model_release(&model);
    return ret;
}

// The risk at this threshold over the whole population, which the guarantee limits. *ret_below is
// the share of candidates below the threshold.
static double risk_at(const struct population *from, double tau, bool recall, double *ret_below)
{
    double below = 0, improvers = 0, both = 0;
    for (size_t i = 0; i < from->count; i++) {
        bool is_below = risk_score(&from->forecast[i]) < tau;
        below += is_below;
        improvers += from->improves[i];
        both += is_below && from->improves[i];
    }
    *ret_below = below / (double)from->count;
    return recall ? both / fmax(improvers, 1) : both / fmax(below, 1);
}

// ---- streams ----

struct stream {
    struct run_state run_state;
    struct run_state_candidate *candidate;
    struct result yes, no;
    struct estimate faster, slower;
    char engine[1], text[1];
};

static void set_up(struct stream *s, const char *guarantee, uint64_t seed, size_t capacity)
{
    *s = (struct stream){.faster = {.log2 = 1}, .slower = {.log2 = -1}};
    s->yes = (struct result){.verdict = VERDICT_FASTER, .speedup = &s->faster};
    s->no = (struct result){.verdict = VERDICT_SLOWER, .speedup = &s->slower};
    s->candidate = xcalloc(capacity, sizeof(*s->candidate));
    s->run_state = (struct run_state){.candidate = s->candidate};
    s->run_state.started = (struct run_started){.guarantee = xstrdup(guarantee),
                                                .generator = xstrdup("space"),
                                                .seed = seed,
                                                .alpha = ALPHA,
                                                .delta = DELTA,
                                                .audit = AUDIT};
    s->run_state.certified.engine = s->engine;
    s->run_state.certified.text = s->text;
}

static void tear_down(struct stream *s)
{
    free(s->run_state.started.guarantee);
    free(s->run_state.started.generator);
    free(s->candidate);
}

// Lets the policy decide about the next candidate from all outcomes so far. Returns the threshold
// in force; NaN when there is none.
static double step(struct stream *s, struct risk *risk, struct forecast *forecast, bool improves)
{
    uint64_t id = s->run_state.candidate_count + 1;
    struct policy_view view = {
        .run_state = &s->run_state, .candidate = id, .first = id, .last = id};
    risk_update(risk, &s->run_state, id - 1);
    struct certificate now = risk_now(risk);
    s->run_state.certified.threshold = now.certified ? now.tau : NAN;
    s->run_state.certifications = 1;
    s->candidate[id - 1] = (struct run_state_candidate){.forecast = forecast};
    s->run_state.candidate_count = (size_t)id;
    struct policy_decision decision = {.threshold = NAN};
    policy_find("risk")->decide(&view, &decision);
    s->candidate[id - 1].decided = (struct run_decided){.decision = decision.decision,
                                                        .propensity = decision.propensity,
                                                        .threshold = decision.threshold};
    if (decision.decision != DECISION_TRUST) {
        s->candidate[id - 1].result = improves ? &s->yes : &s->no;
    }
    return s->run_state.certified.threshold;
}

struct seen {
    double score;
    bool improves;
};

static int by_score(const void *a, const void *b)
{
    const struct seen *x = a, *y = b;
    return (x->score > y->score) - (x->score < y->score);
}

// The largest threshold that keeps the risk on these outcomes themselves.
static double sweep(struct seen *seen, size_t count, bool recall)
{
    double all = 0, below = 0, tau = NAN;
    qsort(seen, count, sizeof(*seen), by_score);
    for (size_t i = 0; i < count; i++) {
        all += seen[i].improves;
    }
    for (size_t m = 1; m < count; m++) {
        below += seen[m - 1].improves;
        if (seen[m].score > seen[m - 1].score && below <= ALPHA * (recall ? all : (double)m)) {
            tau = seen[m].score;
        }
    }
    return tau;
}

static void add_naive(struct score *samples, const struct population *from, struct seen *seen,
                      size_t count, bool recall)
{
    double below, tau = sweep(seen, count, recall);
    if (!isnan(tau)) {
        double risk = risk_at(from, tau, recall, &below);
        samples->naive++;
        samples->naive_risk += risk;
        samples->naive_violated += risk > ALPHA + 1e-9;
    }
}

static void play(const struct population *from, const char *guarantee, uint64_t seed,
                 struct score *samples)
{
    struct stats_rng rng;
    bool recall = strcmp(guarantee, "recall") == 0, violated = false;
    double last = NAN, risk = 0, below = 0;
    stats_rng_init(&rng, seed, 0x64726177ULL);
    struct stream s;
    set_up(&s, guarantee, seed, DRAWN);
    struct risk *policy = risk_create(&s.run_state.started);
    struct seen seen[DRAWN];
    size_t first = 0;
    for (size_t i = 0; i < DRAWN; i++) {
        size_t who = (size_t)stats_rng_below(&rng, from->count);
        double tau = step(&s, policy, &from->forecast[who], from->improves[who]);
        seen[i] = (struct seen){risk_score(&from->forecast[who]), from->improves[who]};
        if (!isnan(tau) && tau != last) {
            first = first > 0 ? first : i;
            risk = risk_at(from, tau, recall, &below);
            violated |= risk > ALPHA + 1e-9;
        }
        last = tau;
    }
    samples->streams++;
    if (first > 0) {
        samples->certified++;
        samples->violated += violated;
        samples->risk += risk;
        samples->discarded += below;
        samples->outcomes += (double)first;
        // The outcomes before the first certificate.
        add_naive(samples, from, seen, first, recall);
    }
    risk_free(policy);
    tear_down(&s);
}

static void print(const char *name, size_t trained, const char *guarantee, const struct score *t)
{
    double n = fmax((double)t->certified, 1), naive = fmax((double)t->naive, 1);
    printf("%-18s %3zu %-10s %5.1f %% of %zu certified, after %4.0f outcomes; risk %.3f, %5.2f %% "
           "above %g; %2.0f %% below; by looking %.3f, %5.1f %% above\n",
           name, trained, guarantee, 100 * (double)t->certified / (double)t->streams, t->streams,
           t->outcomes / n, t->risk / n, 100 * (double)t->violated / (double)t->streams, ALPHA,
           100 * t->discarded / n, t->naive_risk / naive, 100 * (double)t->naive_violated / naive);
}

static void add(struct score *to, const struct score *from)
{
    to->streams += from->streams;
    to->certified += from->certified;
    to->violated += from->violated;
    to->risk += from->risk;
    to->discarded += from->discarded;
    to->outcomes += from->outcomes;
    to->naive += from->naive;
    to->naive_violated += from->naive_violated;
    to->naive_risk += from->naive_risk;
}

static void time_decisions(const struct population *from, const char *guarantee)
{
    struct stream s;
    set_up(&s, guarantee, 1, TIMED);
    struct risk *policy = risk_create(&s.run_state.started);
    clock_t start = clock(); // processor time
    for (size_t i = 0; i < TIMED; i++) {
        (void)step(&s, policy, &from->forecast[i % from->count], from->improves[i % from->count]);
    }
    printf("%-10s %.2f us of processor a decision, certificate included, over %d candidates\n",
           guarantee, (double)(clock() - start) * 1e6 / CLOCKS_PER_SEC / TIMED, TIMED);
    risk_free(policy);
    tear_down(&s);
}

static const char *const guarantee[] = {"recall", "selective", "online"};

// Plays all streams of a space with models that have learnt from `trained` candidates, prints their
// scores and adds them to `all`.
static void play_space(const struct space *space, size_t trained, bool timed,
                       struct score all[ARRAY_LEN(guarantee)])
{
    struct score samples[ARRAY_LEN(guarantee)] = {{0}};
    for (uint64_t model = 1; model <= MODELS; model++) {
        struct population from = populate(space, trained, model);
        for (size_t g = 0; g < ARRAY_LEN(guarantee); g++) {
            for (uint64_t stream = 0; stream < STREAMS; stream++) {
                play(&from, guarantee[g], model * STREAMS + stream, &samples[g]);
            }
            if (timed && model == MODELS) {
                time_decisions(&from, guarantee[g]);
            }
        }
        free(from.forecast);
        free(from.improves);
    }
    for (size_t g = 0; g < ARRAY_LEN(guarantee); g++) {
        print(space->head.problem, trained, guarantee[g], &samples[g]);
        add(&all[g], &samples[g]);
    }
}

int main(int argc, char **argv)
{
    static const size_t trained[] = {TRAINED_MAX, 20};
    struct score all[ARRAY_LEN(trained)][ARRAY_LEN(guarantee)] = {{{0}}};
    struct err err = ERR_INIT;
    for (int i = 1; i < argc; i++) {
        struct space space;
        if (space_read(&space, argv[i], &err) != 0) {
            die(&err);
        }
        for (size_t t = 0; t < ARRAY_LEN(trained); t++) {
            play_space(&space, trained[t], i == 1 && t == 0, all[t]);
        }
        space_release(&space);
    }
    for (size_t t = 0; t < ARRAY_LEN(trained) && argc > 1; t++) {
        for (size_t g = 0; g < ARRAY_LEN(guarantee); g++) {
            print("all", trained[t], guarantee[g], &all[t][g]);
        }
    }
    return 0;
}
