#include "worker/prompt/prompt_rank.h"

#include "worker/prompt/prompt.h"
#include "worker/prompt/prompt_common.h"
#include "worker/prompt/prompt_quote.h"
#include "worker/prompt/source_diff.h"
#include <math.h>

#define DIFF_PART 0.7 // of a source, that the lines in which it differs may be long

void prompt_rank_rules(struct strbuf *out)
{
    strbuf_adds(
        out,
        "You choose which of several candidate programs are compiled and measured first. None is "
        "dropped: those that do not go first wait and are compared again later.\n"
        "S = time of the baseline / time of a program on the same device; over several benchmark "
        "cases it is a weighted geometric mean. A candidate improves when it is correct and "
        "faster than the best program so far. While there is no best program, the baseline is "
        "it.\n\n"
        "Compare the candidates with each other and with what has been measured: what does each "
        "change, does that remove what limits the program (bytes, operations, latency, launches), "
        "and can it be wrong for some shape, or for inputs from a distribution under \"also\" of "
        "problem.json? Candidates that try something new and may improve "
        "much come before those that are safe and change little. They stand in no particular "
        "order.\n\n"
        "Answer with one JSON object and nothing else, with its fields in this order:\n"
        "  \"analysis\"   your reasoning first, in at most 200 words\n"
        "  \"ranking\"    a list with an object for each candidate, the one to go first first: "
        "{\"candidate\": its number, \"p\": the probability that it improves}\n\n");
    prompt_quote_rule(out);
}

// The same search as a request for forecasts.
static struct forecast_request request_of(const struct rank_request *request)
{
    return (struct forecast_request){
        .problem = request->problem,
        .device_class = request->device_class,
        .device_facts = request->device_facts,
        .device_facts_count = request->device_facts_count,
        .baseline_features = request->baseline_features,
        .baseline_features_count = request->baseline_features_count,
        .incumbent_log2 = request->incumbent_log2,
        .context = request->context,
        .candidates = request->candidates,
        .candidates_count = request->candidates_count,
    };
}

void prompt_rank_search(struct strbuf *out, const struct rank_request *request)
{
    const struct forecast_request same = request_of(request);

    prompt_search(out, &same);
}

// The lines in which the source differs from the program that is shown, or nothing when they are
// not much shorter than the source.
static void write_diff(struct strbuf *out, const struct search_context *context,
                       const struct bytes *source)
{
    const struct bytes *from =
        context->incumbent.len > 0 ? &context->incumbent : &context->baseline;

    if (!source_diff(out, from, source) || (double)out->len > DIFF_PART * (double)source->len) {
        strbuf_reset(out);
    }
}

static void add_candidate(struct strbuf *out, const struct rank_request *request, size_t number,
                          const struct candidate_facts *candidate, const struct bytes *common,
                          size_t most)
{
    const struct bytes *source = &candidate->source;
    struct strbuf diff = STRBUF_INIT;

    strbuf_addf(out, "\nCandidate %zu", number);
    if (prompt_ends_with(source, common)) {
        strbuf_adds(out, ", which ends with the common end:\n");
        prompt_quote(out, "its beginning", source->data, source->len - common->len, most);
    } else {
        write_diff(&diff, request->context, source);
        if (diff.len > 0) {
            strbuf_addf(out, ", by the lines in which it differs from the %s:\n",
                        request->context->incumbent.len > 0 ? "best so far" : "baseline");
            prompt_quote(out, "its differences", diff.data, diff.len, most);
        } else {
            strbuf_adds(out, ":\n");
            prompt_quote(out, "its source", source->data, source->len, most);
        }
    }
    prompt_facts(out, "Its parameters", candidate->params, candidate->params_count);
    strbuf_release(&diff);
}

void prompt_rank_candidates(struct strbuf *out, const struct rank_request *request,
                            const size_t *shown)
{
    const struct forecast_request same = request_of(request);
    const struct bytes common = prompt_common_end(&same);
    size_t count = request->candidates_count, most = PROMPT_RANK_BYTES / count;

    most = most > PROMPT_RANK_SHARE_LEAST ? most : PROMPT_RANK_SHARE_LEAST;
    strbuf_addf(out, "\nThe %zu candidates:\n", count);
    for (size_t i = 0; i < count; i++) {
        add_candidate(out, request, i + 1, &request->candidates[shown[i]], &common, most);
    }
    strbuf_addf(out,
                "\n%llu of these %zu go first. Rank all %zu, the most promising first; the best so "
                "far has S = %.4g. Answer with the JSON object only.\n",
                (unsigned long long)request->take, count, count,
                exp2(isnan(request->incumbent_log2) ? 0 : request->incumbent_log2));
}
