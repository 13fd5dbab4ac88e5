// The worker of tests/client/fake_daemon.h. Its forecasts are right, and its confidence depends on
// how many outcomes it was told. It also writes sources, for 200 tokens a request: with values of A
// and B that follow from the request's number, and C from 11 to 13. The same request again costs
// nothing. Where it ranks it says the order of sources by what they are worth, but for one of
// them, for 100 tokens.
#ifndef TESTS_CLIENT_FORECAST_FAKE_WORKER_H
#define TESTS_CLIENT_FORECAST_FAKE_WORKER_H

#include "tests/client/pool/fake_jobs.h"

// Whether a compiled candidate is forecast anew, after more outcomes than at its first forecast.
static inline bool fake_forecasts_anew(struct fake *fake, uint64_t id)
{
    if (id >= FAKE_ASKED_MAX) {
        return false;
    }
    if (fake->first_told[id] == 0) {
        fake->first_told[id] = fake->told_count + 1;
    }
    return fake->told_count + 1 > fake->first_told[id];
}

// Finds A and B among the facts of a source. False when they are not there.
static inline bool fake_definitions(const struct candidate_facts *c, struct fact out[2])
{
    static const char *const names[] = {"define:A", "define:B"};
    size_t found = 0;
    for (size_t i = 0; i < c->source_facts_count; i++) {
        for (size_t k = 0; k < 2; k++) {
            if (strcmp(c->source_facts[i].name, names[k]) == 0) {
                out[k] = c->source_facts[i];
                found++;
            }
        }
    }
    return found == 2;
}

// What a worker says that was told too little: the same of every candidate.
static inline struct forecast fake_ignorance(const struct fake *fake, uint64_t id)
{
    return (struct forecast){.id = id,
                             .p_correct = 0.2,
                             .p_improves = 0.1,
                             .engine = xstrdup("fake"),
                             .reason =
                                 xasprintf("%zu outcomes so far; %llu are needed", fake->told_count,
                                           (unsigned long long)fake->behaviour.ignorant)};
}

static inline void fake_forecast(struct fake *fake, struct exchange *exchange,
                                 const struct forecast_request *request)
{
    struct forecast_reply reply = {
        .forecasts = xcalloc(request->candidates_count + 1, sizeof(struct forecast))};
    for (size_t i = 0; i < request->candidates_count; i++) {
        const struct candidate_facts *c = &request->candidates[i];
        const struct fact *known = request->screening ? c->params : c->features;
        struct fact defined[2];
        if (fake->told_count < fake->behaviour.ignorant) {
            reply.forecasts[reply.forecasts_count++] = fake_ignorance(fake, c->id);
            continue;
        }
        if (!known && request->screening && fake->behaviour.reads_facts &&
            fake_definitions(c, defined)) {
            known = defined;
        }
        if (!known) { // it is known by its source alone, of which this worker makes nothing
            continue;
        }
        double y = fake_log2((int)known[0].value, (int)known[1].value);
        double incumbent = isnan(request->incumbent_log2) ? 0 : request->incumbent_log2;
        bool anew = !request->screening && fake_forecasts_anew(fake, c->id);
        // The confidence depends on the number of outcomes, so that outcomes which are told too
        // early or too late show in the decisions.
        reply.forecasts[reply.forecasts_count++] = (struct forecast){
            .id = c->id,
            .p_correct = 0.9,
            .mean_log2 = y,
            // Of sources it is not sure, so that each promises something.
            .expected_improvement =
                known == defined ? exp2(y - incumbent) / 10 : fmax(y - incumbent, 0),
            .p_improves = y > incumbent ? 0.9 : 0.1 * exp2(4 * (y - incumbent)),
            .confidence = fake->told_count < FAKE_LEARNT      ? 0
                          : fake->told_count % 2 == 0 || anew ? 0.92
                                                              : 0.97,
            .engine = xstrdup("fake"),
            .trained_rows = fake->told_count,
            .rung = xstrdup(c->source.len > 0 ? "sources" : "features"),
        };
    }
    exchange_reply(exchange, &forecast_reply_message, &reply);
    message_clear(&forecast_reply_message, &reply);
}

static inline void fake_observe(struct fake *fake, struct exchange *exchange,
                                const struct observe *observe)
{
    for (size_t i = 0; i < observe->outcomes_count; i++) {
        bool known = false;
        for (size_t j = 0; j < fake->told_count; j++) {
            known = known || strcmp(fake->told[j], observe->outcomes[i].key) == 0;
        }
        if (!known && fake->told_count < ARRAY_LEN(fake->told)) {
            fake->told[fake->told_count++] = xstrdup(observe->outcomes[i].key);
        }
    }
    struct observed reply = {.rows = fake->told_count};
    exchange_reply(exchange, &observed_message, &reply);
}

static inline void fake_propose(struct fake *fake, struct exchange *exchange,
                                const struct propose_request *request)
{
    struct propose_reply reply = {.model = xstrdup("writer"),
                                  .proposals = xcalloc(request->count + 1, sizeof(struct proposal)),
                                  .first_tokens = 200,
                                  .first_cost = NAN,
                                  .cost = NAN,
                                  .seconds = NAN};
    for (size_t i = 0; i < fake->asked_count; i++) {
        reply.cached = reply.cached || fake->asked[i] == request->draw;
    }
    reply.input_tokens = reply.cached ? 0 : 150;
    reply.output_tokens = reply.cached ? 0 : 50;
    if (!reply.cached && fake->asked_count < ARRAY_LEN(fake->asked)) {
        fake->asked[fake->asked_count++] = request->draw;
    }
    for (uint64_t i = 0; i < request->count; i++) {
        uint64_t random = stats_philox(5, request->draw, i);
        char *text =
            xasprintf("#define A %d\n#define B %d\n#define C %d\nwritten\n", 1 << (random & 3),
                      1 << (random >> 2 & 3), 11 + (int)((random >> 4) % 3));
        reply.proposals[reply.proposals_count++].source =
            (struct bytes){.data = (unsigned char *)text, .len = strlen(text)};
    }
    exchange_reply(exchange, &propose_reply_message, &reply);
    message_clear(&propose_reply_message, &reply);
}

static inline double fake_worth_of(const struct candidate_facts *candidate)
{
    char *text = xstrndup((const char *)candidate->source.data, candidate->source.len);
    double worth = fake_log2(fake_define(text, "A"), fake_define(text, "B"));
    free(text);
    return worth;
}

static inline void fake_rank(struct fake *fake, struct exchange *exchange,
                             const struct rank_request *request)
{
    size_t count = request->candidates_count;
    struct rank_reply reply = {.model = xstrdup("ranker"),
                               .order = xcalloc(count, sizeof(uint64_t)),
                               .order_count = count,
                               .named = count - 1,
                               .cost = 0.5,
                               .seconds = 1};
    for (size_t i = 0; i < fake->ranked_count; i++) {
        reply.cached = reply.cached || fake->ranked[i] == request->seed;
    }
    reply.input_tokens = reply.cached ? 0 : 80;
    reply.output_tokens = reply.cached ? 0 : 20;
    reply.cost = reply.cached ? 0 : reply.cost;
    if (!reply.cached && fake->ranked_count < ARRAY_LEN(fake->ranked)) {
        fake->ranked[fake->ranked_count++] = request->seed;
    }
    for (size_t i = 0; i < count; i++) {
        size_t place = i;
        while (place > 0 && fake_worth_of(&request->candidates[reply.order[place - 1] - 1]) <
                                fake_worth_of(&request->candidates[i])) {
            reply.order[place] = reply.order[place - 1];
            place--;
        }
        reply.order[place] = i + 1; // for now its number
    }
    for (size_t i = 0; i < count; i++) {
        reply.order[i] = request->candidates[reply.order[i] - 1].id;
    }
    exchange_reply(exchange, &rank_reply_message, &reply);
    message_clear(&rank_reply_message, &reply);
}

static inline void fake_hello(struct fake *fake, struct exchange *exchange,
                              const struct request *request)
{
    static const char *const features[] = {"fake"}, *const old[] = {"llm"};
    char engine[] = "fake";
    const struct worker_abilities abilities = {.engine = engine,
                                               .reads_sources =
                                                   fake->visits != 1 && !fake->behaviour.blind,
                                               .proposes = true,
                                               .forecast_seconds = 0.01,
                                               .screens = !fake->behaviour.ranks,
                                               .ranks = fake->behaviour.ranks};
    exchange_hello(exchange, request, "kcast-worker", fake->behaviour.old ? old : features, 1, 0,
                   fake->behaviour.old ? NULL : &abilities);
    fake->greeted = true;
    for (struct fake_job *job = fake->job; job && fake->behaviour.late; job = job->hh.next) {
        if (!job->done && !uv_is_active((uv_handle_t *)&job->timer)) {
            uv_timer_start(&job->timer, fake_on_done, 0, 0);
        }
    }
}

static inline void fake_on_leave(uv_timer_t *timer)
{
    struct fake *fake = timer->data;
    service_close(fake->worker);
    fake->worker = NULL;
}

// Whether the worker leaves instead of answering.
static inline bool fake_leaves(struct fake *fake, struct exchange *exchange)
{
    if (fake->visits != 1 || ++fake->forecasts < 3) {
        return false;
    }
    exchange_park(exchange, 0, NULL, NULL);
    uv_timer_start(&fake->leave, fake_on_leave, 0, 0);
    return true;
}

static inline void fake_on_worker(void *owner, struct exchange *exchange,
                                  const struct request *request)
{
    struct fake *fake = owner;
    struct forecast_request forecast;
    struct observe observe;
    struct propose_request propose;
    struct rank_request rank;
    if (request->op == OP_HELLO) {
        fake_hello(fake, exchange, request);
    } else if (request->op == OP_FORECAST) {
        if (!fake_leaves(fake, exchange) &&
            exchange_read_body(exchange, request, &forecast_request_message, &forecast)) {
            fake_forecast(fake, exchange, &forecast);
            message_clear(&forecast_request_message, &forecast);
        }
    } else if (request->op == OP_OBSERVE) {
        if (exchange_read_body(exchange, request, &observe_message, &observe)) {
            fake_observe(fake, exchange, &observe);
            message_clear(&observe_message, &observe);
        }
    } else if (request->op == OP_PROPOSE) {
        if (exchange_read_body(exchange, request, &propose_request_message, &propose)) {
            fake_propose(fake, exchange, &propose);
            message_clear(&propose_request_message, &propose);
        }
    } else if (request->op == OP_RANK && fake->behaviour.ranks) {
        if (exchange_read_body(exchange, request, &rank_request_message, &rank)) {
            fake_rank(fake, exchange, &rank);
            message_clear(&rank_request_message, &rank);
        }
    } else { // what it can do is to be known from HELLO
        struct err error = ERR_INIT;
        err_set(&error, ERR_BUSY, "the worker has no time for that");
        exchange_fail_busy(exchange, &error, 50);
    }
}

#endif
