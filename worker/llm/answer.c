// Design note. A JSON object is a ranking when it has a field of this name, and a forecast when it
// has a "p" with usable probabilities or a "bin", and also when it says that the model cannot say.
// Of several in one text the last one counts, since models reason first and answer then. Tool calls
// are searched before the content and the content before the reasoning.
#include "worker/llm/answer.h"

#include "common/mem.h"
#include "common/strbuf.h"
#include "worker/llm/answer_forms.h"
#include "worker/llm/answer_object.h"
#include "worker/llm/json_find.h"
#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define QUOTE_MAX 160 // bytes that are quoted of an endpoint's error message

// The search for a forecast in one text.
struct finding {
    struct answer_forecast forecast;
    bool found;
    json_t *ranking; // of the last object that has one, owned; NULL: none has
    struct err *why; // of the last object that could not be used
};

static void consider(struct finding *finding, const json_t *object, unsigned depth);

// Considers every object in the text.
static void consider_text(struct finding *finding, const char *text, unsigned depth)
{
    struct json_find find;

    json_find_init(&find, text);
    json_t *object;
    while ((object = json_find_next(&find))) {
        consider(finding, object, depth);
        json_decref(object);
    }
}

// Whether nothing has been found yet.
static bool is_open(const struct finding *finding)
{
    return !finding->found && !finding->ranking;
}

// Considers an object: as a forecast or a ranking, or as the description of a tool call whose
// arguments are one.
static void consider(struct finding *finding, const json_t *object, unsigned depth)
{
    static const char *const wrap[] = {"arguments", "parameters", "input", "function"};
    struct answer_forecast forecast;

    if (json_object_get(object, "ranking")) {
        json_decref(finding->ranking);
        finding->ranking = json_incref(json_object_get(object, "ranking"));
        return;
    }
    if (json_object_get(object, "p") || json_object_get(object, "bin") ||
        json_object_get(object, "defer")) {
        if (answer_object_read(object, &forecast, finding->why)) {
            finding->forecast = forecast;
            finding->found = true;
        }
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(wrap) && depth > 0; i++) {
        const json_t *inner = json_object_get(object, wrap[i]);

        if (json_is_object(inner)) {
            consider(finding, inner, depth - 1);
        } else if (json_is_string(inner)) {
            consider_text(finding, json_string_value(inner), depth - 1);
        }
    }
}

// ---- log-probabilities ----

// Reads the distribution over the bins at the token that names one. Returns false when the listed
// alternatives are not enough to know it.
//
// Normally the letters have most of the probability there. Servers that hold a model to a schema,
// like llama.cpp's, may list the log-probabilities from before the schema was applied. The letters
// are then a small part of the alternatives, but still those that the model chose from. They count
// when the object names this bin (named) and most of the letters' probability is listed; a letter
// that is not listed has at most the probability of the least alternative that is.
static bool letters_of(const json_t *token, bool named, const struct answer_alphabet *alphabet,
                       double *bins)
{
    const json_t *top = json_object_get(token, "top_logprobs");
    double sum = 0, least = 1, hidden = 0;

    memset(bins, 0, alphabet->count * sizeof(*bins));
    for (size_t i = 0; i < json_array_size(top); i++) {
        const json_t *one = json_array_get(top, i);
        int bin = answer_object_bin(json_string_value(json_object_get(one, "token")), alphabet);
        double log_p = answer_object_number(json_object_get(one, "logprob"));

        if (bin >= 0 && log_p <= 0) {
            bins[bin] += exp(log_p);
            sum += exp(log_p);
        }
        least = log_p <= 0 ? fmin(least, exp(log_p)) : least;
    }
    for (size_t i = 0; i < alphabet->count && sum > 0; i++) {
        hidden += bins[i] > 0 ? 0 : least;
        bins[i] /= sum;
    }
    return sum > 0.5 || (named && sum > hidden);
}

// Where the value of the last field `key` begins in a text, behind the value's opening quote; NULL:
// nowhere. The tokens may begin behind the key's opening quote. Of the analysis, which comes first,
// nothing is taken, since the field comes after it.
static const char *last_value(const char *text, const char *key)
{
    const char *found = NULL;

    for (const char *at = text; (at = strstr(at, key)); at++) {
        const char *value = at + strlen(key);

        if (at > text && (isalnum((unsigned char)at[-1]) || at[-1] == '_')) {
            continue; // the end of another word: "best_bin"
        }
        value += *value == '"';
        value += strspn(value, " \t\r\n");
        if (*value == ':') {
            value++;
            found = value + strspn(value, " \t\r\n\"");
        }
    }
    return found;
}

// Finds the token that names the bin of a field, and takes the distribution over the bins from its
// alternatives. text: that of all tokens. Returns whether that succeeded; *ret_named is then the
// bin.
static bool read_letter(const json_t *tokens, const char *text, const char *key, int stated,
                        const struct answer_alphabet *alphabet, double *bins, int *ret_named)
{
    const char *value = last_value(text, key), *begin = text;

    for (size_t i = 0; value && i < json_array_size(tokens); i++) {
        const json_t *token = json_array_get(tokens, i);
        const char *part = json_string_value(json_object_get(token, "token"));
        size_t len = part ? strlen(part) : 0;

        if (value < begin + len) {
            *ret_named = answer_object_bin(part, alphabet);
            return *ret_named >= 0 && letters_of(token, *ret_named == stated, alphabet, bins);
        }
        begin += len;
    }
    return false;
}

// Takes the distributions from the log-probabilities, where there are any.
static void read_logprobs(const json_t *choice, struct answer_forecast *forecast)
{
    const json_t *tokens = json_object_get(json_object_get(choice, "logprobs"), "content");
    struct strbuf text = STRBUF_INIT;
    double bins[BIN_COUNT], fine[FINE_BIN_COUNT];
    int named;

    for (size_t i = 0; i < json_array_size(tokens); i++) {
        const json_t *token = json_object_get(json_array_get(tokens, i), "token");

        strbuf_adds(&text, json_is_string(token) ? json_string_value(token) : "");
    }
    if (read_letter(tokens, strbuf_text(&text), "bin", forecast->stated, &answer_bins_of_s, bins,
                    &named)) {
        memcpy(forecast->bins, bins, sizeof(bins));
        forecast->stated = named;
        forecast->from_logprobs = true;
        forecast->raw_sum = 1;
    }
    if (read_letter(tokens, strbuf_text(&text), "best_bin", -1, &answer_bins_of_r, fine, &named)) {
        memcpy(forecast->fine, fine, sizeof(fine));
        forecast->has_fine = true;
    }
    strbuf_release(&text);
}

// ---- the completion ----

// The text of "content", which is a string or a list of parts with "text". NULL when there is none.
// The caller frees it.
static char *content_of(const json_t *message)
{
    const json_t *content = json_object_get(message, "content");

    if (json_is_string(content)) {
        return xstrdup(json_string_value(content));
    }
    struct strbuf text = STRBUF_INIT;
    for (size_t i = 0; i < json_array_size(content); i++) {
        const char *part = json_string_value(json_object_get(json_array_get(content, i), "text"));

        strbuf_adds(&text, part ? part : "");
    }
    char *ret = text.len > 0 ? xstrdup(strbuf_text(&text)) : NULL;
    strbuf_release(&text);
    return ret;
}

static const char *reasoning_of(const json_t *message)
{
    const char *text = json_string_value(json_object_get(message, "reasoning_content"));

    return text ? text : json_string_value(json_object_get(message, "reasoning"));
}

// Sets the answer's forecast, or *why.
static void find_forecast(const json_t *choice, struct answer *answer, struct err *why)
{
    const json_t *message = json_object_get(choice, "message");
    const json_t *calls = json_object_get(message, "tool_calls");
    const char *reasoning = reasoning_of(message);
    struct finding finding = {.why = why};

    for (size_t i = 0; i < json_array_size(calls); i++) {
        consider(&finding, json_array_get(calls, i), 3);
    }
    if (is_open(&finding) && json_object_get(message, "function_call")) {
        consider(&finding, json_object_get(message, "function_call"), 3);
    }
    enum answer_place place = ANSWER_TOOL;
    if (is_open(&finding) && answer->text) {
        place = ANSWER_CONTENT;
        consider_text(&finding, answer->text, 3);
    }
    if (is_open(&finding) && reasoning) {
        place = ANSWER_REASONING;
        consider_text(&finding, reasoning, 3);
    }
    answer->ranking = finding.ranking;
    answer->has_forecast = finding.found;
    answer->forecast = finding.forecast;
    answer->forecast.place = place;
    if (finding.found) {
        if (!finding.forecast.defers) {
            read_logprobs(choice, &answer->forecast);
        }
        err_clear(why);
    } else if (why && why->code == ERR_NONE) {
        (void)err_set(why, ERR_INVALID, "the answer holds no forecast");
    }
}

// ERR_INVALID for a body that is no completion. An error message is made printable, since it goes
// into logs.
static int refuse(const json_t *root, struct err *err)
{
    const json_t *error = json_object_get(root, "error");
    const char *text =
        json_string_value(json_is_object(error) ? json_object_get(error, "message") : error);

    if (!error) {
        return err_set(err, ERR_INVALID,
                       "the answer is none of a language model: it has no choices");
    }
    char quote[QUOTE_MAX + 1];
    size_t len = 0;
    for (; text && text[len] != '\0' && len < QUOTE_MAX; len++) {
        unsigned char c = (unsigned char)text[len];
        quote[len] = c < ' ' || c == 127 || c == '"' ? ' ' : (char)c;
    }
    quote[len] = '\0';
    return err_set(err, ERR_INVALID, "the endpoint answers with an error: %s",
                   len > 0 ? quote : "without a message");
}

int answer_read(struct answer *ret, const char *body, size_t len, struct err *why, struct err *err)
{
    json_error_t where;
    json_t *root = json_loadb(body, len, JSON_REJECT_DUPLICATES, &where);

    *ret = (struct answer){.forecast = {.stated = -1, .p_correct = NAN}};
    if (!root) {
        return err_set(err, ERR_INVALID, "the answer is no JSON (line %d, column %d)", where.line,
                       where.column);
    }
    answer_forms_usage(root, &ret->usage);
    json_t *choice = answer_forms_choice(root);
    const json_t *message = json_object_get(choice, "message");
    int rc = 0;
    if (!json_is_object(message)) {
        rc = refuse(root, err);
        goto out;
    }
    ret->text = content_of(message);
    ret->end = answer_forms_end(json_string_value(json_object_get(choice, "finish_reason")));
    find_forecast(choice, ret, why);
    const char *refusal = json_string_value(json_object_get(message, "refusal"));
    if (refusal && refusal[0] != '\0' && !ret->has_forecast && !ret->ranking) {
        ret->end = ANSWER_FILTERED;
        free(ret->text);
        ret->text = xstrdup(refusal);
    }
    const char *reasoning = reasoning_of(message);
    if (!ret->text && reasoning) {
        ret->text = xstrdup(reasoning);
        ret->is_reasoning = true;
    }
out:
    json_decref(choice);
    json_decref(root);
    return rc;
}

void answer_release(struct answer *answer)
{
    free(answer->text);
    answer->text = NULL;
    json_decref(answer->ranking);
    answer->ranking = NULL;
}
