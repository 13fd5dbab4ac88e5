#include "client/run/run_state_asked.h"

#include "common/mem.h"
#include <math.h>
#include <stdlib.h>

void run_state_add_tokens(struct run_state *run_state, uint64_t input, uint64_t output, double cost)
{
    run_state->input_tokens += input;
    run_state->output_tokens += output;
    run_state->model_cost += isnan(cost) ? 0 : cost;
}

// Finds what language models used for the batch that is being written. A batch that begins again
// after a resume gets the same answers again, so its count begins again, too.
static struct run_state_ask *ask_of(struct run_state *run_state, const struct run_asked *event)
{
    uint64_t first = run_state->candidate_count + 1;
    if (run_state->ask_count == 0 || run_state->ask[run_state->ask_count - 1].first != first) {
        run_state->ask =
            xrealloc(run_state->ask, run_state->ask_count + 1, sizeof(*run_state->ask));
        run_state->ask[run_state->ask_count++] = (struct run_state_ask){0};
    }
    struct run_state_ask *ask = &run_state->ask[run_state->ask_count - 1];
    if (ask->first != first || event->round == 1) {
        *ask = (struct run_state_ask){.first = first, .generator = event->generator};
    }
    return ask;
}

int run_state_apply_asked(struct run_state *run_state, struct run_asked *event, struct err *err)
{
    if (event->generator >= RUN_GENERATORS_MAX) {
        return err_set(err, ERR_CORRUPT, "generator %llu was asked, and there is none",
                       (unsigned long long)event->generator);
    }
    struct run_state_ask *ask = ask_of(run_state, event);
    // Old files, which know one generator only, say nothing about the first answer.
    bool said = event->round > 0;
    ask->tokens += said ? event->first_tokens : event->input_tokens + event->output_tokens;
    double cost = said ? event->first_cost : event->cost;
    ask->cost += isnan(cost) ? 0 : cost;
    if (event->over) {
        struct run_state_asking *asking = &run_state->asking[event->generator];

        asking->over = true;
        free(asking->reason);
        asking->reason = event->reason ? xstrdup(event->reason) : NULL;
    }
    run_state->asked_seconds += event->seconds > 0 ? event->seconds : 0;
    run_state->proposals += event->got;
    run_state->known += event->known;
    run_state_add_tokens(run_state, event->input_tokens, event->output_tokens, event->cost);
    if (event->kept) {
        run_state->round =
            xrealloc(run_state->round, run_state->round_count + 1, sizeof(*run_state->round));
        run_state->round[run_state->round_count++] = *event;
        *event = (struct run_asked){0};
    }
    return 0;
}

void run_state_forget_rounds(struct run_state *run_state)
{
    for (size_t i = 0; i < run_state->round_count; i++) {
        message_clear(&run_asked_message, &run_state->round[i]);
    }
    run_state->round_count = 0;
}
