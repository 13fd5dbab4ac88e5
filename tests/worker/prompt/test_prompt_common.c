// What the sources of a request have in common, and what siblings of a search have in common of
// their prompts: at least 65 % of the bytes, from the first batch of a search on, for problems as
// they are shipped.
#include "worker/prompt/prompt_common.h"

#include "client/problem/problem_dir.h"
#include "problem/template.h"
#include "proto/verdict.h"
#include "tests/worker/prompt/prompt_fixture.h"
#include "worker/prompt/prompt.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SIBLINGS 4
#define TRIED 12
#define NEIGHBOURS 3
#define SHARE_LEAST 0.65

// ---- the common end of texts ----

static struct bytes common_of(const char *const *source, size_t count)
{
    static struct candidate_facts candidates[8];
    struct forecast_request request;

    message_init(&forecast_request_message, &request);
    for (size_t i = 0; i < count; i++) {
        message_init(&candidate_facts_message, &candidates[i]);
        candidates[i].source = borrowed(source[i]);
    }
    request.candidates = candidates;
    request.candidates_count = count;
    return prompt_common_end(&request);
}

static void only_whole_lines_of_some_length_are_common(void **state)
{
    char tail[PROMPT_COMMON_MIN + 1];
    char *text[3];

    (void)state;
    memset(tail, 'x', sizeof(tail));
    memcpy(tail, "xx\n", 3);
    tail[sizeof(tail) - 2] = '\n';
    tail[sizeof(tail) - 1] = '\0';
    text[0] = xasprintf("a = 11;\n%s", tail);
    text[1] = xasprintf("long = 21;\n%s", tail);
    text[2] = xasprintf("%s", tail);
    const char *two[] = {text[0], text[1]}, *three[] = {text[0], text[1], text[2]};
    // "1;" is common to the first lines and no whole line.
    struct bytes common = common_of(two, 2);
    assert_int_equal(common.len, strlen(tail));
    assert_memory_equal(common.data, tail, common.len);
    for (size_t i = 0; i < 2; i++) {
        struct bytes source = borrowed(two[i]);
        assert_true(prompt_ends_with(&source, &common));
    }
    struct bytes other = borrowed("other"), none = {.data = NULL};
    assert_false(prompt_ends_with(&other, &common));
    assert_false(prompt_ends_with(&other, &none));
    // Of a text that is all common the first line is left, which has no line before it here, and
    // then too little is common.
    assert_int_equal(common_of(three, 3).len, 0);
    assert_int_equal(common_of(two, 1).len, 0);
    assert_int_equal(common_of(NULL, 0).len, 0);
    for (size_t i = 0; i < 3; i++) {
        free(text[i]);
    }
}

// ---- prompts of siblings ----

// The features of compiled code, by their names on a GPU and on a core.
static const char *const cuda_feature[] = {"registers",        "spill_store_bytes",
                                           "spill_load_bytes", "stack_bytes",
                                           "barriers",         "launches",
                                           "grid_blocks",      "block_threads",
                                           "occupancy",        "waves",
                                           "flops_per_byte",   "roofline_ns",
                                           "ptx_fma_f32",      "ptx_fma_f64",
                                           "ptx_fma_half",     "ptx_add_f32",
                                           "ptx_mul_f32",      "ptx_special",
                                           "ptx_divide",       "ptx_mma",
                                           "ptx_convert",      "ptx_load_global",
                                           "ptx_store_global", "ptx_load_shared",
                                           "ptx_store_shared", "ptx_load_local",
                                           "ptx_store_local",  "ptx_async_copy",
                                           "ptx_atomic",       "ptx_barrier",
                                           "ptx_shuffle",      "ptx_branch",
                                           "ptx_integer",      "ptx_select",
                                           "ptx_vector_loads", "ptx_instructions",
                                           "sass_total",       "sass_predicated",
                                           "sass_global_128",  "sass_ffma",
                                           "sass_fadd",        "sass_fmul",
                                           "sass_half",        "sass_double",
                                           "sass_hmma",        "sass_gmma",
                                           "sass_mma_other",   "sass_mufu",
                                           "sass_imad",        "sass_integer",
                                           "sass_uniform",     "sass_compare",
                                           "sass_move",        "sass_convert",
                                           "sass_ldg",         "sass_stg",
                                           "sass_lds",         "sass_sts",
                                           "sass_ldl",         "sass_stl",
                                           "sass_ldc",         "sass_async_copy",
                                           "sass_atomic",      "sass_bar",
                                           "sass_wait",        "sass_shuffle",
                                           "sass_branch",      "sass_reconverge",
                                           "code_bytes",       "shared_dynamic_bytes",
                                           "source_bytes",     "kernels"};
static const char *const cpu_feature[] = {
    "code_bytes",   "read_only_bytes", "data_bytes", "bss_bytes", "object_bytes", "source_bytes",
    "instructions", "loads",           "stores",     "branches",  "calls",        "fma_512",
    "fma_256",      "fma_128",         "add_512",    "add_256",   "add_128",      "mul_512",
    "mul_256",      "mul_128",         "divide",     "shuffle",   "gather",       "scatter",
    "mask",         "convert",         "broadcast",  "prefetch",  "integer",      "loops",
    "stack_spills", "functions"};

struct search {
    struct problem_dir dir;
    struct template *template;
    struct strbuf source[SIBLINGS + NEIGHBOURS + 1];
    struct fact features[SIBLINGS + NEIGHBOURS + 1][80], device[8];
    size_t feature_count;
    char *names[TRIED];
    double by_case[32];
    struct tried tried[TRIED];
    struct bench_case cases[32];
    struct known_source neighbours[NEIGHBOURS];
    struct candidate_facts candidates[SIBLINGS];
    struct search_context context;
    struct forecast_request request;
};

static void fill_features(struct search *s)
{
    bool cuda = s->dir.problem->cuda;
    const char *const *name = cuda ? cuda_feature : cpu_feature;

    s->feature_count = cuda ? ARRAY_LEN(cuda_feature) : ARRAY_LEN(cpu_feature);
    for (size_t program = 0; program < ARRAY_LEN(s->features); program++) {
        for (size_t i = 0; i < s->feature_count; i++) {
            s->features[program][i] = (struct fact){.name = (char *)(uintptr_t)name[i],
                                                    .value = (double)(i * i + 17 * program)};
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(s->device); i++) {
        s->device[i] = (struct fact){.name = (char *)(uintptr_t)name[i], .value = 1e9 + (double)i};
    }
}

// What a search knows after `tried` candidates.
static void make_search(struct search *s, const char *problem, size_t tried)
{
    const char *root = getenv("KCAST_ROOT");
    char *path = xasprintf("%s/problems/%s", root ? root : ".", problem);
    struct err err = ERR_INIT;

    memset(s, 0, sizeof(*s));
    if (problem_dir_load(&s->dir, path, &err) != 0 ||
        template_parse(&s->template, (const char *)s->dir.template_source.data, path, &err) != 0) {
        fail_msg("%s", err.text);
    }
    free(path);
    fill_features(s);
    size_t points = template_point_count(s->template);
    for (size_t i = 0; i < ARRAY_LEN(s->source); i++) {
        strbuf_init(&s->source[i], STRBUF_DEFAULT_MAX);
        template_source(s->template, i * (points / ARRAY_LEN(s->source)), &s->source[i]);
    }
    message_init(&forecast_request_message, &s->request);
    message_init(&search_context_message, &s->context);
    s->request.problem = s->dir.problem->name;
    s->request.device_class = (char *)(uintptr_t) "NVIDIA H200, sm_90, driver 13.0, nvrtc 13.0";
    s->request.device_facts = s->device;
    s->request.device_facts_count = ARRAY_LEN(s->device);
    s->request.baseline_features = s->features[0];
    s->request.baseline_features_count = s->feature_count;
    s->request.context = &s->context;
    s->context.problem_json = s->dir.json;
    s->context.readme = s->dir.readme;
    s->context.baseline = s->dir.baseline;
    for (size_t i = 0; i < s->dir.problem->bench_count; i++) {
        message_init(&bench_case_message, &s->cases[i]);
        s->cases[i].params = (char *)(uintptr_t) "M=2048 N=1024 K=512";
        s->cases[i].weight = 0.25;
        s->cases[i].flops = 2.1e9;
        s->cases[i].bytes = 1.4e7;
        s->cases[i].baseline_ns = tried > 0 ? 123456 : NAN;
    }
    s->context.cases = s->cases;
    s->context.cases_count = s->dir.problem->bench_count;
    for (size_t i = 0; i < tried; i++) {
        struct strbuf name = STRBUF_INIT;

        template_point_name(s->template, (i * 7919) % points, &name);
        s->names[i] = strbuf_detach(&name);
        message_init(&tried_message, &s->tried[i]);
        s->tried[i].name = s->names[i];
        s->tried[i].candidate = i + 1;
        s->tried[i].verdict = i % 4 == 1 ? VERDICT_WRONG : VERDICT_FASTER;
        s->tried[i].reason = (char *)(uintptr_t) "y[0] is -5.2, expected -6.1, for B=13 L=150";
        s->tried[i].log2 = 0.1 * (double)i;
        s->tried[i].cases = s->by_case;
        s->tried[i].cases_count = s->context.cases_count;
    }
    s->context.history = s->tried;
    s->context.history_count = tried;
    if (tried > 0) {
        s->context.incumbent = borrowed(strbuf_text(&s->source[SIBLINGS]));
        s->context.incumbent_candidate = 3;
        s->context.incumbent_features = s->features[SIBLINGS];
        s->context.incumbent_features_count = s->feature_count;
        s->request.incumbent_log2 = 1.1;
        s->context.neighbours = s->neighbours;
        s->context.neighbours_count = NEIGHBOURS;
    }
    for (size_t i = 0; i < NEIGHBOURS; i++) {
        message_init(&known_source_message, &s->neighbours[i]);
        s->neighbours[i].candidate = 5 + i;
        s->neighbours[i].source = borrowed(strbuf_text(&s->source[SIBLINGS + 1 + i]));
        s->neighbours[i].verdict = VERDICT_FASTER;
        s->neighbours[i].log2 = 0.7;
        s->neighbours[i].features = s->features[SIBLINGS + 1 + i];
        s->neighbours[i].features_count = s->feature_count;
    }
    for (size_t i = 0; i < SIBLINGS; i++) {
        message_init(&candidate_facts_message, &s->candidates[i]);
        s->candidates[i].source = borrowed(strbuf_text(&s->source[i]));
        s->candidates[i].features = s->features[i];
        s->candidates[i].features_count = s->feature_count;
        s->candidates[i].params = s->features[i]; // as many numbers as a point has
        s->candidates[i].params_count = template_param_count(s->template);
    }
    s->request.candidates = s->candidates;
    s->request.candidates_count = SIBLINGS;
}

static void release_search(struct search *s)
{
    for (size_t i = 0; i < ARRAY_LEN(s->source); i++) {
        strbuf_release(&s->source[i]);
    }
    for (size_t i = 0; i < TRIED; i++) {
        free(s->names[i]);
    }
    template_free(s->template);
    problem_dir_release(&s->dir);
}

// The whole prompt of one sibling.
static void write_prompt(struct strbuf *out, const struct search *s, size_t sibling)
{
    prompt_rules(out);
    prompt_search(out, &s->request);
    prompt_candidate(out, &s->request, &s->candidates[sibling]);
}

// The least part of a sibling's prompt that all siblings have in common at the beginning.
static double least_share(const struct search *s)
{
    struct strbuf prompt[SIBLINGS];
    size_t common = SIZE_MAX, longest = 0;

    for (size_t i = 0; i < SIBLINGS; i++) {
        strbuf_init(&prompt[i], STRBUF_DEFAULT_MAX);
        write_prompt(&prompt[i], s, i);
        const char *one = strbuf_text(&prompt[0]), *other = strbuf_text(&prompt[i]);
        size_t same = 0;

        while (one[same] != '\0' && one[same] == other[same]) {
            same++;
        }
        common = i > 0 && same < common ? same : common;
        longest = prompt[i].len > longest ? prompt[i].len : longest;
    }
    for (size_t i = 0; i < SIBLINGS; i++) {
        strbuf_release(&prompt[i]);
    }
    return (double)common / (double)longest;
}

static void siblings_share_most_of_their_prompts(void **state)
{
    static const char *const problems[] = {"cpu/sgemm",  "cpu/softmax",    "cpu/histogram",
                                           "cuda/sgemm", "cuda/attention", "cuda/transpose"};
    static struct search s;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(problems); i++) {
        for (size_t tried = 0; tried <= TRIED; tried += TRIED) {
            make_search(&s, problems[i], tried);
            double share = least_share(&s);

            printf("%s after %zu: %.2f\n", problems[i], tried, share);
            if (!(share >= SHARE_LEAST)) {
                fail_msg("%s after %zu candidates: %.3f of a prompt are its siblings', too",
                         problems[i], tried, share);
            }
            release_search(&s);
        }
    }
}

// Each program stands in the prompt, by its beginning and the common end.
static void programs_are_shown_by_their_beginning(void **state)
{
    static struct search s;
    struct strbuf prompt = STRBUF_INIT;

    (void)state;
    make_search(&s, "cpu/softmax", TRIED);
    struct bytes common = prompt_common_end(&s.request);
    assert_true(common.len > s.dir.template_source.len / 2);
    write_prompt(&prompt, &s, 0);
    const char *text = strbuf_text(&prompt);
    const char *end = strstr(text, "==== common end "), *best = strstr(text, "==== best so far");
    const char *own = strstr(text, "\nThe candidate:\n==== candidate ");
    assert_true(end && best && own && end < best && best < own);
    char *whole = xstrndup((const char *)common.data, common.len);
    assert_non_null(strstr(end, whole));
    assert_null(strstr(best, whole)); // once
    size_t shown = 0;
    for (const char *at = best; (at = strstr(at, "\nand then the common end.\n")); at++) {
        shown++;
    }
    assert_int_equal(shown, 1 + NEIGHBOURS + 1);
    char *head = xstrndup(strbuf_text(&s.source[0]), s.source[0].len - common.len);
    assert_non_null(strstr(own, head));
    // One that ends otherwise is shown whole.
    s.neighbours[0].source = borrowed("int another_program;\n");
    strbuf_reset(&prompt);
    write_prompt(&prompt, &s, 0);
    assert_non_null(strstr(strbuf_text(&prompt), "int another_program;\n"));
    free(head);
    free(whole);
    strbuf_release(&prompt);
    release_search(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_whole_lines_of_some_length_are_common),
        cmocka_unit_test(siblings_share_most_of_their_prompts),
        cmocka_unit_test(programs_are_shown_by_their_beginning),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
