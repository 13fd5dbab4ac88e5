// Design note. Three texts are taken from the body, all in lower case: what the error names as the
// place of the mistake ("param", "loc", "field"), its message, and everything (codes and types
// too). A feature is looked for in the place first, since messages also name what would be right
// instead. In a message the feature counts that is named first in each line.
#include "worker/endpoint/refusal.h"

#include "common/mem.h"
#include "common/strbuf.h"
#include "worker/endpoint/rate_limit.h"
#include "worker/endpoint/refusal_words.h"
#include <ctype.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX ((size_t)16 << 10) // bytes that are read of each text
#define DEPTH_MAX 12

struct texts {
    struct strbuf message, place, all;
    double retry_ms;
    json_int_t status; // "code" of an error object, where it is a status; 0: none
};

// ---- the texts of an error ----

static void add_lower(struct strbuf *out, const char *text)
{
    for (; *text != '\0' && out->len < TEXT_MAX; text++) {
        const char c = (char)tolower((unsigned char)*text);

        strbuf_add(out, &c, 1);
    }
    strbuf_adds(out, "\n");
}

static bool is_one_of(const char *name, const char *const *list)
{
    for (; *list; list++) {
        if (strcasecmp(name, *list) == 0) {
            return true;
        }
    }
    return false;
}

static void walk(struct texts *texts, const char *name, const json_t *value, unsigned depth);

// Adds a text under the name that it has in its object.
static void add_text(struct texts *texts, const char *name, const char *text)
{
    static const char *const places[] = {"param", "loc", "field", NULL};
    static const char *const messages[] = {"message", "msg",         "error",
                                           "detail",  "description", NULL};

    // A message may hold the upstream's error as JSON in a text.
    if (is_one_of(name, messages) && (text[0] == '{' || text[0] == '[')) {
        json_t *inner = json_loads(text, 0, NULL);

        if (inner) {
            walk(texts, name, inner, DEPTH_MAX / 2);
            json_decref(inner);
            return;
        }
    }
    if (is_one_of(name, places)) {
        add_lower(&texts->place, text);
    } else if (is_one_of(name, messages)) {
        add_lower(&texts->message, text);
    } else if (strcasecmp(name, "retryDelay") == 0) {
        char *header = xasprintf("retry-after: %.40s\n", text);

        texts->retry_ms = rate_limit_retry_ms(header, 0);
        free(header);
    }
    add_lower(&texts->all, text);
}

static void walk(struct texts *texts, const char *name, const json_t *value, unsigned depth)
{
    // Validators quote the request, which names every feature.
    static const char *const quotes[] = {"input", "ctx", "url", "@type", "metadata", NULL};
    size_t i;
    const char *key;
    const json_t *inner;

    if (depth == 0) {
        return;
    }
    if (json_is_string(value)) {
        add_text(texts, name, json_string_value(value));
    } else if (json_is_array(value)) {
        for (i = 0; i < json_array_size(value); i++) {
            walk(texts, name, json_array_get(value, i), depth - 1);
        }
    } else if (json_is_object(value)) {
        for (void *at = json_object_iter((json_t *)(uintptr_t)value); at;
             at = json_object_iter_next((json_t *)(uintptr_t)value, at)) {
            key = json_object_iter_key(at);
            inner = json_object_iter_value(at);
            if (strcmp(key, "code") == 0 && json_is_integer(inner)) {
                texts->status = json_integer_value(inner);
            }
            if (!is_one_of(key, quotes)) {
                walk(texts, key, inner, depth - 1);
            }
        }
    }
}

// ---- what it means ----

static bool is_quota(long status, const struct texts *texts)
{
    // A rate limit's words may name the billing page too, so that with 429 only these count, and
    // not where the endpoint says when to come again.
    static const char *const always[] = {"insufficient_quota",
                                         "insufficient balance",
                                         "insufficient_balance",
                                         "exceeded your current quota",
                                         "insufficient credit*",
                                         "insufficient fund*",
                                         NULL};
    static const char *const else_where[] = {"credit balance",   "billing*",       "billing_error",
                                             "payment required", "out of credit*", "quota*",
                                             "spending limit",   "spend limit",    "monthly limit",
                                             "budget",           "arrearage",      NULL};
    const char *all = strbuf_text(&texts->all);

    if (status == 402) {
        return true;
    }
    if (status == 429) {
        return isnan(texts->retry_ms) && refusal_has_any(all, always);
    }
    return (status == 400 || status == 403) &&
           (refusal_has_any(all, always) || refusal_has_any(all, else_where));
}

static bool is_filtered(const char *all)
{
    static const char *const phrases[] = {"content_filter*",
                                          "contentfilter*",
                                          "content filter*",
                                          "content_policy*",
                                          "content policy*",
                                          "content management policy",
                                          "content moderation",
                                          "responsibleaipolicyviolation",
                                          "usage polic*",
                                          "flagged",
                                          "data_inspection_failed",
                                          "prohibited_content",
                                          "prohibited content",
                                          "safety",
                                          "sensitive content",
                                          "invalid_prompt",
                                          "blocked by*",
                                          "moderation*",
                                          NULL};
    return refusal_has_any(all, phrases);
}

// Whether the question is too long. A message that first names the limit of the answer is about
// that limit, although it may name the context too.
static bool is_too_long(long status, const struct texts *texts)
{
    static const char *const phrases[] = {"context_length_exceeded",
                                          "exceed_context_size*",
                                          "maximum context length",
                                          "context length",
                                          "context window",
                                          "context_window*",
                                          "context size",
                                          "prompt is too long",
                                          "prompt too long",
                                          "input is too long",
                                          "input too long",
                                          "request too large",
                                          "string_above_max_length",
                                          "too many tokens",
                                          "too many input tokens",
                                          "reduce the length",
                                          NULL};
    const char *at;

    if (status == 413) {
        return true;
    }
    return refusal_has_any(strbuf_text(&texts->all), phrases) &&
           !(refusal_features(strbuf_text(&texts->place)) & FEATURE_LIMIT) &&
           refusal_first_feature(strbuf_text(&texts->message), &at) != FEATURE_LIMIT;
}

// Whether the error is about the name of the model.
static bool is_missing_model(const char *all, unsigned features)
{
    static const char *const always[] = {"model_not_found",
                                         "invalid_model",
                                         "invalid model",
                                         "unknown model",
                                         "no such model",
                                         "deploymentnotfound",
                                         "invalid model id",
                                         "not a valid model id",
                                         "model not exist",
                                         "access to model",
                                         NULL};
    static const char *const with_model[] = {"not found",      "not exist",  "does not exist",
                                             "not_found",      "no access",  "not_found_error",
                                             "decommissioned", "deprecated", NULL};

    return refusal_has_any(all, always) ||
           (features == 0 &&
            (refusal_find_phrase(all, "model") || refusal_find_phrase(all, "models") ||
             refusal_find_phrase(all, "deployment")) &&
            refusal_has_any(all, with_model));
}

static bool is_key(const char *all)
{
    static const char *const phrases[] = {
        "api key",         "api_key*",     "api-key",         "authentication*",
        "invalid_api_key", "unauthorized", "unauthenticated", NULL};
    return refusal_has_any(all, phrases);
}

static bool is_unusable(const char *all)
{
    static const char *const phrases[] = {"json_validate_failed",  "tool_use_failed",
                                          "failed_generation",     "failed to generate json",
                                          "failed to parse tool*", NULL};
    return refusal_has_any(all, phrases);
}

// What a status says whose words say nothing, or nothing else.
static enum refusal_kind kind_of_status(long status, unsigned features, bool unsupported)
{
    switch (status) {
    case 401:
    case 407:
        return REFUSAL_KEY;
    case 402:
        return REFUSAL_QUOTA;
    case 403:
        return features != 0 ? REFUSAL_REQUEST : REFUSAL_KEY;
    case 404:
    case 405:
    case 410:
    case 501:
        return features != 0 ? REFUSAL_REQUEST : REFUSAL_MISSING;
    case 408:
    case 409:
    case 425:
    case 429:
    case 498: // Groq: no capacity
    case 499:
        return REFUSAL_PASSES;
    default:
        if (status >= 500) {
            return features != 0 && unsupported ? REFUSAL_REQUEST : REFUSAL_PASSES;
        }
        return REFUSAL_REQUEST;
    }
}

static enum refusal_kind kind_of(long status, const struct texts *texts, unsigned features)
{
    static const char *const not_taken[] = {
        "not supported",   "unsupported", "not_supported_error", "does not support",
        "not implemented", "requires",    "cannot use*",         NULL};
    const char *all = strbuf_text(&texts->all);
    bool client = status >= 400 && status < 500 && status != 401 && status != 404 && status != 408;

    if (is_quota(status, texts)) {
        return REFUSAL_QUOTA;
    }
    if (status == 429) {
        return REFUSAL_PASSES;
    }
    if (client && is_unusable(all)) {
        return REFUSAL_UNUSABLE;
    }
    if (client && is_filtered(all)) {
        return REFUSAL_FILTERED;
    }
    if ((client || status == 500) && is_too_long(status, texts)) {
        return REFUSAL_TOO_LONG;
    }
    if ((client || status == 404) && is_missing_model(all, features)) {
        return REFUSAL_MISSING;
    }
    if (client && features == 0 && is_key(all)) {
        return REFUSAL_KEY;
    }
    return kind_of_status(status, features, refusal_has_any(all, not_taken));
}

// ---- quoting ----

// Writes bytes as one printable line: blanks for what cannot be shown, never two in a row.
static void write_printable(char *to, const char *text, size_t len)
{
    size_t used = 0;

    for (size_t i = 0; i < len && used < REFUSAL_WORDS_MAX; i++) {
        char c = text[i] == '"' ? '\'' : text[i];

        c = c <= ' ' || c >= 127 ? ' ' : c;
        if (c != ' ' || (used > 0 && to[used - 1] != ' ')) {
            to[used++] = c;
        }
    }
    while (used > 0 && to[used - 1] == ' ') {
        used--;
    }
    to[used] = '\0';
}

// Quotes the endpoint's words: its message as it is written, or the beginning of a text.
static void quote(char *to, const json_t *root, const char *body, size_t len)
{
    static const char *const names[] = {"message", "error", "detail", "msg", "title"};
    const json_t *at = root;

    for (unsigned depth = 0; at && depth < 6 && !json_is_string(at); depth++) {
        const json_t *next = json_is_array(at) ? json_array_get(at, 0) : NULL;

        for (size_t i = 0; i < ARRAY_LEN(names) && !next; i++) {
            const json_t *error = json_object_get(at, "error");

            // An object of details stands beside a short name of the mistake, or around the text.
            next = json_is_object(error) ? error : json_object_get(at, names[i]);
        }
        at = next;
    }
    const char *text = json_is_string(at) ? json_string_value(at) : root ? "" : body;
    size_t left = json_is_string(at) ? strlen(text) : root ? 0 : len;
    if (!root && left > 0 && text[0] == '<') {
        text = "a page of HTML";
        left = strlen(text);
    }
    write_printable(to, text, left);
}

// Whether a body with status 200 is an error object instead of an answer.
static bool is_error_object(const json_t *root)
{
    return json_object_get(root, "error") && !json_is_null(json_object_get(root, "error")) &&
           !json_object_get(root, "choices") && !json_object_get(root, "output") &&
           !json_object_get(root, "content");
}

void refusal_read(struct refusal *ret, long status, const char *body, size_t len)
{
    json_t *root = json_loadb(body ? body : "", body ? len : 0, 0, NULL);

    *ret = (struct refusal){.kind = REFUSAL_NONE, .retry_ms = NAN};
    if (status < 300 && !is_error_object(root)) {
        goto out;
    }
    struct texts texts = {
        .message = STRBUF_INIT, .place = STRBUF_INIT, .all = STRBUF_INIT, .retry_ms = NAN};
    if (root) {
        walk(&texts, "", root, DEPTH_MAX);
    } else {
        char *text = xstrndup(body ? body : "", len < TEXT_MAX ? len : TEXT_MAX);

        add_lower(&texts.message, text);
        add_lower(&texts.all, text);
        free(text);
    }
    if (status < 300) { // a proxy that hides the status, as OpenRouter does
        status = texts.status >= 400 && texts.status < 600 ? (long)texts.status : 500;
    }
    unsigned features = refusal_features(strbuf_text(&texts.place));
    features = features != 0 ? features : refusal_features(strbuf_text(&texts.message));
    ret->kind = kind_of(status, &texts, features);
    ret->features = ret->kind == REFUSAL_REQUEST ? features : 0;
    ret->retry_ms = texts.retry_ms;
    quote(ret->words, root, body ? body : "", len);
    write_printable(ret->place, strbuf_text(&texts.place), texts.place.len);
    strbuf_release(&texts.message);
    strbuf_release(&texts.place);
    strbuf_release(&texts.all);
out:
    json_decref(root);
}

const char *refusal_meaning(enum refusal_kind kind)
{
    static const char *const meaning[] = {
        [REFUSAL_NONE] = "it answers",
        [REFUSAL_PASSES] = "it is busy or broken",
        [REFUSAL_KEY] = "its key is missing or not accepted",
        [REFUSAL_QUOTA] = "its account has no money or quota left",
        [REFUSAL_MISSING] = "it has no such model, or nothing at this address",
        [REFUSAL_FILTERED] = "its content filter refuses the question",
        [REFUSAL_TOO_LONG] = "the question is longer than it takes",
        [REFUSAL_UNUSABLE] = "the model did not keep to the format",
        [REFUSAL_REQUEST] = "it does not take the request",
    };

    return meaning[kind];
}
