// A message as JSON: what is shown of each type of field, and how.
#include "proto/message.h"
#include "tests/proto/every_field.h"
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NUMBERS "\"count\":0,\"offset\":0,"
#define FLAG ",\"ready\":false"

static void assert_json(const struct every *every, const char *expected)
{
    struct strbuf json = STRBUF_INIT;

    message_json(&every_message, every, &json);
    assert_string_equal(strbuf_text(&json), expected);
    strbuf_release(&json);
}

static void numbers_and_flags_are_shown_when_they_are_zero_and_nothing_else_is(void **state)
{
    struct every every;

    (void)state;
    message_init(&every_message, &every);
    assert_json(&every, "{\"count\":0,\"offset\":0,\"ready\":false}");
    every.ratio = 0.0;
    assert_json(&every, "{" NUMBERS "\"ratio\":0" FLAG "}");
}

static void whole_numbers_are_integers(void **state)
{
    static const struct {
        int64_t offset;
        const char *text;
    } rows[] = {
        {999999999999999, "999999999999999"},    {-999999999999999, "-999999999999999"},
        {1000000000000000, "1000000000000000"},  {-1000000000000000, "-1000000000000000"},
        {INT64_MIN, "\"-9223372036854775808\""}, {INT64_MAX, "9223372036854775807"},
    };
    struct every every;

    (void)state;
    message_init(&every_message, &every);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char *expected = xasprintf("{\"count\":0,\"offset\":%s" FLAG "}", rows[i].text);
        every.offset = rows[i].offset;
        assert_json(&every, expected);
        free(expected);
    }
}

static void reals_are_whole_exact_or_null(void **state)
{
    static const struct {
        double ratio;
        const char *text;
    } rows[] = {
        {-0.0, "0"},
        {3.0, "3"},
        {0.1, "0.10000000000000001"},
        {1e300, "1.0000000000000001e300"},
        {(double)INFINITY, "null"},
        {-(double)INFINITY, "null"},
    };
    struct every every;

    (void)state;
    message_init(&every_message, &every);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char *expected = xasprintf("{" NUMBERS "\"ratio\":%s" FLAG "}", rows[i].text);
        every.ratio = rows[i].ratio;
        assert_json(&every, expected);
        free(expected);
    }
}

static void bytes_are_hexadecimal_up_to_64_and_a_length_beyond(void **state)
{
    unsigned char data[65];
    struct every every;

    (void)state;
    message_init(&every_message, &every);
    memset(data, 0xa5, sizeof(data));
    data[0] = 0;
    every.data = (struct bytes){data, 3};
    assert_json(&every, "{" NUMBERS "\"ready\":false,\"data\":\"00a5a5\"}");
    every.data.len = 65;
    assert_json(&every, "{" NUMBERS "\"ready\":false,\"data\":{\"bytes\":65}}");
    every.data.len = 64;
    json_t *json = message_json_value(&every_message, &every);
    assert_int_equal(json_string_length(json_object_get(json, "data")), 128);
    json_decref(json);
}

static void arrays_and_messages_nest_in_the_order_of_the_table(void **state)
{
    double reals[] = {1.5, (double)NAN};
    uint64_t numbers[] = {0, UINT64_MAX};
    char first[] = "", second[] = "\xff\"", name[] = "n";
    char *words[] = {first, second};
    struct inner inner = {.name = name, .value = 2.0};
    struct every every;

    (void)state;
    message_init(&every_message, &every);
    every.text = name;
    every.reals = reals;
    every.numbers = numbers;
    every.words = words;
    every.reals_count = every.numbers_count = every.words_count = 2;
    every.one = every.list = &inner;
    every.list_count = 1;
    assert_json(&every, "{" NUMBERS "\"ready\":false,\"text\":\"n\",\"reals\":[1.5,null],"
                        "\"numbers\":[0,\"18446744073709551615\"],\"words\":[\"\",\"?\\\"\"],"
                        "\"one\":{\"name\":\"n\",\"value\":2},"
                        "\"list\":[{\"name\":\"n\",\"value\":2}]}");
}

static void digests_are_64_digits_and_the_absent_one_is_left_out(void **state)
{
    struct digest digests[] = {digest_of("a", 1), {{0}}};
    struct every every;

    (void)state;
    message_init(&every_message, &every);
    every.digest = digests[0];
    every.digests = digests;
    every.digests_count = 2;
    json_t *json = message_json_value(&every_message, &every);
    char hex[DIGEST_HEX_LEN + 1];
    digest_hex(&digests[0], hex);
    assert_string_equal(json_string_value(json_object_get(json, "digest")), hex);
    const json_t *list = json_object_get(json, "digests");
    assert_int_equal(json_array_size(list), 2);
    assert_string_equal(json_string_value(json_array_get(list, 0)), hex);
    digest_hex(&digests[1], hex); // an element stays, even when it is zero
    assert_string_equal(json_string_value(json_array_get(list, 1)), hex);
    json_decref(json);
    every.digest = digests[1];
    json = message_json_value(&every_message, &every);
    assert_null(json_object_get(json, "digest"));
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_and_flags_are_shown_when_they_are_zero_and_nothing_else_is),
        cmocka_unit_test(whole_numbers_are_integers),
        cmocka_unit_test(reals_are_whole_exact_or_null),
        cmocka_unit_test(bytes_are_hexadecimal_up_to_64_and_a_length_beyond),
        cmocka_unit_test(arrays_and_messages_nest_in_the_order_of_the_table),
        cmocka_unit_test(digests_are_64_digits_and_the_absent_one_is_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
