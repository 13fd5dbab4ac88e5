// All messages of the tables: round trips, hostile bytes, limits, unknown keys, missing keys.
#include "proto/messages.h"
#include "tests/support/samples/random_message.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void round_trip(const struct message *message, struct stats_rng *rng)
{
    struct strbuf packed = STRBUF_INIT, again = STRBUF_INIT, json = STRBUF_INIT;
    void *value = xcalloc(1, message->size), *read = xcalloc(1, message->size),
         *copy = xcalloc(1, message->size);
    random_message(message, value, rng, 6);
    struct err err = ERR_INIT;
    assert_int_equal(message_pack(message, value, &packed, &err), 0);
    if (message_read(message, read, packed.data, packed.len, &err) != 0) {
        fail_msg("%s: %s", message->name, err.text);
    }
    assert_true(message_equal(message, value, read));
    message_copy(message, copy, read);
    message_clear(message, read);
    assert_true(message_equal(message, value, copy));
    assert_int_equal(message_pack(message, copy, &again, &err), 0);
    assert_int_equal(packed.len, again.len);
    assert_memory_equal(packed.data, again.data, packed.len);
    message_json(message, copy, &json);
    assert_true(json.data[0] == '{' && json.data[json.len - 1] == '}');
    message_clear(message, copy);
    message_clear(message, value);
    free(value);
    free(read);
    free(copy);
    strbuf_release(&packed);
    strbuf_release(&again);
    strbuf_release(&json);
}

static void every_message_survives_a_round_trip(void **state)
{
    (void)state;
    struct stats_rng rng;
    stats_rng_init(&rng, 42, 0);
    for (size_t m = 0; m < all_messages_count; m++) {
        for (int i = 0; i < 60; i++) {
            round_trip(all_messages[m], &rng);
        }
    }
}

static void keys_are_distinct_and_names_too(void **state)
{
    (void)state;
    for (size_t m = 0; m < all_messages_count; m++) {
        size_t count;
        const struct field *field = all_messages[m]->fields(&count);
        for (size_t i = 0; i < count; i++) {
            for (size_t k = 0; k < i; k++) {
                assert_int_not_equal(field[i].key, field[k].key);
                assert_string_not_equal(field[i].name, field[k].name);
            }
        }
    }
}

// A valid message that is cut anywhere, or of which any byte is changed, gives an error or another
// valid message. It never causes a crash or a leak.
static void every_cut_and_every_changed_byte_is_survived(void **state)
{
    (void)state;
    struct stats_rng rng;
    stats_rng_init(&rng, 7, 0);
    for (size_t m = 0; m < all_messages_count; m++) {
        const struct message *message = all_messages[m];
        void *value = xcalloc(1, message->size), *read = xcalloc(1, message->size);
        random_message(message, value, &rng, 4);
        struct err err = ERR_INIT;
        struct strbuf packed = STRBUF_INIT;
        assert_int_equal(message_pack(message, value, &packed, &err), 0);
        for (size_t cut = 0; cut < packed.len; cut++) {
            err_clear(&err);
            assert_int_equal(message_read(message, read, packed.data, cut, &err), ERR_PROTOCOL);
        }
        for (size_t at = 0; at < packed.len && at < 2000; at++) {
            char saved = packed.data[at];
            packed.data[at] = (char)stats_rng_u64(&rng);
            err_clear(&err);
            if (message_read(message, read, packed.data, packed.len, &err) == 0) {
                message_clear(message, read);
            }
            packed.data[at] = saved;
        }
        message_clear(message, value);
        free(value);
        free(read);
        strbuf_release(&packed);
    }
}

static void expect_refused(const struct message *message, const void *data, size_t len,
                           const char *because)
{
    struct err err = ERR_INIT;
    void *value = xcalloc(1, message->size);
    assert_int_equal(message_read(message, value, data, len, &err), ERR_PROTOCOL);
    if (!strstr(err.text, because)) {
        fail_msg("\"%s\" does not contain \"%s\"", err.text, because);
    }
    free(value);
}
#define REFUSED(message, because, ...)                                                             \
    do {                                                                                           \
        const unsigned char data_[] = {__VA_ARGS__};                                               \
        expect_refused(&message##_message, data_, sizeof data_, because);                          \
    } while (0)

static void hostile_frames_are_refused_before_anything_is_allocated(void **state)
{
    (void)state;
    expect_refused(&wait_message, "", 0, "ends in the middle");
    REFUSED(wait, "claims", 0xdd, 0xff, 0xff, 0xff, 0xff);             // array of 4 billion
    REFUSED(wait, "claims", 0xdf, 0xff, 0xff, 0xff, 0xff);             // map of 4 billion
    REFUSED(wait, "claims", 0x81, 0x01, 0xc6, 0x7f, 0xff, 0xff, 0xff); // 2 GiB binary
    REFUSED(wait, "claims", 0x81, 0x01, 0xdb, 0xff, 0xff, 0xff, 0xff, 'a');
    REFUSED(wait, "unknown type", 0xc1);
    REFUSED(wait, "unknown type", 0x81, 0x01, 0xd4, 0x01, 0x00); // extension
    REFUSED(wait, "no map", 0x90);
    REFUSED(wait, "no map", 0xc0);
    REFUSED(wait, "follow", 0x81, 0x01, 0x90, 0x00); // trailing byte
    REFUSED(wait, "required", 0x80);
    REFUSED(wait, "wrong type", 0x81, 0x01, 0xa1, 'x');
    REFUSED(wait, "wrong type", 0x81, 0x01, 0x91, 0xff); // -1 where u64 is needed
    REFUSED(wait, "twice", 0x82, 0x01, 0x90, 0x01, 0x90);
    REFUSED(fact, "UTF-8", 0x81, 0x01, 0xa2, 0xc3, 0x28);
    REFUSED(fact, "UTF-8", 0x81, 0x01, 0xa3, 0xed, 0xa0, 0x80); // surrogate
    REFUSED(fact, "UTF-8", 0x81, 0x01, 0xa1, 0x00);
    REFUSED(blob_put, "wrong type", 0x81, 0x01, 0xc4, 0x02, 0x01, 0x02); // digest of 2 bytes
}

static void nesting_is_bounded(void **state)
{
    (void)state;
    unsigned char deep[64];
    memset(deep, 0x91, sizeof deep);
    deep[sizeof deep - 1] = 0xc0;
    expect_refused(&wait_message, deep, sizeof deep, "nests deeper");
}

static void lists_longer_than_their_limit_are_refused(void **state)
{
    struct wait wait = {.jobs = xcalloc(4097, sizeof(uint64_t)), .jobs_count = 4097};
    (void)state;
    struct err err = ERR_INIT;
    struct strbuf packed = STRBUF_INIT;
    assert_int_equal(message_pack(&wait_message, &wait, &packed, &err), ERR_LIMIT);
    strbuf_reset(&packed);
    wait.jobs_count = 4096;
    err_clear(&err);
    assert_int_equal(message_pack(&wait_message, &wait, &packed, &err), 0);
    struct job_ids ids;
    assert_int_equal(message_read(&job_ids_message, &ids, packed.data, packed.len, &err), 0);
    assert_int_equal(ids.jobs_count, 4096);
    message_clear(&job_ids_message, &ids);
    message_clear(&wait_message, &wait);
    strbuf_release(&packed);
}

static void unknown_keys_are_skipped(void **state)
{
    static const unsigned char data[] = {0x83, 0x01, 0x91, 0x07, 0x2a, 0x81,
                                         0xa1, 'k',  0x90, 0xa1, 'z',  0xc3};
    (void)state;
    struct err err = ERR_INIT;
    struct wait wait;
    assert_int_equal(message_read(&wait_message, &wait, data, sizeof data, &err), 0);
    assert_int_equal(wait.jobs_count, 1);
    assert_int_equal(wait.jobs[0], 7);
    message_clear(&wait_message, &wait);
}

static void absent_numbers_are_not_zero(void **state)
{
    static const unsigned char empty[] = {0x80};
    (void)state;
    struct err err = ERR_INIT;
    struct estimate estimate;
    assert_int_equal(message_read(&estimate_message, &estimate, empty, 1, &err), 0);
    assert_true(isnan(estimate.log2) && isnan(estimate.lo));
    assert_int_equal(estimate.blocks, 0);
}

static void a_missing_required_field_is_not_packed(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    struct strbuf packed = STRBUF_INIT;
    struct submit submit = {.search = NULL};
    assert_int_equal(message_pack(&submit_message, &submit, &packed, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, "submit.search"));
    strbuf_release(&packed);
}

static void json_escapes_and_has_no_nan(void **state)
{
    (void)state;
    struct strbuf json = STRBUF_INIT;
    struct fact fact = {.name = (char *)(uintptr_t) "a\"\n\x01", .value = (double)INFINITY};
    message_json(&fact_message, &fact, &json);
    assert_string_equal(strbuf_text(&json), "{\"name\":\"a\\\"\\n\\u0001\",\"value\":null}");
    strbuf_release(&json);
}

// What readers with doubles alone would round is a string, what is whole has no point, and a text
// that is none does not lose the rest.
static void json_numbers_are_exact(void **state)
{
    uint64_t number[] = {999999999999999, UINT64_MAX};
    char name[] = "caf\xe9";
    struct fact fact = {.name = name, .value = 0.1};
    struct waited waited = {.unknown = number, .unknown_count = 2};
    (void)state;
    struct strbuf json = STRBUF_INIT;
    message_json(&waited_message, &waited, &json);
    assert_string_equal(strbuf_text(&json),
                        "{\"unknown\":[999999999999999,\"18446744073709551615\"]}");
    strbuf_reset(&json);
    message_json(&fact_message, &fact, &json);
    assert_string_equal(strbuf_text(&json), "{\"name\":\"caf?\",\"value\":0.10000000000000001}");
    strbuf_reset(&json);
    fact.value = -3;
    message_json(&fact_message, &fact, &json);
    assert_string_equal(strbuf_text(&json), "{\"name\":\"caf?\",\"value\":-3}");
    strbuf_release(&json);
}

static void error_replies_carry_name_and_sentence(void **state)
{
    struct err err = ERR_INIT, none = ERR_INIT;
    (void)state;
    err_set(&err, ERR_BUSY, "too many");
    struct strbuf packed = STRBUF_INIT;
    reply_pack_error(&packed, 3, &err, 250);
    struct reply reply;
    assert_int_equal(message_read(&reply_message, &reply, packed.data, packed.len, &none), 0);
    assert_string_equal(reply.error, "busy");
    assert_string_equal(reply.text, "too many");
    assert_int_equal(reply.retry_after_ms, 250);
    assert_int_equal(reply.epoch, 3);
    assert_int_equal(err_from_name(reply.error), ERR_BUSY);
    message_clear(&reply_message, &reply);
    strbuf_release(&packed);
}

// The example of docs/protocol.md.
static void the_documented_bytes_are_what_is_sent(void **state)
{
    static const unsigned char documented[] = {0x84, 0x01, 0x01, 0x02, 0x06, 0x04, 0xcd, 0x13,
                                               0x88, 0x06, 0xc6, 0x00, 0x00, 0x00, 0x01, 0x80};
    struct request head = {.op = OP_STATUS, .deadline_ms = 5000};
    (void)state;
    struct status_request body;
    message_init(&status_request_message, &body);
    struct err err = ERR_INIT;
    struct strbuf packed = STRBUF_INIT;
    assert_int_equal(request_pack(&packed, &head, &status_request_message, &body, &err), 0);
    assert_int_equal(packed.len, sizeof documented);
    assert_memory_equal(packed.data, documented, sizeof documented);
    strbuf_release(&packed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_documented_bytes_are_what_is_sent),
        cmocka_unit_test(every_message_survives_a_round_trip),
        cmocka_unit_test(keys_are_distinct_and_names_too),
        cmocka_unit_test(every_cut_and_every_changed_byte_is_survived),
        cmocka_unit_test(hostile_frames_are_refused_before_anything_is_allocated),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(lists_longer_than_their_limit_are_refused),
        cmocka_unit_test(unknown_keys_are_skipped),
        cmocka_unit_test(absent_numbers_are_not_zero),
        cmocka_unit_test(a_missing_required_field_is_not_packed),
        cmocka_unit_test(json_escapes_and_has_no_nan),
        cmocka_unit_test(json_numbers_are_exact),
        cmocka_unit_test(error_replies_carry_name_and_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
