// Requests to language models: what the body demands in each form of interface and output format.
#include "worker/llm/chat_request.h"

#include "common/mem.h"
#include "proto/bins.h"
#include "worker/llm/answer.h"
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct chat_request forecast = {.model = "small \"1\"",
                                             .rules = "Be honest.",
                                             .search = "The problem.\n",
                                             .candidate = "The candidate: \\ \x7f \"",
                                             .max_tokens = 300,
                                             .temperature = 0.25,
                                             .form = &answer_form_forecast};

// The body of a request, parsed. The caller releases it.
static json_t *body_of(const struct chat_request *request, const struct request_style *style)
{
    struct strbuf text = STRBUF_INIT;
    json_error_t where;

    chat_request_body(&text, request, style);
    json_t *body = json_loads(strbuf_text(&text), JSON_REJECT_DUPLICATES, &where);
    if (!body) {
        fail_msg("%s: %s", where.text, strbuf_text(&text));
    }
    strbuf_release(&text);
    return body;
}

static const char *text_of(const json_t *body, const char *name)
{
    const char *text = json_string_value(json_object_get(body, name));

    return text ? text : "";
}

// The schema of a forecast names every bin, requires everything and allows nothing else.
static void check_schema(const json_t *schema)
{
    assert_string_equal(text_of(schema, "type"), "object");
    assert_true(json_is_false(json_object_get(schema, "additionalProperties")));
    assert_int_equal(json_array_size(json_object_get(schema, "required")), 6);
    const json_t *properties = json_object_get(schema, "properties");
    // The model thinks first: endpoints generate the fields in this order.
    static const char *const order[] = {"analysis", "bin", "p", "p_correct", "best_bin", "q"};
    void *at = json_object_iter((json_t *)(uintptr_t)properties);
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        assert_string_equal(json_object_iter_key(at), order[i]);
        at = json_object_iter_next((json_t *)(uintptr_t)properties, at);
    }
    assert_int_equal(
        json_array_size(json_object_get(json_object_get(properties, "best_bin"), "enum")),
        FINE_BIN_COUNT);
    const json_t *letters = json_object_get(json_object_get(properties, "bin"), "enum");
    const json_t *shares = json_object_get(properties, "p");
    assert_int_equal(json_array_size(letters), BIN_COUNT + 1);
    const char defer[2] = {ANSWER_DEFER_LETTER, '\0'};
    assert_string_equal(json_string_value(json_array_get(letters, BIN_COUNT)), defer);
    assert_int_equal(json_object_size(json_object_get(shares, "properties")), BIN_COUNT);
    assert_int_equal(json_array_size(json_object_get(shares, "required")), BIN_COUNT);
    for (size_t bin = 0; bin < BIN_COUNT; bin++) {
        const char letter[2] = {(char)(ANSWER_FIRST_LETTER + (int)bin), '\0'};

        assert_string_equal(json_string_value(json_array_get(letters, bin)), letter);
        assert_non_null(json_object_get(json_object_get(shares, "properties"), letter));
    }
}

static void texts_arrive_as_they_are(void **state)
{
    (void)state;
    struct request_style style = {.format = OUTPUT_TEXT};
    json_t *body = body_of(&forecast, &style);
    const json_t *messages = json_object_get(body, "messages");
    const json_t *system = json_array_get(messages, 0), *user = json_array_get(messages, 1);
    assert_string_equal(text_of(body, "model"), forecast.model);
    assert_int_equal(json_array_size(messages), 2);
    assert_string_equal(text_of(system, "role"), "system");
    assert_string_equal(text_of(system, "content"), forecast.rules);
    assert_string_equal(text_of(user, "role"), "user");
    assert_string_equal(text_of(user, "content"), "The problem.\nThe candidate: \\ \x7f \"");
    assert_true(json_real_value(json_object_get(body, "temperature")) == 0.25);
    json_decref(body);
}

static void each_format_demands_the_object_in_its_way(void **state)
{
    (void)state;
    for (int format = 0; format < OUTPUT_FORMAT_COUNT; format++) {
        struct request_style style = {.format = (enum output_format)format};
        json_t *body = body_of(&forecast, &style);
        const json_t *response = json_object_get(body, "response_format");
        const json_t *tool = json_array_get(json_object_get(body, "tools"), 0);
        const json_t *function = json_object_get(tool, "function");
        const json_t *choice = json_object_get(body, "tool_choice");
        bool tools = format == OUTPUT_FORCED || format == OUTPUT_REQUIRED;

        assert_true(!tool == !tools);
        assert_true(!choice == !tools);
        assert_true(!response == !(format == OUTPUT_SCHEMA || format == OUTPUT_JSON));
        // Arguments of tools come without log-probabilities, so that nobody asks for them.
        assert_true(!json_object_get(body, "logprobs") == tools);
        assert_int_equal(json_integer_value(json_object_get(body, "top_logprobs")), tools ? 0 : 20);
        if (tools) {
            assert_string_equal(text_of(function, "name"), answer_form_forecast.tool);
            check_schema(json_object_get(function, "parameters"));
        }
        if (format == OUTPUT_FORCED) {
            assert_string_equal(text_of(json_object_get(choice, "function"), "name"),
                                answer_form_forecast.tool);
        }
        if (format == OUTPUT_REQUIRED) {
            assert_string_equal(json_string_value(choice), "required");
        }
        if (format == OUTPUT_SCHEMA) {
            const json_t *schema = json_object_get(response, "json_schema");

            assert_true(json_is_true(json_object_get(schema, "strict")));
            check_schema(json_object_get(schema, "schema"));
        }
        json_decref(body);
    }
}

static void what_an_endpoint_does_not_take_is_left_out(void **state)
{
    (void)state;
    struct request_style style = {
        .no_logprobs = true, .no_temperature = true, .limit = LIMIT_OTHER};
    json_t *body = body_of(&forecast, &style);
    assert_null(json_object_get(body, "logprobs"));
    assert_null(json_object_get(body, "top_logprobs"));
    assert_null(json_object_get(body, "temperature"));
    assert_null(json_object_get(body, "max_tokens"));
    assert_int_equal(json_integer_value(json_object_get(body, "max_completion_tokens")), 300);
    json_decref(body);
    // A proposal is a text: no style makes it a forecast.
    struct chat_request proposal = forecast;
    proposal.form = NULL;
    style = (struct request_style){.format = OUTPUT_FORCED};
    body = body_of(&proposal, &style);
    assert_null(json_object_get(body, "tools"));
    assert_null(json_object_get(body, "tool_choice"));
    assert_null(json_object_get(body, "response_format"));
    assert_null(json_object_get(body, "logprobs"));
    assert_int_equal(json_integer_value(json_object_get(body, "max_tokens")), 300);
    json_decref(body);
}

static void responses_have_a_form_of_their_own(void **state)
{
    (void)state;
    struct request_style style = request_style_first(API_RESPONSES);
    struct chat_request request = forecast;
    request.effort = "low";
    json_t *body = body_of(&request, &style);
    const json_t *format = json_object_get(json_object_get(body, "text"), "format");
    assert_string_equal(text_of(body, "instructions"), forecast.rules);
    assert_string_equal(text_of(json_array_get(json_object_get(body, "input"), 0), "role"), "user");
    assert_int_equal(json_integer_value(json_object_get(body, "max_output_tokens")), 300);
    assert_null(json_object_get(body, "max_tokens"));
    assert_null(json_object_get(body, "messages"));
    assert_string_equal(text_of(format, "type"), "json_schema");
    check_schema(json_object_get(format, "schema"));
    assert_true(json_is_false(json_object_get(body, "store")));
    assert_int_equal(json_integer_value(json_object_get(body, "top_logprobs")), 20);
    assert_string_equal(text_of(json_object_get(body, "reasoning"), "effort"), "low");
    json_decref(body);
    style.format = OUTPUT_FORCED;
    style.no_effort = style.no_system = true;
    style.limit = LIMIT_NONE;
    body = body_of(&request, &style);
    assert_string_equal(text_of(json_object_get(body, "tool_choice"), "name"),
                        answer_form_forecast.tool);
    assert_string_equal(text_of(json_array_get(json_object_get(body, "tools"), 0), "name"),
                        answer_form_forecast.tool);
    assert_null(json_object_get(body, "max_output_tokens"));
    assert_null(json_object_get(body, "reasoning"));
    assert_null(json_object_get(body, "instructions"));
    // Without a system message the rules stand before the question.
    const char *text = text_of(json_array_get(json_object_get(body, "input"), 0), "content");
    assert_true(strstr(text, forecast.rules) < strstr(text, "The problem."));
    json_decref(body);
}

static void anthropic_s_messages_mark_what_is_to_be_kept(void **state)
{
    (void)state;
    struct request_style style = request_style_first(API_ANTHROPIC);
    struct chat_request request = forecast;
    request.temperature = 1.5; // more than is taken there
    json_t *body = body_of(&request, &style);
    const json_t *system = json_array_get(json_object_get(body, "system"), 0);
    const json_t *parts =
        json_object_get(json_array_get(json_object_get(body, "messages"), 0), "content");
    assert_int_equal(style.format, OUTPUT_FORCED);
    assert_string_equal(text_of(system, "text"), forecast.rules);
    assert_string_equal(text_of(json_object_get(system, "cache_control"), "type"), "ephemeral");
    assert_int_equal(json_array_size(parts), 2);
    assert_string_equal(text_of(json_array_get(parts, 0), "text"), forecast.search);
    assert_non_null(json_object_get(json_array_get(parts, 0), "cache_control"));
    assert_string_equal(text_of(json_array_get(parts, 1), "text"), forecast.candidate);
    assert_null(json_object_get(json_array_get(parts, 1), "cache_control"));
    assert_true(json_real_value(json_object_get(body, "temperature")) == 1);
    assert_null(json_object_get(body, "logprobs"));
    assert_null(json_object_get(body, "response_format"));
    check_schema(
        json_object_get(json_array_get(json_object_get(body, "tools"), 0), "input_schema"));
    assert_string_equal(text_of(json_object_get(body, "tool_choice"), "type"), "tool");
    json_decref(body);
    style.no_cache = true;
    body = body_of(&request, &style);
    char *text = json_dumps(body, JSON_COMPACT);
    assert_null(strstr(text, "cache_control"));
    free(text);
    json_decref(body);
}

static void an_extra_body_is_added_and_its_fields_can_be_left_out(void **state)
{
    (void)state;
    struct chat_request request = forecast;
    json_t *extra = json_loads("{\"seed\":7,\"top_k\":40}", 0, NULL);
    request.extra = extra;
    struct request_style style = request_style_first(API_CHAT);
    json_t *body = body_of(&request, &style);
    assert_int_equal(json_integer_value(json_object_get(body, "seed")), 7);
    assert_int_equal(json_integer_value(json_object_get(body, "top_k")), 40);
    json_decref(body);
    style.extra_left_out = 2;
    body = body_of(&request, &style);
    assert_non_null(json_object_get(body, "seed"));
    assert_null(json_object_get(body, "top_k"));
    json_decref(body);
    json_decref(extra);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_arrive_as_they_are),
        cmocka_unit_test(each_format_demands_the_object_in_its_way),
        cmocka_unit_test(what_an_endpoint_does_not_take_is_left_out),
        cmocka_unit_test(responses_have_a_form_of_their_own),
        cmocka_unit_test(anthropic_s_messages_mark_what_is_to_be_kept),
        cmocka_unit_test(an_extra_body_is_added_and_its_fields_can_be_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
