// Files of other tools as spaces, and spaces as their files: every field that counts, every
// refusal.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/space/space_import.h"
#include "client/space/space_json.h"
#include "client/space/space_source.h"
#include "common/mem.h"
#include "problem/template.h"
#include "proto/verdict.h"
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef int reader(struct space *ret, const void *data, size_t len, const char *path,
                   const struct space_import *how, struct err *err);

static void assert_near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-9 * fmax(1, fabs(b)))) {
        fail_msg("%.17g is not %.17g", a, b);
    }
}

static struct space taken(reader *read, const char *text, const struct space_import *how)
{
    static const struct space_import plain = {NULL, NULL, NULL};
    struct err err = ERR_INIT;
    struct space space;
    struct bytes copy = bytes_copy(text, strlen(text)); // without a NUL behind it
    if (read(&space, copy.data, copy.len, "f.json", how ? how : &plain, &err) != 0) {
        fail_msg("%s", err.text);
    }
    bytes_clear(&copy);
    assert_int_equal(space_check(&space, "f.json", &err), 0);
    return space;
}

static void refused(reader *read, const char *text, const struct space_import *how,
                    const char *says)
{
    static const struct space_import plain = {NULL, NULL, NULL};
    struct err err = ERR_INIT;
    struct space space;
    if (read(&space, text, strlen(text), "f.json", how ? how : &plain, &err) == 0) {
        fail_msg("taken, where \"%s\" was to be said", says);
    }
    if (strncmp(err.text, "f.json", 6) != 0 || !strstr(err.text, says)) {
        fail_msg("\"%s\" does not say \"%s\"", err.text, says);
    }
}

static const struct space_candidate *find(const struct space *space, const char *name)
{
    for (size_t i = 0; i < space->head.candidates; i++) {
        if (strcmp(space->candidate[i].name, name) == 0) {
            return &space->candidate[i];
        }
    }
    fail_msg("no candidate \"%s\"", name);
    return NULL;
}

// ---- Kernel Tuner ----

#define TUNER_HEAD                                                                                 \
    "{\n\"device_name\": \"NVIDIA A100\",\n\"kernel_name\": \"vector_add\",\n"                     \
    "\"problem_size\": [4096, 2],\n\"tune_params_keys\": [\n\"block\",\n\"kind\",\n\"fast\"\n],\n" \
    "\"tune_params\": {\n\"block\": [\n32,\n64\n],\n\"kind\": [\n\"b\",\n\"a\"\n],\n"              \
    "\"fast\": [false, true]\n},\n\"objective\": [\n\"time\"\n],\n\"cache\": {"
#define TUNER_ROWS                                                                                 \
    "\n\"32,a,True\": {\"block\": 32, \"kind\": \"a\", \"fast\": true, \"time\": 2.0, "            \
    "\"times\": [1.9, 2.0, 2.1], \"compile_time\": 150, \"verification_time\": 20.5, "             \
    "\"benchmark_time\": 30, \"GFLOP/s\": NaN, \"timestamp\": \"x\"},"                             \
    "\n\"64,a,True\": {\"block\": 64, \"kind\": \"a\", \"fast\": true, \"time\": 1.0, "            \
    "\"times\": [0.98, 1.0, 1.02], \"compile_time\": 100, \"benchmark_time\": 10},"                \
    "\n\"64,b,False\": {\"block\": 64, \"kind\": \"b\", \"fast\": false, \"time\": 8},"            \
    "\n\"32,b,False\": {\"block\": 32, \"kind\": \"b\", \"fast\": false, "                         \
    "\"__error__\": \"CompilationFailedConfig\", \"compile_time\": 7},"                            \
    "\n\"32,b,True\": {\"block\": 32, \"kind\": \"b\", \"fast\": true, "                           \
    "\"time\": \"RuntimeFailedConfig\", \"compile_time\": 90},"                                    \
    "\n\"64,b,True\": {\"block\": 64, \"kind\": \"b\", \"fast\": true, \"time\": "                 \
    "\"InvalidConfig\"},"                                                                          \
    "\n\"64,a,False\": {\"block\": 64, \"kind\": \"a\", \"fast\": false, \"time\": 1e20}"

static void look_at_tuner(const struct space *space)
{
    assert_int_equal(space->head.candidates, 7);
    assert_string_equal(space->head.problem, "vector_add");
    assert_string_equal(space->head.device_class, "NVIDIA A100");
    assert_non_null(strstr(space->head.origin, "3 correct"));
    assert_non_null(strstr(space->head.origin, "median time, block=32 kind=a fast=True"));
    assert_non_null(strstr(space->head.origin, "problem size [4096,2]"));
    const struct space_candidate *base = find(space, "block=32 kind=a fast=True");
    assert_true(space_log2(base) == 0 && base->result->verdict == VERDICT_EQUIVALENT);
    assert_int_equal(base->params_count, 3);
    assert_true(base->params[0].value == 32 && base->params[1].value == 1 &&
                base->params[2].value == 1);
    assert_near(base->compiled->seconds, 0.15);
    assert_near(base->result->seconds->compile, 0.15);
    assert_near(base->result->seconds->verify, 0.0205);
    assert_near(base->result->seconds->time, 0.03);
    assert_near(base->result->seconds->held, 0.0505);
    assert_near(base->result->candidate_ns->p50, 2e6);
    const struct space_candidate *best = find(space, "block=64 kind=a fast=True");
    assert_near(space_log2(best), 1);
    assert_int_equal(best->result->verdict, VERDICT_FASTER);
    assert_int_equal(best->result->launches, 3);
    // Means of log2(1.9, 2, 2.1) and of log2(0.98, 1, 1.02): standard deviations 0.0722025 and
    // 0.0288582, so Welch's standard error is 0.0448924 with 2.62309 degrees of freedom, whose
    // quantile at 0.975 is 3.45763 (SciPy).
    assert_true(fabs(best->result->speedup->hi - 1 - 0.155222) < 1e-5);
    assert_true(best->result->speedup->lo < 1 && best->result->speedup->blocks == 3);
    const struct space_candidate *slow = find(space, "block=64 kind=b fast=False");
    assert_near(space_log2(slow), -2);
    assert_true(slow->result->speedup->blocks == 0 && slow->params[1].value == 0);
    assert_near(slow->result->seconds->held, 0.008); // one launch is all that is known
}

static void a_cache_file_becomes_a_space(void **state)
{
    (void)state;
    struct space space = taken(space_import_kernel_tuner, TUNER_HEAD TUNER_ROWS "}\n}", NULL);
    look_at_tuner(&space);
    const struct space_candidate *c = find(&space, "block=32 kind=b fast=False");
    assert_true(!c->result && c->compiled->verdict == VERDICT_COMPILE_ERROR);
    assert_string_equal(c->compiled->reason, "Kernel Tuner: CompilationFailedConfig");
    assert_near(c->compiled->seconds, 0.007);
    c = find(&space, "block=64 kind=b fast=True");
    assert_true(!c->result && c->compiled->verdict == VERDICT_COMPILE_ERROR);
    c = find(&space, "block=32 kind=b fast=True");
    assert_true(c->result->verdict == VERDICT_CRASH && c->compiled->verdict == VERDICT_NONE);
    assert_near(c->result->seconds->compile, 0.09);
    assert_true(c->result->seconds->held == 0);
    c = find(&space, "block=64 kind=a fast=False");
    assert_int_equal(c->result->verdict, VERDICT_CRASH);
    space_release(&space);
}

static void an_unfinished_cache_file_is_read(void **state)
{
    (void)state;
    static const char *const ends[] = {
        "", ",", ",\n", "}\n}\n", ",\n\"32,a,Fal", ",\n\"32,a,False\": {\"block\": 32, \"ki"};
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        char *text = xasprintf("%s%s", TUNER_HEAD TUNER_ROWS, ends[i]);
        struct space space = taken(space_import_kernel_tuner, text, NULL);
        look_at_tuner(&space);
        space_release(&space);
        free(text);
    }
    refused(space_import_kernel_tuner, TUNER_HEAD, NULL, "0 configurations");
}

static void a_baseline_is_found_by_its_parameters(void **state)
{
    (void)state;
    const char *text = TUNER_HEAD TUNER_ROWS "}\n}";
    struct space_import how = {.baseline = "kind=b"};
    struct space space = taken(space_import_kernel_tuner, text, &how);
    assert_near(space_log2(find(&space, "block=64 kind=a fast=True")), 3);
    assert_non_null(strstr(space.head.origin, "the chosen block=64 kind=b fast=False"));
    space_release(&space);
    how.baseline = "fast=True,block=64";
    space = taken(space_import_kernel_tuner, text, &how);
    assert_near(space_log2(find(&space, "block=32 kind=a fast=True")), -1);
    assert_int_equal(find(&space, "block=32 kind=a fast=True")->result->verdict, VERDICT_SLOWER);
    space_release(&space);
    how.baseline = "kind=a";
    refused(space_import_kernel_tuner, text, &how,
            "2 correct configurations have kind=a; name more");
    how.baseline = "kind=b,block=32"; // failed
    refused(space_import_kernel_tuner, text, &how, "no correct configuration has kind=b,block=32");
    how.baseline = "block";
    refused(space_import_kernel_tuner, text, &how, "no correct configuration has block");
    how = (struct space_import){.problem = "other"};
    refused(space_import_kernel_tuner, text, &how, "of \"vector_add\", not of --problem \"other\"");
    how = (struct space_import){.device = "NVIDIA H200"};
    refused(space_import_kernel_tuner, text, &how, "of \"NVIDIA A100\", not of --device");
}

#define T4(invalidity, more)                                                                       \
    "{\"configuration\": {\"n\": " more ", \"times\": {\"compilation\": 100, \"benchmark\": 50, "  \
    "\"validation\": 25, \"runtimes\": []}, \"invalidity\": \"" invalidity                         \
    "\", \"correctness\": 1, \"measurements\": [{\"name\": \"power\", \"value\": 7}, "
#define TIME(value, unit) "{\"name\": \"time\", \"value\": " value ", \"unit\": \"" unit "\"}]}"

static void t4_results_become_a_space(void **state)
{
    (void)state;
    const char *text = "{\"results\": [" T4("correct", "1}")
        TIME("4", "ms") ", " T4("correct", "2}") TIME("2000", "us") ", " T4("correctness", "3}")
            TIME("1", "ms") ", " T4("timeou"
                                    "t",
                                    "4}") TIME("1", "ms") ", " T4("constraints", "5}")
                TIME("1", "ms") ", " T4("runtime", "6}")
                    TIME("1", "ms") "], \"schema_version\": \"1.0.0\"}";
    const struct space_import how = {.problem = "gemm", .device = "MI250X", .baseline = "n=1"};
    struct space space = taken(space_import_kernel_tuner, text, &how);
    static const enum verdict verdicts[] = {VERDICT_EQUIVALENT, VERDICT_FASTER, VERDICT_WRONG,
                                            VERDICT_TIMEOUT,    VERDICT_NONE,   VERDICT_CRASH};
    assert_int_equal(space.head.candidates, 6);
    assert_string_equal(space.head.problem, "gemm");
    assert_string_equal(space.head.device_class, "MI250X");
    for (size_t i = 0; i < 6; i++) {
        const struct space_candidate *c = &space.candidate[i];
        assert_true(c->params[0].value == (double)i + 1);
        if (verdicts[i] == VERDICT_NONE) {
            assert_true(!c->result && c->compiled->verdict == VERDICT_COMPILE_ERROR);
            continue;
        }
        assert_int_equal(c->result->verdict, verdicts[i]);
        assert_near(c->result->seconds->held, 0.075);
    }
    assert_near(space_log2(&space.candidate[1]), 1);
    assert_true(isnan(space_log2(&space.candidate[2])));
    space_release(&space);
    refused(space_import_kernel_tuner, text, NULL,
            "does not name its problem; say it with --problem");
    const struct space_import half = {.problem = "gemm"};
    refused(space_import_kernel_tuner, text, &half,
            "does not name its device; say it with --device");
    refused(space_import_kernel_tuner,
            "{\"results\": [" T4("correct", "1}") TIME("4", "hours") "]}", &how,
            "unit of \"time\"");
    refused(space_import_kernel_tuner, "{\"results\": [" T4("odd", "1}") TIME("4", "ms") "]}", &how,
            "\"invalidity\" is none of T4's");
    refused(space_import_kernel_tuner, "{\"results\": [" T4("correct", "1}") "1]}]}", &how,
            "configuration 1 has no \"time\"");
    refused(space_import_kernel_tuner,
            "{\"results\": [" T4("correct", "1}") TIME("4", "ms") "], \"metadata\": {\"timeunit\": "
                                                                  "\"fortnights\"}}",
            &how, "\"timeunit\" is not known");
}

static void what_is_no_file_of_the_tuner_is_refused(void **state)
{
    (void)state;
#define ROW(row) "{\"tune_params_keys\": [\"a\"], \"cache\": {\"k\": " row "}}"
    static const struct {
        const char *text, *says;
    } table[] = {
        {"", "no JSON of Kernel Tuner"},
        {"[1", "no JSON of Kernel Tuner"},
        {"[]", "neither a cache file"},
        {"{\"cache\": {}}", "\"tune_params_keys\" are no list"},
        {"{\"tune_params_keys\": [7], \"cache\": {\"k\": {}}}", "something that is no text"},
        {"{\"tune_params_keys\": [], \"cache\": {\"k\": {}}}", "have no parameters"},
        {ROW("7"), "configuration k is no object"},
        {ROW("{\"a\": 1}"), "configuration k has no \"time\" above 0"},
        {ROW("{\"a\": 1, \"time\": 0}"), "configuration k has no \"time\" above 0"},
        {ROW("{\"a\": 1, \"time\": NaN}"), "configuration k has no \"time\" above 0"},
        {ROW("{\"a\": 1, \"time\": \"soon\"}"), "\"time\" is no number from 0"},
        {ROW("{\"a\": 1, \"time\": 1, \"compile_time\": -1}"), "\"compile_time\" is no number"},
        {ROW("{\"a\": 1, \"time\": 1, \"times\": 3}"), "its times are no list"},
        {ROW("{\"b\": 1, \"time\": 1}"), "configuration k has no \"a\""},
        {ROW("{\"a\": 1, \"__error__\": \"InvalidConfig\"}"), "no configuration is correct"},
        {ROW("{\"a\": 1, \"time\": 1}"), "does not name its problem"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        refused(space_import_kernel_tuner, table[i].text, NULL, table[i].says);
    }
    const struct space_import how = {.problem = "p", .device = "d"};
    refused(space_import_kernel_tuner,
            "{\"tune_params_keys\": [\"a\"], \"cache\": {\"k\": {\"a\": 1, \"time\": 1}, "
            "\"l\": {\"a\": 1, \"time\": 2}}}",
            &how, "two candidates are called \"a=1\"");
}

// ---- GPU Forecasters ----

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
    how.baseline = "1"; // of the other problem
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

// ---- out again ----

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

// A space of two points of a template and one source of its own.
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
    // A label per row: 2, 0.3 and 1.125 times.
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

static void candidates_are_lines_of_json(void **state)
{
    (void)state;
    struct space space = taken(space_import_kernel_tuner, TUNER_HEAD TUNER_ROWS "}\n}", NULL);
    for (size_t i = 0; i < space.head.candidates; i++) {
        struct strbuf line = STRBUF_INIT;
        space_json_candidate(&line, &space, i);
        assert_true(strchr(line.data, '\n') == line.data + line.len - 1);
        json_auto_t *object = json_loads(line.data, JSON_REJECT_DUPLICATES, NULL);
        assert_string_equal(json_string_value(json_object_get(object, "name")),
                            space.candidate[i].name);
        const char *verdict = json_string_value(json_object_get(object, "verdict"));
        const json_t *speedup = json_object_get(object, "speedup");
        assert_non_null(verdict);
        if (isnan(space_log2(&space.candidate[i]))) {
            assert_true(json_is_null(speedup));
            assert_non_null(json_string_value(json_object_get(object, "reason")));
        } else {
            assert_near(log2(json_number_value(speedup)), space_log2(&space.candidate[i]));
            assert_true(json_is_array(json_object_get(object, "ci95")) ==
                        (space.candidate[i].result->speedup->blocks > 0));
        }
        assert_int_equal(json_object_size(json_object_get(object, "params")), 3);
        strbuf_release(&line);
    }
    space_release(&space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cache_file_becomes_a_space),
        cmocka_unit_test(an_unfinished_cache_file_is_read),
        cmocka_unit_test(a_baseline_is_found_by_its_parameters),
        cmocka_unit_test(t4_results_become_a_space),
        cmocka_unit_test(what_is_no_file_of_the_tuner_is_refused),
        cmocka_unit_test(rows_become_a_space),
        cmocka_unit_test(all_three_sets_are_known),
        cmocka_unit_test(one_problem_one_device_one_baseline),
        cmocka_unit_test(rows_that_are_wrong_are_refused),
        cmocka_unit_test(labels_are_those_of_their_function),
        cmocka_unit_test(ours_to_theirs_to_ours),
        cmocka_unit_test(sources_that_do_not_fit_are_refused),
        cmocka_unit_test(candidates_are_lines_of_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
