#include "client/run/run_state_trust.h"

#include "client/run/run_state_time.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Removes what was recorded of the forecaster before. Returns how many alarms it counted.
static uint64_t forget_trust(struct run_state *run_state, const char *forecaster)
{
    for (size_t i = 0; i < run_state->trust_count; i++) {
        struct run_trusted *trust = &run_state->trust[i];
        if (strcmp(trust->forecaster, forecaster) == 0) {
            uint64_t alarms = trust->alarms;
            message_clear(&run_trusted_message, trust);
            run_state->trust_count--;
            memmove(trust, trust + 1, (run_state->trust_count - i) * sizeof(*trust));
            return alarms;
        }
    }
    return 0;
}

int run_state_apply_trusted(struct run_state *run_state, struct run_trusted *event, struct err *err)
{
    if (event->after > run_state->candidate_count) {
        return err_set(err, ERR_CORRUPT, "trust rests on unknown candidates");
    }
    if (!isnan(event->cut) && !(event->cut >= 0 && event->cut <= 1)) {
        return err_set(err, ERR_CORRUPT, "a cut of forecasts is no probability");
    }
    uint64_t before = forget_trust(run_state, event->forecaster);
    run_state->trust =
        xrealloc(run_state->trust, run_state->trust_count + 1, sizeof(*run_state->trust));
    run_state->trust_alarms += event->alarms > before ? event->alarms - before : 0;
    run_state->trust[run_state->trust_count++] = *event;
    run_state->trust_events++;
    *event = (struct run_trusted){0};
    return 0;
}

const struct run_trusted *run_state_trust(const struct run_state *run_state, const char *forecaster)
{
    for (size_t i = 0; i < run_state->trust_count; i++) {
        if (strcmp(run_state->trust[i].forecaster, forecaster) == 0) {
            return &run_state->trust[i];
        }
    }
    return NULL;
}

int run_state_apply_looked_back(struct run_state *run_state, struct run_looked_back *event,
                                double at, struct err *err)
{
    if (event->after != run_state->candidate_count || run_state->surveys > 0) {
        return err_set(err, ERR_CORRUPT, "a look back is of other candidates");
    }
    message_clear(&run_looked_back_message, &run_state->looked);
    run_state->looked = *event;
    run_state->looks++;
    run_state_add_worker(run_state, event->asked_at, at);
    *event = (struct run_looked_back){0};
    return 0;
}

int run_state_apply_screened(struct run_state *run_state, struct run_screened *event,
                             struct err *err)
{
    if (event->generator >= RUN_GENERATORS_MAX || event->parents_count != event->points_count) {
        return err_set(err, ERR_CORRUPT, "a screening is of no generator, or its points are wrong");
    }
    for (size_t i = 0; i < event->parents_count; i++) {
        if (event->parents[i] > run_state->candidate_count) {
            return err_set(err, ERR_CORRUPT, "a screening rests on unknown candidates");
        }
    }
    struct run_screened *last = &run_state->screened[event->generator];
    message_clear(&run_screened_message, last);
    *last = *event;
    *event = (struct run_screened){0};
    return 0;
}

void run_state_release_trust(struct run_state *run_state)
{
    for (size_t i = 0; i < RUN_GENERATORS_MAX; i++) {
        message_clear(&run_screened_message, &run_state->screened[i]);
    }
    for (size_t i = 0; i < run_state->trust_count; i++) {
        message_clear(&run_trusted_message, &run_state->trust[i]);
    }
    free(run_state->trust);
    message_clear(&run_looked_back_message, &run_state->looked);
}
