// Gzip files in memory: what is packed is unpacked again, what is damaged or too large is refused.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/space/gzip.h"
#include "client/space/space_import.h"
#include "common/mem.h"
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

static const char text[] = "{\"results\": [1, 2, 3], \"results again\": [1, 2, 3]}";

static struct strbuf packed_text(void)
{
    struct strbuf ret = STRBUF_INIT;
    gzip_pack(&ret, text, strlen(text));
    return ret;
}

// Unpacks data of exactly len bytes into at most max bytes.
static int unpack(struct strbuf *out, const void *data, size_t len, size_t max)
{
    struct bytes copy = bytes_copy(data, len); // so that reading behind it is seen
    strbuf_init(out, max);
    int rc = gzip_unpack(out, copy.data, copy.len);
    bytes_clear(&copy);
    return rc;
}

static void what_is_packed_is_unpacked_again(void **state)
{
    (void)state;
    struct strbuf packed = packed_text(), out;
    assert_true(gzip_is(packed.data, packed.len) && gzip_is(packed.data, GZIP_MAGIC_LEN));
    assert_false(gzip_is(packed.data, 1) || gzip_is(text, strlen(text)) || gzip_is("", 0));
    assert_int_equal(unpack(&out, packed.data, packed.len, MIB), 0);
    assert_string_equal(strbuf_text(&out), text);
    strbuf_release(&out);
    strbuf_release(&packed);
    gzip_pack(&packed, "", 0);
    assert_int_equal(unpack(&out, packed.data, packed.len, MIB), 0);
    assert_int_equal(out.len, 0);
    strbuf_release(&out);
    strbuf_release(&packed);
}

// As `cat a.gz b.gz` and programs that pack in parallel write them.
static void members_are_unpacked_one_after_the_other(void **state)
{
    (void)state;
    struct strbuf packed = packed_text(), out;
    gzip_pack(&packed, "", 0);
    gzip_pack(&packed, " and more", 9);
    assert_int_equal(unpack(&out, packed.data, packed.len, MIB), 0);
    assert_int_equal(out.len, strlen(text) + 9);
    assert_memory_equal(out.data + strlen(text), " and more", 9);
    strbuf_release(&out);
    strbuf_release(&packed);
}

static void what_is_cut_or_damaged_is_refused(void **state)
{
    (void)state;
    struct strbuf packed = packed_text(), out;
    for (size_t len = 0; len < packed.len; len++) {
        assert_int_equal(unpack(&out, packed.data, len, MIB), ERR_CORRUPT);
        strbuf_release(&out);
    }
    for (size_t i = packed.len - 8; i < packed.len; i++) { // check sum and length
        packed.data[i] ^= 1;
        assert_int_equal(unpack(&out, packed.data, packed.len, MIB), ERR_CORRUPT);
        strbuf_release(&out);
        packed.data[i] ^= 1;
    }
    strbuf_addc(&packed, 'x');
    assert_int_equal(unpack(&out, packed.data, packed.len, MIB), ERR_CORRUPT);
    strbuf_release(&out);
    strbuf_release(&packed);
}

static void no_more_is_unpacked_than_allowed(void **state)
{
    (void)state;
    struct strbuf packed = STRBUF_INIT, out;
    char *zeros = xcalloc(1, MIB);
    gzip_pack(&packed, zeros, MIB);
    assert_true(packed.len < MIB / 500);
    assert_int_equal(unpack(&out, packed.data, packed.len, MIB), 0);
    strbuf_release(&out);
    assert_int_equal(unpack(&out, packed.data, packed.len, MIB - 1), ERR_LIMIT);
    assert_true(out.len < MIB);
    strbuf_release(&out);
    strbuf_release(&packed);
    free(zeros);
}

// ---- files to import ----

static void a_packed_file_is_unpacked_in_place(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    struct strbuf packed = packed_text();
    struct bytes data = bytes_copy(packed.data, packed.len);
    assert_int_equal(space_import_unpack(&data, "f.json", &err), 0);
    assert_int_equal(data.len, strlen(text));
    assert_memory_equal(data.data, text, data.len);
    assert_int_equal(space_import_unpack(&data, "f.json.gz", &err), 0); // the name says nothing
    assert_int_equal(data.len, strlen(text));
    bytes_clear(&data);
    data = bytes_copy(packed.data, packed.len - 1);
    assert_int_equal(space_import_unpack(&data, "f.json", &err), ERR_CORRUPT);
    assert_string_equal(err.text, "f.json: it begins like a gzip file and cannot be unpacked; it "
                                  "is damaged or cut short");
    assert_int_equal(data.len, packed.len - 1);
    bytes_clear(&data);
    strbuf_release(&packed);
}

// A small file that unpacks to a MiB too much.
static void a_packed_file_that_is_too_large_is_refused(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    struct strbuf packed = STRBUF_INIT, member = STRBUF_INIT;
    char *zeros = xcalloc(1, MIB);
    gzip_pack(&member, zeros, MIB);
    for (size_t i = 0; i < IMPORT_FILE_MAX / MIB + 1; i++) {
        strbuf_add(&packed, member.data, member.len);
    }
    struct bytes data = strbuf_detach_bytes(&packed);
    assert_true(data.len < MIB);
    assert_int_equal(space_import_unpack(&data, "f.json", &err), ERR_LIMIT);
    assert_string_equal(err.text, "f.json: it unpacks to more than 256 MiB, which is what a file "
                                  "to import may have; take a part of it");
    bytes_clear(&data);
    strbuf_release(&member);
    free(zeros);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_packed_is_unpacked_again),
        cmocka_unit_test(members_are_unpacked_one_after_the_other),
        cmocka_unit_test(what_is_cut_or_damaged_is_refused),
        cmocka_unit_test(no_more_is_unpacked_than_allowed),
        cmocka_unit_test(a_packed_file_is_unpacked_in_place),
        cmocka_unit_test(a_packed_file_that_is_too_large_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
