// OpenAI's and Anthropic's endpoints for provider_mocks.h, and what all mocks share.
#ifndef TESTS_WORKER_LLM_PROVIDER_OPENAI_H
#define TESTS_WORKER_LLM_PROVIDER_OPENAI_H

#include "common/mem.h"
#include "tests/support/endpoint_stub.h"
#include "worker/endpoint/request_style.h"
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define PROVIDER_KEY "secret-4711-of-this-endpoint"

#define FORECAST                                                                                   \
    "{\\\"bin\\\":\\\"G\\\",\\\"p\\\":{\\\"F\\\":0.2,\\\"G\\\":0.8},\\\"p_correct\\\":0.9}"
#define USAGE "\"usage\":{\"prompt_tokens\":1000,\"completion_tokens\":20,\"total_tokens\":1020}"
#define CONTENT                                                                                    \
    "{\"id\":\"c\",\"object\":\"chat.completion\",\"choices\":[{\"index\":0,\"message\":{"         \
    "\"role\":\"assistant\",\"content\":\"" FORECAST "\",\"refusal\":null},"                       \
    "\"finish_reason\":\"stop\",\"logprobs\":null}]," USAGE "}"
#define TOOL_CALL                                                                                  \
    "{\"id\":\"c\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":"     \
    "null,"                                                                                        \
    "\"tool_calls\":[{\"id\":\"t\",\"type\":\"function\",\"function\":{\"name\":"                  \
    "\"submit_forecast\",\"arguments\":\"" FORECAST "\"}}]},"                                      \
    "\"finish_reason\":\"tool_calls\"}]," USAGE "}"

// ---- what requests have ----

static inline bool has(const json_t *body, const char *name)
{
    return json_object_get(body, name);
}

static inline const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text ? text : "";
}

static inline bool has_header(const char *head, const char *line)
{
    return strcasestr(head, line);
}

static inline bool has_format(const json_t *body, const char *type)
{
    return strcmp(text_of(json_object_get(body, "response_format"), "type"), type) == 0;
}

// The first field that is none of the known ones; NULL: there is none.
static inline const char *unknown_field(const json_t *body, const char *const *known)
{
    json_t *object = (json_t *)(uintptr_t)body;

    for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at)) {
        bool found = false;

        for (const char *const *name = known; *name; name++) {
            found |= strcmp(*name, json_object_iter_key(at)) == 0;
        }
        if (!found) {
            return json_object_iter_key(at);
        }
    }
    return NULL;
}

// The body with the name in place of its '%s'.
static inline const char *printed(const char *body, const char *name)
{
    static char text[1024];
    const char *at = strstr(body, "%s");

    (void)snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - body), body, name, at + 2);
    return text;
}

static inline int say(const char **ret, int status, const char *body)
{
    *ret = body;
    return status;
}

static inline int need_bearer(const char *head, const char **ret)
{
    return has_header(head, "\nAuthorization: Bearer " PROVIDER_KEY)
               ? 0
               : say(ret, 401,
                     "{\"error\":{\"message\":\"Incorrect API key provided\",\"type\":"
                     "\"invalid_request_error\",\"param\":null,\"code\":\"invalid_api_key\"}}");
}

#define OPENAI_ERROR(message, param, code)                                                         \
    "{\"error\":{\"message\":\"" message "\",\"type\":\"invalid_request_error\",\"param\":" param  \
    ",\"code\":" code "}}"

// ---- OpenAI ----

// Models that think, by chat completions: gpt-5, o3, o4-mini.
static inline int openai_reasoning(const char *head, const json_t *body, size_t number,
                                   const char **ret)
{
    static const char *const known[] = {
        "model",       "messages",        "max_tokens",       "max_completion_tokens",
        "temperature", "response_format", "logprobs",         "top_logprobs",
        "tools",       "tool_choice",     "reasoning_effort", NULL};
    int status = need_bearer(head, ret);

    (void)number;
    if (status != 0) {
        return status;
    }
    if (unknown_field(body, known)) {
        return say(
            ret, 400,
            printed(OPENAI_ERROR("Unknown parameter: '%s'.", "null", "\"unknown_parameter\""),
                    unknown_field(body, known)));
    }
    if (has(body, "max_tokens")) {
        return say(ret, 400,
                   OPENAI_ERROR("Unsupported parameter: 'max_tokens' is not supported with this "
                                "model. Use 'max_completion_tokens' instead.",
                                "\"max_tokens\"", "\"unsupported_parameter\""));
    }
    if (has(body, "temperature") && json_number_value(json_object_get(body, "temperature")) != 1) {
        return say(ret, 400,
                   OPENAI_ERROR("Unsupported value: 'temperature' does not support 0.5 with this "
                                "model. Only the default (1) value is supported.",
                                "\"temperature\"", "\"unsupported_value\""));
    }
    if (has(body, "logprobs") || has(body, "top_logprobs")) {
        return say(ret, 403,
                   OPENAI_ERROR("You are not allowed to request logprobs from this model", "null",
                                "null"));
    }
    return 0;
}

// The first of them: no system message and no format either.
static inline int openai_first_reasoning(const char *head, const json_t *body, size_t number,
                                         const char **ret)
{
    const json_t *first = json_array_get(json_object_get(body, "messages"), 0);

    if (strcmp(text_of(first, "role"), "user") != 0) {
        return say(ret, 400,
                   OPENAI_ERROR("Unsupported value: 'messages[0].role' does not support 'system' "
                                "with this model.",
                                "\"messages[0].role\"", "\"unsupported_value\""));
    }
    if (has(body, "response_format") || has(body, "tools")) {
        return say(ret, 400,
                   OPENAI_ERROR("Invalid parameter: 'response_format' of type 'json_schema' is not "
                                "supported with this model.",
                                "\"response_format\"", "null"));
    }
    return openai_reasoning(head, body, number, ret);
}

// A model that gives log-probabilities to nobody but takes the rest; and one with an effort that it
// does not know.
static inline int openai_effort(const char *head, const json_t *body, size_t number,
                                const char **ret)
{
    int status = need_bearer(head, ret);

    (void)number;
    if (status != 0) {
        return status;
    }
    if (has(body, "logprobs")) {
        return say(ret, 403,
                   OPENAI_ERROR("You are not allowed to request logprobs from this model", "null",
                                "null"));
    }
    if (has(body, "reasoning_effort")) {
        return say(ret, 400,
                   OPENAI_ERROR("Unrecognized request argument supplied: reasoning_effort", "null",
                                "null"));
    }
    return 0;
}

static inline int openai_responses(const char *head, const json_t *body, size_t number,
                                   const char **ret)
{
    static const char *const known[] = {
        "model", "input",       "instructions", "max_output_tokens", "temperature",  "text",
        "tools", "tool_choice", "reasoning",    "include",           "top_logprobs", "store",
        NULL};
    int status = need_bearer(head, ret);

    (void)number;
    if (status != 0) {
        return status;
    }
    if (!strstr(head, "POST /v1/responses ")) {
        return say(ret, 404, OPENAI_ERROR("Invalid URL (POST /v1)", "null", "null"));
    }
    if (unknown_field(body, known)) {
        return say(
            ret, 400,
            printed(OPENAI_ERROR("Unknown parameter: '%s'.", "null", "\"unknown_parameter\""),
                    unknown_field(body, known)));
    }
    if (has(body, "temperature")) {
        return say(ret, 400,
                   OPENAI_ERROR("Unsupported parameter: 'temperature' is not supported with this "
                                "model.",
                                "\"temperature\"", "null"));
    }
    if (has(body, "top_logprobs") || has(body, "include")) {
        return say(ret, 400,
                   OPENAI_ERROR("logprobs are not supported with reasoning models.", "\"include\"",
                                "null"));
    }
    const json_t *format = json_object_get(json_object_get(body, "text"), "format");
    return has(body, "text") && (!has(format, "name") || !has(format, "schema"))
               ? say(ret, 400,
                     OPENAI_ERROR("Missing required parameter: 'text.format.name'.",
                                  "\"text.format.name\"", "\"missing_required_parameter\""))
               : 0;
}

#define RESPONSES_ANSWER                                                                           \
    "{\"id\":\"r\",\"object\":\"response\",\"status\":\"completed\",\"error\":null,"               \
    "\"incomplete_details\":null,\"output\":[{\"id\":\"x\",\"type\":\"reasoning\",\"summary\":[]}" \
    ","                                                                                            \
    "{\"id\":\"m\",\"type\":\"message\",\"status\":\"completed\",\"role\":\"assistant\","          \
    "\"content\":[{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[],\"text\":"          \
    "\"" FORECAST                                                                                  \
    "\"}]}],\"usage\":{\"input_tokens\":1000,\"input_tokens_details\":{\"cached_tokens\":0},"      \
    "\"output_tokens\":20,\"output_tokens_details\":{\"reasoning_tokens\":12},"                    \
    "\"total_tokens\":1020}}"

// ---- Anthropic ----

#define ANTHROPIC_ERROR(type, message)                                                             \
    "{\"type\":\"error\",\"error\":{\"type\":\"" type "\",\"message\":\"" message                  \
    "\"},\"request_id\":\"req_1\"}"

static inline int anthropic(const char *head, const json_t *body, size_t number, const char **ret)
{
    static const char *const known[] = {"model",         "messages", "max_tokens",  "system",
                                        "temperature",   "tools",    "tool_choice", "thinking",
                                        "output_config", NULL};
    const json_t *parts =
        json_object_get(json_array_get(json_object_get(body, "messages"), 0), "content");

    (void)number;
    if (!has_header(head, "\nx-api-key: " PROVIDER_KEY "\r\n") ||
        has_header(head, "\nAuthorization:")) {
        return say(ret, 401,
                   ANTHROPIC_ERROR("authentication_error", "x-api-key header is required"));
    }
    if (!has_header(head, "\nanthropic-version: 2023-06-01")) {
        return say(
            ret, 400,
            ANTHROPIC_ERROR("invalid_request_error", "anthropic-version: header is required"));
    }
    if (!strstr(head, "POST /v1/messages ")) {
        return say(ret, 404, ANTHROPIC_ERROR("not_found_error", "Not Found"));
    }
    if (!has(body, "max_tokens")) {
        return say(ret, 400,
                   ANTHROPIC_ERROR("invalid_request_error", "max_tokens: Field required"));
    }
    if (unknown_field(body, known)) {
        return say(
            ret, 400,
            printed(ANTHROPIC_ERROR("invalid_request_error", "%s: Extra inputs are not permitted"),
                    unknown_field(body, known)));
    }
    for (size_t i = 0; i < json_array_size(parts); i++) {
        if (text_of(json_array_get(parts, i), "text")[0] == '\0') {
            return say(ret, 400,
                       ANTHROPIC_ERROR("invalid_request_error",
                                       "messages: text content blocks must be non-empty"));
        }
    }
    return 0;
}

// With extended thinking, which forces no tool and no temperature.
static inline int anthropic_thinking(const char *head, const json_t *body, size_t number,
                                     const char **ret)
{
    const char *choice = text_of(json_object_get(body, "tool_choice"), "type");
    int status = anthropic(head, body, number, ret);

    if (status != 0) {
        return status;
    }
    if (has(body, "thinking") && has(body, "temperature") &&
        json_number_value(json_object_get(body, "temperature")) != 1) {
        return say(ret, 400,
                   ANTHROPIC_ERROR("invalid_request_error",
                                   "`temperature` may only be set to 1 when thinking is enabled."));
    }
    if (has(body, "thinking") && (strcmp(choice, "tool") == 0 || strcmp(choice, "any") == 0)) {
        return say(
            ret, 400,
            ANTHROPIC_ERROR("invalid_request_error",
                            "Thinking may not be enabled when tool_choice forces tool use."));
    }
    return 0;
}

#define ANTHROPIC_USAGE                                                                            \
    "\"usage\":{\"input_tokens\":100,\"cache_creation_input_tokens\":200,"                         \
    "\"cache_read_input_tokens\":700,\"output_tokens\":20}"
#define ANTHROPIC_TOOL_ANSWER                                                                      \
    "{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"tool_"     \
    "use\","                                                                                       \
    "\"id\":\"t\",\"name\":\"submit_forecast\",\"input\":{\"bin\":\"G\",\"p\":{\"F\":0.2,"         \
    "\"G\":0.8},\"p_correct\":0.9}}],\"stop_reason\":\"tool_use\",\"stop_sequence\":"              \
    "null," ANTHROPIC_USAGE "}"
#define ANTHROPIC_TEXT_ANSWER                                                                      \
    "{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":"            \
    "\"thinking\","                                                                                \
    "\"thinking\":\"Bin A? No.\",\"signature\":\"s\"},{\"type\":\"text\",\"text\":\"" FORECAST     \
    "\"}],\"stop_reason\":\"end_turn\"," ANTHROPIC_USAGE "}"

#endif
