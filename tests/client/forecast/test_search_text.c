// What language models are sent of a search: cases and times, the history, neighbours, inspirations
// and notes, all from the outcomes that are visible.
#include "client/forecast/search_text.h"

#include "client/forecast/neighbours.h"
#include "client/forecast/search_notes.h"
#include "common/mem.h"
#include "proto/verdict.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT 60

static const char problem_json[] =
    "{\"name\": \"axpy\", \"title\": \"t\", \"license\": \"MIT\", \"language\": \"c\", \"entry\": "
    "\"axpy\", \"params\": [{\"name\": \"N\", \"type\": \"int\"}],"
    "\"tensors\": [{\"name\": \"x\", \"direction\": \"in\", \"dtype\": \"f32\", \"shape\": [\"N\"],"
    "\"values\": {\"distribution\": \"normal\", \"mean\": 0, \"stddev\": 1}},"
    "{\"name\": \"y\", \"direction\": \"out\", \"dtype\": \"f32\", \"shape\": [\"N\"],"
    "\"tolerance\": 4}], \"cases\": {\"check\": [{\"N\": 7}], \"bench\": [{\"params\": {\"N\": "
    "100}, \"weight\": 1}, {\"params\": {\"N\": 200}, \"weight\": 3}]},"
    "\"cache\": \"warm\", \"work\": {\"flops\": \"2*N\", \"bytes\": \"8*N\"}}";

// A run made by hand. Blobs are named by the digest of their number; their texts are in source[].
struct fixture {
    struct run_state run_state;
    struct run_state_candidate candidate[COUNT];
    struct result result[COUNT];
    struct estimate speedup[COUNT], by_case[COUNT][2];
    struct quantiles baseline[2];
    struct case_result cases[COUNT][2];
    struct compiled compiled[COUNT];
    char *source[COUNT];
    struct search_context context;
    size_t reads;
};

static struct digest digest_of_number(size_t number)
{
    return digest_of(&number, sizeof(number));
}

static int read_blob(void *owner, const struct digest *digest, struct bytes *ret, struct err *err)
{
    struct fixture *f = owner;

    (void)err;
    f->reads++;
    for (size_t i = 0; i < COUNT; i++) {
        struct digest one = digest_of_number(i);

        if (digest_equal(&one, digest)) {
            *ret = bytes_copy(f->source[i], strlen(f->source[i]));
            return 0;
        }
    }
    *ret = bytes_copy(problem_json, strlen(problem_json));
    return 0;
}

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    f->run_state.candidate = f->candidate;
    f->run_state.candidate_count = COUNT;
    f->run_state.started.problem = (char *)(uintptr_t) "axpy";
    f->run_state.started.problem_json = digest_of_number(1000);
    f->run_state.started.baseline = digest_of_number(1001);
    f->baseline[0].p50 = 5000;
    f->baseline[1].p50 = 9000;
    for (size_t i = 0; i < COUNT; i++) {
        f->source[i] = xasprintf("int f%zu() { return %zu + a * b + c; }", i / 10, i);
        f->candidate[i].proposed =
            (struct run_proposed){.candidate = i + 1, .source = digest_of_number(i)};
    }
    message_init(&search_context_message, &f->context);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    message_clear(&search_context_message, &f->context);
    for (size_t i = 0; i < COUNT; i++) {
        free(f->source[i]);
    }
    free(f);
    return 0;
}

// Candidate id was measured: S in both cases and over all, or a verdict that is no ratio.
static void measured(struct fixture *f, uint64_t id, uint64_t verdict, double log2)
{
    size_t i = (size_t)id - 1;

    f->speedup[i].log2 = log2;
    for (size_t j = 0; j < 2; j++) {
        f->by_case[i][j].log2 = log2 + (double)j;
        f->cases[i][j] =
            (struct case_result){.params = (char *)(uintptr_t)(j == 0 ? "N=200" : "N=100"),
                                 .speedup = &f->by_case[i][j],
                                 .baseline_ns = &f->baseline[j],
                                 .floor_ns = 100};
    }
    f->result[i] = (struct result){
        .verdict = verdict,
        .speedup = verdict_is_ratio(verdict) ? &f->speedup[i] : NULL,
        .reason = verdict_is_ratio(verdict) ? NULL : (char *)(uintptr_t) "y[1] is 2",
        .cases = f->cases[i],
        .cases_count = verdict_is_ratio(verdict) ? 2 : 0};
    f->candidate[i].result = &f->result[i];
}

static void make(struct fixture *f, uint64_t visible)
{
    struct err err = ERR_INIT;

    message_clear(&search_context_message, &f->context);
    if (search_text_make(&f->context, &f->run_state, visible, read_blob, f, &err) != 0) {
        fail_msg("%s", err.text);
    }
}

static void cases_have_work_and_times_of_the_first_that_was_measured(void **state)
{
    struct fixture *f = *state;

    make(f, 0);
    assert_int_equal(f->context.cases_count, 2);
    assert_string_equal(f->context.cases[1].params, "N=200");
    assert_true(f->context.cases[1].weight == 0.75 && f->context.cases[1].flops == 400);
    assert_true(f->context.cases[1].bytes == 1600 && isnan(f->context.cases[1].baseline_ns));
    measured(f, 2, VERDICT_FASTER, 1);
    make(f, 1);
    assert_true(isnan(f->context.cases[0].baseline_ns)); // candidate 2 is not visible
    make(f, 2);
    assert_true(f->context.cases[0].baseline_ns == 9000 && f->context.cases[0].floor_ns == 100);
    assert_true(f->context.cases[1].baseline_ns == 5000);
    // Speedups by case are in the order of the cases, not of the result.
    assert_int_equal(f->context.history_count, 1);
    assert_int_equal(f->context.history[0].candidate, 2);
    assert_int_equal(f->context.history[0].cases_count, 2);
    assert_true(f->context.history[0].cases[0] == 2 && f->context.history[0].cases[1] == 1);
}

// The list grows at its end for SEARCH_TEXT_HISTORY / 2 outcomes, then it begins anew.
static void the_history_keeps_its_beginning(void **state)
{
    struct fixture *f = *state;
    uint64_t first = 1;
    size_t changes = 0;

    for (uint64_t id = 1; id <= COUNT; id++) {
        measured(f, id, id % 3 == 0 ? VERDICT_WRONG : VERDICT_FASTER, 0.5);
        make(f, id);
        size_t count = f->context.history_count;
        assert_true(count <= SEARCH_TEXT_HISTORY && count >= (id < 16 ? id : 16));
        assert_int_equal(f->context.history[count - 1].candidate, id);
        changes += f->context.history[0].candidate != first;
        first = f->context.history[0].candidate;
        if (id % 3 == 0) {
            assert_string_equal(f->context.history[count - 1].reason, "y[1] is 2");
        }
    }
    assert_int_equal(changes, 2);
}

static struct candidate_facts facts_of(uint64_t id)
{
    return (struct candidate_facts){.id = id};
}

static void add_neighbours(struct fixture *f, uint64_t visible, struct forecast_request *request)
{
    struct neighbours *neighbours = neighbours_create(read_blob, f);
    struct err err = ERR_INIT;

    make(f, visible);
    request->context = &f->context;
    if (neighbours_add(neighbours, &f->run_state, visible, request, &err) != 0) {
        fail_msg("%s", err.text);
    }
    neighbours_free(neighbours);
}

static void the_nearest_by_their_sources_are_named_and_shown(void **state)
{
    struct fixture *f = *state;
    struct candidate_facts candidate[] = {facts_of(35), facts_of(45)};
    struct forecast_request request = {.candidates = candidate, .candidates_count = 2};

    for (uint64_t id = 1; id <= 30; id++) {
        measured(f, id, id % 7 == 0 ? VERDICT_WRONG : VERDICT_FASTER, 0.1);
    }
    free(f->source[3]);
    f->source[3] = xstrdup("/* as 35 */ int f3() { return  34 + a * b + c; }");
    add_neighbours(f, 30, &request);
    assert_int_equal(candidate[0].nearest_count, NEIGHBOURS_NEAREST);
    assert_int_equal(candidate[0].nearest[0], 4);
    assert_in_range(f->context.neighbours_count, NEIGHBOURS_NEAREST, 2 * NEIGHBOURS_NEAREST);
    for (size_t i = 0; i < NEIGHBOURS_NEAREST; i++) {
        bool shown = candidate[0].nearest[i] == f->context.incumbent_candidate;

        for (size_t j = 0; j < f->context.neighbours_count; j++) {
            const struct known_source *known = &f->context.neighbours[j];

            shown |= known->candidate == candidate[0].nearest[i] && known->source.len > 0;
            assert_true(j == 0 || known->candidate > f->context.neighbours[j - 1].candidate);
            assert_true(known->candidate <= 30);
        }
        assert_true(shown);
    }
    free(candidate[0].nearest);
    free(candidate[1].nearest);
    // Without anything measured there are no neighbours.
    candidate[0] = facts_of(35);
    candidate[1] = facts_of(45);
    add_neighbours(f, 0, &request);
    assert_int_equal(f->context.neighbours_count, 0);
    assert_int_equal(candidate[0].nearest_count, 0);
    free(candidate[0].nearest);
    free(candidate[1].nearest);
}

static void points_of_a_template_are_near_by_their_parameters(void **state)
{
    struct fixture *f = *state;
    struct fact params[4][2];
    struct neighbours *neighbours = neighbours_create(read_blob, f);
    static const double value[4][2] = {{64, 4}, {128, 4}, {64, 5}, {16, 1}};
    double alike[3];
    struct err err = ERR_INIT;

    for (size_t i = 0; i < 4; i++) {
        params[i][0] = (struct fact){(char *)(uintptr_t) "MB", value[i][0]};
        params[i][1] = (struct fact){(char *)(uintptr_t) "UNROLL", value[i][1]};
        f->candidate[i].proposed.params = params[i];
        f->candidate[i].proposed.params_count = 2;
    }
    for (uint64_t id = 2; id <= 4; id++) {
        assert_int_equal(
            neighbours_similarity(neighbours, &f->run_state, 1, id, &alike[id - 2], &err), 0);
    }
    assert_true(fabs(alike[0] - 0.5) < 1e-9); // an octave in one of two
    assert_true(alike[1] > 0.8 && alike[1] < 1);
    assert_true(alike[2] == 0);
    assert_int_equal(f->reads, 0);
    neighbours_free(neighbours);
}

static void inspirations_are_good_and_unlike_each_other(void **state)
{
    struct fixture *f = *state;
    struct neighbours *neighbours = neighbours_create(read_blob, f);
    struct err err = ERR_INIT;
    uint64_t id[2];
    size_t count;

    for (uint64_t i = 1; i <= 4; i++) {
        measured(f, i, VERDICT_FASTER, (double)i);
    }
    measured(f, 5, VERDICT_WRONG, 9);
    free(f->source[2]);
    f->source[2] = xstrdup("int f0() { return 3 + a * b + c; } "); // candidate 3, like 4 exactly
    free(f->source[0]);
    f->source[0] = xstrdup("void other(void) { while (x) { y++; } }");
    assert_int_equal(neighbours_inspirations(neighbours, &f->run_state, 30, 0, id, 2, &count, &err),
                     0);
    assert_int_equal(count, 2);
    assert_int_equal(id[0], 4);
    assert_int_not_equal(id[1], 3); // the second best says nothing new
    assert_int_equal(neighbours_inspirations(neighbours, &f->run_state, 30, 4, id, 2, &count, &err),
                     0);
    assert_int_equal(id[0], 3); // the best beside the parent
    assert_int_equal(neighbours_inspirations(neighbours, &f->run_state, 0, 0, id, 2, &count, &err),
                     0);
    assert_int_equal(count, 0);
    neighbours_free(neighbours);
}

static void notes_say_what_helped_first(void **state)
{
    struct fixture *f = *state;

    for (uint64_t id = 1; id <= 40; id++) {
        f->candidate[id - 1].proposed.model = (char *)(uintptr_t) "writer";
        f->candidate[id - 1].proposed.parent = id > 1 ? id - 1 : 0;
        measured(f, id, VERDICT_SLOWER, -0.5);
    }
    measured(f, 10, VERDICT_FASTER, 1); // from -0.5: helped by 1.5
    measured(f, 20, VERDICT_WRONG, 0);
    measured(f, 21, VERDICT_FASTER, 2.5);   // repaired
    f->candidate[29].proposed.model = NULL; // a template's point is no change
    make(f, 38);
    search_notes_add(&f->context, &f->run_state, 38);
    assert_int_equal(f->context.notes_count, 2 + SEARCH_NOTES_HARMED);
    assert_int_equal(f->context.notes[0].candidate, 21);
    assert_true(isnan(f->context.notes[0].from_log2) && f->context.notes[0].log2 == 2.5);
    assert_int_equal(f->context.notes[1].candidate, 10);
    assert_int_equal(f->context.notes[1].parent, 9);
    assert_true(f->context.notes[1].from_log2 == -0.5);
    assert_int_equal(f->context.notes[2].candidate, 26); // 12 of them up to 38 without 30
    assert_int_equal(f->context.notes[f->context.notes_count - 1].candidate, 38);
}

static void texts_are_cut_between_characters(void **state)
{
    static const struct {
        const char *text, *cut;
    } row[] = {{"abc", "abc"},
               {"abcdef", "abcd"},
               {"abc\xc3\xa4", "abc"},
               {"ab\xe2\x80\x98x", "ab"},
               {"ab\xff", "ab"}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        char *got = search_cut(row[i].text, 4);

        assert_string_equal(got, row[i].cut);
        free(got);
    }
    assert_null(search_cut(NULL, 4));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(cases_have_work_and_times_of_the_first_that_was_measured),
        TEST(the_history_keeps_its_beginning),
        TEST(the_nearest_by_their_sources_are_named_and_shown),
        TEST(points_of_a_template_are_near_by_their_parameters),
        TEST(inspirations_are_good_and_unlike_each_other),
        TEST(notes_say_what_helped_first),
        TEST(texts_are_cut_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
