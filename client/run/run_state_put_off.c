#include "client/run/run_state_put_off.h"

static struct run_state_candidate *find(const struct run_state *run_state, uint64_t id)
{
    return id >= 1 && id <= run_state->candidate_count ? &run_state->candidate[id - 1] : NULL;
}

bool run_state_is_replaced(const struct run_state_candidate *candidate)
{
    return candidate->put_off && candidate->proposed.duplicate_of != 0;
}

int run_state_apply_put_off(struct run_state *run_state, const struct run_put_off *event,
                            struct err *err)
{
    struct run_state_candidate *candidate = find(run_state, event->candidate);
    if (!candidate || candidate->put_off || candidate->compiled ||
        candidate->proposed.duplicate_of != 0) {
        return err_set(err, ERR_CORRUPT, "candidate %llu is put off while nothing compiles it",
                       (unsigned long long)event->candidate);
    }
    candidate->put_off = true;
    return 0;
}

int run_state_check_again(const struct run_state *run_state, const struct run_proposed *event,
                          struct err *err)
{
    const struct run_state_candidate *candidate = find(run_state, event->again);
    if (event->again == 0) {
        return 0;
    }
    if (!candidate || !candidate->put_off || candidate->proposed.duplicate_of != 0 ||
        !digest_equal(&candidate->proposed.source, &event->source)) {
        return err_set(err, ERR_CORRUPT, "candidate %llu goes on in the stead of %llu",
                       (unsigned long long)event->candidate, (unsigned long long)event->again);
    }
    return 0;
}

void run_state_go_on(struct run_state *run_state)
{
    struct run_state_candidate *last = find(run_state, run_state->candidate_count);
    struct run_state_candidate *before = find(run_state, last->proposed.again);
    if (!before) {
        run_state->considered++;
        return;
    }
    before->proposed.duplicate_of = last->proposed.candidate;
    last->forecast = before->forecast;
    last->forecast_reason = before->forecast_reason;
    last->forecast_done = before->forecast_done;
    if (last->forecast) {
        last->forecast->id = last->proposed.candidate;
    }
    before->forecast = NULL;
    before->forecast_reason = NULL;
}
