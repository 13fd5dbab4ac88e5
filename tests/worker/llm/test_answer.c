// Answers of endpoints, good and bad: where the forecast is found, and which answers are refused.
#include "common/strbuf.h"
#include "worker/llm/answer.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MESSAGE(inside) "{\"choices\":[{\"message\":{" inside "}}]}"
#define USAGE                                                                                      \
    "\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":20,"                                   \
    "\"prompt_tokens_details\":{\"cached_tokens\":64},"                                            \
    "\"completion_tokens_details\":{\"reasoning_tokens\":7}}"

static struct answer read_answer(const char *body)
{
    struct answer answer;
    struct err err = ERR_INIT, why = ERR_INIT;

    if (answer_read(&answer, body, strlen(body), &why, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return answer;
}

static void expect_bin(const char *body, size_t bin, double p, enum answer_place place)
{
    struct answer answer = read_answer(body);

    assert_true(answer.has_forecast);
    assert_true(fabs(answer.forecast.bins[bin] - (p)) < 1e-9);
    assert_int_equal(answer.forecast.place, place);
    answer_release(&answer);
}

static void a_forecast_is_found_wherever_it_is(void **state)
{
    (void)state;
    expect_bin(
        MESSAGE("\"content\":\"{\\\"p\\\":{\\\"A\\\":0.25,\\\"C\\\":0.75},\\\"p_correct\\\":1}\""),
        2, 0.75, ANSWER_CONTENT);
    expect_bin(
        MESSAGE("\"content\":\"I think {it is} so:\\n```json\\n{\\\"p\\\":{\\\"B\\\":1}}\\n```\""),
        1, 1, ANSWER_CONTENT);
    // The last object counts.
    expect_bin(MESSAGE("\"content\":\"{\\\"p\\\":{\\\"B\\\":1}} no, {\\\"p\\\":{\\\"D\\\":1}}\""),
               3, 1, ANSWER_CONTENT);
    expect_bin(
        MESSAGE("\"content\":null,\"tool_calls\":[{\"function\":{\"name\":\"submit_forecast\","
                "\"arguments\":\"{\\\"p\\\":{\\\"E\\\":2,\\\"F\\\":2}}\"}}]"),
        4, 0.5, ANSWER_TOOL);
    expect_bin(
        MESSAGE("\"content\":\"<tool_call>{\\\"name\\\":\\\"submit_forecast\\\",\\\"arguments\\\":"
                "{\\\"p\\\":{\\\"G\\\":1}}}</tool_call>\""),
        6, 1, ANSWER_CONTENT);
    expect_bin(MESSAGE("\"content\":\"\",\"reasoning_content\":\"so {\\\"p\\\":{\\\"H\\\":1}}\""),
               7, 1, ANSWER_REASONING);
    expect_bin(MESSAGE("\"content\":[{\"type\":\"text\",\"text\":\"{\\\"p\\\":{\\\"I\\\":1}}\"}]"),
               8, 1, ANSWER_CONTENT);
}

static void numbers_come_in_many_spellings(void **state)
{
    (void)state;
    expect_bin(MESSAGE("\"content\":\"{\\\"p\\\":{\\\"A\\\":\\\"30%\\\",\\\"B\\\":0.7}}\""), 0, 0.3,
               ANSWER_CONTENT);
    expect_bin(MESSAGE("\"content\":\"{\\\"p\\\":[0,0,0,0,0,0,0,50,50,0,0,0,0,0,0]}\""), 7, 0.5,
               ANSWER_CONTENT);
    struct answer answer = read_answer(
        MESSAGE("\"content\":\"{\\\"p\\\":{\\\"A\\\":60,\\\"B\\\":20},\\\"p_correct\\\":95}\""));
    assert_true(fabs(answer.forecast.raw_sum - (80)) < 1e-9);
    assert_true(fabs(answer.forecast.p_correct - (0.95)) < 1e-9);
    assert_int_equal(answer.forecast.stated, -1);
    answer_release(&answer);
    answer =
        read_answer(MESSAGE("\"content\":\"{\\\"bin\\\":\\\"C\\\",\\\"p_correct\\\":\\\"x\\\"}\""));
    assert_true(answer.has_forecast);
    assert_int_equal(answer.forecast.stated, 2);
    assert_true(answer.forecast.bins[2] > 0.6 && answer.forecast.bins[14] > 0);
    assert_true(isnan(answer.forecast.p_correct));
    answer_release(&answer);
}

static void what_is_no_forecast_is_not_taken_for_one(void **state)
{
    static const struct {
        const char *content, *why;
    } row[] = {
        {"I cannot say.", "holds no forecast"},
        {"{\\\"p\\\":{\\\"A\\\":-1,\\\"B\\\":2}}", "bin A is no number from 0 on"},
        {"{\\\"p\\\":{\\\"A\\\":0}}", "all 0"},
        {"{\\\"p\\\":{\\\"A\\\":\\\"nan\\\"}}", "bin A is no number"},
        {"{\\\"p\\\":{\\\"A\\\":1e999}}", "holds no forecast"},
        {"{\\\"p\\\":[1,2,3]}", "3 numbers instead of 15"},
        {"{\\\"p\\\":0.5}", "neither a list nor an object"},
        {"{\\\"bin\\\":\\\"Z\\\"}", "neither \"p\" nor a \"bin\" from A to O"},
        {"{\\\"bin\\\":\\\"I cannot say\\\"}", "neither \"p\" nor a \"bin\" from A to O"},
        {"{\\\"bin\\\":\\\"A, B\\\"}", "neither \"p\" nor a \"bin\" from A to O"},
        {"{\\\"probabilities\\\":{\\\"A\\\":1}}", "holds no forecast"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct err err = ERR_INIT, why = ERR_INIT;
        char body[512];

        snprintf(body, sizeof(body), MESSAGE("\"content\":\"%s\""), row[i].content);
        struct answer answer;
        assert_int_equal(answer_read(&answer, body, strlen(body), &why, &err), 0);
        assert_false(answer.has_forecast);
        if (!strstr(why.text, row[i].why)) {
            fail_msg("%s: %s", row[i].content, why.text);
        }
        answer_release(&answer);
    }
}

static void what_is_no_completion_is_an_error(void **state)
{
    static const struct {
        const char *body, *why;
    } row[] = {
        {"", "no JSON"},
        {"<html>", "no JSON"},
        {"{\"choices\":[{\"message\":{\"content\":\"\xff\"}}]}", "no JSON"},
        {"{\"choices\":[],\"choices\":[]}", "no JSON"},
        {"{}", "no choices"},
        {"[]", "no choices"},
        {"{\"choices\":[]}", "no choices"},
        {"{\"choices\":[{\"text\":\"x\"}]}", "no choices"},
        {"{\"error\":{\"message\":\"over\\nloaded\"}}", "with an error: over loaded"},
        {"{\"error\":\"no\"}", "with an error: no"},
        {"{\"error\":{}}", "without a message"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        struct err err = ERR_INIT;
        struct answer answer;

        assert_int_equal(answer_read(&answer, row[i].body, strlen(row[i].body), NULL, &err),
                         ERR_INVALID);
        if (!strstr(err.text, row[i].why)) {
            fail_msg("%s: %s", row[i].body, err.text);
        }
        answer_release(&answer);
    }
}

static void usage_counts_also_when_there_is_no_forecast(void **state)
{
    const char *body = "{\"error\":{\"message\":\"cut\"}," USAGE "}";

    (void)state;
    struct err err = ERR_INIT;
    struct answer answer;
    assert_int_equal(answer_read(&answer, body, strlen(body), NULL, &err), ERR_INVALID);
    assert_int_equal(answer.usage.input, 100);
    assert_int_equal(answer.usage.cached, 64);
    assert_int_equal(answer.usage.output, 20);
    assert_int_equal(answer.usage.reasoning, 7);
    answer_release(&answer);
}

static void one_token_is_a_whole_distribution(void **state)
{
    struct answer answer = read_answer(
        "{\"choices\":[{\"finish_reason\":\"stop\",\"message\":{\"content\":\"{\\\"bin\\\":"
        "\\\"C\\\"}\"},"
        "\"logprobs\":{\"content\":[{\"token\":\"{\\\"\"},{\"token\":\"b\"},{\"token\":\"in\"},"
        "{\"token\":\"\\\":\\\"\"},{\"token\":\"C\",\"logprob\":-0.7,\"top_logprobs\":["
        "{\"token\":\"C\",\"logprob\":-0.6931471805599453},{\"token\":\"D\",\"logprob\":-1."
        "3862943611198906},"
        "{\"token\":\" "
        "D\",\"logprob\":-2.0794415416798357},{\"token\":\"x\",\"logprob\":-5}]}]}}]}");

    (void)state;
    assert_true(answer.forecast.from_logprobs);
    assert_true(fabs(answer.forecast.bins[2] - (0.5 / 0.875)) < 1e-9);
    assert_true(fabs(answer.forecast.bins[3] - (0.375 / 0.875)) < 1e-9);
    assert_int_equal(answer.end, ANSWER_WHOLE);
    answer_release(&answer);
}

// An answer with log-probabilities from before the schema was enforced: most of the probability is
// on tokens that the schema forbids. letter: the one that the object names. listed: how many of the
// letters from C on are among the alternatives.
static struct answer before_schema(char letter, int listed)
{
    struct strbuf body = STRBUF_INIT;

    strbuf_addf(&body,
                "{\"choices\":[{\"message\":{\"content\":\"{\\\"bin\\\":\\\"%c\\\",\\\"p\\\":{"
                "\\\"O\\\":1}}\"},\"logprobs\":{\"content\":[{\"token\":\"b\"},{\"token\":\"in\"},"
                "{\"token\":\"\\\":\"},{\"token\":\" \\\"\"},{\"token\":\"C\",\"top_logprobs\":["
                "{\"token\":\"1\",\"logprob\":%.9f},{\"token\":\"bin\",\"logprob\":%.9f}",
                letter, log(0.5), log(0.25));
    for (int i = 0; i < listed; i++) {
        strbuf_addf(&body, ",{\"token\":\"%c\",\"logprob\":%.9f}", 'C' + i,
                    log(i == 0 ? 0.1 : 0.02));
    }
    strbuf_adds(&body, "]}]}}]}");
    struct answer answer = read_answer(strbuf_text(&body));
    strbuf_release(&body);
    return answer;
}

static void letters_count_when_most_of_them_are_in_sight(void **state)
{
    (void)state;
    // 0.18 is listed; ten letters of at most 0.02 are not.
    struct answer answer = before_schema('C', 5);
    assert_false(answer.forecast.from_logprobs);
    assert_true(answer.forecast.bins[14] == 1);
    answer_release(&answer);
    answer = before_schema('C', 7); // 0.22 is listed, and at most 0.16 is not
    assert_true(answer.forecast.from_logprobs);
    assert_int_equal(answer.forecast.stated, 2);
    assert_true(fabs(answer.forecast.bins[2] - 0.1 / 0.22) < 1e-6);
    assert_true(fabs(answer.forecast.bins[8] - 0.02 / 0.22) < 1e-6);
    answer_release(&answer);
    answer = before_schema('D', 7); // the token is another letter than the object's
    assert_false(answer.forecast.from_logprobs);
    answer_release(&answer);
}

static void many_braces_cost_little(void **state)
{
    size_t len = 1 << 20;
    char *body = malloc(len + 64);

    (void)state;
    snprintf(body, len, "%s", "{\"choices\":[{\"message\":{\"content\":\"");
    memset(body + strlen(body), '{', len - strlen(body));
    memcpy(body + len, "\"}}]}", 6);
    struct answer answer;
    struct err err = ERR_INIT;
    assert_int_equal(answer_read(&answer, body, strlen(body), NULL, &err), 0);
    assert_false(answer.has_forecast);
    answer_release(&answer);
    free(body);
}

// The analysis may speak of bins; only the field behind it counts.
static void what_is_thought_first_is_no_answer(void **state)
{
    static const char body[] = MESSAGE(
        "\"content\":\"{\\\"analysis\\\":\\\"I think bin: H, or {\\\\\\\"bin\\\\\\\": "
        "\\\\\\\"B\\\\\\\"}\\\",\\\"bin\\\":\\\"C\\\",\\\"p\\\":{\\\"C\\\":1},"
        "\\\"best_bin\\\":\\\"S\\\",\\\"q\\\":{\\\"S\\\":3,\\\"T\\\":1}}\"},"
        "\"logprobs\":{\"content\":[{\"token\":\"{\\\"analysis\\\":\\\"I think bin: \"},"
        "{\"token\":\"H\",\"top_logprobs\":[{\"token\":\"H\",\"logprob\":0}]},"
        "{\"token\":\"\\\",\\\"\"},{\"token\":\"bin\"},{\"token\":\"\\\":\\\"\"},"
        "{\"token\":\"C\",\"top_logprobs\":[{\"token\":\"C\",\"logprob\":-0.6931},"
        "{\"token\":\"D\",\"logprob\":-0.6931}]},{\"token\":\"\\\",\\\"best_bin\\\":\\\"\"},"
        "{\"token\":\"S\",\"top_logprobs\":[{\"token\":\"S\",\"logprob\":-0.1053},"
        "{\"token\":\"W\",\"logprob\":-2.3026}]}]");
    struct err err = ERR_INIT, why = ERR_INIT;
    struct answer answer;

    (void)state;
    assert_int_equal(answer_read(&answer, body, strlen(body), &why, &err), 0);
    assert_true(answer.has_forecast);
    assert_true(answer.forecast.from_logprobs);
    assert_int_equal(answer.forecast.stated, 2);
    assert_true(fabs(answer.forecast.bins[2] - 0.5) < 1e-3);
    assert_true(fabs(answer.forecast.bins[3] - 0.5) < 1e-3);
    assert_true(answer.forecast.has_fine);
    assert_true(fabs(answer.forecast.fine[3] - 0.9) < 1e-3);
    assert_true(fabs(answer.forecast.fine[7] - 0.1) < 1e-3);
    answer_release(&answer);
}

static void the_second_question_may_be_left_out_or_spoilt(void **state)
{
    static const struct {
        const char *content;
        bool fine;
        double share; // of bin R
    } row[] = {
        {"{\\\"p\\\":{\\\"A\\\":1}}", false, 0},
        {"{\\\"p\\\":{\\\"A\\\":1},\\\"q\\\":{\\\"R\\\":20,\\\"P\\\":\\\"60%\\\"}}", true,
         20 / 20.6},
        {"{\\\"p\\\":{\\\"A\\\":1},\\\"q\\\":[0,0,1,1,0,0,0,0]}", true, 0.5},
        {"{\\\"p\\\":{\\\"A\\\":1},\\\"q\\\":[1,2]}", false, 0},
        {"{\\\"p\\\":{\\\"A\\\":1},\\\"q\\\":{\\\"R\\\":-1}}", false, 0},
        {"{\\\"p\\\":{\\\"A\\\":1},\\\"q\\\":7,\\\"best_bin\\\":\\\"R\\\"}", true, 0.6125},
        {"{\\\"p\\\":{\\\"A\\\":1},\\\"best_bin\\\":\\\"A\\\"}", false, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        char body[512];
        struct answer answer;
        struct err err = ERR_INIT;

        snprintf(body, sizeof(body), MESSAGE("\"content\":\"%s\""), row[i].content);
        assert_int_equal(answer_read(&answer, body, strlen(body), NULL, &err), 0);
        assert_true(answer.has_forecast);
        assert_int_equal(answer.forecast.has_fine, row[i].fine);
        if (row[i].fine) {
            assert_true(fabs(answer.forecast.fine[2] - row[i].share) < 1e-9);
        }
        answer_release(&answer);
    }
}

static void a_model_may_say_that_it_cannot_say(void **state)
{
    static const char *const content[] = {
        "{\\\"analysis\\\":\\\"?\\\",\\\"bin\\\":\\\"X\\\",\\\"p\\\":{\\\"A\\\":0}}",
        "{\\\"bin\\\":\\\"defer\\\"}",
        "Well. {\\\"defer\\\": true}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(content) / sizeof(content[0]); i++) {
        char body[512];
        struct answer answer;
        struct err err = ERR_INIT;

        snprintf(body, sizeof(body), MESSAGE("\"content\":\"%s\""), content[i]);
        assert_int_equal(answer_read(&answer, body, strlen(body), NULL, &err), 0);
        assert_true(answer.has_forecast);
        assert_true(answer.forecast.defers);
        answer_release(&answer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_forecast_is_found_wherever_it_is),
        cmocka_unit_test(numbers_come_in_many_spellings),
        cmocka_unit_test(what_is_no_forecast_is_not_taken_for_one),
        cmocka_unit_test(what_is_no_completion_is_an_error),
        cmocka_unit_test(usage_counts_also_when_there_is_no_forecast),
        cmocka_unit_test(one_token_is_a_whole_distribution),
        cmocka_unit_test(letters_count_when_most_of_them_are_in_sight),
        cmocka_unit_test(many_braces_cost_little),
        cmocka_unit_test(what_is_thought_first_is_no_answer),
        cmocka_unit_test(the_second_question_may_be_left_out_or_spoilt),
        cmocka_unit_test(a_model_may_say_that_it_cannot_say),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
