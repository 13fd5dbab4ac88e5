// Rows of GPU Forecasters as spaces, and spaces as rows: every field that counts, every refusal.
#include "tests/client/space/space_reader.h"

#define EVAL(id, pack, anchor, code, speedup)                                                      \
    "{\"comparison_id\": \"" id "\", \"pack\": \"" pack "\", \"anchor_code\": \"" anchor           \
    "\", \"candidate_code\": \"" code                                                              \
    "\", \"hardware\": \"H100\", \"aggregated_speedup\": " speedup ", \"true_bin\": 5}\n"

static void rows_become_a_space(void **state)
{
    (void)state;
    struct space space = taken(
        space_import_forecasters,
        EVAL("one", "trimul", "A", "B", "2.0") "\n \r\n" EVAL("two", "trimul", "A", "C", "0.5")
            EVAL("far", "trimul", "B", "D", "4") EVAL("farther", "trimul", "D", "E", "0.25")
                EVAL("again", "trimul", "C", "B", "3") EVAL("lost", "trimul", "X", "Y", "3"),
        NULL);
    assert_string_equal(space.head.problem, "trimul");
    assert_string_equal(space.head.device_class, "H100");
    assert_int_equal(space.head.candidates, 4);
    assert_non_null(strstr(space.head.origin, "6 rows, 2 left out"));
    assert_non_null(strstr(space.head.origin, "2 through other candidates"));
    assert_true(space.head.baseline_text.len == 1 && space.head.baseline_text.data[0] == 'A');
    assert_near(space_log2(find(&space, "one")), 1);
    assert_near(space_log2(find(&space, "two")), -1);
    assert_near(space_log2(find(&space, "far")), 3);
    assert_near(space_log2(find(&space, "farther")), 1);
    assert_true(find(&space, "far")->source.data[0] == 'D');
    assert_int_equal(find(&space, "two")->result->verdict, VERDICT_SLOWER);
    assert_int_equal(find(&space, "one")->result->speedup->blocks, 0);
    space_release(&space);
}

static void all_three_sets_are_known(void **state)
{
    (void)state;
    struct space space =
        taken(space_import_forecasters,
              "{\"row_id\": 7, \"pack\": \"fp8_quant\", \"anchor_code\": \"a\", "
              "\"candidate_code\": \"b\","
              " \"aggregated_speedup\": 1, \"relative_bin\": 4, \"pair_type\": \"seed\"}",
              NULL);
    assert_string_equal(space.candidate[0].name, "7");
    assert_string_equal(space.head.device_class, "unknown");
    assert_non_null(strstr(space.head.origin, "RL pool"));
    assert_int_equal(space.candidate[0].result->verdict, VERDICT_EQUIVALENT);
    space_release(&space);
    space =
        taken(space_import_forecasters,
              "{\"pair_id\": \"p\", \"problem_id\": 12, \"parent_code\": \"a\", \"child_code\": "
              "\"b\", \"g_speedup\": 2, \"true_bin\": 6, \"hardware\": \"L40S\"}",
              NULL);
    assert_string_equal(space.head.problem, "12");
    assert_non_null(strstr(space.head.origin, "discovery pairs"));
    assert_near(space_log2(&space.candidate[0]), 1);
    space_release(&space);
}

static void one_problem_one_device_one_baseline(void **state)
{
    (void)state;
    const char *text = EVAL("1", "p", "A", "B", "2") EVAL("2", "q", "A", "C", "2")
        EVAL("3", "q", "D", "E", "4") EVAL("4", "q", "A", "F", "2");
    refused(space_import_forecasters, text, NULL,
            "rows of several problems (\"p\", \"q\"); pick one with --problem");
    struct space_import how = {.problem = "q"};
    struct space space = taken(space_import_forecasters, text, &how);
    assert_int_equal(space.head.candidates, 2);
    assert_string_equal(space.candidate[0].name, "2");
    space_release(&space);
    how.baseline = "3";
    space = taken(space_import_forecasters, text, &how);
    assert_int_equal(space.head.candidates, 1);
    assert_near(space_log2(&space.candidate[0]), 2);
    space_release(&space);
    how.baseline = "1"; // belongs to the other problem
    refused(space_import_forecasters, text, &how, "no row is called \"1\"");
    how = (struct space_import){.problem = "r"};
    refused(space_import_forecasters, text, &how, "no rows of problem \"r\"");
    how = (struct space_import){.problem = "q", .device = "A100"};
    refused(space_import_forecasters, text, &how, "no rows of device \"A100\"");
}

static void rows_that_are_wrong_are_refused(void **state)
{
    (void)state;
#define BAD(id, speedup, code)                                                                     \
    "{\"comparison_id\": " id                                                                      \
    ", \"pack\": \"p\", \"anchor_code\": \"a\", \"candidate_code\": " code                         \
    ", \"aggregated_speedup\": " speedup "}"
    static const struct {
        const char *text, *says;
    } table[] = {
        {"", "f.json: no rows"},
        {"\n\n{", "f.json:3: no JSON"},
        {"[1]", "f.json:1: no JSON object"},
        {"{\"a\": 1}", "f.json:1: none of the fields"},
        {BAD("null", "1", "\"b\""), "f.json:1: \"comparison_id\" is null"},
        {BAD("[]", "1", "\"b\""), "f.json:1: \"comparison_id\" is no text of 1 to 1024 bytes"},
        {BAD("\"x\"", "0", "\"b\""),
         "f.json:1: \"aggregated_speedup\" is missing or no number above 0"},
        {BAD("\"x\"", "null", "\"b\""), "f.json:1: \"aggregated_speedup\" is missing"},
        {BAD("\"x\"", "1", "\"\""), "f.json:1: \"candidate_code\" is missing or no source"},
        {"{\"comparison_id\": 1}", "f.json:1: \"pack\" is missing"},
        {"{\"pair_id\": 1}", "f.json:1: \"problem_id\" is missing"},
        {BAD("1", "1", "\"b\"") "\n" BAD("1", "1", "\"c\""), "two candidates are called \"1\""},
        {BAD("1", "1", "\"b\"") "\n{\"row_id\": 2}",
         "f.json:2: a row of the RL pool among rows of the evaluation set"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        refused(space_import_forecasters, table[i].text, NULL, table[i].says);
    }
}

// ---- spaces as rows ----

static void labels_are_those_of_their_function(void **state)
{
    (void)state;
    static const double edge[] = {-1, -0.5, 0, 0.5, 1, 1.5, 2};
    assert_int_equal(space_json_label(-40), 1);
    for (int i = 0; i < 7; i++) {
        assert_int_equal(space_json_label(edge[i]), i + 2);
        assert_int_equal(space_json_label(edge[i] - 1e-9), i + 1);
    }
    assert_int_equal(space_json_label(1e6), 8);
}

// A space of two points of a template and one candidate with its own source.
static struct space template_space(void)
{
    static const char template[] = "//@ tune MB in (1, 2, 4)\nint f(void) { return MB; }\n";
    struct space space = taken(space_import_forecasters,
                               EVAL("MB=1", "p", "A", "x", "2") EVAL("MB=4", "p", "A", "y", "0.3")
                                   EVAL("own", "p", "A", "int g;\xc3\xa9", "1.125"),
                               NULL);
    struct template *parsed = NULL;
    assert_int_equal(template_parse(&parsed, template, "t", NULL), 0);
    space.head.template_source = bytes_copy(template, strlen(template));
    for (size_t i = 0; i < 2; i++) {
        struct strbuf text = STRBUF_INIT;
        bytes_clear(&space.candidate[i].source);
        space.candidate[i].point = 2 * i + 1;
        template_source(parsed, 2 * i, &text);
        space.candidate[i].digest = digest_of(text.data, text.len);
        strbuf_release(&text);
    }
    template_free(parsed);
    return space;
}

static void ours_to_theirs_to_ours(void **state)
{
    (void)state;
    struct space space = template_space(), again;
    struct space_sources sources;
    assert_int_equal(space_sources_init(&sources, &space, "s", NULL), 0);
    struct strbuf text = STRBUF_INIT;
    for (size_t i = 0; i < 3; i++) {
        struct strbuf source = STRBUF_INIT;
        bool known = false;
        assert_int_equal(space_sources_get(&sources, i, &source, &known, NULL), 0);
        assert_true(known);
        space_json_pair(&text, &space, i, &space.head.baseline_text, &source);
        strbuf_release(&source);
    }
    again = taken(space_import_forecasters, strbuf_text(&text), NULL);
    assert_int_equal(again.head.candidates, 3);
    assert_string_equal(again.head.problem, "p");
    assert_string_equal(again.head.device_class, "H100");
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(again.candidate[i].name, space.candidate[i].name);
        assert_near(space_log2(&again.candidate[i]), space_log2(&space.candidate[i]));
        assert_true(digest_equal(&again.candidate[i].digest, &space.candidate[i].digest));
    }
    assert_non_null(strstr((char *)again.candidate[1].source.data, "#define MB 4\n"));
    // One label for each row: speedups of 2, 0.3 and 1.125.
    assert_non_null(strstr(strbuf_text(&text), "\"true_bin\":6"));
    assert_non_null(strstr(strbuf_text(&text), "\"true_bin\":1"));
    assert_non_null(strstr(strbuf_text(&text), "\"true_bin\":4"));
    space_sources_release(&sources);
    space_release(&again);
    space_release(&space);
    strbuf_release(&text);
}

static void sources_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    struct space space = template_space();
    struct space_sources sources;
    assert_int_equal(space_sources_init(&sources, &space, "s", NULL), 0);
    space.candidate[0].point = 2;
    struct strbuf text = STRBUF_INIT;
    struct err err = ERR_INIT;
    bool known = true;
    assert_int_equal(space_sources_get(&sources, 0, &text, &known, &err), ERR_CORRUPT);
    assert_non_null(strstr(err.text, "\"MB=1\" is not the one measured"));
    err_clear(&err);
    space.candidate[0].point = 4;
    assert_int_equal(space_sources_get(&sources, 0, &text, &known, &err), ERR_CORRUPT);
    assert_non_null(strstr(err.text, "no point of the template"));
    space.candidate[0].point = 0;
    assert_int_equal(space_sources_get(&sources, 0, &text, &known, NULL), 0);
    assert_true(!known && text.len == 0);
    strbuf_release(&text);
    space_sources_release(&sources);
    space.head.template_source.data[5] = 'x';
    err_clear(&err);
    assert_int_equal(space_sources_init(&sources, &space, "s", &err), ERR_INVALID);
    assert_true(strncmp(err.text, "s", 1) == 0);
    space_release(&space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_become_a_space),
        cmocka_unit_test(all_three_sets_are_known),
        cmocka_unit_test(one_problem_one_device_one_baseline),
        cmocka_unit_test(rows_that_are_wrong_are_refused),
        cmocka_unit_test(labels_are_those_of_their_function),
        cmocka_unit_test(ours_to_theirs_to_ours),
        cmocka_unit_test(sources_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
