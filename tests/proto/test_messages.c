// Operations and the envelopes around requests and replies.
#include "common/version.h"
#include "proto/messages.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <string.h>

// The numbers are on the wire: this list may only grow.
static void numbers_and_names_of_operations_never_change(void **state)
{
    static const struct {
        uint64_t number;
        const char *name;
    } ops[] = {{1, "HELLO"},     {2, "BLOB_PUT"}, {3, "BLOB_HAVE"},      {4, "SUBMIT"},
               {5, "WAIT"},      {6, "STATUS"},   {7, "CANCEL"},         {8, "ACK"},
               {9, "DRAIN"},     {20, "BUDGET"},  {21, "QUARANTINE"},    {22, "PROBE"},
               {32, "FORECAST"}, {33, "OBSERVE"}, {34, "WORKER_STATUS"}, {35, "PROPOSE"},
               {36, "RECALL"},   {37, "RANK"}};
    size_t known = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        assert_string_equal(op_name(ops[i].number), ops[i].name);
    }
    for (uint64_t i = 0; i < 1000; i++) {
        known += strcmp(op_name(i), "unknown") != 0;
    }
    assert_int_equal(known, ARRAY_LEN(ops));
    assert_string_equal(op_name(UINT64_MAX), "unknown");
    assert_string_equal(op_name((UINT64_C(1) << 32) + 1), "unknown");
}

static void every_message_is_listed_once(void **state)
{
    (void)state;
    assert_true(all_messages_count > 50);
    for (size_t i = 0; i < all_messages_count; i++) {
        size_t count;
        (void)all_messages[i]->fields(&count);
        assert_true(count > 0 && count <= MESSAGE_FIELD_MAX && all_messages[i]->size > 0);
        for (size_t k = 0; k < i; k++) {
            assert_string_not_equal(all_messages[i]->name, all_messages[k]->name);
        }
    }
}

static void a_request_carries_its_body_packed(void **state)
{
    struct drain drain;
    struct strbuf packed = STRBUF_INIT;
    struct request request;

    (void)state;
    message_init(&drain_message, &drain);
    strbuf_adds(&packed, "frame");
    struct request head = {.op = OP_DRAIN, .deadline_ms = 1500};
    assert_int_equal(request_pack(&packed, &head, &drain_message, &drain, NULL), 0);
    assert_memory_equal(packed.data, "frame", 5); // it is appended
    assert_int_equal(
        message_read(&request_message, &request, packed.data + 5, packed.len - 5, NULL), 0);
    assert_true(request.version == KCAST_PROTOCOL_MAX && request.op == OP_DRAIN);
    assert_true(request.id == 0 && request.deadline_ms == 1500 && !request.token);
    struct drain read;
    assert_int_equal(message_read(&drain_message, &read, request.body.data, request.body.len, NULL),
                     0);
    assert_true(message_equal(&drain_message, &drain, &read));
    message_clear(&drain_message, &read);
    message_clear(&request_message, &request);
    strbuf_release(&packed);
}

static void an_envelope_without_a_body_has_none(void **state)
{
    struct strbuf packed = STRBUF_INIT;
    struct reply reply;

    (void)state;
    assert_int_equal(reply_pack(&packed, 9, NULL, NULL, NULL), 0);
    assert_int_equal(message_read(&reply_message, &reply, packed.data, packed.len, NULL), 0);
    assert_true(reply.id == 0 && reply.epoch == 9 && reply.body.len == 0 && !reply.error);
    message_clear(&reply_message, &reply);
    strbuf_reset(&packed);
    assert_int_equal(
        request_pack(&packed, &(struct request){.op = OP_WORKER_STATUS}, NULL, NULL, NULL), 0);
    struct request request;
    assert_int_equal(message_read(&request_message, &request, packed.data, packed.len, NULL), 0);
    assert_true(request.op == OP_WORKER_STATUS && request.body.len == 0);
    message_clear(&request_message, &request);
    strbuf_release(&packed);
}

static void a_body_that_cannot_be_packed_leaves_nothing(void **state)
{
    struct submit submit;
    struct strbuf packed = STRBUF_INIT;
    struct err err = ERR_INIT;

    (void)state;
    message_init(&submit_message, &submit);
    struct request head = {.op = OP_SUBMIT};
    assert_int_equal(request_pack(&packed, &head, &submit_message, &submit, &err), ERR_INVALID);
    assert_string_equal(err.text, "submit.search is required and absent");
    assert_int_equal(packed.len, 0);
    assert_int_equal(reply_pack(&packed, 0, &submit_message, &submit, NULL), ERR_INVALID);
    assert_int_equal(packed.len, 0);
    strbuf_release(&packed);
}

static void an_envelope_larger_than_its_buffer_is_refused(void **state)
{
    static unsigned char data[100];
    struct blob_put put = {.digest = digest_of("x", 1), .data = {data, sizeof(data)}};
    struct strbuf packed;
    struct err err = ERR_INIT;

    (void)state;
    strbuf_init(&packed, 64);
    struct request head = {.op = OP_BLOB_PUT};
    assert_int_equal(request_pack(&packed, &head, &blob_put_message, &put, &err), ERR_LIMIT);
    assert_string_equal(err.text, "a packed blob_put is larger than 64 bytes");
    strbuf_release(&packed);
}

// A client of nng's shows its token in each request, whose first bytes are enough to find it.
static void the_token_of_a_request_is_found_in_its_first_bytes(void **state)
{
    static char token[REQUEST_TOKEN_MAX + 1];
    static unsigned char data[2000];
    struct blob_put put = {.digest = digest_of("x", 1), .data = {data, sizeof(data)}};
    static const size_t lengths[] = {1, 31, 32, 255, 256};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        struct request head = {.op = OP_BLOB_PUT, .deadline_ms = UINT64_MAX, .token = token};
        struct strbuf packed = STRBUF_INIT;
        char found[REQUEST_TOKEN_MAX + 1] = "";

        memset(token, 't', sizeof(token) - 1);
        token[lengths[i]] = '\0';
        assert_int_equal(request_pack(&packed, &head, &blob_put_message, &put, NULL), 0);
        assert_true(request_find_token(packed.data, 600, found));
        assert_string_equal(found, token);
        // Not of bytes that end before it does.
        assert_false(request_find_token(packed.data, lengths[i], found));
        assert_false(request_find_token(packed.data, 0, found));
        head.token = NULL;
        strbuf_reset(&packed);
        assert_int_equal(request_pack(&packed, &head, &blob_put_message, &put, NULL), 0);
        assert_false(request_find_token(packed.data, packed.len, found));
        strbuf_release(&packed);
    }
}

static void a_token_that_is_none_is_not_found(void **state)
{
    static const struct {
        const char *name;
        unsigned char data[8];
        size_t len;
    } bad[] = {
        {"no map", {0x93, 5, 0xa1, 'x'}, 4},
        {"a number", {0x81, 5, 7}, 3},
        {"a body before it", {0x82, 6, 0xc4, 1, 0x80, 5, 0xa1, 'x'}, 8},
        {"a map of 16 bits", {0xde, 0, 1, 5, 0xa1, 'x'}, 6},
        {"no length", {0x81, 5, 0xda, 1}, 4},
        {"257 bytes", {0x81, 5, 0xda, 1, 1, 'x'}, 6},
        {"a number cut off", {0x82, 4, 0xcd, 1}, 4},
        {"a map of none", {0x80}, 1},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        char found[REQUEST_TOKEN_MAX + 1];

        if (request_find_token(bad[i].data, bad[i].len, found)) {
            fail_msg("%s: \"%s\"", bad[i].name, found);
        }
    }
}

static void the_longest_sentence_of_an_error_fits_into_a_reply(void **state)
{
    struct err err = {.code = ERR_TIMED_OUT};
    struct strbuf packed = STRBUF_INIT;
    struct reply reply;

    (void)state;
    memset(err.text, 'e', sizeof(err.text) - 1);
    reply_pack_error(&packed, 4, &err, 0);
    assert_int_equal(message_read(&reply_message, &reply, packed.data, packed.len, NULL), 0);
    assert_string_equal(reply.text, err.text);
    assert_string_equal(reply.error, "timed-out");
    assert_true(reply.retry_after_ms == 0 && reply.body.len == 0);
    message_clear(&reply_message, &reply);
    strbuf_release(&packed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_and_names_of_operations_never_change),
        cmocka_unit_test(every_message_is_listed_once),
        cmocka_unit_test(a_request_carries_its_body_packed),
        cmocka_unit_test(an_envelope_without_a_body_has_none),
        cmocka_unit_test(a_body_that_cannot_be_packed_leaves_nothing),
        cmocka_unit_test(an_envelope_larger_than_its_buffer_is_refused),
        cmocka_unit_test(the_token_of_a_request_is_found_in_its_first_bytes),
        cmocka_unit_test(a_token_that_is_none_is_not_found),
        cmocka_unit_test(the_longest_sentence_of_an_error_fits_into_a_reply),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
