// A group of outcomes of the made-up space of tests/worker/space.h: set up for each test, filled
// and asked.
#ifndef TESTS_WORKER_MODEL_GROUP_FIXTURE_H
#define TESTS_WORKER_MODEL_GROUP_FIXTURE_H

#include "tests/worker/space.h"
#include "worker/model/group.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

// The state is the group.
static inline int set_up(void **state)
{
    *state = group_create("sgemm", "cpu x");
    return 0;
}

static inline int tear_down(void **state)
{
    group_free(*state);
    return 0;
}

// Adds the points from to to - 1 of a fixed order.
static inline void add_points(struct group *group, size_t from, size_t to)
{
    struct observe context;
    message_init(&observe_message, &context);
    size_t order[SPACE_POINTS];
    space_order(order, 5);
    for (size_t i = from; i < to; i++) {
        struct space_point point = space_point_at(order[i % SPACE_POINTS], 1);
        struct candidate_facts candidate = space_candidate(&point, i);
        struct outcome outcome = space_outcome(&point, &candidate);
        group_add(group, &context, &outcome);
    }
}

// The forecast of one point.
static inline struct forecast forecast_of(struct group *group, struct space_point point,
                                          double incumbent)
{
    struct candidate_facts candidate = space_candidate(&point, 7);
    struct forecast_request request;
    message_init(&forecast_request_message, &request);
    request.incumbent_log2 = incumbent;
    request.candidates = &candidate;
    request.candidates_count = 1;
    struct forecast_reply reply;
    assert_int_equal(group_forecast(group, &request, &reply, NULL), 0);
    assert_int_equal(reply.forecasts_count, 1);
    struct forecast forecast = reply.forecasts[0];
    free(reply.forecasts);
    return forecast;
}

static inline void forecast_end(struct forecast *forecast)
{
    message_clear(&forecast_message, forecast);
}

#endif
