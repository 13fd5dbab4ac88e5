#include "common/digest.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static void assert_hex(struct digest digest, const char *expected)
{
    char hex[DIGEST_HEX_LEN + 1];

    digest_hex(&digest, hex);
    assert_string_equal(hex, expected);
}

// The vectors of FIPS 180-2, appendix B, and the digest of no bytes.
static void known_answers(void **state)
{
    char *million = malloc(1000000);

    (void)state;
    assert_non_null(million);
    memset(million, 'a', 1000000);
    assert_hex(digest_of(NULL, 0),
               "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_hex(digest_of("abc", 3),
               "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_hex(digest_of(million, 1000000),
               "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(million);
}

static struct digest of_pieces(const char *a, const char *b)
{
    struct digest_state *state = digest_begin();

    digest_add_text(state, a);
    digest_add(state, b, strlen(b));
    return digest_end(state);
}

static void pieces_are_prefixed_by_their_length(void **state)
{
    static const char flat[] = "\2\0\0\0\0\0\0\0ab\1\0\0\0\0\0\0\0c";
    struct digest expected = digest_of(flat, sizeof(flat) - 1);
    struct digest digest = of_pieces("ab", "c");

    (void)state;
    assert_true(digest_equal(&digest, &expected));
}

static void pieces_cannot_be_shifted(void **state)
{
    struct digest a = of_pieces("ab", "c");
    struct digest b = of_pieces("a", "bc");
    struct digest c = of_pieces("abc", "");

    (void)state;
    assert_false(digest_equal(&a, &b));
    assert_false(digest_equal(&a, &c));
    assert_false(digest_equal(&b, &c));
}

static void hex_round_trip_in_both_cases(void **state)
{
    struct digest digest = digest_of("x", 1);

    (void)state;
    char hex[DIGEST_HEX_LEN + 1];
    digest_hex(&digest, hex);
    struct digest back = {{0}};
    struct err err = ERR_INIT;
    assert_int_equal(digest_parse(&back, hex, &err), 0);
    assert_true(digest_equal(&digest, &back));
    for (char *p = hex; *p; p++) {
        *p = (char)toupper((unsigned char)*p);
    }
    back = (struct digest){{0}};
    assert_int_equal(digest_parse(&back, hex, &err), 0);
    assert_true(digest_equal(&digest, &back));
}

static void parse_refuses_wrong_length_and_digits(void **state)
{
    (void)state;
    char hex[DIGEST_HEX_LEN + 2];
    memset(hex, '0', sizeof(hex));
    hex[DIGEST_HEX_LEN + 1] = '\0';
    struct digest digest = {{1}};
    struct err err = ERR_INIT;
    assert_int_equal(digest_parse(&digest, hex, &err), ERR_INVALID);
    hex[DIGEST_HEX_LEN - 1] = '\0';
    assert_int_equal(digest_parse(&digest, hex, NULL), ERR_INVALID);
    assert_int_equal(digest_parse(&digest, "", NULL), ERR_INVALID);
    hex[DIGEST_HEX_LEN - 1] = 'g';
    hex[DIGEST_HEX_LEN] = '\0';
    assert_int_equal(digest_parse(&digest, hex, NULL), ERR_INVALID);
    assert_int_equal(digest.byte[0], 1);
    assert_int_equal(err.code, ERR_INVALID);
}

static void zero_means_absent(void **state)
{
    (void)state;
    struct digest last = {{0}};
    last.byte[DIGEST_LEN - 1] = 1;
    struct digest zero = {{0}};
    assert_true(digest_is_zero(&zero));
    assert_false(digest_is_zero(&last));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),
        cmocka_unit_test(pieces_are_prefixed_by_their_length),
        cmocka_unit_test(pieces_cannot_be_shifted),
        cmocka_unit_test(hex_round_trip_in_both_cases),
        cmocka_unit_test(parse_refuses_wrong_length_and_digits),
        cmocka_unit_test(zero_means_absent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
