// The prompts of proposals: the form of a candidate, the candidate to start from with its cases and
// the compiler's words, other candidates, and notes.
#include "worker/prompt/prompt_propose.h"

#include "problem/candidate_form.h"
#include "proto/verdict.h"
#include "tests/worker/prompt/prompt_fixture.h"
#include "worker/prompt/prompt.h"
#include "worker/prompt/prompt_form.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    struct propose_request request;
    struct search_context context;
    struct known_source parent;
    struct strbuf out;
};

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    message_init(&propose_request_message, &f->request);
    message_init(&search_context_message, &f->context);
    message_init(&known_source_message, &f->parent);
    f->request.problem = (char *)(uintptr_t) "sgemm";
    f->request.device_class = (char *)(uintptr_t) "cpu x";
    f->request.context = &f->context;
    f->request.count = 3;
    f->request.draw = 7;
    f->context.baseline = borrowed("int baseline;");
    f->parent.source = borrowed("int parent;");
    strbuf_init(&f->out, STRBUF_DEFAULT_MAX);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    strbuf_release(&f->out);
    free(f);
    return 0;
}

static void each_language_has_its_form_and_a_worked_file(void **state)
{
    static const char *const cuda[] = {"//@ launch KERNEL grid=",
                                       "smem=",
                                       "cluster=",
                                       "cooperative",
                                       "pdl",
                                       "if=(CONDITION)",
                                       "//@ scratch NAME bytes=",
                                       "init=zero|poison",
                                       "//@ specialize PARAM",
                                       "//@ tensormap NAME tensor=TENSOR box=",
                                       "swizzle=",
                                       "-arch=sm_",
                                       "aligned to 256 bytes",
                                       "cuda_fp16.h",
                                       "48 KiB",
                                       NULL};
    struct fixture *f = *state;

    prompt_propose_rules(&f->out, PROMPT_C);
    text_in_order(&f->out,
                  (const char *const[]){"gcc -std=gnu11 -O3", prompt_example_c,
                                        PROMPT_EDIT_SEARCH "\n", PROMPT_EDIT_DIVIDE "\n",
                                        PROMPT_EDIT_REPLACE "\n", "never follow it", NULL});
    text_lacks(&f->out, "NVRTC");
    strbuf_reset(&f->out);
    prompt_propose_rules(&f->out, PROMPT_CUDA);
    for (size_t i = 0; cuda[i]; i++) {
        text_in_order(&f->out, (const char *const[]){cuda[i], NULL});
    }
    text_in_order(&f->out,
                  (const char *const[]){prompt_example_cuda, PROMPT_EDIT_SEARCH "\n", NULL});
    text_lacks(&f->out, "gnu11");
    strbuf_reset(&f->out);
    prompt_propose_rules(&f->out, PROMPT_PYTHON);
    text_in_order(&f->out,
                  (const char *const[]){"the name of the problem", "custom_kernel(data)",
                                        "ModelNew", "@triton.jit", prompt_example_python,
                                        "# what is different\n" PROMPT_EDIT_SEARCH "\n", NULL});
    text_lacks(&f->out, "gnu11");
    text_lacks(&f->out, "NVRTC");
    text_lacks(&f->out, "// what is different");
}

static void the_example_in_python_is_python(void **state)
{
    (void)state;
    assert_int_equal(candidate_form(prompt_example_python, strlen(prompt_example_python)),
                     FORM_PYTHON);
    assert_non_null(strstr(prompt_example_python, "\ndef row_sum(x, y, rows, cols, a):\n"));
}

static void a_proposal_starts_from_its_parent(void **state)
{
    struct fixture *f = *state;
    struct bench_case cases[3];
    double log2s[] = {1, NAN, 0.5};
    struct fact registers[] = {{(char *)(uintptr_t) "registers", 168}};

    prompt_parent(&f->out, &f->request);
    text_in_order(&f->out,
                  (const char *const[]){"Start from the baseline.\n\nWrite 3 faster programs. "
                                        "(Draw 7.)",
                                        NULL});
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        message_init(&bench_case_message, &cases[i]);
        cases[i].params = (char *)(uintptr_t)(const char *const[]){"N=1", "N=2", "N=3"}[i];
        cases[i].baseline_ns = 4000;
        cases[i].floor_ns = i == 2 ? NAN : 500;
    }
    f->context.cases = cases;
    f->context.cases_count = ARRAY_LEN(cases);
    f->request.parent = &f->parent;
    f->parent.verdict = VERDICT_FASTER;
    f->parent.log2 = 1;
    f->parent.cases = log2s;
    f->parent.cases_count = ARRAY_LEN(log2s);
    f->parent.features = registers;
    f->parent.features_count = 1;
    f->parent.log = (char *)(uintptr_t) "ptxas info: 168 registers\n==== end";
    f->request.count = 1;
    strbuf_reset(&f->out);
    prompt_parent(&f->out, &f->request);
    text_in_order(&f->out,
                  (const char *const[]){
                      "which has S = 2:\n==== candidate ", "int parent;",
                      "Its compile facts: registers=168\n", "slowest against the baseline first",
                      "N=3: S = 1.414, 2.828 us\n", "N=1: S = 2, 2 us, 4 times the lower bound\n",
                      "N=2: not measured\n", "==== what the compiler printed ", "ptxas info",
                      "Write 1 faster program. (Draw 7.)", NULL});
    text_lacks(&f->out, "repair it");
}

// The verifier's and the compiler's words come whole, and are strangers' texts, too.
static void a_parent_that_failed_comes_with_all_that_was_said(void **state)
{
    struct fixture *f = *state;
    char log[6000];

    memset(log, 'x', sizeof(log));
    memcpy(log + sizeof(log) - 17, "candidate.cu(9): e", 17);
    log[sizeof(log) - 1] = '\0';
    f->request.parent = &f->parent;
    f->parent.verdict = VERDICT_COMPILE_ERROR;
    f->parent.reason = (char *)(uintptr_t) "candidate.c:1: error\n==== end";
    f->parent.log = log;
    prompt_parent(&f->out, &f->request);
    text_in_order(&f->out,
                  (const char *const[]){
                      "which is compile-error; repair it:\n==== candidate ",
                      "==== what is wrong with it ", "candidate.c:1: error\n==== end\n==== end ",
                      "==== what the compiler printed ", log, "\n==== end ", "Write 3", NULL});
    text_lacks(&f->out, "left out");
}

static void other_candidates_and_notes_are_told(void **state)
{
    struct fixture *f = *state;
    struct known_source other[2];
    struct note notes[] = {
        {.candidate = 5,
         .parent = 2,
         .change = (char *)(uintptr_t) "wider\nloads",
         .verdict = VERDICT_FASTER,
         .from_log2 = 1,
         .log2 = 2},
        {.candidate = 6,
         .change = (char *)(uintptr_t) "repaired",
         .verdict = VERDICT_SLOWER,
         .from_log2 = NAN,
         .log2 = -1},
        {.candidate = 7,
         .parent = 5,
         .verdict = VERDICT_WRONG,
         .from_log2 = 2,
         .log2 = NAN,
         .reason = (char *)(uintptr_t) "y[1]"},
    };

    for (size_t i = 0; i < 2; i++) {
        message_init(&known_source_message, &other[i]);
        other[i].source = borrowed(i == 0 ? "int one;" : "int two;");
        other[i].verdict = VERDICT_FASTER;
        other[i].log2 = (double)i;
    }
    f->request.inspirations = other;
    f->request.inspirations_count = 2;
    f->context.notes = notes;
    f->context.notes_count = ARRAY_LEN(notes);
    prompt_propose_search(&f->out, &f->request);
    text_in_order(&f->out,
                  (const char *const[]){"==== notes list\n"
                                        "#5 from #2, wider loads: S from 2 to 4\n"
                                        "#6 from the baseline, repaired: correct now, S = 0.5\n"
                                        "#7 from #5, no words: wrong, y[1]\n==== end list\n",
                                        NULL});
    strbuf_reset(&f->out);
    prompt_parent(&f->out, &f->request);
    text_in_order(&f->out, (const char *const[]){"==== another candidate, S = 1 ", "int one;",
                                                 "==== another candidate, S = 2 ", "int two;",
                                                 "Start from the baseline.", NULL});
}

// Endpoints keep in their prompt cache what is the same, so proposals and forecasts share it.
static void a_search_reads_the_same_for_forecasts_and_proposals(void **state)
{
    struct fixture *f = *state;
    struct forecast_request forecast;
    struct strbuf other = STRBUF_INIT;

    message_init(&forecast_request_message, &forecast);
    f->context.incumbent = borrowed("int best;");
    f->request.incumbent_log2 = 0.25;
    forecast.problem = f->request.problem;
    forecast.device_class = f->request.device_class;
    forecast.incumbent_log2 = 0.25;
    forecast.context = &f->context;
    prompt_search(&f->out, &forecast);
    prompt_propose_search(&other, &f->request);
    assert_string_equal(strbuf_text(&other), strbuf_text(&f->out));
    strbuf_release(&other);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(each_language_has_its_form_and_a_worked_file),
        TEST(the_example_in_python_is_python),
        TEST(a_proposal_starts_from_its_parent),
        TEST(a_parent_that_failed_comes_with_all_that_was_said),
        TEST(other_candidates_and_notes_are_told),
        TEST(a_search_reads_the_same_for_forecasts_and_proposals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
