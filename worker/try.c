#include "worker/try.h"

#include "common/mem.h"
#include "common/printable.h"
#include "proto/verdict.h"
#include "worker/llm/llm.h"
#include "worker/outcomes/outcome.h"
#include "worker/outcomes/outcome_store.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define KNOWN_MOST 100 // outcomes of a problem, the newest, that are looked at

// The question: a problem small enough to be cheap, and real enough to be judged.
static const char problem_json[] =
    "{\"name\":\"dot\",\"description\":\"The dot product of two vectors of 2^20 doubles.\"}";
static const char baseline[] = "#include <stdint.h>\n"
                               "void dot(const double *x, const double *y, double *s, int64_t n)\n"
                               "{\n"
                               "    double sum = 0;\n"
                               "    for (int64_t i = 0; i < n; i++) { sum += x[i] * y[i]; }\n"
                               "    s[0] = sum;\n"
                               "}\n";
static const char candidate[] =
    "#include <stdint.h>\n"
    "void dot(const double *x, const double *y, double *s, int64_t n)\n"
    "{\n"
    "    double part[8] = {0};\n"
    "    int64_t i = 0;\n"
    "    for (; i + 8 <= n; i += 8) {\n"
    "        for (int k = 0; k < 8; k++) { part[k] += x[i + k] * y[i + k]; }\n"
    "    }\n"
    "    for (; i < n; i++) { part[0] += x[i] * y[i]; }\n"
    "    s[0] = ((part[0] + part[1]) + (part[2] + part[3])) +\n"
    "           ((part[4] + part[5]) + (part[6] + part[7]));\n"
    "}\n";

struct trial {
    uv_loop_t *loop;
    bool done;
    struct err err;
    struct forecast_reply reply;
};

static struct bytes bytes_of(const char *text)
{
    return (struct bytes){.data = (unsigned char *)xstrdup(text), .len = strlen(text)};
}

// The question to one of the endpoints.
static struct forecast_request question(uint64_t endpoint)
{
    struct forecast_request request;

    message_init(&forecast_request_message, &request);
    request.problem = xstrdup("dot");
    request.device_class = xstrdup("one core of a processor");
    request.search = xstrdup("--try");
    request.incumbent_log2 = 0;
    request.margin_log2 = 0;
    request.endpoint = endpoint;
    request.context = xcalloc(1, sizeof(*request.context));
    message_init(&search_context_message, request.context);
    request.context->language = xstrdup("C");
    request.context->problem_json = bytes_of(problem_json);
    request.context->baseline = bytes_of(baseline);
    request.candidates = xcalloc(1, sizeof(*request.candidates));
    request.candidates_count = 1;
    message_init(&candidate_facts_message, request.candidates);
    request.candidates->id = 1;
    request.candidates->source = bytes_of(candidate);
    return request;
}

static void on_forecast(void *owner, const struct err *error, const void *reply)
{
    struct trial *trial = owner;

    trial->done = true;
    uv_stop(trial->loop);
    message_clear(&forecast_reply_message, &trial->reply);
    message_init(&forecast_reply_message, &trial->reply);
    if (error) {
        trial->err = *error;
    } else {
        message_copy(&forecast_reply_message, &trial->reply, reply);
    }
}

// Prints what came. by_model: only what a language model said counts, not what the engine makes of
// its silence. Returns whether there is a forecast.
static bool print(FILE *out, const struct forecast *forecast, bool by_model)
{
    bool answered = !isnan(forecast->mean_log2) && (forecast->raw || !by_model);

    if (forecast->way) {
        printable_printf(out, "  asked     %s; %llu requests\n", forecast->way,
                         (unsigned long long)forecast->requests);
        printable_printf(out, "  tokens    %llu in, of which it had kept %llu; %llu out\n",
                         (unsigned long long)forecast->input_tokens,
                         (unsigned long long)forecast->cached_tokens,
                         (unsigned long long)forecast->output_tokens);
        printable_printf(out, "  price     %.6g\n", isnan(forecast->cost) ? 0 : forecast->cost);
    }
    printable_printf(out, "  time      %.2f s\n", isnan(forecast->seconds) ? 0 : forecast->seconds);
    if (answered) {
        printable_printf(
            out,
            "  forecast  about %.3g times the baseline's speed, correct with P = %.2f, "
            "faster with P = %.2f\n",
            exp2(forecast->mean_log2), forecast->p_correct, forecast->p_improves);
    } else {
        printable_printf(out, "  forecast  none: %s\n",
                         forecast->reason ? forecast->reason : "no reason was given");
    }
    return answered;
}

// Asks the question, of the engine or of the endpoint that it names, and takes it. Returns whether
// there was a forecast.
static bool ask(struct trial *trial, const struct engine_ops *ops, void *engine,
                struct forecast_request *request_take, FILE *out)
{
    uint64_t endpoint = request_take->endpoint;

    trial->done = false;
    ops->forecast(engine, request_take, on_forecast, trial);
    while (!trial->done) {
        (void)uv_run(trial->loop, UV_RUN_DEFAULT); // until uv_stop
    }
    if (trial->err.code != ERR_NONE || trial->reply.forecasts_count == 0) {
        printable_printf(out, "  forecast  none: %s\n", trial->err.text);
        return false;
    }
    return print(out, &trial->reply.forecasts[0], endpoint > 0);
}

// ---- engines without endpoints ----

// A problem that the engine knows, by its outcomes: the group that has most of them.
struct known {
    int64_t group;
    uint64_t rows;
    struct outcome_store *store;
    struct observe last; // with its newest outcome that a model can learn from
    bool found;
};

static int count_group(void *owner, int64_t group, const char *identity, const char *problem,
                       const char *device_class, struct err *err)
{
    struct known *known = owner;
    uint64_t rows = 0;

    (void)identity;
    (void)problem;
    (void)device_class;
    int rc = outcome_store_count(known->store, group, &rows, err);
    if (rc == 0 && rows > known->rows) {
        known->group = group;
        known->rows = rows;
    }
    return rc;
}

static void take_outcome(void *owner, const struct observe *observe)
{
    struct known *known = owner;

    if (outcome_is_usable(&observe->outcomes[0])) {
        message_clear(&observe_message, &known->last);
        message_copy(&observe_message, &known->last, observe);
        known->found = true;
    }
}

// Reads what the engine static knows. It has its file to itself again afterwards.
static int find_known(struct known *known, const char *state_dir, struct err *err)
{
    char *path = xasprintf("%s/worker.db", state_dir);

    int rc = outcome_store_open(&known->store, path, err);
    if (rc == 0) {
        rc = outcome_store_each_group(known->store, count_group, known, err);
    }
    if (rc == 0 && known->rows > 0) {
        rc = outcome_store_each_outcome(known->store, known->group, KNOWN_MOST, take_outcome, known,
                                        err);
    }
    outcome_store_close(known->store);
    known->store = NULL;
    free(path);
    return rc;
}

// The question about the candidate of the outcome, as if it had not been measured.
static struct forecast_request known_question(const struct known *known)
{
    const struct observe *last = &known->last;
    const struct forecast_request same = {
        .problem = last->problem,
        .problem_digest = last->problem_digest,
        .device_class = last->device_class,
        .device_facts = last->device_facts,
        .device_facts_count = last->device_facts_count,
        .baseline_features = last->baseline_features,
        .baseline_features_count = last->baseline_features_count,
        .incumbent_log2 = last->outcomes[0].incumbent_log2,
        .margin_log2 = last->outcomes[0].margin_log2,
        .candidates = last->outcomes[0].candidate,
        .candidates_count = 1,
    };
    struct forecast_request ret;

    message_copy(&forecast_request_message, &ret, &same);
    return ret;
}

// Asks an engine without endpoints about a candidate that it was told of.
static void ask_known(struct trial *trial, const struct engine_ops *ops, void *engine,
                      const struct known *known, FILE *out)
{
    const struct outcome *outcome = &known->last.outcomes[0];

    if (!known->found) {
        printable_printf(out, "  forecast  none: it was told of no outcomes in this state, so that "
                              "there is no problem that it could be asked about; make a search "
                              "with it first\n");
        return;
    }
    printable_printf(out, "  asked     about the newest of %llu candidates of %s on %s\n",
                     (unsigned long long)known->rows, known->last.problem,
                     known->last.device_class);
    struct forecast_request request = known_question(known);
    (void)ask(trial, ops, engine, &request, out);
    if (verdict_is_ratio(outcome->verdict)) {
        printable_printf(out, "  measured  %.3g times the baseline's speed\n", exp2(outcome->log2));
    } else {
        printable_printf(out, "  measured  %s\n", verdict_name(outcome->verdict));
    }
}

// What an endpoint is, in one line.
static void print_endpoint(FILE *out, const struct endpoint_config *endpoint)
{
    printable_printf(out, "endpoint %s: %s, %s, %s\n",
                     endpoint->name ? endpoint->name : endpoint->url, endpoint->model,
                     api_form_name(endpoint->form), endpoint->url);
}

int worker_try(const struct engine_ops *ops, const struct engine_config *config, FILE *out,
               struct err *err)
{
    struct trial trial = {.loop = config->loop, .err = ERR_INIT};
    size_t endpoints = ops->reads_sources && config->llm ? config->llm->count : 0, silent = 0;
    struct known known = {.rows = 0};
    void *engine = NULL;
    int rc = 0;

    message_init(&observe_message, &known.last);
    if (endpoints == 0) {
        rc = find_known(&known, config->state_dir, err);
    }
    if (rc != 0) {
        goto out;
    }
    rc = ops->open(&engine, config, err);
    if (rc != 0) {
        goto out;
    }
    message_init(&forecast_reply_message, &trial.reply);
    for (size_t i = 0; i < endpoints; i++) {
        print_endpoint(out, &config->llm->endpoints[i]);
        (void)fflush(out);
        struct forecast_request request = question(i + 1);
        silent += !ask(&trial, ops, engine, &request, out);
    }
    if (endpoints == 0) {
        printable_printf(out, "engine %s: %s\n", ops->name, ops->help);
        ask_known(&trial, ops, engine, &known, out);
    }
    message_clear(&forecast_reply_message, &trial.reply);
    ops->close(engine);
    if (silent > 0) {
        rc = err_set(err, ERR_UNREACHABLE, "%zu of %zu endpoints gave no forecast", silent,
                     endpoints);
    }
out:
    message_clear(&observe_message, &known.last);
    return rc;
}
