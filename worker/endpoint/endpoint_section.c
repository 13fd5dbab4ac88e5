#include "worker/endpoint/endpoint_section.h"

#include "common/mem.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define ROW(field) offsetof(struct endpoint_section, field)
const struct option_row endpoint_section_table[] = {
    {"url", 0, OPTION_TEXT, ROW(url), "URL", NULL, 0, 0, NULL,
     "where it is, without /chat/completions: https://host/v1"},
    {"model", 0, OPTION_TEXT, ROW(model), "NAME", NULL, 0, 0, NULL, "the model to ask there"},
    {"api", 0, OPTION_CHOICE, ROW(api), "FORM", "chat", 0, 0, "chat|responses|anthropic|azure",
     "the form of its interface: OpenAI's chat completions or responses, Anthropic's messages, "
     "Azure's chat completions"},
    {"key-file", 0, OPTION_TEXT, ROW(key_file), "FILE", NULL, 0, 0, NULL,
     "holds its key, readable by its owner only; default: it gets none"},
    {"header", 0, OPTION_TEXT, ROW(header), "NAME", NULL, 0, 0, NULL,
     "that carries the key; default: Authorization (Bearer), x-api-key of anthropic, api-key of "
     "azure"},
    {"api-version", 0, OPTION_TEXT, ROW(api_version), "VERSION", NULL, 0, 0, NULL,
     "added to the address as ?api-version=, as azure wants it"},
    {"effort", 0, OPTION_TEXT, ROW(effort), "NAME", NULL, 0, 0, NULL,
     "of reasoning: low, medium, high, or what else the model knows; default: the model's own"},
    {"body", 0, OPTION_TEXT, ROW(body), "JSON", NULL, 0, 0, NULL,
     "an object whose fields are added to every request"},
    {"weight", 0, OPTION_F64, ROW(weight), "N", "1", 1e-3, 1e3, NULL,
     "its share of the requests beside other endpoints"},
    {"max-tokens", 0, OPTION_U64, ROW(max_tokens), "N", "0", 0, 1000000, NULL,
     "of one answer, thoughts included; 0: --max-tokens"},
    {"temperature", 0, OPTION_F64, ROW(temperature), "T", "-1", -1, 2, NULL,
     "of its answers; -1: --temperature"},
    {"at-once", 0, OPTION_U64, ROW(at_once), "N", "256", 1, 100000, NULL,
     "requests at once, at most; fewer while it refuses"},
    {"requests-per-minute", 0, OPTION_F64, ROW(requests_per_minute), "N", "0", 0, 1e9, NULL,
     "0: no limit but its own"},
    {"tokens-per-minute", 0, OPTION_F64, ROW(tokens_per_minute), "N", "0", 0, 1e12, NULL,
     "the same for tokens, estimated beforehand"},
    {"price-input", 0, OPTION_F64, ROW(price_input), "PRICE", "0", 0, 1e6, NULL,
     "of a million input tokens, in the currency of all prices"},
    {"price-cached", 0, OPTION_F64, ROW(price_cached), "PRICE", "0", 0, 1e6, NULL,
     "of a million input tokens that the endpoint had kept"},
    {"price-cache-write", 0, OPTION_F64, ROW(price_cache_write), "PRICE", "0", 0, 1e6, NULL,
     "of a million input tokens that it keeps from now on; 0: as price-input"},
    {"price-output", 0, OPTION_F64, ROW(price_output), "PRICE", "0", 0, 1e6, NULL,
     "of a million output tokens"},
    {.name = NULL},
};

void *endpoint_sections_open(void *opaque, const char *name, struct err *err)
{
    struct endpoint_sections *sections = opaque;
    size_t len = strlen(name);

    if (len == 0 || len > ENDPOINT_SECTION_NAME_MAX) {
        (void)err_set(err, ERR_INVALID, "the name of an endpoint has 1 to %d characters",
                      ENDPOINT_SECTION_NAME_MAX);
        return NULL;
    }
    for (const char *c = name; *c != '\0'; c++) {
        if (!isalnum((unsigned char)*c) && !strchr("-_.", *c)) {
            (void)err_set(err, ERR_INVALID,
                          "the name of an endpoint has letters, digits, '-', '_' and '.' only");
            return NULL;
        }
    }
    for (size_t i = 0; i < sections->count; i++) {
        if (strcmp(sections->section[i].name, name) == 0) {
            (void)err_set(err, ERR_INVALID, "a second section [endpoint %s]", name);
            return NULL;
        }
    }
    if (sections->count == ENDPOINTS_MAX) {
        (void)err_set(err, ERR_INVALID, "more than %d endpoints", ENDPOINTS_MAX);
        return NULL;
    }
    struct endpoint_section *section = &sections->section[sections->count];
    *section = (struct endpoint_section){.name = NULL};
    if (options_defaults(endpoint_section_table, section, err) != 0) {
        return NULL;
    }
    section->name = xstrdup(name);
    sections->count++;
    return section;
}

void endpoint_sections_release(struct endpoint_sections *sections)
{
    for (size_t i = 0; i < sections->count; i++) {
        options_release(endpoint_section_table, &sections->section[i]);
        free(sections->section[i].name);
    }
    sections->count = 0;
}

int endpoint_extra_read(json_t **ret, const char *text, struct err *err)
{
    // What the worker writes itself, and what would make the answer something that it cannot read.
    static const char *const own[] = {"model",
                                      "messages",
                                      "input",
                                      "instructions",
                                      "system",
                                      "stream",
                                      "n",
                                      "tools",
                                      "tool_choice",
                                      "text",
                                      "response_format",
                                      "max_tokens",
                                      "max_completion_tokens",
                                      "max_output_tokens",
                                      "temperature"};
    json_error_t where;
    json_t *extra = json_loads(text, JSON_REJECT_DUPLICATES, &where);
    int rc = 0;

    if (!json_is_object(extra)) {
        rc = err_set(err, ERR_USAGE, "body is no JSON object%s%s", extra ? "" : ": ",
                     extra ? "" : where.text);
    } else if (json_object_size(extra) > REQUEST_EXTRA_MAX) {
        rc = err_set(err, ERR_USAGE, "body has more than %d fields", REQUEST_EXTRA_MAX);
    }
    for (size_t i = 0; i < ARRAY_LEN(own) && rc == 0; i++) {
        if (json_object_get(extra, own[i])) {
            rc = err_set(err, ERR_USAGE,
                         "body has \"%s\", which the worker writes itself; leave it out", own[i]);
        }
    }
    if (rc != 0) {
        json_decref(extra);
        return rc;
    }
    *ret = extra;
    return 0;
}

// ERR_USAGE when the name is none of a header that may carry a key.
static int check_header(const char *header, struct err *err)
{
    static const char *const others[] = {"content-type", "content-length", "host",
                                         "expect",       "connection",     "transfer-encoding"};
    bool good = header[0] != '\0' && strlen(header) <= 64;

    for (const char *c = header; *c != '\0'; c++) {
        good &= isalnum((unsigned char)*c) || *c == '-' || *c == '_';
    }
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        good &= strcasecmp(header, others[i]) != 0;
    }
    return good ? 0
                : err_set(err, ERR_USAGE, "header = %.70s: no name of a header for a key", header);
}

static int read_section(struct endpoint_config *ret, const struct endpoint_section *section,
                        struct err *err)
{
    json_t *extra = NULL;

    if (!section->url || section->url[0] == '\0') {
        return err_set(err, ERR_USAGE, "url is missing: where the endpoint is");
    }
    if (!section->model || section->model[0] == '\0') {
        return err_set(err, ERR_USAGE, "model is missing: which model is to be asked");
    }
    if (strncmp(section->url, "http://", 7) != 0 && strncmp(section->url, "https://", 8) != 0) {
        return err_set(err, ERR_USAGE, "url = %.200s: not a http:// or https:// url", section->url);
    }
    if (section->header && check_header(section->header, err) != 0) {
        return ERR_USAGE;
    }
    if (section->body && endpoint_extra_read(&extra, section->body, err) != 0) {
        return ERR_USAGE;
    }
    size_t len = strlen(section->url);
    while (section->url[len - 1] == '/') {
        len--;
    }
    *ret = (struct endpoint_config){
        .name = section->name,
        .url = xstrndup(section->url, len),
        .model = section->model,
        .header = section->header,
        .api_version = section->api_version,
        .effort = section->effort,
        .extra = extra,
        .form = api_form_of(section->api),
        .weight = section->weight,
        .requests_per_minute = section->requests_per_minute,
        .tokens_per_minute = section->tokens_per_minute,
        .in_flight = (double)section->at_once,
        .price_input = section->price_input,
        .price_cached = section->price_cached,
        .price_cache_write = section->price_cache_write,
        .price_output = section->price_output,
        .max_tokens = section->max_tokens,
        .temperature = section->temperature,
    };
    return 0;
}

int endpoint_section_read(struct endpoint_config *ret, const struct endpoint_section *section,
                          struct err *err)
{
    struct err inner = ERR_INIT;
    int rc = read_section(ret, section, &inner);

    return rc == 0 ? 0 : err_set(err, rc, "[endpoint %s] %s", section->name, inner.text);
}
