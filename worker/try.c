#include "worker/try.h"

#include "common/mem.h"
#include "common/printable.h"
#include "worker/llm/llm.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

// Asks one endpoint (0: the engine). Returns whether there was a forecast.
static bool ask(struct trial *trial, const struct engine_ops *ops, void *engine, uint64_t endpoint,
                FILE *out)
{
    struct forecast_request request = question(endpoint);

    trial->done = false;
    ops->forecast(engine, &request, on_forecast, trial);
    while (!trial->done) {
        (void)uv_run(trial->loop, UV_RUN_DEFAULT); // until uv_stop
    }
    if (trial->err.code != ERR_NONE || trial->reply.forecasts_count == 0) {
        printable_printf(out, "  forecast  none: %s\n", trial->err.text);
        return false;
    }
    return print(out, &trial->reply.forecasts[0], endpoint > 0);
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
    void *engine = NULL;

    int rc = ops->open(&engine, config, err);
    if (rc != 0) {
        return rc;
    }
    message_init(&forecast_reply_message, &trial.reply);
    for (size_t i = 0; i < endpoints; i++) {
        print_endpoint(out, &config->llm->endpoints[i]);
        (void)fflush(out);
        silent += !ask(&trial, ops, engine, i + 1, out);
    }
    if (endpoints == 0) {
        // Without outcomes it has nothing to forecast from, and says so.
        printable_printf(out, "engine %s: %s\n", ops->name, ops->help);
        (void)ask(&trial, ops, engine, 0, out);
    }
    message_clear(&forecast_reply_message, &trial.reply);
    ops->close(engine);
    if (silent > 0) {
        rc = err_set(err, ERR_UNREACHABLE, "%zu of %zu endpoints gave no forecast", silent,
                     endpoints);
    }
    return rc;
}
