// What refusals mean: the error bodies of providers, and the words that their endpoints use.
#include "worker/endpoint/refusal.h"

#include "common/mem.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    long status;
    const char *body;
    enum refusal_kind kind;
    unsigned features;
} row[] = {
    // answers
    {200, "{\"choices\":[]}", REFUSAL_NONE, 0},
    {200, "{\"error\":null,\"output\":[]}", REFUSAL_NONE, 0},
    {200, "no JSON", REFUSAL_NONE, 0},
    // a proxy that hides the status
    {200, "{\"error\":{\"code\":402,\"message\":\"More credits are required\"}}", REFUSAL_QUOTA, 0},
    {200, "{\"error\":{\"message\":\"upstream\"}}", REFUSAL_PASSES, 0},
    // features by name, also with a status that otherwise means a bad key
    {403, "{\"error\":{\"message\":\"You are not allowed to request logprobs from this model\"}}",
     REFUSAL_REQUEST, FEATURE_LOGPROBS},
    {403, "{\"error\":{\"message\":\"Structured outputs are not enabled for your project\"}}",
     REFUSAL_REQUEST, FEATURE_FORMAT},
    {400, "{\"error\":{\"message\":\"Logprobs is not enabled for models/gemini-2.5-pro\"}}",
     REFUSAL_REQUEST, FEATURE_LOGPROBS},
    {400,
     "{\"error\":{\"message\":\"Unsupported parameter: 'max_tokens' is not supported with this "
     "model. Use 'max_completion_tokens' instead.\",\"param\":\"max_tokens\"}}",
     REFUSAL_REQUEST, FEATURE_LIMIT},
    {400, "{\"error\":{\"message\":\"x\",\"param\":\"temperature\"}}", REFUSAL_REQUEST,
     FEATURE_TEMPERATURE},
    {422,
     "{\"detail\":[{\"type\":\"extra_forbidden\",\"loc\":[\"body\",\"logprobs\"],\"msg\":\"Extra "
     "inputs are not permitted\",\"input\":{\"temperature\":1,\"tools\":[]}}]}",
     REFUSAL_REQUEST, FEATURE_LOGPROBS},
    {400,
     "{\"code\":\"Client specified an invalid argument\",\"error\":\"The response_format "
     "parameter is unsupported at the moment.\"}",
     REFUSAL_REQUEST, FEATURE_FORMAT},
    {404, "{\"error\":{\"message\":\"No endpoints found that support tool use.\"}}",
     REFUSAL_REQUEST, FEATURE_TOOLS},
    {500, "{\"error\":{\"code\":500,\"message\":\"tools param requires --jinja flag\"}}",
     REFUSAL_REQUEST, FEATURE_TOOLS},
    {501,
     "{\"error\":{\"code\":501,\"message\":\"This server does not support grammar\","
     "\"type\":\"not_supported_error\"}}",
     REFUSAL_REQUEST, FEATURE_FORMAT},
    {400,
     "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"Thinking "
     "may not be enabled when tool_choice forces tool use.\"}}",
     REFUSAL_REQUEST, FEATURE_CHOICE},
    {400, "{\"error\":{\"message\":\"reasoning_effort 'low' is not supported\"}}", REFUSAL_REQUEST,
     FEATURE_EFFORT},
    {400, "{\"error\":{\"message\":\"System role not supported: the system role is unknown\"}}",
     REFUSAL_REQUEST, FEATURE_SYSTEM},
    {400,
     "[{\"error\":{\"code\":400,\"message\":\"Unknown name \\\"logprobs\\\"\\nUnknown name "
     "\\\"temperature\\\"\",\"status\":\"INVALID_ARGUMENT\"}}]",
     REFUSAL_REQUEST, FEATURE_LOGPROBS | FEATURE_TEMPERATURE},
    {400, "", REFUSAL_REQUEST, 0},
    // money
    {402, "{\"error\":{\"message\":\"Insufficient Balance\"}}", REFUSAL_QUOTA, 0},
    {402, "", REFUSAL_QUOTA, 0},
    {429,
     "{\"error\":{\"code\":\"insufficient_quota\",\"message\":\"You exceeded your current "
     "quota\"}}",
     REFUSAL_QUOTA, 0},
    {429,
     "[{\"error\":{\"code\":429,\"message\":\"You exceeded your current quota\",\"details\":[{"
     "\"@type\":\"x\",\"retryDelay\":\"34s\"}]}}]",
     REFUSAL_PASSES, 0},
    {429,
     "{\"error\":{\"message\":\"Rate limit reached. You can raise it by adding a payment method "
     "at https://platform.openai.com/account/billing\"}}",
     REFUSAL_PASSES, 0},
    {400,
     "{\"type\":\"error\",\"error\":{\"message\":\"Your credit balance is too low to access the "
     "Anthropic API\"}}",
     REFUSAL_QUOTA, 0},
    // keys
    {401, "{\"error\":{\"message\":\"Incorrect API key provided\"}}", REFUSAL_KEY, 0},
    {403, "", REFUSAL_KEY, 0},
    {403, "{\"error\":{\"message\":\"Forbidden\"}}", REFUSAL_KEY, 0},
    {400,
     "[{\"error\":{\"code\":400,\"message\":\"API key not valid. Please pass a valid API "
     "key.\"}}]",
     REFUSAL_KEY, 0},
    // models and addresses
    {404,
     "{\"error\":{\"message\":\"The model `gpt-tools` does not exist or you do not have access "
     "to it.\",\"code\":\"model_not_found\"}}",
     REFUSAL_MISSING, 0},
    {404, "404 page not found", REFUSAL_MISSING, 0},
    {405, "", REFUSAL_MISSING, 0},
    {400, "{\"error\":{\"message\":\"Model Not Exist\"}}", REFUSAL_MISSING, 0},
    {400,
     "{\"object\":\"error\",\"message\":\"Invalid model: mistral-huge\",\"type\":"
     "\"invalid_model\"}",
     REFUSAL_MISSING, 0},
    {404,
     "{\"error\":{\"code\":\"DeploymentNotFound\",\"message\":\"The API deployment for this "
     "resource does not exist.\"}}",
     REFUSAL_MISSING, 0},
    // filters
    {400,
     "{\"error\":{\"code\":\"content_filter\",\"message\":\"The response was filtered\","
     "\"innererror\":{\"code\":\"ResponsibleAIPolicyViolation\"}}}",
     REFUSAL_FILTERED, 0},
    {400,
     "{\"error\":{\"code\":\"invalid_prompt\",\"message\":\"Invalid prompt: your prompt was "
     "flagged\"}}",
     REFUSAL_FILTERED, 0},
    // too long
    {413, "", REFUSAL_TOO_LONG, 0},
    {400, "{\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"m\"}}", REFUSAL_TOO_LONG,
     0},
    {400,
     "{\"object\":\"error\",\"message\":\"This model's maximum context length is 4096 tokens. "
     "However, you requested 5000 tokens (904 in the messages, 4096 in the completion).\"}",
     REFUSAL_TOO_LONG, 0},
    {400,
     "{\"error\":{\"code\":400,\"message\":\"the request exceeds the available context size\","
     "\"type\":\"exceed_context_size_error\"}}",
     REFUSAL_TOO_LONG, 0},
    {400,
     "{\"error\":{\"message\":\"`max_tokens` must be less than or equal to `8192`, the maximum "
     "value for `max_tokens` is less than the `context_window` for this model\"}}",
     REFUSAL_REQUEST, FEATURE_LIMIT},
    // the model's own fault
    {400,
     "{\"error\":{\"message\":\"Failed to generate JSON. Please adjust your prompt.\",\"code\":"
     "\"json_validate_failed\",\"failed_generation\":\"I think\"}}",
     REFUSAL_UNUSABLE, 0},
    // what passes
    {408, "", REFUSAL_PASSES, 0},
    {500, "{\"error\":{\"message\":\"The server had an error\"}}", REFUSAL_PASSES, 0},
    {503, "{\"error\":{\"message\":\"Loading model\",\"type\":\"unavailable_error\"}}",
     REFUSAL_PASSES, 0},
    {529, "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}", REFUSAL_PASSES, 0},
    {502, "<html>Bad Gateway</html>", REFUSAL_PASSES, 0},
};

static void each_means_what_it_says(void **state)
{
    struct refusal refusal;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        refusal_read(&refusal, row[i].status, row[i].body, strlen(row[i].body));
        if (refusal.kind != row[i].kind || refusal.features != row[i].features) {
            fail_msg("status %ld, %s: %s, features %x", row[i].status, row[i].body,
                     refusal_meaning(refusal.kind), refusal.features);
        }
    }
}

static void words_are_quoted_as_one_printable_line(void **state)
{
    static const struct {
        const char *body, *words;
    } quoted[] = {
        {"{\"error\":{\"message\":\"Insufficient \\\"Balance\\\"\\n\\tnow\"}}",
         "Insufficient 'Balance' now"},
        {"{\"type\":\"error\",\"error\":{\"type\":\"x\",\"message\":\"overloaded\"}}",
         "overloaded"},
        {"[{\"error\":{\"message\":\"in a list\"}}]", "in a list"},
        {"{\"detail\":[{\"loc\":[\"body\"],\"msg\":\"Extra inputs\"}]}", "Extra inputs"},
        {"{\"error\":\"bare\"}", "bare"},
        {"{\"message\":{\"detail\":[{\"msg\":\"deep\"}]}}", "deep"},
        {"{}", ""},
        {"plain text", "plain text"},
        {"<html>no</html>", "a page of HTML"},
        {"\x1b[31mred\x07", "[31mred"},
    };
    struct refusal refusal;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(quoted); i++) {
        refusal_read(&refusal, 400, quoted[i].body, strlen(quoted[i].body));
        assert_string_equal(refusal.words, quoted[i].words);
    }
}

static void a_pause_in_the_body_counts(void **state)
{
    static const char body[] =
        "[{\"error\":{\"code\":429,\"details\":[{\"retryDelay\":\"34s\"}]}}]";
    struct refusal refusal;

    (void)state;
    refusal_read(&refusal, 429, body, strlen(body));
    assert_true(refusal.retry_ms == 34000);
    refusal_read(&refusal, 429, "{}", 2);
    assert_true(isnan(refusal.retry_ms));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_means_what_it_says),
        cmocka_unit_test(words_are_quoted_as_one_printable_line),
        cmocka_unit_test(a_pause_in_the_body_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
