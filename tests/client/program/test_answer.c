// The lines that a program writes: candidates up to the first line that is none.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/program/answer.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include <math.h>
#include <string.h>

static int read_lines(struct propose_reply *reply, const char *text, struct err *err)
{
    message_init(&propose_reply_message, reply);
    return program_answer_read(reply, text, strlen(text), err);
}

static void lines_are_candidates(void **state)
{
    struct propose_reply reply;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(
        read_lines(&reply,
                   "{\"source\":\"a\",\"name\":\"n\",\"model\":\"m\",\"cost\":0.5,"
                   "\"input_tokens\":7}\n\n \r\n"
                   "{\"source\":\"b\",\"other\":[1],\"cost\":0.25,\"output_tokens\":2}",
                   &err),
        0);
    assert_int_equal(reply.proposals_count, 2);
    assert_int_equal(reply.proposals[0].source.len, 1);
    assert_string_equal(reply.proposals[0].name, "n");
    assert_null(reply.proposals[1].name);
    assert_string_equal(reply.model, "m");
    assert_int_equal(reply.input_tokens, 7);
    assert_int_equal(reply.output_tokens, 2);
    assert_true(reply.cost > 0.74 && reply.cost < 0.76);
    message_clear(&propose_reply_message, &reply);
    assert_int_equal(read_lines(&reply, "{\"source\":\"a\"}\n", &err), 0);
    assert_true(isnan(reply.cost)); // nobody said what it cost
    message_clear(&propose_reply_message, &reply);
}

static void what_is_no_candidate_is_named_by_its_line(void **state)
{
    static const char *const row[][2] = {
        {"garbage", "line 1: no JSON: "},
        {"{\"source\":\"a\"}\n[1]\n", "line 2: no JSON object"},
        {"{\"source\":\"a\"}\n\n{\"source\":\"\"}",
         "line 3: \"source\" is missing, empty or no text"},
        {"{\"source\":3}", "line 1: \"source\" is missing, empty or no text"},
        {"{\"source\":\"a\",\"source\":\"b\"}", "line 1: no JSON: duplicate object key"},
        {"{\"source\":\"a\",\"name\":3}", "line 1: \"name\" is no text"},
        {"{\"source\":\"a\",\"name\":\"\\u001b[2J\"}", "line 1: the name of a candidate"},
        {"{\"source\":\"a\",\"model\":{}}", "line 1: \"model\" is no text"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct propose_reply reply;
        struct err err = ERR_INIT;

        assert_int_equal(read_lines(&reply, row[i][0], &err), ERR_INVALID);
        if (strncmp(err.text, row[i][1], strlen(row[i][1])) != 0) {
            fail_msg("\"%s\" instead of \"%s\"", err.text, row[i][1]);
        }
        // What came before counts.
        assert_int_equal(reply.proposals_count,
                         strncmp(row[i][0], "{\"source\":\"a\"}\n", 15) == 0);
        message_clear(&propose_reply_message, &reply);
    }
}

static void limits_are_held(void **state)
{
    struct strbuf text;
    struct propose_reply reply;
    struct err err = ERR_INIT;

    (void)state;
    strbuf_init(&text, SIZE_MAX);
    for (int i = 0; i <= ANSWER_CANDIDATES_MAX; i++) {
        strbuf_adds(&text, "{\"source\":\"a\"}\n");
    }
    assert_int_equal(read_lines(&reply, text.data, &err), ERR_LIMIT);
    assert_non_null(strstr(err.text, "line 65: more than 64 candidates"));
    assert_int_equal(reply.proposals_count, ANSWER_CANDIDATES_MAX);
    message_clear(&propose_reply_message, &reply);
    strbuf_reset(&text);
    err = (struct err)ERR_INIT;
    strbuf_adds(&text, "{\"source\":\"");
    for (int i = 0; i < (1 << 20) + 1; i++) {
        strbuf_addc(&text, 'x');
    }
    strbuf_adds(&text, "\"}");
    assert_int_equal(read_lines(&reply, text.data, &err), ERR_LIMIT);
    if (!strstr(err.text, "line 1: the source is longer than")) {
        fail_msg("%s", err.text);
    }
    message_clear(&propose_reply_message, &reply);
    strbuf_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_candidates),
        cmocka_unit_test(what_is_no_candidate_is_named_by_its_line),
        cmocka_unit_test(limits_are_held),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
