// Request styles: what is left out when an endpoint refuses a request or answers it unusably.
#include "worker/endpoint/request_style.h"

#include "common/mem.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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

// A request that was made in the style `used` is refused with these words.
static bool refused(struct request_style *style, const struct request_style *used, const char *body,
                    size_t len)
{
    struct refusal refusal;

    refusal_read(&refusal, 400, body, len);
    return request_style_refused(style, used, &refusal, 300, NULL);
}

static bool refuse(struct request_style *style, const char *body)
{
    struct request_style used = *style;

    return refused(style, &used, body, strlen(body));
}

static void what_is_complained_about_is_left_out(void **state)
{
    (void)state;
    struct request_style style = {.unusable = 2};
    assert_true(refuse(&style, "{\"error\": \"logprobs is not supported\"}"));
    assert_true(style.no_logprobs && !style.no_temperature);
    request_style_usable(&style, &style);
    assert_true(refuse(&style, "{\"error\":{\"message\":\"Unsupported parameter: 'max_tokens' is "
                               "not supported with this model. Use 'max_completion_tokens' "
                               "instead.\",\"param\":\"max_tokens\"}}"));
    assert_int_equal(style.limit, LIMIT_OTHER);
    request_style_usable(&style, &style);
    assert_true(refuse(&style, "unsupported value: 'temperature'"));
    assert_true(style.no_temperature);
    assert_int_equal(style.format, OUTPUT_SCHEMA);
    request_style_usable(&style, &style);
    // The same complaint once more is about something else: the next format is tried.
    assert_true(refuse(&style, "temperature"));
    assert_int_equal(style.format, OUTPUT_FORCED);
    assert_int_equal(style.unusable, 0);
    assert_true(style.no_logprobs && style.limit == LIMIT_OTHER && style.no_temperature);
}

// A model that thinks refuses one thing after the other. Whatever it refuses, the fourth request is
// a plain question.
static void the_second_refusal_leaves_out_all_options_and_the_third_asks_plainly(void **state)
{
    (void)state;
    struct request_style style = {.format = OUTPUT_SCHEMA};
    assert_true(refuse(&style, "use 'max_completion_tokens' instead"));
    assert_true(!style.no_logprobs && !style.no_temperature);
    assert_true(refuse(&style, "'temperature' does not support 0.7"));
    assert_true(style.no_temperature && style.no_logprobs && style.no_effort);
    assert_int_equal(style.format, OUTPUT_SCHEMA);
    assert_true(refuse(&style, "'messages[0].role' does not support 'system' with this model."));
    assert_int_equal(style.format, OUTPUT_TEXT);
    assert_true(style.no_system);
    assert_false(refuse(&style, "no"));
}

static void refusals_without_a_name_end_at_the_plain_question(void **state)
{
    (void)state;
    for (int form = 0; form < API_FORM_COUNT; form++) {
        struct request_style style = request_style_first((enum api_form)form);
        int refusals = 0;

        while (refuse(&style, "unknown")) {
            refusals++;
        }
        assert_true(refusals <= 3);
        assert_int_equal(style.format, OUTPUT_TEXT);
        assert_true(style.no_logprobs && style.no_temperature && style.no_system);
    }
}

static void a_limit_that_is_too_large_is_lowered(void **state)
{
    (void)state;
    struct request_style style = request_style_first(API_CHAT);
    struct refusal refusal;
    static const char deepseek[] = "{\"error\":{\"message\":\"Invalid max_tokens value, the valid "
                                   "range of max_tokens is [1, 8192]\"}}";
    refusal_read(&refusal, 400, deepseek, strlen(deepseek));
    assert_true(request_style_refused(&style, &style, &refusal, 100000, NULL));
    assert_int_equal(request_style_limit(&style, 100000), 8192);
    assert_int_equal(request_style_limit(&style, 1000), 1000);
    struct request_style anthropic = request_style_first(API_ANTHROPIC);
    static const char claude[] =
        "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":"
        "\"max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for "
        "claude-sonnet-4-20250514\"}}";
    refusal_read(&refusal, 400, claude, strlen(claude));
    assert_true(request_style_refused(&anthropic, &anthropic, &refusal, 100000, NULL));
    assert_int_equal(request_style_limit(&anthropic, 100000), 64000);
    // A limit that leaves no room for the question is left out.
    struct request_style vllm = request_style_first(API_CHAT);
    static const char room[] =
        "{\"error\":{\"message\":\"'max_tokens' is too large: 4096. This model's maximum "
        "context length is 4096 tokens and your request has 904 input tokens\","
        "\"param\":\"max_tokens\",\"code\":400}}";
    refusal_read(&refusal, 400, room, strlen(room));
    assert_int_equal(refusal.kind, REFUSAL_REQUEST);
    assert_true(request_style_refused(&vllm, &vllm, &refusal, 4096, NULL));
    assert_int_equal(vllm.limit, LIMIT_NONE);
}

static void an_extra_field_is_left_out_by_name(void **state)
{
    (void)state;
    json_t *extra = json_loads("{\"seed\":7,\"safe_prompt\":true}", 0, NULL);
    struct request_style style = request_style_first(API_CHAT);
    struct refusal refusal;
    static const char mistral[] =
        "{\"object\":\"error\",\"message\":{\"detail\":[{\"type\":\"extra_forbidden\",\"loc\":"
        "[\"body\",\"safe_prompt\"],\"msg\":\"Extra inputs are not permitted\",\"input\":true}]}}";
    refusal_read(&refusal, 422, mistral, strlen(mistral));
    assert_true(request_style_refused(&style, &style, &refusal, 300, extra));
    assert_int_equal(style.extra_left_out, 2);
    assert_int_equal(style.format, OUTPUT_SCHEMA);
    struct strbuf text = STRBUF_INIT;
    request_style_describe(&text, &style, extra);
    assert_string_equal(strbuf_text(&text), "json_schema without safe_prompt");
    strbuf_release(&text);
    json_decref(extra);
}

static void a_style_is_kept_as_a_text(void **state)
{
    (void)state;
    for (int form = 0; form < API_FORM_COUNT; form++) {
        struct request_style style = request_style_first((enum api_form)form), read;
        style.no_logprobs = style.no_effort = style.doubled = true;
        style.limit_most = 8192;
        style.extra_left_out = 5;
        style.format = OUTPUT_REQUIRED;
        style.limit = form == API_ANTHROPIC ? LIMIT_OWN : LIMIT_OTHER;
        struct strbuf text = STRBUF_INIT;
        request_style_write(&text, &style);
        assert_int_equal(
            request_style_read(&read, (enum api_form)form, strbuf_text(&text), text.len, NULL), 0);
        assert_memory_equal(&read, &style, sizeof(style));
        strbuf_release(&text);
    }
    static const char *const bad[] = {"",
                                      "{}",
                                      "[]",
                                      "{\"format\":\"verse\"}",
                                      "{\"format\":\"text\",\"limit\":9}",
                                      "{\"format\":\"text\",\"limit_most\":-1}"};
    struct request_style read;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(request_style_read(&read, API_CHAT, bad[i], strlen(bad[i]), NULL),
                         ERR_INVALID);
    }
    // Anthropic's messages know no JSON schema.
    assert_int_equal(
        request_style_read(&read, API_ANTHROPIC, "{\"format\":\"json_schema\"}", 24, NULL),
        ERR_INVALID);
}

static void only_the_part_of_the_body_that_came_is_read(void **state)
{
    static const char body[] = "bad request; logprobs";

    (void)state;
    struct request_style style = {.format = OUTPUT_SCHEMA}, used = style;
    assert_true(refused(&style, &used, body, 11));
    assert_false(style.no_logprobs);
    assert_int_equal(style.format, OUTPUT_FORCED);
    // A NUL ends the text; nothing is read behind it.
    request_style_usable(&style, &style);
    used = style;
    assert_true(refused(&style, &used, "\0logprobs", 9));
    assert_false(style.no_logprobs);
    assert_int_equal(style.format, OUTPUT_REQUIRED);
}

// Many requests are open at once. When they are refused together the style changes once.
static void a_burst_of_refusals_changes_the_style_once(void **state)
{
    (void)state;
    struct request_style style = {.format = OUTPUT_SCHEMA}, used = style;
    for (int i = 0; i < 10; i++) {
        assert_true(refused(&style, &used, "no", 2));
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
        cmocka_unit_test(formats_are_found_by_their_names),
        cmocka_unit_test(what_is_complained_about_is_left_out),
        cmocka_unit_test(the_second_refusal_leaves_out_all_options_and_the_third_asks_plainly),
        cmocka_unit_test(refusals_without_a_name_end_at_the_plain_question),
        cmocka_unit_test(a_limit_that_is_too_large_is_lowered),
        cmocka_unit_test(an_extra_field_is_left_out_by_name),
        cmocka_unit_test(a_style_is_kept_as_a_text),
        cmocka_unit_test(only_the_part_of_the_body_that_came_is_read),
        cmocka_unit_test(a_burst_of_refusals_changes_the_style_once),
        cmocka_unit_test(unusable_answers_in_a_row_go_round_the_formats),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
