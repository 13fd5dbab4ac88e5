#include "client/forecast/neighbours.h"

#include "common/mem.h"
#include "problem/source_shingles.h"
#include "proto/verdict.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define UNLIKE 0.8 // less alike than this is another idea

struct neighbours {
    search_text_reader *read;
    void *owner;
    struct known { // what has been read of a candidate's source
        struct source_shingles shingles;
        bool there;
    } * known;
    size_t count;
};

struct neighbours *neighbours_create(search_text_reader *read, void *owner)
{
    struct neighbours *neighbours = xcalloc(1, sizeof(*neighbours));

    *neighbours = (struct neighbours){.read = read, .owner = owner};
    return neighbours;
}

void neighbours_free(struct neighbours *neighbours)
{
    if (!neighbours) {
        return;
    }
    for (size_t i = 0; i < neighbours->count; i++) {
        source_shingles_release(&neighbours->known[i].shingles);
    }
    free(neighbours->known);
    free(neighbours);
}

// ---- likeness ----

// Sets *ret to the shingles of a candidate, reading its source the first time. They stay where they
// are until another candidate is looked up.
static int shingles_of(struct neighbours *neighbours, const struct run_state *run_state,
                       uint64_t id, struct err *err)
{
    struct bytes source;

    if (id > neighbours->count) {
        neighbours->known = xrealloc(neighbours->known, (size_t)id, sizeof(*neighbours->known));
        memset(neighbours->known + neighbours->count, 0,
               ((size_t)id - neighbours->count) * sizeof(*neighbours->known));
        neighbours->count = (size_t)id;
    }
    struct known *known = &neighbours->known[id - 1];
    if (known->there) {
        return 0;
    }
    int rc = neighbours->read(neighbours->owner, &run_state->candidate[id - 1].proposed.source,
                              &source, err);
    if (rc == 0) {
        source_shingles_make(&known->shingles, source.data, source.len);
        known->there = true;
        bytes_clear(&source);
    }
    return rc;
}

// The likeness of two points of one template by their parameters; negative when they are none.
static double by_params(const struct run_proposed *a, const struct run_proposed *b)
{
    double apart = 0;

    if (a->params_count == 0 || a->params_count != b->params_count) {
        return -1;
    }
    for (size_t i = 0; i < a->params_count; i++) {
        double x = a->params[i].value, y = b->params[i].value;

        if (strcmp(a->params[i].name, b->params[i].name) != 0) {
            return -1;
        }
        if (x != y) {
            double octaves = x > 0 && y > 0 ? fabs(log2(x / y)) : 1;

            apart += fmax(fmin(octaves, 1), 0.1); // any change counts something
        }
    }
    return 1 - apart / (double)a->params_count;
}

int neighbours_similarity(struct neighbours *neighbours, const struct run_state *run_state,
                          uint64_t a, uint64_t b, double *ret, struct err *err)
{
    double params =
        by_params(&run_state->candidate[a - 1].proposed, &run_state->candidate[b - 1].proposed);

    if (params >= 0) {
        *ret = params;
        return 0;
    }
    int rc = shingles_of(neighbours, run_state, a, err);
    if (rc != 0) {
        return rc;
    }
    rc = shingles_of(neighbours, run_state, b, err);
    if (rc == 0) {
        *ret = source_shingles_similarity(&neighbours->known[a - 1].shingles,
                                          &neighbours->known[b - 1].shingles);
    }
    return rc;
}

// ---- neighbours of a request ----

// A measured candidate and how alike it is to one, or how much it is wanted.
struct ranked {
    uint64_t id;
    double score;
};

// The better one first, of equal ones the newer one.
static int compare_ranked(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    if (x->score != y->score) {
        return x->score < y->score ? 1 : -1;
    }
    return (x->id < y->id) - (x->id > y->id);
}

// The newest measured among candidates 1 … visible, newest first.
static size_t list_measured(const struct run_state *run_state, uint64_t visible,
                            struct ranked ret[static NEIGHBOURS_LOOKED_AT])
{
    size_t count = 0;

    for (uint64_t id = visible; id > 0 && count < NEIGHBOURS_LOOKED_AT; id--) {
        if (run_state->candidate[id - 1].result) {
            ret[count++] = (struct ranked){.id = id};
        }
    }
    return count;
}

// Sorts the list by its members' likeness to a candidate.
static int rank(struct neighbours *neighbours, const struct run_state *run_state, uint64_t id,
                struct ranked *list, size_t count, struct err *err)
{
    int rc = 0;

    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = neighbours_similarity(neighbours, run_state, id, list[i].id, &list[i].score, err);
    }
    qsort(list, count, sizeof(*list), compare_ranked);
    return rc;
}

// Sorts the list by how much its members are wanted: each candidate wants its nearest ones, as much
// as they are like it.
static int count_votes(struct neighbours *neighbours, const struct run_state *run_state,
                       const struct forecast_request *request, struct ranked *list, size_t count,
                       struct err *err)
{
    struct ranked *one = xcalloc(count + 1, sizeof(*one));
    int rc = 0;

    for (size_t i = 0; i < request->candidates_count && rc == 0; i++) {
        for (size_t j = 0; j < count; j++) {
            one[j].id = list[j].id;
        }
        rc = rank(neighbours, run_state, request->candidates[i].id, one, count, err);
        for (size_t j = 0; rc == 0 && j < count && j < NEIGHBOURS_NEAREST; j++) {
            for (size_t k = 0; k < count; k++) {
                list[k].score += list[k].id == one[j].id ? 1 + one[j].score : 0;
            }
        }
    }
    qsort(list, count, sizeof(*list), compare_ranked);
    free(one);
    return rc;
}

static int compare_known(const void *a, const void *b)
{
    const struct known_source *x = a, *y = b;

    return (x->candidate > y->candidate) - (x->candidate < y->candidate);
}

// Adds the sources of the first of the list, as many as there is room for. Leaves in the list those
// that a candidate may be told to be near to; returns their number in *count.
static int add_sources(struct neighbours *neighbours, const struct run_state *run_state,
                       struct search_context *context, struct ranked *list, size_t *count,
                       struct err *err)
{
    size_t bytes = 0, kept = 0;
    int rc = 0;

    context->neighbours = xcalloc(NEIGHBOURS_SHOWN, sizeof(*context->neighbours));
    for (size_t i = 0; i < *count && rc == 0 && list[i].score > 0; i++) {
        if (list[i].id == context->incumbent_candidate) {
            list[kept++] = list[i];
            continue;
        }
        if (context->neighbours_count == NEIGHBOURS_SHOWN) {
            continue;
        }
        struct known_source *known = &context->neighbours[context->neighbours_count++];
        rc = search_known_source(known, run_state, list[i].id, UINT64_MAX, context,
                                 neighbours->read, neighbours->owner, err);
        bytes += known->source.len;
        if (rc == 0 && bytes <= NEIGHBOURS_BYTES_MAX) {
            list[kept++] = list[i];
        } else {
            bytes -= known->source.len;
            message_clear(&known_source_message, known);
            context->neighbours_count--;
        }
    }
    qsort(context->neighbours, context->neighbours_count, sizeof(*context->neighbours),
          compare_known);
    *count = kept;
    return rc;
}

int neighbours_add(struct neighbours *neighbours, const struct run_state *run_state,
                   uint64_t visible, struct forecast_request *request, struct err *err)
{
    struct ranked *list = xcalloc(NEIGHBOURS_LOOKED_AT, sizeof(*list));
    size_t count = list_measured(run_state, visible, list);
    int rc = count_votes(neighbours, run_state, request, list, count, err);

    if (rc == 0) {
        rc = add_sources(neighbours, run_state, request->context, list, &count, err);
    }
    for (size_t i = 0; i < request->candidates_count && rc == 0; i++) {
        struct candidate_facts *candidate = &request->candidates[i];

        rc = rank(neighbours, run_state, candidate->id, list, count, err);
        candidate->nearest = xcalloc(NEIGHBOURS_NEAREST, sizeof(*candidate->nearest));
        while (rc == 0 && candidate->nearest_count < NEIGHBOURS_NEAREST &&
               candidate->nearest_count < count) {
            candidate->nearest[candidate->nearest_count] = list[candidate->nearest_count].id;
            candidate->nearest_count++;
        }
    }
    free(list);
    return rc;
}

// ---- inspirations ----

// Whether the candidate is unlike the parent and those that were chosen.
static int is_unlike(struct neighbours *neighbours, const struct run_state *run_state, uint64_t id,
                     uint64_t parent, const uint64_t *chosen, size_t count, bool *ret,
                     struct err *err)
{
    int rc = 0;

    *ret = id != parent;
    for (size_t i = 0; i <= count && rc == 0 && *ret; i++) {
        uint64_t other = i < count ? chosen[i] : parent;
        double alike = 0;

        if (other != 0) {
            rc = neighbours_similarity(neighbours, run_state, id, other, &alike, err);
            *ret = alike < UNLIKE;
        }
    }
    return rc;
}

int neighbours_inspirations(struct neighbours *neighbours, const struct run_state *run_state,
                            uint64_t visible, uint64_t parent, uint64_t *ret, size_t max,
                            size_t *ret_count, struct err *err)
{
    struct ranked *list = xcalloc(NEIGHBOURS_LOOKED_AT, sizeof(*list));
    size_t count = list_measured(run_state, visible, list), good = 0;
    int rc = 0;

    *ret_count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct result *result = search_result(&run_state->candidate[list[i].id - 1]);

        if (verdict_is_ratio(result->verdict) && result->speedup) {
            list[good] = list[i];
            list[good++].score = result->speedup->log2;
        }
    }
    qsort(list, good, sizeof(*list), compare_ranked);
    for (size_t i = 0; i < good && *ret_count < max && rc == 0; i++) {
        bool unlike;

        if (*ret_count == 0 && list[i].id != parent) {
            ret[(*ret_count)++] = list[i].id;
            continue;
        }
        rc = is_unlike(neighbours, run_state, list[i].id, parent, ret, *ret_count, &unlike, err);
        if (rc == 0 && unlike) {
            ret[(*ret_count)++] = list[i].id;
        }
    }
    free(list);
    return rc;
}
