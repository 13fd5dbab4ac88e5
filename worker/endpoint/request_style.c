#include "worker/endpoint/request_style.h"

#include "common/mem.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT_LEAST 16 // tokens; a smaller number in an error is no limit of an answer

static const char *const format_names[] = {
#define X(id, text) [OUTPUT_##id] = text,
    OUTPUT_FORMATS(X)
#undef X
};

static const char *const form_names[] = {
#define X(id, text) [API_##id] = text,
    API_FORMS(X)
#undef X
};

const char *output_format_name(enum output_format format)
{
    return format_names[format];
}

enum output_format output_format_of(const char *name)
{
    int format = 0;

    while (format < OUTPUT_TEXT && strcmp(format_names[format], name) != 0) {
        format++;
    }
    return (enum output_format)format;
}

const char *api_form_name(enum api_form form)
{
    return form_names[form];
}

enum api_form api_form_of(const char *name)
{
    int form = 0;

    while (form < API_FORM_COUNT && strcmp(form_names[form], name) != 0) {
        form++;
    }
    return (enum api_form)form;
}

// Whether the form knows the format. Anthropic's messages know tools only, and text.
static bool has_format(enum api_form form, enum output_format format)
{
    return form != API_ANTHROPIC || (format != OUTPUT_SCHEMA && format != OUTPUT_JSON);
}

static enum output_format first_format(enum api_form form)
{
    return form == API_ANTHROPIC ? OUTPUT_FORCED : OUTPUT_SCHEMA;
}

struct request_style request_style_first(enum api_form form)
{
    return (struct request_style){.form = form, .format = first_format(form)};
}

uint64_t request_style_limit(const struct request_style *style, uint64_t max_tokens)
{
    uint64_t limit = style->doubled ? 2 * max_tokens : max_tokens;

    return style->limit_most > 0 && style->limit_most < limit ? style->limit_most : limit;
}

// Whether two styles ask in the same way.
static bool is_same(const struct request_style *a, const struct request_style *b)
{
    return a->format == b->format && a->no_logprobs == b->no_logprobs &&
           a->no_temperature == b->no_temperature && a->no_system == b->no_system &&
           a->no_effort == b->no_effort && a->no_cache == b->no_cache && a->limit == b->limit &&
           a->limit_most == b->limit_most && a->extra_left_out == b->extra_left_out;
}

// Falls back to the next format after `least`. Returns false after the last one.
static bool next_format(struct request_style *style, enum output_format least)
{
    unsigned format = least > style->format ? least : style->format;

    style->unusable = 0;
    do {
        format++;
    } while (format < OUTPUT_FORMAT_COUNT && !has_format(style->form, (enum output_format)format));
    if (format >= OUTPUT_FORMAT_COUNT) {
        return false;
    }
    style->format = (enum output_format)format;
    return true;
}

// ---- refusals ----

static bool sends_logprobs(const struct request_style *style)
{
    return style->form != API_ANTHROPIC && !style->no_logprobs && style->format != OUTPUT_FORCED &&
           style->format != OUTPUT_REQUIRED;
}

static bool uses_tools(const struct request_style *style)
{
    return style->format == OUTPUT_FORCED || style->format == OUTPUT_REQUIRED;
}

// The largest number in the words that is less than the limit; 0: none.
static uint64_t smaller_limit(const char *words, uint64_t limit)
{
    uint64_t best = 0;

    for (const char *c = words; *c != '\0'; c++) {
        if (!isdigit((unsigned char)*c) ||
            (c > words && (isalnum((unsigned char)c[-1]) || c[-1] == '_' || c[-1] == '.'))) {
            continue;
        }
        uint64_t number = strtoull(c, NULL, 10);

        if (number >= LIMIT_LEAST && number < limit && number > best) {
            best = number;
        }
    }
    return best;
}

// Whether the words have the name, and not as a part of another one.
static bool has_name(const char *words, const char *name)
{
    size_t len = strlen(name);

    for (const char *at = words; (at = strcasestr(at, name)); at++) {
        bool begins = at == words || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');

        if (begins && !isalnum((unsigned char)at[len]) && at[len] != '_') {
            return true;
        }
    }
    return false;
}

// Whether the limit of the answer has two names in this form.
static bool has_limit_names(enum api_form form)
{
    return form == API_CHAT || form == API_AZURE;
}

// Changes how the answer's tokens are limited. Returns whether that changed anything.
static bool change_limit(struct request_style *style, const char *words, uint64_t limit)
{
    bool chat = has_limit_names(style->form);

    if (chat && style->limit == LIMIT_OWN && has_name(words, "max_completion_tokens")) {
        style->limit = LIMIT_OTHER;
        return true;
    }
    uint64_t smaller = smaller_limit(words, limit);
    bool context = strcasestr(words, "context length") || strcasestr(words, "context size");
    if (smaller > 0 && (!context || style->form == API_ANTHROPIC)) {
        style->limit_most = smaller;
        return true;
    }
    if (style->form == API_ANTHROPIC || style->limit == LIMIT_NONE) {
        return false; // Anthropic's form demands a limit
    }
    // One that was told to use the other name and does not take it either gets none.
    style->limit = chat && style->limit == LIMIT_OWN && !context ? LIMIT_OTHER : LIMIT_NONE;
    return true;
}

// Leaves out the fields of the extra body that are named. Returns whether there are any.
static bool leave_out_extra(struct request_style *style, const char *words, const json_t *extra)
{
    json_t *body = (json_t *)(uintptr_t)extra;
    uint32_t bit = 1, before = style->extra_left_out;

    for (void *at = json_object_iter(body); at && bit != 0;
         at = json_object_iter_next(body, at), bit <<= 1) {
        if (has_name(words, json_object_iter_key(at))) {
            style->extra_left_out |= bit;
        }
    }
    return style->extra_left_out != before;
}

// Sets *field where the feature is named. Returns whether that changed it.
static bool leave_out(bool *field, bool sent, unsigned features, enum request_feature feature)
{
    if (!(features & feature) || !sent || *field) {
        return false;
    }
    *field = true;
    return true;
}

// Leaves out what is named. Returns whether anything was.
static bool leave_out_named(struct request_style *style, const struct refusal *refusal,
                            uint64_t limit, const json_t *extra)
{
    unsigned features = refusal->features;
    bool changed = leave_out_extra(style, refusal->place, extra);

    changed |= leave_out(&style->no_logprobs, sends_logprobs(style), features, FEATURE_LOGPROBS);
    changed |= leave_out(&style->no_temperature, true, features, FEATURE_TEMPERATURE);
    changed |= leave_out(&style->no_system, true, features, FEATURE_SYSTEM);
    changed |= leave_out(&style->no_cache, style->form == API_ANTHROPIC, features, FEATURE_CACHE);
    if (features & FEATURE_LIMIT) {
        changed |= change_limit(style, refusal->words, limit);
    }
    if (!uses_tools(style) && (features & FEATURE_FORMAT)) {
        changed |= next_format(style, style->format);
    } else if (uses_tools(style) && (features & FEATURE_CHOICE)) {
        // Anthropic's two choices force the use of a tool both.
        changed |=
            next_format(style, style->form == API_ANTHROPIC ? OUTPUT_REQUIRED : style->format);
    } else if (uses_tools(style) && (features & (FEATURE_TOOLS | FEATURE_FORMAT))) {
        changed |= next_format(style, OUTPUT_REQUIRED);
    }
    changed |= leave_out(&style->no_effort, true, features, FEATURE_EFFORT);
    // A message may name a field of the extra body beside what is at fault.
    if (!changed) {
        changed = leave_out_extra(style, refusal->words, extra);
    }
    return changed;
}

// Leaves out all that is optional. Returns whether anything was left.
static bool leave_out_optional(struct request_style *style)
{
    bool changed = !style->no_logprobs || !style->no_temperature || !style->no_effort;

    style->no_logprobs = style->no_temperature = style->no_effort = true;
    return changed;
}

// Asks in the plainest way. Returns false when it is the present one.
static bool ask_plainly(struct request_style *style)
{
    struct request_style plain = *style;

    plain.format = OUTPUT_TEXT;
    plain.no_system = plain.no_cache = true;
    plain.extra_left_out = UINT32_MAX;
    (void)leave_out_optional(&plain);
    if (is_same(&plain, style)) {
        return false;
    }
    // Of OpenAI's models those that take no system message take no max_tokens either, and the other
    // servers that take none know both names.
    if (style->no_system && style->limit == LIMIT_OWN && has_limit_names(style->form)) {
        plain.limit = LIMIT_OTHER;
    }
    *style = plain;
    return true;
}

bool request_style_refused(struct request_style *style, const struct request_style *used,
                           const struct refusal *refusal, uint64_t limit, const json_t *extra)
{
    bool changed;

    if (!is_same(style, used)) {
        return true; // another request has changed the style already
    }
    if (style->refusals >= 2) {
        // What the plainest way is refused for by name can still be left out.
        changed = leave_out_named(style, refusal, limit, extra);
        changed |= ask_plainly(style);
    } else {
        const unsigned formal = FEATURE_FORMAT | FEATURE_TOOLS | FEATURE_CHOICE;
        uint32_t before = style->extra_left_out;

        changed = leave_out_named(style, refusal, limit, extra);
        if (!changed) {
            changed = next_format(style, style->format);
        }
        if (style->refusals == 1 && (refusal->features & ~formal ||
                                     (refusal->features == 0 && before == style->extra_left_out))) {
            changed |= leave_out_optional(style);
        }
    }
    if (changed) {
        style->refusals++;
        style->unusable = 0;
    }
    return changed;
}

void request_style_unusable(struct request_style *style, const struct request_style *used)
{
    style->refusals = 0;
    if (is_same(style, used) && ++style->unusable >= REQUEST_STYLE_UNUSABLE_MAX &&
        !next_format(style, style->format)) {
        style->format = first_format(style->form);
    }
}

void request_style_usable(struct request_style *style, const struct request_style *used)
{
    style->refusals = 0;
    if (is_same(style, used)) {
        style->unusable = 0;
    }
}

// ---- as text ----

// The optional fields under their names in texts.
static const struct {
    const char *name;
    size_t offset;
} optional[] = {
    {"logprobs", offsetof(struct request_style, no_logprobs)},
    {"temperature", offsetof(struct request_style, no_temperature)},
    {"system", offsetof(struct request_style, no_system)},
    {"effort", offsetof(struct request_style, no_effort)},
    {"cache-marks", offsetof(struct request_style, no_cache)},
    {"doubled", offsetof(struct request_style, doubled)},
};

static bool *field_of(struct request_style *style, size_t i)
{
    return (bool *)((char *)style + optional[i].offset);
}

void request_style_describe(struct strbuf *out, const struct request_style *style,
                            const json_t *extra)
{
    json_t *body = (json_t *)(uintptr_t)extra;
    const char *before = " without ";
    uint32_t bit = 1;

    strbuf_adds(out, output_format_name(style->format));
    for (size_t i = 0; i + 1 < ARRAY_LEN(optional); i++) { // all but doubled
        if (*field_of((struct request_style *)(uintptr_t)style, i)) {
            strbuf_addf(out, "%s%s", before, optional[i].name);
            before = ", ";
        }
    }
    for (void *at = json_object_iter(body); at && bit != 0;
         at = json_object_iter_next(body, at), bit <<= 1) {
        if (style->extra_left_out & bit) {
            strbuf_addf(out, "%s%s", before, json_object_iter_key(at));
            before = ", ";
        }
    }
    if (style->limit == LIMIT_NONE) {
        strbuf_addf(out, "%slimit", before);
    } else if (style->limit == LIMIT_OTHER) {
        strbuf_adds(out, "; max_completion_tokens");
    }
    if (style->limit_most > 0) {
        strbuf_addf(out, "; at most %llu tokens", (unsigned long long)style->limit_most);
    }
    strbuf_adds(out, style->doubled ? "; twice --max-tokens" : "");
}

void request_style_write(struct strbuf *out, const struct request_style *style)
{
    json_t *left_out = json_array();

    for (size_t i = 0; i < ARRAY_LEN(optional); i++) {
        if (*field_of((struct request_style *)(uintptr_t)style, i)) {
            json_array_append_new(left_out, json_string(optional[i].name));
        }
    }
    json_t *root =
        json_pack("{s:s, s:o, s:i, s:I, s:I}", "format", output_format_name(style->format), "set",
                  left_out, "limit", (int)style->limit, "limit_most", (json_int_t)style->limit_most,
                  "extra", (json_int_t)style->extra_left_out);
    char *text = json_dumps(root, JSON_COMPACT);
    strbuf_adds(out, text ? text : "{}");
    free(text);
    json_decref(root);
}

int request_style_read(struct request_style *ret, enum api_form form, const char *text, size_t len,
                       struct err *err)
{
    json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
    const char *format = json_string_value(json_object_get(root, "format"));
    const json_t *set = json_object_get(root, "set");
    struct request_style style = request_style_first(form);
    int rc = 0;

    json_int_t limit = json_integer_value(json_object_get(root, "limit"));
    json_int_t most = json_integer_value(json_object_get(root, "limit_most"));
    json_int_t extra = json_integer_value(json_object_get(root, "extra"));
    if (format) {
        style.format = output_format_of(format);
    }
    if (!format || strcmp(output_format_name(style.format), format) != 0 ||
        !has_format(form, style.format) || limit < 0 || limit > LIMIT_NONE || most < 0 ||
        extra < 0 || extra > UINT32_MAX || (form == API_ANTHROPIC && limit != LIMIT_OWN)) {
        rc = err_set(err, ERR_INVALID, "the text is no way to ask an endpoint");
        goto out;
    }
    style.limit = (enum limit_name)limit;
    style.limit_most = (uint64_t)most;
    style.extra_left_out = (uint32_t)extra;
    for (size_t i = 0; i < json_array_size(set); i++) {
        const char *name = json_string_value(json_array_get(set, i));

        for (size_t k = 0; k < ARRAY_LEN(optional) && name; k++) {
            if (strcmp(name, optional[k].name) == 0) {
                *field_of(&style, k) = true;
            }
        }
    }
    *ret = style;
out:
    json_decref(root);
    return rc;
}
