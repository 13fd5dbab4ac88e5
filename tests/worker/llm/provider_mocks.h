// Endpoints of language models as strict as the real ones, after their documents and the error
// bodies that people report: each refuses what the real one refuses, in its words, and answers in
// its form. They know nothing of the worker.
#ifndef TESTS_WORKER_LLM_PROVIDER_MOCKS_H
#define TESTS_WORKER_LLM_PROVIDER_MOCKS_H

#include "tests/worker/llm/provider_openai.h"

struct provider_mock {
    const char *name;
    enum api_form form;
    const char *path;  // that the url ends with, behind the host and the port
    const char *extra; // the endpoint's extra body; NULL: none
    const char *way;   // in which it is asked in the end, as request_style_describe says it
    // Writes the error body of a request that it refuses to *ret (static memory) and returns its
    // status; 0: it takes the request. number: of the request, from 0.
    int (*refuse)(const char *head, const json_t *body, size_t number, const char **ret);
    const char *answer; // the body of a good answer
};

static inline int azure(const char *head, const json_t *body, size_t number, const char **ret)
{
    (void)number;
    if (!has_header(head, "\napi-key: " PROVIDER_KEY "\r\n") ||
        has_header(head, "\nAuthorization:")) {
        return say(ret, 401,
                   "{\"error\":{\"code\":\"401\",\"message\":\"Access denied due to invalid "
                   "subscription key or wrong API endpoint.\"}}");
    }
    if (!strstr(head, "POST /openai/deployments/tester/chat/completions?api-version=2024-10-21 ")) {
        return say(ret, 404, "{\"error\":{\"code\":\"404\",\"message\":\"Resource not found\"}}");
    }
    if (has(body, "max_tokens")) {
        return say(ret, 400,
                   OPENAI_ERROR("Unsupported parameter: 'max_tokens' is not supported with this "
                                "model. Use 'max_completion_tokens' instead.",
                                "\"max_tokens\"", "\"unsupported_parameter\""));
    }
    return 0;
}

static inline int mistral(const char *head, const json_t *body, size_t number, const char **ret)
{
    static const char *const known[] = {"model",           "messages", "max_tokens",  "temperature",
                                        "response_format", "tools",    "tool_choice", "safe_prompt",
                                        "random_seed",     NULL};
    int status = need_bearer(head, ret);

    (void)number;
    return status != 0 ? status
           : unknown_field(body, known)
               ? say(ret, 422,
                     printed("{\"object\":\"error\",\"message\":{\"detail\":[{\"type\":"
                             "\"extra_forbidden\",\"loc\":[\"body\",\"%s\"],\"msg\":\"Extra inputs "
                             "are not permitted\",\"input\":true}]},\"type\":"
                             "\"invalid_request_error\",\"param\":null,\"code\":null}",
                             unknown_field(body, known)))
               : 0;
}

static inline int gemini(const char *head, const json_t *body, size_t number, const char **ret)
{
    int status = need_bearer(head, ret);

    (void)number;
    if (status == 0 && has(body, "logprobs")) {
        return say(
            ret, 400,
            "[{\"error\":{\"code\":400,\"message\":\"Invalid JSON payload received. Unknown "
            "name \\\"logprobs\\\": Cannot find field.\\nInvalid JSON payload received. "
            "Unknown name \\\"top_logprobs\\\": Cannot find field.\",\"status\":"
            "\"INVALID_ARGUMENT\",\"details\":[{\"@type\":"
            "\"type.googleapis.com/google.rpc.BadRequest\",\"fieldViolations\":[{"
            "\"description\":\"Invalid JSON payload received. Unknown name \\\"logprobs\\\": "
            "Cannot find field.\"}]}]}}]");
    }
    if (status == 0 && has(body, "response_format") && !has_format(body, "json_schema")) {
        return say(ret, 400,
                   "[{\"error\":{\"code\":400,\"message\":\"Invalid value at "
                   "'response_format'\",\"status\":\"INVALID_ARGUMENT\"}}]");
    }
    return status;
}

static inline int groq(const char *head, const json_t *body, size_t number, const char **ret)
{
    int status = need_bearer(head, ret);

    (void)number;
    if (status == 0 && has(body, "logprobs")) {
        return say(ret, 400,
                   "{\"error\":{\"message\":\"`logprobs` is not supported with this model\","
                   "\"type\":\"invalid_request_error\",\"param\":\"logprobs\"}}");
    }
    if (status == 0 && has_format(body, "json_schema")) {
        return say(ret, 400,
                   "{\"error\":{\"message\":\"This model does not support response format "
                   "`json_schema`. See supported models at "
                   "https://console.groq.com/docs/structured-outputs#supported-models\",\"type\":"
                   "\"invalid_request_error\",\"param\":\"response_format\"}}");
    }
    return status;
}

#define DEEPSEEK_ERROR(message)                                                                    \
    "{\"error\":{\"message\":\"" message "\",\"type\":\"invalid_request_error\",\"param\":null,"   \
    "\"code\":\"invalid_request_error\"}}"

static inline int deepseek_chat(const char *head, const json_t *body, size_t number,
                                const char **ret)
{
    int status = need_bearer(head, ret);

    (void)number;
    return status == 0 && has_format(body, "json_schema")
               ? say(ret, 400, DEEPSEEK_ERROR("This response_format type is unavailable now"))
               : status;
}

static inline int deepseek_reasoner(const char *head, const json_t *body, size_t number,
                                    const char **ret)
{
    int status = deepseek_chat(head, body, number, ret);

    if (status == 0 && has(body, "logprobs")) {
        return say(ret, 400,
                   DEEPSEEK_ERROR("deepseek-reasoner does not support the parameter `logprobs`"));
    }
    if (status == 0 && has(body, "tools")) {
        return say(ret, 400, DEEPSEEK_ERROR("deepseek-reasoner does not support this tool_choice"));
    }
    if (status == 0 && has(body, "response_format")) {
        return say(ret, 400, DEEPSEEK_ERROR("deepseek-reasoner does not support Json Output."));
    }
    return status;
}

static inline int vllm(const char *head, const json_t *body, size_t number, const char **ret)
{
    (void)head;
    (void)number;
    if (json_integer_value(json_object_get(body, "top_logprobs")) > 5) {
        return say(ret, 400,
                   "{\"object\":\"error\",\"message\":\"Requested sample logprobs of 20, which is "
                   "greater than max allowed: 5\",\"type\":\"BadRequestError\",\"param\":null,"
                   "\"code\":400}");
    }
    if (has(body, "tools")) {
        return say(ret, 400,
                   "{\"object\":\"error\",\"message\":\"\\\"auto\\\" tool choice requires "
                   "--enable-auto-tool-choice and --tool-call-parser to be set\",\"type\":"
                   "\"BadRequestError\",\"param\":null,\"code\":400}");
    }
    return 0;
}

static inline int ollama(const char *head, const json_t *body, size_t number, const char **ret)
{
    (void)head;
    (void)number;
    return strcmp(text_of(body, "model"), "tester") != 0
               ? say(ret, 404,
                     "{\"error\":{\"message\":\"model 'x' not found\",\"type\":\"api_error\","
                     "\"param\":null,\"code\":null}}")
               : 0;
}

// It loads its model first.
static inline int llama_cpp(const char *head, const json_t *body, size_t number, const char **ret)
{
    (void)head;
    if (number == 0) {
        return say(ret, 503,
                   "{\"error\":{\"message\":\"Loading model\",\"type\":\"unavailable_error\","
                   "\"code\":503}}");
    }
    return has(body, "tools")
               ? say(ret, 500,
                     "{\"error\":{\"code\":500,\"message\":\"tools param requires --jinja flag\","
                     "\"type\":\"server_error\"}}")
               : 0;
}

// The same, asked with a tool only because its JSON schema is refused, too.
static inline int llama_cpp_old(const char *head, const json_t *body, size_t number,
                                const char **ret)
{
    return has(body, "response_format")
               ? say(ret, 400,
                     "{\"error\":{\"code\":400,\"message\":\"response_format type must be one of "
                     "'text' or 'json_object', but got: json_schema\",\"type\":"
                     "\"invalid_request_error\"}}")
               : llama_cpp(head, body, number + 1, ret);
}

static inline int xai(const char *head, const json_t *body, size_t number, const char **ret)
{
    int status = need_bearer(head, ret);

    (void)number;
    return status == 0 && has(body, "response_format")
               ? say(ret, 400,
                     "{\"code\":\"Client specified an invalid argument\",\"error\":\"The "
                     "response_format parameter is unsupported at the moment. Leave it unset.\"}")
               : status;
}

static inline int openrouter(const char *head, const json_t *body, size_t number, const char **ret)
{
    int status = need_bearer(head, ret);

    (void)number;
    if (status == 0 && has(body, "response_format")) {
        return say(ret, 400,
                   "{\"error\":{\"message\":\"Provider returned error\",\"code\":400,\"metadata\":{"
                   "\"raw\":\"{\\\"error\\\":{\\\"message\\\":\\\"bad\\\"}}\"}}}");
    }
    if (status == 0 && has(body, "tools")) {
        return say(
            ret, 404,
            "{\"error\":{\"message\":\"No endpoints found that support tool use. To learn "
            "more about provider routing, visit: https://openrouter.ai/docs\",\"code\":404}}");
    }
    return status;
}

#define REASONED                                                                                   \
    "{\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"" FORECAST       \
    "\",\"reasoning_content\":\"Maybe {\\\"bin\\\":\\\"A\\\"}?\"},\"finish_reason\":\"stop\"}],"   \
    "\"usage\":{\"prompt_tokens\":1000,\"completion_tokens\":20,\"prompt_cache_hit_tokens\":640,"  \
    "\"prompt_cache_miss_tokens\":360}}"

static const struct provider_mock provider_mocks[] = {
    {"openai-reasoning", API_CHAT, "/v1", NULL,
     "json_schema without logprobs, temperature, effort; max_completion_tokens", openai_reasoning,
     CONTENT},
    {"openai-first-reasoning", API_CHAT, "/v1", NULL, NULL, openai_first_reasoning, CONTENT},
    {"openai-effort", API_CHAT, "/v1", NULL, NULL, openai_effort, CONTENT},
    {"openai-responses", API_RESPONSES, "/v1", NULL,
     "json_schema without logprobs, temperature, effort", openai_responses, RESPONSES_ANSWER},
    {"anthropic", API_ANTHROPIC, "", NULL, "forced-tool", anthropic, ANTHROPIC_TOOL_ANSWER},
    {"anthropic-thinking", API_ANTHROPIC, "/v1",
     "{\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":1024}}", NULL, anthropic_thinking,
     ANTHROPIC_TEXT_ANSWER},
    {"anthropic-extra", API_ANTHROPIC, "/v1", "{\"top_kk\":3}", "forced-tool without top_kk",
     anthropic, ANTHROPIC_TOOL_ANSWER},
    {"azure", API_AZURE, "", NULL, "json_schema; max_completion_tokens", azure, CONTENT},
    {"azure-address", API_AZURE, "/openai/deployments/tester", NULL,
     "json_schema; max_completion_tokens", azure, CONTENT},
    {"mistral", API_CHAT, "/v1", NULL, "json_schema without logprobs", mistral, CONTENT},
    {"mistral-extra", API_CHAT, "/v1", "{\"seed\":1}", NULL, mistral, CONTENT},
    {"gemini", API_CHAT, "/v1beta/openai", NULL, "json_schema without logprobs", gemini, CONTENT},
    {"groq", API_CHAT, "/openai/v1", NULL, NULL, groq, TOOL_CALL},
    {"deepseek-chat", API_CHAT, "", NULL, "forced-tool", deepseek_chat, TOOL_CALL},
    {"deepseek-reasoner", API_CHAT, "/v1", NULL, NULL, deepseek_reasoner, REASONED},
    {"vllm", API_CHAT, "/v1", NULL, "json_schema without logprobs", vllm, CONTENT},
    {"ollama", API_CHAT, "/v1", NULL, "json_schema", ollama, CONTENT},
    {"llama.cpp", API_CHAT, "/v1", NULL, "json_schema", llama_cpp, CONTENT},
    {"llama.cpp-old", API_CHAT, "/v1", NULL, NULL, llama_cpp_old, CONTENT},
    {"xai", API_CHAT, "/v1", NULL, "forced-tool", xai, TOOL_CALL},
    {"openrouter", API_CHAT, "/api/v1", NULL, NULL, openrouter, CONTENT},
};

// What a mock answers.
static inline void provider_mock_reply(const struct provider_mock *mock,
                                       const struct stub_request *request, struct stub_reply *reply)
{
    json_t *body = json_loads(request->body, JSON_REJECT_DUPLICATES, NULL);

    reply->status = body ? mock->refuse(request->head, body, request->number, &reply->body) : 400;
    if (!body) {
        reply->body =
            "{\"error\":{\"message\":\"We could not parse the JSON body of your request.\"}}";
    } else if (reply->status == 0) {
        reply->status = 200;
        reply->body = mock->answer;
    }
    json_decref(body);
}

#endif
