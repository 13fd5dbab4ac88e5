// Design note. A JSON object is a forecast when it has a "p" with usable probabilities or a "bin".
// Of several in one text the last one counts, since models reason first and answer then. Tool calls
// are searched before the content and the content before the reasoning.
#include "worker/llm/answer.h"

#include "common/mem.h"
#include "common/strbuf.h"
#include "worker/llm/json_find.h"
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// When a bin was named without probabilities, it gets the first share and each bin beside it the
// second; the rest is spread evenly.
#define STATED_SHARE 0.6
#define NEXT_SHARE 0.15
#define QUOTE_MAX 160 // bytes that are quoted of an endpoint's error message

// ---- numbers ----

// The value of a number or of a text that is one, with or without a per cent sign. NaN: it is
// neither.
static double number_of(const json_t *value)
{
    if (json_is_number(value)) {
        return json_number_value(value);
    }
    const char *text = json_string_value(value);
    if (!text) {
        return NAN;
    }
    char *end;
    double number = strtod(text, &end);
    if (end == text) {
        return NAN;
    }
    while (*end == ' ') {
        end++;
    }
    if (*end == '%') {
        number /= 100;
        end++;
    }
    return *end == '\0' ? number : NAN;
}

// The bin that a letter, perhaps in blanks and quotes, names; -1: none.
static int letter_bin(const char *text)
{
    while (text && (*text == ' ' || *text == '"')) {
        text++;
    }
    if (!text || text[0] < ANSWER_FIRST_LETTER || text[0] >= ANSWER_FIRST_LETTER + BIN_COUNT ||
        (text[1] != '\0' && text[1] != '"' && text[1] != ' ' && text[1] != ',')) {
        return -1;
    }
    return text[0] - ANSWER_FIRST_LETTER;
}

// The probability of a bin in an object of letters or in a list; 0 where an object leaves it out.
static double probability(const json_t *p, size_t bin)
{
    const char letter[2] = {(char)(ANSWER_FIRST_LETTER + (int)bin), '\0'};
    const json_t *value = json_is_array(p) ? json_array_get(p, bin) : json_object_get(p, letter);

    return value ? number_of(value) : 0;
}

// Reads the probabilities of an object's "p" and normalises them. ERR_INVALID when one is negative
// or all are 0.
static int read_bins(const json_t *p, struct answer_forecast *ret, struct err *why)
{
    if (json_is_array(p) && json_array_size(p) != BIN_COUNT) {
        return err_set(why, ERR_INVALID, "\"p\" has %zu numbers instead of %d", json_array_size(p),
                       BIN_COUNT);
    }
    double sum = 0;
    for (size_t bin = 0; bin < BIN_COUNT; bin++) {
        double value = probability(p, bin);

        if (!(value >= 0) || !isfinite(value)) {
            return err_set(why, ERR_INVALID, "the probability of bin %c is no number from 0 on",
                           ANSWER_FIRST_LETTER + (int)bin);
        }
        ret->bins[bin] = value;
        sum += value;
    }
    if (!(sum > 0) || !isfinite(sum)) {
        return err_set(why, ERR_INVALID, "the probabilities are all 0");
    }
    for (size_t bin = 0; bin < BIN_COUNT; bin++) {
        ret->bins[bin] /= sum;
    }
    ret->raw_sum = sum;
    return 0;
}

// Makes a distribution from the bin that was named.
static void spread_stated(struct answer_forecast *forecast)
{
    double rest = 1 - STATED_SHARE;
    size_t bin = (size_t)forecast->stated;

    memset(forecast->bins, 0, sizeof(forecast->bins));
    forecast->bins[bin] = STATED_SHARE;
    if (bin > 0) {
        forecast->bins[bin - 1] = NEXT_SHARE;
        rest -= NEXT_SHARE;
    }
    if (bin + 1 < BIN_COUNT) {
        forecast->bins[bin + 1] = NEXT_SHARE;
        rest -= NEXT_SHARE;
    }
    for (size_t i = 0; i < BIN_COUNT; i++) {
        forecast->bins[i] += rest / BIN_COUNT;
    }
    forecast->raw_sum = 1;
}

// ---- one object ----

// Reads an object that has a "p" or a "bin". Returns whether it is a forecast; *why says why not.
static bool read_object(const json_t *object, struct answer_forecast *ret, struct err *why)
{
    const json_t *p = json_object_get(object, "p"), *bin = json_object_get(object, "bin");
    const json_t *correct = json_object_get(object, "p_correct");

    *ret = (struct answer_forecast){.p_correct = NAN, .stated = -1};
    if (bin) {
        ret->stated = letter_bin(json_string_value(bin));
    }
    if (p && !json_is_array(p) && !json_is_object(p)) {
        (void)err_set(why, ERR_INVALID, "\"p\" is neither a list nor an object");
        return false;
    }
    if (p) {
        if (read_bins(p, ret, why) != 0) {
            return false;
        }
    } else if (ret->stated >= 0) {
        spread_stated(ret);
    } else {
        (void)err_set(why, ERR_INVALID, "an object has neither \"p\" nor a \"bin\" from %c to %c",
                      ANSWER_FIRST_LETTER, ANSWER_FIRST_LETTER + BIN_COUNT - 1);
        return false;
    }
    if (correct) {
        double value = number_of(correct);

        // It may be in per cent. A value that is no probability counts as not stated.
        value = value > 1 && value <= 100 ? value / 100 : value;
        ret->p_correct = value >= 0 && value <= 1 ? value : NAN;
    }
    return true;
}

// The search for a forecast in one text.
struct finding {
    struct answer_forecast forecast;
    bool found;
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

// Considers an object: as a forecast, or as the description of a tool call whose arguments are one.
static void consider(struct finding *finding, const json_t *object, unsigned depth)
{
    static const char *const wrap[] = {"arguments", "parameters", "input", "function"};
    struct answer_forecast forecast;

    if (json_object_get(object, "p") || json_object_get(object, "bin")) {
        if (read_object(object, &forecast, finding->why)) {
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
static bool letters_of(const json_t *token, bool named, double bins[static BIN_COUNT])
{
    const json_t *top = json_object_get(token, "top_logprobs");
    double sum = 0, least = 1, hidden = 0;

    memset(bins, 0, BIN_COUNT * sizeof(*bins));
    for (size_t i = 0; i < json_array_size(top); i++) {
        const json_t *one = json_array_get(top, i);
        int bin = letter_bin(json_string_value(json_object_get(one, "token")));
        double log_p = number_of(json_object_get(one, "logprob"));

        if (bin >= 0 && log_p <= 0) {
            bins[bin] += exp(log_p);
            sum += exp(log_p);
        }
        least = log_p <= 0 ? fmin(least, exp(log_p)) : least;
    }
    for (size_t i = 0; i < BIN_COUNT && sum > 0; i++) {
        hidden += bins[i] > 0 ? 0 : least;
        bins[i] /= sum;
    }
    return sum > 0.5 || (named && sum > hidden);
}

// Finds the first token behind "bin" that is a letter, and takes the distribution over the bins
// from its alternatives. Returns whether that succeeded.
static bool read_logprobs(const json_t *choice, struct answer_forecast *forecast)
{
    const json_t *tokens = json_object_get(json_object_get(choice, "logprobs"), "content");
    bool behind = false;
    char recent[8] = "";

    for (size_t i = 0; i < json_array_size(tokens); i++) {
        const json_t *token = json_array_get(tokens, i);
        const char *text = json_string_value(json_object_get(token, "token"));

        if (!text) {
            continue;
        }
        double bins[BIN_COUNT];
        if (behind && letter_bin(text) >= 0) {
            if (!letters_of(token, letter_bin(text) == forecast->stated, bins)) {
                return false;
            }
            memcpy(forecast->bins, bins, sizeof(bins));
            forecast->stated = letter_bin(text);
            forecast->from_logprobs = true;
            forecast->raw_sum = 1;
            return true;
        }
        // "bin" may be one token or several, so that the last letters are remembered.
        for (const char *c = text; *c != '\0'; c++) {
            memmove(recent, recent + 1, 3);
            recent[3] = *c;
            recent[4] = '\0';
            behind |= strncmp(recent + 1, "bin", 3) == 0;
        }
    }
    return false;
}

// ---- the completion ----

// A count under either name; 0 when there is none.
static uint64_t count_of(const json_t *object, const char *name, const char *other)
{
    const json_t *value = json_object_get(object, name);

    value = value ? value : json_object_get(object, other);
    json_int_t number = json_integer_value(value);
    return number > 0 ? (uint64_t)number : 0;
}

static void read_usage(const json_t *root, struct answer_usage *ret)
{
    const json_t *usage = json_object_get(root, "usage");
    const json_t *in = json_object_get(usage, "prompt_tokens_details");
    const json_t *out = json_object_get(usage, "completion_tokens_details");

    *ret = (struct answer_usage){
        .input = count_of(usage, "prompt_tokens", "input_tokens"),
        .output = count_of(usage, "completion_tokens", "output_tokens"),
        .cached = count_of(in ? in : json_object_get(usage, "input_tokens_details"),
                           "cached_tokens", "cached_tokens"),
        .reasoning = count_of(out ? out : json_object_get(usage, "output_tokens_details"),
                              "reasoning_tokens", "reasoning_tokens"),
    };
}

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
    if (!finding.found && json_object_get(message, "function_call")) {
        consider(&finding, json_object_get(message, "function_call"), 3);
    }
    enum answer_place place = ANSWER_TOOL;
    if (!finding.found && answer->text) {
        place = ANSWER_CONTENT;
        consider_text(&finding, answer->text, 3);
    }
    if (!finding.found && reasoning) {
        place = ANSWER_REASONING;
        consider_text(&finding, reasoning, 3);
    }
    answer->has_forecast = finding.found;
    answer->forecast = finding.forecast;
    answer->forecast.place = place;
    if (finding.found) {
        (void)read_logprobs(choice, &answer->forecast);
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
        return err_set(err, ERR_INVALID, "the answer is no chat completion: it has no choices");
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
    read_usage(root, &ret->usage);
    const json_t *choice = json_array_get(json_object_get(root, "choices"), 0);
    const json_t *message = json_object_get(choice, "message");
    int rc = 0;
    if (!json_is_object(message)) {
        rc = refuse(root, err);
        goto out;
    }
    ret->text = content_of(message);
    const json_t *finish = json_object_get(choice, "finish_reason");
    ret->finish = json_is_string(finish) ? xstrdup(json_string_value(finish)) : NULL;
    find_forecast(choice, ret, why);
    const char *reasoning = reasoning_of(message);
    if (!ret->text && reasoning) {
        ret->text = xstrdup(reasoning);
    }
out:
    json_decref(root);
    return rc;
}

void answer_release(struct answer *answer)
{
    free(answer->text);
    free(answer->finish);
    answer->text = answer->finish = NULL;
}
