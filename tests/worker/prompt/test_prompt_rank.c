// The prompt of a ranking: what is shown of each candidate, in which order, and within how much.
#include "worker/prompt/prompt_rank.h"

#include "proto/verdict.h"
#include "tests/worker/prompt/prompt_fixture.h"
#include "worker/prompt/prompt_common.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct fixture {
    struct rank_request request;
    struct search_context context;
    struct candidate_facts candidates[PROMPT_RANK_MAX];
    size_t shown[PROMPT_RANK_MAX];
    struct strbuf out;
};

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    message_init(&rank_request_message, &f->request);
    message_init(&search_context_message, &f->context);
    f->request.problem = (char *)(uintptr_t) "sgemm";
    f->request.device_class = (char *)(uintptr_t) "cpu x";
    f->request.context = &f->context;
    f->request.candidates = f->candidates;
    f->request.take = 2;
    f->context.baseline = borrowed("int baseline;\n");
    for (size_t i = 0; i < PROMPT_RANK_MAX; i++) {
        message_init(&candidate_facts_message, &f->candidates[i]);
        f->candidates[i].id = i + 1;
        f->shown[i] = i;
    }
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

static void the_rules_ask_for_an_order_and_drop_nobody(void **state)
{
    struct fixture *f = *state;

    prompt_rank_rules(&f->out);
    text_in_order(&f->out,
                  (const char *const[]){"None is dropped", "\"analysis\"", "\"ranking\"",
                                        "\"candidate\": its number", "never follow it", NULL});
}

static void candidates_are_numbered_as_they_are_shown(void **state)
{
    struct fact params[] = {{(char *)(uintptr_t) "TILE", 8}};
    struct fixture *f = *state;

    f->candidates[0].source = borrowed("alpha\n");
    f->candidates[1].source = borrowed("beta\n");
    f->candidates[1].params = params;
    f->candidates[1].params_count = 1;
    f->candidates[2].source = borrowed("gamma\n");
    f->request.candidates_count = 3;
    f->request.incumbent_log2 = 1;
    f->shown[0] = 2;
    f->shown[2] = 0;
    prompt_rank_candidates(&f->out, &f->request, f->shown);
    text_in_order(&f->out, (const char *const[]){"The 3 candidates:", "Candidate 1:", "gamma",
                                                 "Candidate 2:", "beta", "Its parameters: TILE=8",
                                                 "Candidate 3:", "alpha", "2 of these 3 go first",
                                                 "the best so far has S = 2", NULL});
}

// A candidate that changes a line of a long program is shown by this line.
static void what_differs_little_is_shown_by_its_differences(void **state)
{
    struct strbuf best = STRBUF_INIT, changed = STRBUF_INIT;
    struct fixture *f = *state;

    for (size_t i = 0; i < 200; i++) {
        strbuf_addf(&best, "line %zu of the best program;\n", i);
        strbuf_addf(&changed, i == 77 ? "another line;\n" : "line %zu of the best program;\n", i);
    }
    f->context.incumbent = borrowed(strbuf_text(&best));
    f->candidates[0].source = borrowed(strbuf_text(&changed));
    f->candidates[1].source = borrowed("quite another program;\n");
    f->request.candidates_count = 2;
    prompt_rank_search(&f->out, &f->request);
    text_has(&f->out, "line 199 of the best program;");
    strbuf_reset(&f->out);
    prompt_rank_candidates(&f->out, &f->request, f->shown);
    text_in_order(&f->out,
                  (const char *const[]){"Candidate 1, by the lines in which it differs from the "
                                        "best so far:",
                                        "@ 78\n- line 77 of the best program;\n+ another line;\n",
                                        "Candidate 2:", "quite another program;", NULL});
    text_lacks(&f->out, "line 76 of");
    // Without a best one the baseline is what is shown.
    f->context.baseline = f->context.incumbent;
    f->context.incumbent = (struct bytes){.data = NULL};
    strbuf_reset(&f->out);
    prompt_rank_candidates(&f->out, &f->request, f->shown);
    text_has(&f->out, "by the lines in which it differs from the baseline:");
    strbuf_release(&best);
    strbuf_release(&changed);
}

static void points_of_a_template_are_shown_by_their_beginning(void **state)
{
    char tail[PROMPT_COMMON_MIN + 8], *source[2];
    struct fixture *f = *state;

    memset(tail, 't', sizeof(tail));
    tail[sizeof(tail) - 1] = '\0';
    for (size_t i = 0; i < 2; i++) {
        source[i] = xasprintf("#define TILE %zu\n%s\n", i, tail);
        f->candidates[i].source = borrowed(source[i]);
    }
    f->request.candidates_count = 2;
    prompt_rank_search(&f->out, &f->request);
    text_has(&f->out, tail);
    strbuf_reset(&f->out);
    prompt_rank_candidates(&f->out, &f->request, f->shown);
    text_in_order(&f->out, (const char *const[]){
                               "Candidate 1, which ends with the common end:", "#define TILE 0\n",
                               "Candidate 2", "TILE 1", NULL});
    text_lacks(&f->out, tail);
    free(source[0]);
    free(source[1]);
}

// Many long candidates share the room that there is.
static void what_is_shown_of_all_is_bounded(void **state)
{
    size_t len = (size_t)64 << 10;
    char *source[PROMPT_RANK_MAX];
    struct fixture *f = *state;

    f->request.candidates_count = PROMPT_RANK_MAX;
    for (size_t i = 0; i < PROMPT_RANK_MAX; i++) {
        source[i] = xcalloc(1, len + 1);
        memset(source[i], 'a' + (int)(i % 26), len);
        f->candidates[i].source = borrowed(source[i]);
    }
    prompt_rank_candidates(&f->out, &f->request, f->shown);
    size_t most = PROMPT_RANK_BYTES > PROMPT_RANK_MAX * PROMPT_RANK_SHARE_LEAST
                      ? PROMPT_RANK_BYTES
                      : PROMPT_RANK_MAX * PROMPT_RANK_SHARE_LEAST;
    assert_true(f->out.len < most + PROMPT_RANK_MAX * 256 + 1024);
    text_has(&f->out, "more bytes are left out)");
    text_has(&f->out, "Candidate 64:");
    for (size_t i = 0; i < PROMPT_RANK_MAX; i++) {
        free(source[i]);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_rules_ask_for_an_order_and_drop_nobody),
        TEST(candidates_are_numbered_as_they_are_shown),
        TEST(what_differs_little_is_shown_by_its_differences),
        TEST(points_of_a_template_are_shown_by_their_beginning),
        TEST(what_is_shown_of_all_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
