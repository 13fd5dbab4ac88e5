#include "client/run/run_state_asked.h"

#include "client/run/run_state_time.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static void add_waiting(struct run_state *run_state, const struct run_asked *event)
{
    if (!(run_state->started.rules & RUN_RULE_WAITING)) {
        return;
    }
    size_t count = run_state->waiting_count;
    run_state->waiting =
        xrealloc(run_state->waiting, count + event->answers_count + 1, sizeof(*run_state->waiting));
    for (size_t i = 0; i < event->answers_count; i++) {
        struct run_state_waiting *waiting = &run_state->waiting[run_state->waiting_count++];
        waiting->generator = event->generator;
        message_copy(&run_answer_message, &waiting->answer, &event->answers[i]);
    }
}

void run_state_take_waiting(struct run_state *run_state, const struct run_proposed *proposed)
{
    for (size_t i = 0; i < run_state->waiting_count; i++) {
        struct run_state_waiting *waiting = &run_state->waiting[i];
        if (waiting->generator == proposed->generator &&
            digest_equal(&waiting->answer.source, &proposed->source)) {
            message_clear(&run_answer_message, &waiting->answer);
            run_state->waiting_count--;
            memmove(waiting, waiting + 1, (run_state->waiting_count - i) * sizeof(*waiting));
            return;
        }
    }
}

void run_state_release_waiting(struct run_state *run_state)
{
    for (size_t i = 0; i < run_state->waiting_count; i++) {
        message_clear(&run_answer_message, &run_state->waiting[i].answer);
    }
    free(run_state->waiting);
}

int run_state_apply_asked(struct run_state *run_state, struct run_asked *event, struct err *err)
{
    if (event->generator >= RUN_GENERATORS_MAX) {
        return err_set(err, ERR_CORRUPT, "generator %llu was asked, and there is none",
                       (unsigned long long)event->generator);
    }
    struct run_state_ask *ask = ask_of(run_state, event);
    uint64_t *fruitless = &run_state->asking[event->generator].fruitless;
    *fruitless = event->answers_count > 0 ? 0 : *fruitless + 1;
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
        add_waiting(run_state, event);
        run_state->round =
            xrealloc(run_state->round, run_state->round_count + 1, sizeof(*run_state->round));
        run_state->round[run_state->round_count++] = *event;
        *event = (struct run_asked){0};
    }
    return 0;
}

int run_state_apply_ordered(struct run_state *run_state, const struct run_ordered *event, double at,
                            struct err *err)
{
    if (event->generator >= RUN_GENERATORS_MAX) {
        return err_set(err, ERR_CORRUPT, "proposals of an unknown generator were put in order");
    }
    run_state->orders += event->named > 0;
    run_state_add_tokens(run_state, event->input_tokens, event->output_tokens, event->cost);
    run_state_add_worker(run_state, event->asked_at, at);
    return 0;
}

void run_state_forget_rounds(struct run_state *run_state)
{
    for (size_t i = 0; i < run_state->round_count; i++) {
        message_clear(&run_asked_message, &run_state->round[i]);
    }
    run_state->round_count = 0;
    for (size_t i = 0; i < RUN_GENERATORS_MAX; i++) {
        run_state->asking[i].fruitless_before = run_state->asking[i].fruitless;
    }
}
