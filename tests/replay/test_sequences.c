// Files of sequences: what is read from them, and which line is wrong.
#include "common/file.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include "replay/sequences.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Reads a file with these bytes. *ret_path becomes its path, which the caller frees; NULL: not
// needed.
static int read_bytes(struct sequences **ret, const void *data, size_t len, char **ret_path,
                      struct err *err)
{
    char path[] = "/tmp/sequences.XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(file_write_fd(fd, data, len, path, NULL), 0);
    int rc = sequences_read(ret, path, err);
    (void)close(fd);
    (void)unlink(path);
    if (ret_path) {
        *ret_path = xstrdup(path);
    }
    return rc;
}

static struct sequences *read_text(const char *text)
{
    struct sequences *sequences = NULL;
    struct err err = ERR_INIT;

    if (read_bytes(&sequences, text, strlen(text), NULL, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return sequences;
}

static void an_empty_file_has_no_sequences(void **state)
{
    static const char *const texts[] = {"", "\n", "\n\n\n"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct sequences *sequences = read_text(texts[i]);
        assert_null(sequences_variant(sequences, 0));
        assert_null(sequences_find(sequences, "", "", 0));
        sequences_free(sequences);
    }
    sequences_free(NULL);
}

static void a_search_is_found_by_its_variant_space_and_seed(void **state)
{
    struct sequences *sequences = read_text("a one 1 5 6\n"
                                            "b one 1 7\n"
                                            "  a   two  1   8  \n"
                                            "\n"
                                            "a one 9223372036854775807 9"); // no line end

    (void)state;
    const struct sequence *sequence = sequences_find(sequences, "a", "one", 1);
    assert_int_equal(sequence->count, 2);
    assert_true(sequence->candidate[0] == 5 && sequence->candidate[1] == 6);
    assert_string_equal(sequence->variant, "a");
    assert_string_equal(sequence->space, "one");
    assert_int_equal(sequence->seed, 1);
    assert_int_equal(sequences_find(sequences, "b", "one", 1)->candidate[0], 7);
    assert_int_equal(sequences_find(sequences, "a", "two", 1)->candidate[0], 8);
    assert_int_equal(sequences_find(sequences, "a", "one", INT64_MAX)->candidate[0], 9);
    assert_null(sequences_find(sequences, "b", "two", 1));
    assert_null(sequences_find(sequences, "a", "one", 2));
    assert_null(sequences_find(sequences, "a one", "1", 1));
    assert_string_equal(sequences_variant(sequences, 0), "a");
    assert_string_equal(sequences_variant(sequences, 1), "b");
    assert_null(sequences_variant(sequences, 2));
    sequences_free(sequences);
}

static void a_sequence_may_be_empty_or_long(void **state)
{
    struct strbuf text = STRBUF_INIT;

    (void)state;
    strbuf_adds(&text, "none s 0\nmany s 0");
    for (uint64_t i = 1; i <= 1000; i++) {
        strbuf_addf(&text, " %llu", (unsigned long long)(i * i));
    }
    struct sequences *sequences = read_text(strbuf_text(&text));
    const struct sequence *many = sequences_find(sequences, "many", "s", 0);
    assert_int_equal(sequences_find(sequences, "none", "s", 0)->count, 0);
    assert_int_equal(many->count, 1000);
    for (uint64_t i = 0; i < 1000; i++) {
        assert_int_equal(many->candidate[i], (i + 1) * (i + 1));
    }
    sequences_free(sequences);
    strbuf_release(&text);
}

static void the_wrong_line_is_named_with_what_is_wrong_about_it(void **state)
{
    static const struct {
        const char *text;
        unsigned line;
        const char *sentence;
    } bad[] = {
        {"a\n", 1, "the seed"},
        {"   \n", 1, "the seed"},
        {"a s\n", 1, "the seed"},
        {"a s -1 2\n", 1, "the seed"},
        {"a s 1\r\n", 1, "the seed"},
        {"a s 9223372036854775808\n", 1, "the seed"},
        {"a s 1 2\n\na s 2 0\n", 3, "the number of a candidate"},
        {"a s 1 1.5\n", 1, "the number of a candidate"},
        {"a s 1 99999999999999999999\n", 1, "the number of a candidate"},
        {"a s 1\t2\n", 1, "the seed"},
        {"a s 1 2\nb s 1 2\na s 01 3\n", 3, "an earlier line is of the same search: a s 1"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct sequences *sequences = NULL;
        struct err err = ERR_INIT;
        char *path = NULL;
        int rc = read_bytes(&sequences, bad[i].text, strlen(bad[i].text), &path, &err);
        char *place = xasprintf("%s:%u: ", path, bad[i].line);
        if (rc != ERR_INVALID || strncmp(err.text, place, strlen(place)) != 0 ||
            !strstr(err.text, bad[i].sentence)) {
            fail_msg("\"%s\": %d, %s", bad[i].text, rc, err.text);
        }
        assert_int_equal(err.code, ERR_INVALID);
        assert_null(sequences);
        free(place);
        free(path);
    }
}

static void a_variant_has_63_bytes_at_most(void **state)
{
    char name[SEQUENCES_VARIANT_MAX + 2] = "", *text;
    struct sequences *sequences = NULL;
    struct err err = ERR_INIT;

    (void)state;
    memset(name, 'v', SEQUENCES_VARIANT_MAX);
    text = xasprintf("%s s 1 2\n%sv s 1 2\n", name, name);
    assert_int_equal(read_bytes(&sequences, text, strlen(text), NULL, &err), ERR_INVALID);
    assert_non_null(strstr(err.text, ":2: the name of a variant has more than 63 bytes"));
    strchr(text, '\n')[1] = '\0';
    sequences = read_text(text);
    assert_string_equal(sequences_variant(sequences, 0), name);
    sequences_free(sequences);
    free(text);
}

// What stands behind the byte would not be read.
static void a_byte_0_is_refused_in_its_line(void **state)
{
    static const char *const texts[] = {"a s 1 2\n\0 s 2 3\n", "a s 1 2\na\0s 2 3\n"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct sequences *sequences = NULL;
        struct err err = ERR_INIT;
        assert_int_equal(read_bytes(&sequences, texts[i], 16, NULL, &err), ERR_INVALID);
        assert_non_null(strstr(err.text, ":2: holds a byte 0"));
        assert_null(sequences);
    }
}

static void a_caller_that_wants_no_sentence_gets_the_code(void **state)
{
    struct sequences *sequences = NULL;

    (void)state;
    assert_int_equal(read_bytes(&sequences, "a s x\n", 6, NULL, NULL), ERR_INVALID);
    assert_int_equal(sequences_read(&sequences, "/nowhere/orders", NULL), ERR_NOT_FOUND);
    assert_null(sequences);
}

static void a_file_that_is_not_there_is_named(void **state)
{
    struct sequences *sequences = NULL;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(sequences_read(&sequences, "/nowhere/orders", &err), ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, "/nowhere/orders"));
    assert_null(sequences);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_file_has_no_sequences),
        cmocka_unit_test(a_search_is_found_by_its_variant_space_and_seed),
        cmocka_unit_test(a_sequence_may_be_empty_or_long),
        cmocka_unit_test(the_wrong_line_is_named_with_what_is_wrong_about_it),
        cmocka_unit_test(a_variant_has_63_bytes_at_most),
        cmocka_unit_test(a_byte_0_is_refused_in_its_line),
        cmocka_unit_test(a_caller_that_wants_no_sentence_gets_the_code),
        cmocka_unit_test(a_file_that_is_not_there_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
