// Access to fields through their descriptor, and what of a message is sent.
#include "proto/message_field.h"
#include "tests/proto/every_field.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <math.h>
#include <string.h>

static void arrays_have_elements_of_their_own_size(void **state)
{
    static const struct {
        uint32_t key;
        size_t size;
    } arrays[] = {{8, sizeof(double)},
                  {9, sizeof(uint64_t)},
                  {10, sizeof(struct digest)},
                  {11, sizeof(char *)},
                  {13, sizeof(struct inner)}};
    size_t count, of_arrays = 0;
    const struct field *fields = every_fields(&count);

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(arrays); i++) {
        assert_true(field_is_array(every_field(arrays[i].key)->type));
        assert_int_equal(field_element_size(every_field(arrays[i].key)), arrays[i].size);
    }
    for (size_t i = 0; i < count; i++) {
        of_arrays += field_is_array(fields[i].type);
    }
    assert_int_equal(of_arrays, ARRAY_LEN(arrays));
}

static void a_pointer_that_was_set_is_the_struct_s(void **state)
{
    struct every every = {.numbers = NULL};
    uint64_t numbers[3] = {1, 2, 3};
    char text[] = "abc";

    (void)state;
    field_set_pointer(every_field(9), &every, numbers, 3);
    assert_ptr_equal(every.numbers, numbers);
    assert_int_equal(every.numbers_count, 3);
    assert_ptr_equal(field_pointer(every_field(9), &every), numbers);
    assert_int_equal(field_element_count(every_field(9), &every), 3);
    // A text has no count: nothing else of the struct changes.
    struct every before = every;
    field_set_pointer(every_field(5), &every, text, 99);
    assert_ptr_equal(every.text, text);
    before.text = text;
    assert_memory_equal(&every, &before, sizeof(every));
}

static void empty_values_are_not_sent_when_they_are_optional(void **state)
{
    struct every every;
    size_t count;
    const struct field *fields = every_fields(&count);

    (void)state;
    message_init(&every_message, &every);
    assert_true(isnan(every.ratio));
    for (size_t i = 0; i < count; i++) {
        assert_false(field_is_sent(&fields[i], &every));
    }
}

static void any_other_value_is_sent(void **state)
{
    double real = 0.0;
    uint64_t number = 0;
    struct digest digest = {{0}};
    char *word = NULL, text[] = "";
    struct inner inner = {.name = NULL};
    struct every every = {.count = 1,
                          .offset = -1,
                          .ratio = 0.0, // a zero is a number
                          .ready = true,
                          .text = text, // and an empty text is a text
                          .data = {(unsigned char *)text, 1},
                          .digest = {{[DIGEST_LEN - 1] = 1}},
                          .reals = &real,
                          .reals_count = 1,
                          .numbers = &number,
                          .numbers_count = 1,
                          .digests = &digest,
                          .digests_count = 1,
                          .words = &word,
                          .words_count = 1,
                          .one = &inner,
                          .list = &inner,
                          .list_count = 1};
    size_t count;
    const struct field *fields = every_fields(&count);

    (void)state;
    for (size_t i = 0; i < count; i++) {
        if (!field_is_sent(&fields[i], &every)) {
            fail_msg("%s is not sent", fields[i].name);
        }
    }
}

static void of_required_fields_only_texts_digests_and_messages_may_be_missing(void **state)
{
    struct every every;
    size_t count;
    const struct field *fields = every_fields(&count);

    (void)state;
    message_init(&every_message, &every);
    for (size_t i = 0; i < count; i++) {
        struct field required = fields[i];
        required.presence = REQUIRED;
        bool must_be_there = required.type == FIELD_text || required.type == FIELD_digest ||
                             required.type == FIELD_one;
        assert_int_equal(field_is_sent(&required, &every), !must_be_there);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_have_elements_of_their_own_size),
        cmocka_unit_test(a_pointer_that_was_set_is_the_struct_s),
        cmocka_unit_test(empty_values_are_not_sent_when_they_are_optional),
        cmocka_unit_test(any_other_value_is_sent),
        cmocka_unit_test(of_required_fields_only_texts_digests_and_messages_may_be_missing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
