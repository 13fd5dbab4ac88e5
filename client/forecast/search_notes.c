#include "client/forecast/search_notes.h"

#include "client/forecast/search_tried.h"
#include "client/run/improvement.h"
#include "common/mem.h"
#include "proto/verdict.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

// The log2 speedup of a candidate, 0 for the baseline; NaN when it was not measured as correct.
static double speedup_of(const struct run_state *run_state, uint64_t id)
{
    const struct result *result = id > 0 ? search_result(&run_state->candidate[id - 1]) : NULL;

    if (id == 0) {
        return 0;
    }
    return result && verdict_is_ratio(result->verdict) && result->speedup ? result->speedup->log2
                                                                          : NAN;
}

// Writes the note of a candidate. False when it has no outcome, or was not written by a model.
static bool make_note(struct note *ret, const struct run_state *run_state, uint64_t id)
{
    const struct run_state_candidate *candidate = &run_state->candidate[id - 1];
    struct tried tried;
    const struct search_context none = {.cases_count = 0};

    if (!candidate->proposed.model) {
        return false;
    }
    message_init(&tried_message, &tried);
    if (!search_tried(&tried, run_state, id, &none)) {
        return false;
    }
    message_init(&note_message, ret);
    ret->candidate = id;
    ret->parent = candidate->proposed.parent;
    ret->change = search_cut(tried.name, 200);
    ret->verdict = tried.verdict;
    ret->from_log2 = speedup_of(run_state, ret->parent);
    ret->log2 = tried.log2;
    ret->reason = search_cut(tried.reason, 200);
    message_clear(&tried_message, &tried);
    return true;
}

// By how much the change helped; NaN when that is not known. A program that is right where its
// parent was not has helped by what it is faster than the baseline, and by something in any case.
static double gain_of(const struct note *note)
{
    return isnan(note->from_log2) && !isnan(note->log2) ? fmax(note->log2, 0) + 1
                                                        : note->log2 - note->from_log2;
}

// The one that helped more first, of equal ones the older one.
static int compare_gains(const void *a, const void *b)
{
    const struct note *x = a, *y = b;

    if (gain_of(x) != gain_of(y)) {
        return gain_of(x) < gain_of(y) ? 1 : -1;
    }
    return (x->candidate > y->candidate) - (x->candidate < y->candidate);
}

static void clear_notes(struct note *notes, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        message_clear(&note_message, &notes[i]);
    }
}

void search_notes_add(struct search_context *context, const struct run_state *run_state,
                      uint64_t visible)
{
    struct note *helped = xcalloc((size_t)visible + 1, sizeof(*helped));
    struct note *harmed = xcalloc((size_t)visible + 1, sizeof(*harmed));
    size_t good = 0, bad = 0;

    for (uint64_t id = 1; id <= visible; id++) {
        struct note note;

        if (!make_note(&note, run_state, id)) {
            continue;
        }
        if (gain_of(&note) >= IMPROVEMENT_MARGIN_LOG2) {
            helped[good++] = note;
        } else {
            harmed[bad++] = note;
        }
    }
    qsort(helped, good, sizeof(*helped), compare_gains);
    size_t first = bad > SEARCH_NOTES_HARMED ? bad - SEARCH_NOTES_HARMED : 0;
    size_t shown = good < SEARCH_NOTES_HELPED ? good : SEARCH_NOTES_HELPED;
    clear_notes(helped, shown, good);
    clear_notes(harmed, 0, first);
    context->notes = xcalloc(shown + bad - first + 1, sizeof(*context->notes));
    context->notes_count = shown + bad - first;
    memcpy(context->notes, helped, shown * sizeof(*helped));
    memcpy(context->notes + shown, harmed + first, (bad - first) * sizeof(*harmed));
    free(helped);
    free(harmed);
}
