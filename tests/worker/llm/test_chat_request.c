// Chat completion requests: what the body demands in each output format, and how a request style
// falls back when an endpoint refuses it or answers it unusably.
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
                                             .forecast = true};

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
    assert_int_equal(json_array_size(json_object_get(schema, "required")), 3);
    const json_t *properties = json_object_get(schema, "properties");
    const json_t *letters = json_object_get(json_object_get(properties, "bin"), "enum");
    const json_t *shares = json_object_get(properties, "p");
    assert_int_equal(json_array_size(letters), BIN_COUNT);
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
            assert_string_equal(text_of(function, "name"), ANSWER_TOOL_NAME);
            check_schema(json_object_get(function, "parameters"));
        }
        if (format == OUTPUT_FORCED) {
            assert_string_equal(text_of(json_object_get(choice, "function"), "name"),
                                ANSWER_TOOL_NAME);
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
    struct request_style style = {.no_logprobs = true, .no_temperature = true, .completion = true};
    json_t *body = body_of(&forecast, &style);
    assert_null(json_object_get(body, "logprobs"));
    assert_null(json_object_get(body, "top_logprobs"));
    assert_null(json_object_get(body, "temperature"));
    assert_null(json_object_get(body, "max_tokens"));
    assert_int_equal(json_integer_value(json_object_get(body, "max_completion_tokens")), 300);
    json_decref(body);
    // A proposal is a text: no style makes it a forecast.
    struct chat_request proposal = forecast;
    proposal.forecast = false;
    style = (struct request_style){.format = OUTPUT_FORCED};
    body = body_of(&proposal, &style);
    assert_null(json_object_get(body, "tools"));
    assert_null(json_object_get(body, "tool_choice"));
    assert_null(json_object_get(body, "response_format"));
    assert_null(json_object_get(body, "logprobs"));
    assert_int_equal(json_integer_value(json_object_get(body, "max_tokens")), 300);
    json_decref(body);
}

static void formats_are_found_by_their_names(void **state)
{
    (void)state;
    for (int format = 0; format < OUTPUT_FORMAT_COUNT; format++) {
        assert_int_equal(output_format_of(output_format_name((enum output_format)format)), format);
    }
    // A name that an older or newer program wrote falls back to what every endpoint takes.
    assert_int_equal(output_format_of(""), OUTPUT_TEXT);
    assert_int_equal(output_format_of("json_schema2"), OUTPUT_TEXT);
    assert_int_equal(output_format_of("JSON_SCHEMA"), OUTPUT_TEXT);
}

// ---- falling back ----

static bool refuse(struct request_style *style, const char *body)
{
    struct request_style used = *style;

    return request_style_refused(style, &used, body, strlen(body));
}

static void the_field_that_is_complained_about_goes_first(void **state)
{
    (void)state;
    struct request_style style = {.unusable = 2};
    assert_true(refuse(&style, "{\"error\": \"logprobs is not supported\"}"));
    assert_true(style.no_logprobs);
    assert_true(refuse(&style, "use 'max_completion_tokens' instead of 'max_tokens'"));
    assert_true(style.completion);
    assert_true(refuse(&style, "unsupported value: 'temperature'"));
    assert_true(style.no_temperature);
    assert_int_equal(style.format, OUTPUT_SCHEMA);
    assert_int_equal(style.unusable, 2);
    // The same complaint once more is about something else: the next format is tried.
    assert_true(refuse(&style, "temperature"));
    assert_int_equal(style.format, OUTPUT_FORCED);
    assert_int_equal(style.unusable, 0);
    assert_true(style.no_logprobs && style.completion && style.no_temperature);
}

static void formats_are_tried_until_none_is_left(void **state)
{
    (void)state;
    struct request_style style = {.format = OUTPUT_SCHEMA};
    for (int format = OUTPUT_SCHEMA; format < OUTPUT_TEXT; format++) {
        assert_int_equal(style.format, format);
        assert_true(refuse(&style, format == OUTPUT_FORCED ? "" : "unknown field"));
    }
    assert_int_equal(style.format, OUTPUT_TEXT);
    assert_false(refuse(&style, "no such model"));
    assert_int_equal(style.format, OUTPUT_TEXT);
    // Plain text still has fields to drop.
    assert_true(refuse(&style, "logprobs"));
    assert_true(style.no_logprobs);
}

static void only_the_part_of_the_body_that_came_is_read(void **state)
{
    static const char body[] = "bad request; logprobs";

    (void)state;
    struct request_style style = {.format = OUTPUT_SCHEMA}, used = style;
    assert_true(request_style_refused(&style, &used, body, 11));
    assert_false(style.no_logprobs);
    assert_int_equal(style.format, OUTPUT_FORCED);
    // A NUL ends the text; nothing is read behind it.
    used = style;
    assert_true(request_style_refused(&style, &used, "\0logprobs", 9));
    assert_false(style.no_logprobs);
    assert_int_equal(style.format, OUTPUT_REQUIRED);
}

// Many requests are open at once. When they are refused together the style changes once.
static void a_burst_of_refusals_changes_the_style_once(void **state)
{
    (void)state;
    struct request_style style = {.format = OUTPUT_SCHEMA}, used = style;
    for (int i = 0; i < 10; i++) {
        assert_true(request_style_refused(&style, &used, "no", 2));
    }
    assert_int_equal(style.format, OUTPUT_FORCED);
    for (int i = 0; i < 10; i++) {
        request_style_unusable(&style, &used);
    }
    assert_int_equal(style.format, OUTPUT_FORCED);
    assert_int_equal(style.unusable, 0);
    // A success of a former style is no success of this one.
    struct request_style now = style;
    request_style_unusable(&style, &now);
    request_style_usable(&style, &used);
    assert_int_equal(style.unusable, 1);
    request_style_usable(&style, &now);
    assert_int_equal(style.unusable, 0);
}

static void unusable_answers_in_a_row_go_round_the_formats(void **state)
{
    (void)state;
    struct request_style style = {.format = OUTPUT_SCHEMA, .no_temperature = true};
    for (int format = 0; format < 2 * OUTPUT_FORMAT_COUNT; format++) {
        assert_int_equal(style.format, format % OUTPUT_FORMAT_COUNT);
        for (unsigned i = 0; i < REQUEST_STYLE_UNUSABLE_MAX; i++) {
            assert_int_equal(style.unusable, i);
            struct request_style used = style;
            request_style_unusable(&style, &used);
        }
    }
    assert_int_equal(style.format, OUTPUT_SCHEMA);
    assert_true(style.no_temperature);
    // A usable answer between them begins the row again.
    for (int i = 0; i < 10; i++) {
        struct request_style used = style;
        request_style_unusable(&style, &used);
        request_style_unusable(&style, &used);
        request_style_usable(&style, &used);
    }
    assert_int_equal(style.format, OUTPUT_SCHEMA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_arrive_as_they_are),
        cmocka_unit_test(each_format_demands_the_object_in_its_way),
        cmocka_unit_test(what_an_endpoint_does_not_take_is_left_out),
        cmocka_unit_test(formats_are_found_by_their_names),
        cmocka_unit_test(the_field_that_is_complained_about_goes_first),
        cmocka_unit_test(formats_are_tried_until_none_is_left),
        cmocka_unit_test(only_the_part_of_the_body_that_came_is_read),
        cmocka_unit_test(a_burst_of_refusals_changes_the_style_once),
        cmocka_unit_test(unusable_answers_in_a_row_go_round_the_formats),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
