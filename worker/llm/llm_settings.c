#include "worker/llm/llm_settings.h"

#include "common/file.h"
#include "common/mem.h"
#include "common/parse.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define KEY_MAX 4096 // bytes of a key file

// Wipes and frees a text that holds a key. NULL is fine.
static void free_key(char *text)
{
    if (text) {
        explicit_bzero(text, strlen(text));
        free(text);
    }
}

// The text without the blanks around it. Changes the text.
static char *trim(char *text)
{
    size_t len = strlen(text);

    while (len > 0 && isspace((unsigned char)text[len - 1])) {
        text[--len] = '\0';
    }
    while (isspace((unsigned char)*text)) {
        text++;
    }
    return text;
}

// ERR_INVALID when the key cannot be one. where: what it was read from.
static int check_key(const char *key, const char *where, struct err *err)
{
    if (key[0] == '\0') {
        return err_set(err, ERR_INVALID, "%s holds no key", where);
    }
    for (const char *c = key; *c != '\0'; c++) {
        if (*c <= ' ' || *c > '~') {
            return err_set(err, ERR_INVALID,
                           "the key in %s has a character that no key has; it must be one line",
                           where);
        }
    }
    return 0;
}

// Reads the text of a key file, which only its owner may read.
static int read_key_file(char **ret, const char *path, struct err *err)
{
    struct bytes bytes = {.data = NULL};
    int rc = file_read_private(&bytes, path, KEY_MAX, err);
    if (rc != 0) {
        return rc;
    }
    if (bytes.len > 0 &&
        memchr(bytes.data, '\0', bytes.len)) { // which would end the key early and unnoticed
        rc = err_set(err, ERR_INVALID, "the key in %s has a character that no key has: a zero byte",
                     path);
    } else {
        *ret = xstrndup((const char *)bytes.data, bytes.len);
    }
    file_wipe(&bytes);
    return rc;
}

// Gives the key from the file, or else from the environment variable (NULL: from nowhere). NULL
// when there is none, as for local servers. The caller wipes and frees it.
static int read_key(char **ret, const char *path, const char *name, struct err *err)
{
    const char *variable = name ? getenv(name) : NULL;
    char *text = NULL;
    int rc = 0;

    *ret = NULL;
    if (path) {
        rc = read_key_file(&text, path, err);
    } else if (variable && variable[0] != '\0') {
        text = xstrdup(variable);
    }
    if (rc != 0 || !text) {
        return rc;
    }
    const char *key = trim(text);
    rc = check_key(key, path ? path : "$" LLM_KEY_VARIABLE, err); // the only variable
    if (rc == 0) {
        *ret = xstrdup(key);
    }
    free_key(text);
    return rc;
}

// Reads one "URL[*WEIGHT]". Changes the text.
static int read_endpoint(struct endpoint_config *endpoint, char *text,
                         const struct llm_settings *settings, struct err *err)
{
    char *star = strrchr(text, '*');

    *endpoint = (struct endpoint_config){
        .model = settings->model,
        .weight = 1,
        .requests_per_minute = settings->requests_per_minute,
        .tokens_per_minute = settings->tokens_per_minute,
        .in_flight = (double)settings->at_once,
        .price_input = settings->price_input,
        .price_cached = settings->price_cached,
        .price_output = settings->price_output,
        .temperature = -1,
    };
    if (star) {
        *star = '\0';
        if (parse_f64(&endpoint->weight, star + 1, 1e-3, 1e3, "--endpoint URL*WEIGHT", err) != 0) {
            return ERR_USAGE;
        }
    }
    size_t len = strlen(text);
    while (len > 0 && text[len - 1] == '/') {
        text[--len] = '\0';
    }
    if (strncmp(text, "http://", 7) != 0 && strncmp(text, "https://", 8) != 0) {
        return err_set(err, ERR_USAGE, "--endpoint %s: not a http:// or https:// url", text);
    }
    endpoint->url = xstrdup(text);
    return 0;
}

// Adds the endpoints of --endpoint.
static int add_options(struct llm_config *ret, const struct llm_settings *settings, struct err *err)
{
    if (!settings->endpoint) {
        return 0;
    }
    if (!settings->model) {
        return err_set(err, ERR_USAGE, "--endpoint needs --model: which model is to be asked");
    }
    char *key = NULL;
    int rc = read_key(&key, settings->key_file, LLM_KEY_VARIABLE, err);
    char *list = xstrdup(settings->endpoint), *next = list, *text;
    while (rc == 0 && (text = strsep(&next, ","))) {
        if (ret->count == ENDPOINTS_MAX) {
            rc = err_set(err, ERR_USAGE, "--endpoint names more than %d", ENDPOINTS_MAX);
            break;
        }
        rc = read_endpoint(&ret->endpoints[ret->count], text, settings, err);
        if (rc == 0) {
            ret->endpoints[ret->count++].key = key ? xstrdup(key) : NULL;
        }
    }
    free_key(key);
    free(list);
    return rc;
}

// Adds the endpoint of a section.
static int add_section(struct llm_config *ret, const struct endpoint_section *section,
                       struct err *err)
{
    if (ret->count == ENDPOINTS_MAX) {
        return err_set(err, ERR_USAGE, "--endpoint and the sections name more than %d endpoints",
                       ENDPOINTS_MAX);
    }
    struct endpoint_config *endpoint = &ret->endpoints[ret->count];
    int rc = endpoint_section_read(endpoint, section, err);
    if (rc != 0) {
        return rc;
    }
    ret->count++;
    char *key = NULL;
    rc = section->key_file ? read_key(&key, section->key_file, NULL, err) : 0;
    endpoint->key = key;
    return rc != 0 ? err_wrap(err, "[endpoint %s]", section->name) : 0;
}

int llm_settings_read(struct llm_config *ret, const struct llm_settings *settings, struct err *err)
{
    *ret = (struct llm_config){
        .ca_file = settings->ca_file,
        .samples = settings->samples,
        .max_tokens = settings->max_tokens,
        .temperature = settings->temperature,
        .deadline_ms = settings->deadline_ns / 1000000,
        .limits = settings->limits,
    };
    if (!settings->endpoint && settings->sections.count == 0) {
        return 0;
    }
    ret->endpoints = xcalloc(ENDPOINTS_MAX, sizeof(*ret->endpoints));
    int rc = add_options(ret, settings, err);
    for (size_t i = 0; i < settings->sections.count && rc == 0; i++) {
        rc = add_section(ret, &settings->sections.section[i], err);
    }
    if (rc != 0) {
        llm_settings_release(ret);
    }
    return rc;
}

void llm_settings_release(struct llm_config *config)
{
    for (size_t i = 0; i < config->count; i++) {
        free((char *)(uintptr_t)config->endpoints[i].url);
        free_key((char *)(uintptr_t)config->endpoints[i].key);
        json_decref((json_t *)(uintptr_t)config->endpoints[i].extra);
    }
    free(config->endpoints);
    config->endpoints = NULL;
    config->count = 0;
}
