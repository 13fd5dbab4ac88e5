// Typed access to the JSON text of a problem: what each kind of value may be, and how a wrong one
// is reported.
#include "common/mem.h"
#include "problem/problem_reader.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

static const struct json_path root = {"$"};

// A reader of one object, with the int parameters M and N and the f64 parameter a between them.
struct fixture {
    struct problem problem;
    struct reader reader;
    struct err err;
    json_t *object;
};

// `text` writes ' for ".
static struct fixture *read_from(const char *text)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    char *json = xstrdup(text);

    for (char *at = json; *at != '\0'; at++) {
        *at = *at == '\'' ? '"' : *at;
    }
    f->object = json_loads(json, JSON_DECODE_ANY, NULL);
    assert_non_null(f->object);
    free(json);
    f->problem.param_count = 3;
    f->reader = (struct reader){
        .path = "p.json", .problem = &f->problem, .int_name = {"M", "", "N"}, .err = &f->err};
    return f;
}

// Checks that the last call failed with this whole sentence, or with none when it is NULL.
static void assert_said(struct fixture *f, int rc, const char *sentence)
{
    assert_int_equal(rc, sentence ? ERR_INVALID : 0);
    assert_int_equal(f->err.code, rc);
    assert_string_equal(f->err.text, sentence ? sentence : "");
    err_clear(&f->err);
}

static void done(struct fixture *f)
{
    json_decref(f->object);
    free(f);
}

// ---- paths and quotes ----

static void a_path_grows_and_leaves_its_parent_alone(void **state)
{
    (void)state;
    struct json_path list = json_path_below(&root, ".%s", "tensors");
    struct json_path entry = json_path_below(&list, "[%zu]", (size_t)12);
    assert_string_equal(root.text, "$");
    assert_string_equal(list.text, "$.tensors");
    assert_string_equal(entry.text, "$.tensors[12]");
}

static void a_path_that_is_too_long_is_cut_at_its_end(void **state)
{
    (void)state;
    struct json_path path = root;
    for (int i = 0; i < 50; i++) {
        path = json_path_below(&path, ".abcdefghi");
    }
    assert_int_equal(strlen(path.text), sizeof(path.text) - 1);
    assert_memory_equal(path.text, "$.abcdefghi.abc", 15);
}

static void a_quote_of_sixty_bytes_is_whole_and_a_longer_one_is_cut(void **state)
{
    char text[80] = "";

    (void)state;
    memset(text, 'x', 60);
    assert_string_equal(reader_quote(text).text, text);
    text[60] = 'y';
    struct quoted quoted = reader_quote(text);
    assert_int_equal(strlen(quoted.text), 60);
    assert_memory_equal(quoted.text, text, 57);
    assert_string_equal(quoted.text + 57, "...");
    assert_string_equal(reader_quote("").text, "");
}

static void a_quote_is_never_cut_inside_a_character(void **state)
{
    (void)state;
    // With 54, 55 and 56 bytes before it, the euro sign of three bytes begins at, before and on the
    // place of the cut.
    for (size_t before = 54; before <= 57; before++) {
        char text[100] = "";
        memset(text, 'x', before);
        memcpy(text + before, "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac", 9);
        struct quoted quoted = reader_quote(text);
        size_t kept = strlen(quoted.text) - 3;
        assert_string_equal(quoted.text + kept, "...");
        assert_memory_equal(quoted.text, text, kept);
        assert_int_equal(kept, before == 54 || before == 57 ? 57 : before);
    }
}

static void control_characters_in_a_quote_become_question_marks(void **state)
{
    (void)state;
    assert_string_equal(reader_quote("a\n\x1b[1m\x7f\tz").text, "a??[1m??z");
    assert_string_equal(reader_quote("\xc3\xa4").text, "\xc3\xa4");
}

static void a_failure_names_file_and_path_and_the_first_one_stays(void **state)
{
    struct fixture *f = read_from("{}");

    (void)state;
    struct json_path at = json_path_below(&root, ".x");
    assert_int_equal(reader_fail(&f->reader, &at, "%d is %s", 3, "odd"), ERR_INVALID);
    assert_int_equal(reader_fail(&f->reader, &root, "later"), ERR_INVALID);
    assert_string_equal(f->err.text, "p.json: $.x: 3 is odd");
    done(f);
}

// ---- kinds and keys ----

static void each_kind_takes_its_own_values_alone(void **state)
{
    static const struct {
        const char *text, *is;
        bool fits[5]; // object, list, text, integer, number
    } values[] = {
        {"{}", "an object", {[KIND_OBJECT] = true}},
        {"[]", "a list", {[KIND_LIST] = true}},
        {"''", "a text", {[KIND_TEXT] = true}},
        {"7", "an integer", {[KIND_INTEGER] = true, [KIND_NUMBER] = true}},
        {"7.0", "a real number", {[KIND_NUMBER] = true}},
        {"true", "true", {false}},
        {"false", "false", {false}},
        {"null", "null", {false}},
    };
    static const char *const wanted[] = {"an object", "a list", "a text", "an integer", "a number"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        struct fixture *f = read_from(values[i].text);
        for (size_t kind = 0; kind < ARRAY_LEN(wanted); kind++) {
            char *sentence =
                xasprintf("p.json: $: %s is expected, not %s", wanted[kind], values[i].is);
            int rc = reader_check_kind(&f->reader, &root, f->object, (enum json_kind)kind);
            assert_said(f, rc, values[i].fits[kind] ? NULL : sentence);
            free(sentence);
        }
        done(f);
    }
}

static void an_unknown_key_is_refused_with_the_known_ones(void **state)
{
    static const char *const keys[] = {"min", "max", "multiple"};
    struct fixture *f = read_from("{'max': 1, 'mux\\u0007': 2}");

    (void)state;
    assert_said(f, reader_check_keys(&f->reader, &root, f->object, keys, 3),
                "p.json: $: the key \"mux?\" is not known; use min, max or multiple");
    assert_said(f, reader_check_keys(&f->reader, &root, f->object, keys, 0),
                "p.json: $: the key \"max\" is not known; nothing belongs here");
    (void)json_object_del(f->object, "mux\a");
    assert_said(f, reader_check_keys(&f->reader, &root, f->object, keys, 3), NULL);
    assert_said(f, reader_check_keys(&f->reader, &root, f->object, keys + 1, 1), NULL);
    (void)json_object_clear(f->object);
    assert_said(f, reader_check_keys(&f->reader, &root, f->object, keys, 0), NULL);
    done(f);
}

static void a_list_of_keys_that_is_too_long_for_a_sentence_is_cut(void **state)
{
    char *keys[32];
    struct fixture *f = read_from("{'q': 1}");

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        keys[i] = xasprintf("%063zu", i);
    }
    int rc =
        reader_check_keys(&f->reader, &root, f->object, (const char *const *)keys, ARRAY_LEN(keys));
    assert_int_equal(rc, ERR_INVALID);
    assert_non_null(strstr(f->err.text, "the key \"q\" is not known; use 0000"));
    assert_true(strlen(f->err.text) < 500);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        free(keys[i]);
    }
    done(f);
}

static void an_object_is_checked_for_its_kind_before_its_keys(void **state)
{
    static const char *const keys[] = {"a"};
    struct fixture *f = read_from("['a']"), *g = read_from("{'b': 1}");

    (void)state;
    assert_said(f, reader_check_object(&f->reader, &root, f->object, keys, 1),
                "p.json: $: an object is expected, not a list");
    assert_said(g, reader_check_object(&g->reader, &root, g->object, keys, 1),
                "p.json: $: the key \"b\" is not known; use a");
    done(f);
    done(g);
}

// ---- members ----

static void a_member_is_the_object_s_and_its_path_is_told(void **state)
{
    struct fixture *f = read_from("{'a': {'b': 'text'}}");
    json_t *inner = NULL, *value = NULL;
    struct json_path inner_at, at;

    (void)state;
    assert_said(f, reader_get(&f->reader, &root, f->object, "a", KIND_OBJECT, &inner, &inner_at),
                NULL);
    assert_ptr_equal(inner, json_object_get(f->object, "a"));
    assert_said(f, reader_get(&f->reader, &inner_at, inner, "b", KIND_TEXT, &value, &at), NULL);
    assert_string_equal(at.text, "$.a.b");
    json_t *before = value;
    assert_said(f, reader_get(&f->reader, &inner_at, inner, "b", KIND_LIST, &value, &at),
                "p.json: $.a.b: a list is expected, not a text");
    assert_said(f, reader_get(&f->reader, &inner_at, inner, "c", KIND_TEXT, &value, &at),
                "p.json: $.a: the key \"c\" is missing; add it");
    assert_ptr_equal(value, before);
    done(f);
}

static void a_list_has_a_least_and_a_greatest_length(void **state)
{
    static const struct {
        const char *text;
        size_t min, max;
        const char *sentence;
    } lists[] = {
        {"{'l': []}", 0, 2, NULL},
        {"{'l': []}", 1, 2, "p.json: $.l: 1 to 2 entries are expected, not 0"},
        {"{'l': [1, 2]}", 1, 2, NULL},
        {"{'l': [1, 2, 3]}", 1, 2, "p.json: $.l: 1 to 2 entries are expected, not 3"},
        {"{'l': {}}", 0, 2, "p.json: $.l: a list is expected, not an object"},
        {"{}", 0, 2, "p.json: $: the key \"l\" is missing; add it"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        struct fixture *f = read_from(lists[i].text);
        json_t *list = NULL;
        struct json_path at;
        int rc = reader_get_list(&f->reader, &root, f->object, "l", lists[i].min, lists[i].max,
                                 &list, &at);
        assert_true(!list == (rc != 0));
        assert_said(f, rc, lists[i].sentence);
        done(f);
    }
}

static void a_number_is_within_its_range_and_its_ends(void **state)
{
    static const struct {
        const char *text;
        double value; // on success
        const char *sentence;
    } numbers[] = {
        {"{'x': -1}", -1.0, NULL},
        {"{'x': 2.5}", 2.5, NULL},
        {"{'x': 2.500001}", 0, "p.json: $.x: 2.5000010000000001 is outside its range, -1 to 2.5"},
        {"{'x': -1.5}", 0, "p.json: $.x: -1.5 is outside its range, -1 to 2.5"},
        {"{'x': '1'}", 0, "p.json: $.x: a number is expected, not a text"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        struct fixture *f = read_from(numbers[i].text);
        double number = 77.0;
        int rc = reader_get_number(&f->reader, &root, f->object, "x", -1.0, 2.5, &number);
        assert_true(number == (numbers[i].sentence ? 77.0 : numbers[i].value));
        assert_said(f, rc, numbers[i].sentence);
        done(f);
    }
}

static void an_integer_may_be_any_of_64_bits(void **state)
{
    struct fixture *f = read_from("{'least': -9223372036854775808, 'most': 9223372036854775807, "
                                  "'real': 3.0, 'three': 3}");
    int64_t least = 0, most = 0, kept = 77;

    (void)state;
    assert_said(
        f, reader_get_integer(&f->reader, &root, f->object, "least", INT64_MIN, INT64_MAX, &least),
        NULL);
    assert_said(
        f, reader_get_integer(&f->reader, &root, f->object, "most", INT64_MIN, INT64_MAX, &most),
        NULL);
    assert_true(least == INT64_MIN && most == INT64_MAX);
    assert_said(f, reader_get_integer(&f->reader, &root, f->object, "real", 0, 9, &kept),
                "p.json: $.real: an integer is expected, not a real number");
    assert_said(f, reader_get_integer(&f->reader, &root, f->object, "three", 4, 9, &kept),
                "p.json: $.three: 3 is outside its range, 4 to 9");
    assert_said(f, reader_get_integer(&f->reader, &root, f->object, "three", -9, 2, &kept),
                "p.json: $.three: 3 is outside its range, -9 to 2");
    assert_true(kept == 77);
    done(f);
}

static void a_choice_is_the_index_of_a_name(void **state)
{
    static const char *const names[] = {"warm", "cold"};
    struct fixture *f = read_from("{'good': 'cold', 'bad': 'Cold', 'empty': '', 'number': 1}");
    size_t choice = 77;

    (void)state;
    assert_said(f, reader_get_choice(&f->reader, &root, f->object, "bad", names, 2, &choice),
                "p.json: $.bad: \"Cold\" is not known; use warm or cold");
    assert_said(f, reader_get_choice(&f->reader, &root, f->object, "empty", names, 2, &choice),
                "p.json: $.empty: \"\" is not known; use warm or cold");
    assert_said(f, reader_get_choice(&f->reader, &root, f->object, "number", names, 2, &choice),
                "p.json: $.number: a text is expected, not an integer");
    assert_int_equal(choice, 77);
    assert_said(f, reader_get_choice(&f->reader, &root, f->object, "good", names, 2, &choice),
                NULL);
    assert_int_equal(choice, 1);
    done(f);
}

static void a_text_is_one_line_of_bounded_length(void **state)
{
    static const struct {
        const char *text, *allowed, *sentence;
    } texts[] = {
        {"{'t': 'ab-c'}", NULL, NULL},
        {"{'t': 'ab-c'}", "abc-", NULL},
        {"{'t': '\xc3\xa4\xc3\xa4'}", NULL, NULL}, // four bytes
        {"{'t': ''}", NULL, "p.json: $.t: 1 to 4 bytes are expected, not 0"},
        {"{'t': 'abcde'}", NULL, "p.json: $.t: 1 to 4 bytes are expected, not 5"},
        {"{'t': 'a\\nb'}", NULL, "p.json: $.t: one line without control characters is expected"},
        {"{'t': '\\u007f'}", NULL, "p.json: $.t: one line without control characters is expected"},
        {"{'t': '\\u0085'}", NULL, "p.json: $.t: one line without control characters is expected"},
        {"{'t': '\\u202e'}", NULL, "p.json: $.t: one line without control characters is expected"},
        {"{'t': 'abC'}", "abc", "p.json: $.t: \"abC\" holds a character other than abc"},
        {"{'t': null}", NULL, "p.json: $.t: a text is expected, not null"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct fixture *f = read_from(texts[i].text);
        char *text = NULL;
        int rc = reader_get_text(&f->reader, &root, f->object, "t", 4, texts[i].allowed, &text);
        assert_true(!text == (rc != 0));
        if (text) {
            assert_string_equal(text, json_string_value(json_object_get(f->object, "t")));
        }
        free(text);
        assert_said(f, rc, texts[i].sentence);
        done(f);
    }
}

static void an_identifier_outlives_the_json_that_it_comes_from(void **state)
{
    struct fixture *f = read_from("{'good': 'x_1', 'keyword': 'for', 'odd': '1\\tx'}");
    char *name = NULL;

    (void)state;
    assert_said(f, reader_get_identifier(&f->reader, &root, f->object, "keyword", &name),
                "p.json: $.keyword: the name \"for\" is a C keyword; choose another");
    assert_said(f, reader_get_identifier(&f->reader, &root, f->object, "odd", &name),
                "p.json: $.odd: the name \"1?x\" is not a C identifier; choose another");
    assert_null(name);
    assert_said(f, reader_get_identifier(&f->reader, &root, f->object, "good", &name), NULL);
    done(f);
    assert_string_equal(name, "x_1");
    free(name);
}

static void an_expression_knows_the_int_parameters_at_their_indices(void **state)
{
    struct fixture *f = read_from("['M - N', 'M + a', 'M +', 3]");
    static const int64_t values[] = {10, 1000, 4};
    struct expr *expr = NULL, *none = NULL;

    (void)state;
    assert_said(f, reader_expr(&f->reader, &root, json_array_get(f->object, 0), &expr), NULL);
    int64_t value = 0;
    assert_int_equal(expr_eval(&value, expr, values, NULL), 0);
    assert_int_equal(value, 6);
    expr_free(expr);
    assert_said(f, reader_expr(&f->reader, &root, json_array_get(f->object, 1), &none),
                "p.json: $: column 5: \"a\" is not known here; use M, N");
    assert_said(f, reader_expr(&f->reader, &root, json_array_get(f->object, 2), &none),
                "p.json: $: column 4: the expression ends where a number, a name or '(' is "
                "expected");
    assert_said(f, reader_expr(&f->reader, &root, json_array_get(f->object, 3), &none),
                "p.json: $: a text is expected, not an integer");
    assert_null(none);
    done(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_grows_and_leaves_its_parent_alone),
        cmocka_unit_test(a_path_that_is_too_long_is_cut_at_its_end),
        cmocka_unit_test(a_quote_of_sixty_bytes_is_whole_and_a_longer_one_is_cut),
        cmocka_unit_test(a_quote_is_never_cut_inside_a_character),
        cmocka_unit_test(control_characters_in_a_quote_become_question_marks),
        cmocka_unit_test(a_failure_names_file_and_path_and_the_first_one_stays),
        cmocka_unit_test(each_kind_takes_its_own_values_alone),
        cmocka_unit_test(an_unknown_key_is_refused_with_the_known_ones),
        cmocka_unit_test(a_list_of_keys_that_is_too_long_for_a_sentence_is_cut),
        cmocka_unit_test(an_object_is_checked_for_its_kind_before_its_keys),
        cmocka_unit_test(a_member_is_the_object_s_and_its_path_is_told),
        cmocka_unit_test(a_list_has_a_least_and_a_greatest_length),
        cmocka_unit_test(a_number_is_within_its_range_and_its_ends),
        cmocka_unit_test(an_integer_may_be_any_of_64_bits),
        cmocka_unit_test(a_choice_is_the_index_of_a_name),
        cmocka_unit_test(a_text_is_one_line_of_bounded_length),
        cmocka_unit_test(an_identifier_outlives_the_json_that_it_comes_from),
        cmocka_unit_test(an_expression_knows_the_int_parameters_at_their_indices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
