#include "worker/llm/chat_request.h"

#include "common/mem.h"
#include "proto/bins.h"
#include "worker/llm/answer.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define LOGPROBS_TOP 20 // most that endpoints give per token

const char *output_format_name(enum output_format format)
{
    static const char *const name[] = {
#define X(id, text) [OUTPUT_##id] = text,
        OUTPUT_FORMATS(X)
#undef X
    };

    return name[format];
}

enum output_format output_format_of(const char *name)
{
    int format = 0;

    while (format < OUTPUT_TEXT &&
           strcmp(output_format_name((enum output_format)format), name) != 0) {
        format++;
    }
    return (enum output_format)format;
}

// The JSON schema of a forecast: "bin", "p" with one number per letter, and "p_correct". All are
// required and nothing else is allowed. No references, which some endpoints do not know.
static json_t *schema(void)
{
    json_t *letters = json_array(), *shares = json_object(), *all = json_array();

    for (int bin = 0; bin < BIN_COUNT; bin++) {
        const char letter[2] = {(char)(ANSWER_FIRST_LETTER + bin), '\0'};

        json_array_append_new(letters, json_string(letter));
        json_array_append_new(all, json_string(letter));
        json_object_set_new(shares, letter, json_pack("{s:s}", "type", "number"));
    }
    return json_pack("{s:s, s:b, s:[s, s, s], s:{s:{s:s, s:o}, s:{s:s, s:b, s:o, s:o}, s:{s:s}}}",
                     "type", "object", "additionalProperties", 0, "required", "bin", "p",
                     "p_correct", "properties", "bin", "type", "string", "enum", letters, "p",
                     "type", "object", "additionalProperties", 0, "required", all, "properties",
                     shares, "p_correct", "type", "number");
}

// Adds the tool that hands in a forecast. Takes choice.
static void add_tool(json_t *body, json_t *choice)
{
    json_object_set_new(body, "tools",
                        json_pack("[{s:s, s:{s:s, s:s, s:o}}]", "type", "function", "function",
                                  "name", ANSWER_TOOL_NAME, "description", "Hands in the forecast.",
                                  "parameters", schema()));
    json_object_set_new(body, "tool_choice", choice);
}

static void add_format(json_t *body, enum output_format format)
{
    switch (format) {
    case OUTPUT_SCHEMA:
        json_object_set_new(body, "response_format",
                            json_pack("{s:s, s:{s:s, s:b, s:o}}", "type", "json_schema",
                                      "json_schema", "name", "forecast", "strict", 1, "schema",
                                      schema()));
        break;
    case OUTPUT_FORCED:
        add_tool(body, json_pack("{s:s, s:{s:s}}", "type", "function", "function", "name",
                                 ANSWER_TOOL_NAME));
        break;
    case OUTPUT_REQUIRED:
        add_tool(body, json_string("required"));
        break;
    case OUTPUT_JSON:
        json_object_set_new(body, "response_format", json_pack("{s:s}", "type", "json_object"));
        break;
    default:
        break;
    }
}

void chat_request_body(struct strbuf *out, const struct chat_request *request,
                       const struct request_style *style)
{
    char *user = xasprintf("%s%s", request->search, request->candidate);
    json_t *body =
        json_pack("{s:s, s:[{s:s, s:s}, {s:s, s:s}]}", "model", request->model, "messages", "role",
                  "system", "content", request->rules, "role", "user", "content", user);

    json_object_set_new(body, style->completion ? "max_completion_tokens" : "max_tokens",
                        json_integer((json_int_t)request->max_tokens));
    if (!style->no_temperature) {
        json_object_set_new(body, "temperature", json_real(request->temperature));
    }
    if (request->forecast) {
        add_format(body, style->format);
        // The arguments of a tool call come without log-probabilities.
        if (!style->no_logprobs && style->format != OUTPUT_FORCED &&
            style->format != OUTPUT_REQUIRED) {
            json_object_set_new(body, "logprobs", json_true());
            json_object_set_new(body, "top_logprobs", json_integer(LOGPROBS_TOP));
        }
    }
    char *text = json_dumps(body, JSON_COMPACT | JSON_REAL_PRECISION(6));
    strbuf_adds(out, text ? text : "{}");
    free(text);
    free(user);
    json_decref(body);
}

// Falls back to the next format. Returns false after the last one.
static bool next_format(struct request_style *style)
{
    style->unusable = 0;
    if (style->format + 1 == OUTPUT_FORMAT_COUNT) {
        return false;
    }
    style->format++;
    return true;
}

// Whether two styles ask in the same way.
static bool is_same(const struct request_style *a, const struct request_style *b)
{
    return a->format == b->format && a->no_logprobs == b->no_logprobs &&
           a->no_temperature == b->no_temperature && a->completion == b->completion;
}

bool request_style_refused(struct request_style *style, const struct request_style *used,
                           const char *body, size_t len)
{
    char *text = xstrndup(body, len);
    bool changed = true;

    // Drops the field that the endpoint complains about, if it names one; otherwise falls back to
    // the next format.
    if (!is_same(style, used)) {
        changed = true; // another request has changed the style already
    } else if (!style->no_logprobs && strstr(text, "logprobs")) {
        style->no_logprobs = true;
    } else if (!style->completion && strstr(text, "max_completion_tokens")) {
        style->completion = true;
    } else if (!style->no_temperature && strstr(text, "temperature")) {
        style->no_temperature = true;
    } else {
        changed = next_format(style);
    }
    free(text);
    return changed;
}

void request_style_unusable(struct request_style *style, const struct request_style *used)
{
    if (is_same(style, used) && ++style->unusable >= REQUEST_STYLE_UNUSABLE_MAX &&
        !next_format(style)) {
        style->format = OUTPUT_SCHEMA;
    }
}

void request_style_usable(struct request_style *style, const struct request_style *used)
{
    if (is_same(style, used)) {
        style->unusable = 0;
    }
}
