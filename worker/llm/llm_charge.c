// What the requests of a question cost: reserved before they are made, paid when they have ended.
#include "worker/llm/llm_state.h"
#include <math.h>
#include <string.h>

#define BYTES_PER_TOKEN 3.5 // of source code, for estimates
#define TOKENS_PER_BYTE 0.5 // at most, where nothing is known of the endpoint
#define TOKENS_BESIDE 300   // of a request, besides the texts: the schema and the frame
#define MOST_MARGIN 1.1     // over the most that was seen

static double bytes_of(const struct llm_question *question)
{
    return (double)(strlen(question->rules) + strlen(question->search) + strlen(question->last));
}

double llm_charge_estimate(const struct llm_question *question)
{
    return bytes_of(question) / BYTES_PER_TOKEN;
}

// The most tokens that a request of the question may take at this endpoint.
static struct answer_usage most_of(const struct llm_question *question, size_t endpoint)
{
    const struct llm *llm = question->llm;
    const struct llm_use *use = &llm->use[endpoint];
    double output = (double)request_style_limit(&llm->style[question->purpose][endpoint],
                                                llm_max_tokens(llm, endpoint));

    return (struct answer_usage){
        .input =
            (uint64_t)(bytes_of(question) * fmax(TOKENS_PER_BYTE, use->per_byte * MOST_MARGIN) +
                       TOKENS_BESIDE),
        .output = (uint64_t)fmax(output, use->output_tokens * MOST_MARGIN),
    };
}

enum endpoint_admission llm_charge_admit(struct llm_question *question, size_t endpoint,
                                         struct err *err)
{
    struct llm *llm = question->llm;
    struct answer_usage usage = most_of(question, endpoint);
    struct endpoint_amount most = {
        .tokens = (double)(usage.input + usage.output),
        .cost = spend_price(endpoints_config(llm->endpoints, endpoint), &usage)};

    switch (spend_reserve(&llm->book, question->spend, most, !llm->use[endpoint].known,
                          &question->reservation, err)) {
    case SPEND_GO:
        return ENDPOINT_ADMIT;
    case SPEND_LATER:
        return ENDPOINT_LATER;
    default:
        return ENDPOINT_NEVER;
    }
}

// Pays for the open request.
static void pay(struct llm_question *question, size_t endpoint, const struct answer_usage *usage)
{
    struct llm *llm = question->llm;

    question->input_tokens += usage->input;
    question->output_tokens += usage->output;
    question->cached_tokens += usage->cached < usage->input ? usage->cached : usage->input;
    question->cost += spend_settle(&llm->book, &question->reservation,
                                   endpoints_config(llm->endpoints, endpoint), usage);
}

void llm_charge_answer(struct llm_question *question, size_t endpoint, const struct answer *answer,
                       size_t answer_len)
{
    struct llm_use *use = &question->llm->use[endpoint];
    struct answer_usage usage = answer->usage;

    if (usage.input == 0 && usage.output == 0) { // it does not count
        usage.input = (uint64_t)llm_charge_estimate(question);
        usage.output = (uint64_t)((double)answer_len / BYTES_PER_TOKEN);
    }
    use->known = true;
    use->per_byte = fmax(use->per_byte, (double)usage.input / (bytes_of(question) + 1));
    use->output_tokens = fmax(use->output_tokens, (double)usage.output);
    pay(question, endpoint, &usage);
}

void llm_charge_failure(struct llm_question *question, size_t endpoint, bool sent)
{
    struct answer_usage usage = {.input = (uint64_t)llm_charge_estimate(question)};

    if (sent) {
        pay(question, endpoint, &usage);
    } else {
        (void)spend_settle(&question->llm->book, &question->reservation,
                           endpoints_config(question->llm->endpoints, endpoint), NULL);
    }
}
