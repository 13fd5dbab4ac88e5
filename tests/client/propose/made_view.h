// A run's candidates made by hand, and a strategy's view of them.
#ifndef TESTS_CLIENT_PROPOSE_MADE_VIEW_H
#define TESTS_CLIENT_PROPOSE_MADE_VIEW_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/propose/strategy.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MADE_VIEW_MAX 64

struct made_view {
    struct run_state_candidate candidate[MADE_VIEW_MAX];
    struct result result[MADE_VIEW_MAX];
    struct estimate speedup[MADE_VIEW_MAX];
    struct compiled compiled[MADE_VIEW_MAX];
    struct run_state run_state;
    struct generator *generator; // of the text; the caller frees it
    struct strategy_view view;
};

// Makes a run of count candidates, all visible and without outcomes. Candidate i + 1 is point i of
// the generator of this kind and text.
static inline void made_view(struct made_view *made, const char *kind, const char *text,
                             size_t count)
{
    memset(made, 0, sizeof(*made));
    assert_in_range(count, 0, MADE_VIEW_MAX);
    const struct bytes bytes = {.data = (unsigned char *)(uintptr_t)text, .len = strlen(text)};
    assert_int_equal(generator_create(&made->generator, kind, &bytes, "text", NULL), 0);
    made->run_state = (struct run_state){.candidate = made->candidate, .candidate_count = count};
    for (size_t i = 0; i < count; i++) {
        made->candidate[i].proposed = (struct run_proposed){.candidate = i + 1, .point = i + 1};
    }
    made->view = (struct strategy_view){
        .run_state = &made->run_state, .generator = made->generator, .visible = count, .seed = 11};
}

// Gives candidate i + 1 this outcome.
static inline void made_view_measured(struct made_view *made, size_t i, uint64_t verdict,
                                      double log2)
{
    made->speedup[i].log2 = log2;
    made->result[i] = (struct result){.verdict = verdict, .speedup = &made->speedup[i]};
    made->candidate[i].result = &made->result[i];
}

#endif
