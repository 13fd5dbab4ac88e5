#include "worker/llm/chat_request.h"

#include "common/mem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LOGPROBS_TOP 20 // most that endpoints give per token

// The user's message as one text, with the rules before it where there is no system message. The
// caller frees it.
static char *user_text(const struct chat_request *request, const struct request_style *style)
{
    return xasprintf("%s%s%s%s", style->no_system ? request->rules : "",
                     style->no_system ? "\n\n" : "", request->search, request->candidate);
}

static bool gives_logprobs(const struct chat_request *request, const struct request_style *style)
{
    // The arguments of a tool call come without log-probabilities.
    return request->form && request->form->letters && !style->no_logprobs &&
           style->format != OUTPUT_FORCED && style->format != OUTPUT_REQUIRED;
}

static bool uses_tools(const struct chat_request *request, const struct request_style *style)
{
    return request->form && (style->format == OUTPUT_FORCED || style->format == OUTPUT_REQUIRED);
}

static json_t *limit_of(const struct chat_request *request, const struct request_style *style)
{
    return json_integer((json_int_t)request_style_limit(style, request->max_tokens));
}

static void add_temperature(json_t *body, const struct chat_request *request,
                            const struct request_style *style, double most)
{
    if (!style->no_temperature) {
        json_object_set_new(body, "temperature", json_real(fmin(request->temperature, most)));
    }
}

// ---- chat completions ----

static void add_chat_format(json_t *body, const struct answer_form *form,
                            const struct request_style *style)
{
    switch (style->format) {
    case OUTPUT_SCHEMA:
        json_object_set_new(body, "response_format",
                            json_pack("{s:s, s:{s:s, s:b, s:o}}", "type", "json_schema",
                                      "json_schema", "name", form->name, "strict", 1, "schema",
                                      form->schema()));
        break;
    case OUTPUT_FORCED:
    case OUTPUT_REQUIRED:
        json_object_set_new(body, "tools",
                            json_pack("[{s:s, s:{s:s, s:s, s:o}}]", "type", "function", "function",
                                      "name", form->tool, "description", form->help, "parameters",
                                      form->schema()));
        json_object_set_new(
            body, "tool_choice",
            style->format == OUTPUT_REQUIRED
                ? json_string("required")
                : json_pack("{s:s, s:{s:s}}", "type", "function", "function", "name", form->tool));
        break;
    case OUTPUT_JSON:
        json_object_set_new(body, "response_format", json_pack("{s:s}", "type", "json_object"));
        break;
    default:
        break;
    }
}

static json_t *chat_body(const struct chat_request *request, const struct request_style *style)
{
    char *user = user_text(request, style);
    json_t *messages = json_array(), *body = json_object();

    if (!style->no_system) {
        json_array_append_new(messages,
                              json_pack("{s:s, s:s}", "role", "system", "content", request->rules));
    }
    json_array_append_new(messages, json_pack("{s:s, s:s}", "role", "user", "content", user));
    json_object_set_new(body, "model", json_string(request->model));
    json_object_set_new(body, "messages", messages);
    if (style->limit != LIMIT_NONE) {
        json_object_set_new(body,
                            style->limit == LIMIT_OTHER ? "max_completion_tokens" : "max_tokens",
                            limit_of(request, style));
    }
    add_temperature(body, request, style, INFINITY);
    if (request->effort && !style->no_effort) {
        json_object_set_new(body, "reasoning_effort", json_string(request->effort));
    }
    if (request->form) {
        add_chat_format(body, request->form, style);
    }
    if (gives_logprobs(request, style)) {
        json_object_set_new(body, "logprobs", json_true());
        json_object_set_new(body, "top_logprobs", json_integer(LOGPROBS_TOP));
    }
    free(user);
    return body;
}

// ---- responses ----

static void add_responses_format(json_t *body, const struct answer_form *form,
                                 const struct request_style *style)
{
    switch (style->format) {
    case OUTPUT_SCHEMA:
        json_object_set_new(body, "text",
                            json_pack("{s:{s:s, s:s, s:b, s:o}}", "format", "type", "json_schema",
                                      "name", form->name, "strict", 1, "schema", form->schema()));
        break;
    case OUTPUT_FORCED:
    case OUTPUT_REQUIRED:
        json_object_set_new(body, "tools",
                            json_pack("[{s:s, s:s, s:s, s:b, s:o}]", "type", "function", "name",
                                      form->tool, "description", form->help, "strict", 1,
                                      "parameters", form->schema()));
        json_object_set_new(body, "tool_choice",
                            style->format == OUTPUT_REQUIRED
                                ? json_string("required")
                                : json_pack("{s:s, s:s}", "type", "function", "name", form->tool));
        break;
    case OUTPUT_JSON:
        json_object_set_new(body, "text", json_pack("{s:{s:s}}", "format", "type", "json_object"));
        break;
    default:
        break;
    }
}

static json_t *responses_body(const struct chat_request *request, const struct request_style *style)
{
    char *user = user_text(request, style);
    json_t *body = json_pack("{s:s, s:b, s:[{s:s, s:s}]}", "model", request->model, "store", 0,
                             "input", "role", "user", "content", user);

    if (!style->no_system) {
        json_object_set_new(body, "instructions", json_string(request->rules));
    }
    if (style->limit != LIMIT_NONE) {
        json_object_set_new(body, "max_output_tokens", limit_of(request, style));
    }
    add_temperature(body, request, style, INFINITY);
    if (request->effort && !style->no_effort) {
        json_object_set_new(body, "reasoning", json_pack("{s:s}", "effort", request->effort));
    }
    if (request->form) {
        add_responses_format(body, request->form, style);
    }
    if (gives_logprobs(request, style)) {
        json_object_set_new(body, "include", json_pack("[s]", "message.output_text.logprobs"));
        json_object_set_new(body, "top_logprobs", json_integer(LOGPROBS_TOP));
    }
    free(user);
    return body;
}

// ---- Anthropic's messages ----

// A part of a message. marked: what comes before and in it is to be kept in the prompt cache.
static json_t *text_part(const char *text, bool marked)
{
    json_t *part = json_pack("{s:s, s:s}", "type", "text", "text", text);

    if (marked) {
        json_object_set_new(part, "cache_control", json_pack("{s:s}", "type", "ephemeral"));
    }
    return part;
}

static json_t *anthropic_body(const struct chat_request *request, const struct request_style *style)
{
    json_t *body = json_object(), *parts = json_array();

    json_object_set_new(body, "model", json_string(request->model));
    json_object_set_new(body, "max_tokens", limit_of(request, style));
    if (style->no_system) {
        json_array_append_new(parts, text_part(request->rules, false));
    } else {
        json_object_set_new(body, "system",
                            json_pack("[o]", text_part(request->rules, !style->no_cache)));
    }
    // An empty part is refused.
    if (request->search[0] != '\0') {
        json_array_append_new(parts, text_part(request->search, !style->no_cache));
    }
    json_array_append_new(parts, text_part(request->candidate, false));
    json_object_set_new(body, "messages",
                        json_pack("[{s:s, s:o}]", "role", "user", "content", parts));
    add_temperature(body, request, style, 1); // more is refused
    if (request->effort && !style->no_effort) {
        json_object_set_new(body, "output_config", json_pack("{s:s}", "effort", request->effort));
    }
    if (uses_tools(request, style)) {
        json_object_set_new(body, "tools",
                            json_pack("[{s:s, s:s, s:o}]", "name", request->form->tool,
                                      "description", request->form->help, "input_schema",
                                      request->form->schema()));
        json_object_set_new(
            body, "tool_choice",
            style->format == OUTPUT_REQUIRED
                ? json_pack("{s:s}", "type", "any")
                : json_pack("{s:s, s:s}", "type", "tool", "name", request->form->tool));
    }
    return body;
}

// Adds the fields of the endpoint's extra body that it takes.
static void add_extra(json_t *body, const json_t *extra, const struct request_style *style)
{
    json_t *from = (json_t *)(uintptr_t)extra;
    uint32_t bit = 1;

    for (void *at = json_object_iter(from); at; at = json_object_iter_next(from, at), bit <<= 1) {
        if (!(style->extra_left_out & bit)) {
            json_object_set(body, json_object_iter_key(at), json_object_iter_value(at));
        }
    }
}

void chat_request_body(struct strbuf *out, const struct chat_request *request,
                       const struct request_style *style)
{
    json_t *body = style->form == API_RESPONSES   ? responses_body(request, style)
                   : style->form == API_ANTHROPIC ? anthropic_body(request, style)
                                                  : chat_body(request, style);

    add_extra(body, request->extra, style);
    char *text = json_dumps(body, JSON_COMPACT | JSON_REAL_PRECISION(6));
    strbuf_adds(out, text ? text : "{}");
    free(text);
    json_decref(body);
}
