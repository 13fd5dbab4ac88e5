// Values come from peers and compilers and are not escaped in the line: a quoted value may have
// quotes inside. Its end is therefore the first quote after which the line ends or another key=
// begins, which is where a person would see it.
#include "common/log/log_json.h"
#include "common/printable.h"
#include "common/utf8.h"
#include <stdbool.h>
#include <string.h>

#define KEY_MAX 64

static bool is_key(char c)
{
    return (c >= 'a' && c <= 'z') || c == '_' || (c >= '0' && c <= '9') || c == '-';
}

// The length of "key=" at text, 0 when there is none.
static size_t key_len(const char *text)
{
    size_t len = 0;

    while (len < KEY_MAX && is_key(text[len])) {
        len++;
    }
    return len > 0 && text[len] == '=' ? len + 1 : 0;
}

static void put_string(struct strbuf *out, const char *text, size_t len)
{
    const unsigned char *at = (const unsigned char *)text;
    const unsigned char *end = at + len;

    strbuf_addc(out, '"');
    while (at < end) {
        size_t multi = *at >= 0x80 ? utf8_length(at, (size_t)(end - at)) : 0;

        if (multi > 0) {
            printable_add_json(out, (const char *)at, multi);
            at += multi;
            continue;
        }
        if (*at == '"' || *at == '\\') {
            strbuf_addf(out, "\\%c", *at);
        } else if (*at < 0x20 || *at >= 0x7F) {
            strbuf_addf(out, "\\u%04x", *at);
        } else {
            strbuf_addc(out, (char)*at);
        }
        at++;
    }
    strbuf_addc(out, '"');
}

static void put_member(struct strbuf *out, const char *key, const char *value)
{
    strbuf_addf(out, "%s\"%s\":", out->data[out->len - 1] == '{' ? "" : ",", key);
    put_string(out, value, strlen(value));
}

// The closing quote of the value that begins at text, behind its opening quote. The end of the line
// when there is none.
static const char *closing_quote(const char *text)
{
    const char *at = text;

    while ((at = strchr(at, '"'))) {
        if (at[1] == '\0' || (at[1] == ' ' && key_len(at + 2) > 0)) {
            return at;
        }
        at++;
    }
    return text + strlen(text);
}

// Whether the key is one that log_json adds itself.
static bool is_reserved(const char *key, size_t len)
{
    static const char *const names[] = {"time", "program", "level", "event", "text"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strlen(names[i]) == len && memcmp(names[i], key, len) == 0) {
            return true;
        }
    }
    return false;
}

// Adds the key=value at text, whose "key=" has `key` bytes. Returns the text after it.
static const char *put_pair(struct strbuf *out, const char *text, size_t key)
{
    const char *value = text + key;
    bool quoted = value[0] == '"';

    value += quoted;
    const char *end = quoted ? closing_quote(value) : value + strcspn(value, " ");
    strbuf_addf(out, ",\"%s%.*s\":", is_reserved(text, key - 1) ? "_" : "", (int)(key - 1), text);
    put_string(out, value, (size_t)(end - value));
    return quoted && *end == '"' ? end + 1 : end;
}

void log_json(struct strbuf *out, const struct log_line *line)
{
    const char *at = line->event;
    size_t len = strcspn(at, " ");

    strbuf_addc(out, '{');
    put_member(out, "time", line->time);
    put_member(out, "program", line->program);
    put_member(out, "level", line->level);
    strbuf_adds(out, ",\"event\":");
    put_string(out, at, len);
    at += len;
    struct strbuf rest = STRBUF_INIT;
    while (*at) {
        size_t key = *at == ' ' ? 0 : key_len(at);

        if (*at == ' ') {
            at++;
        } else if (key > 0) {
            at = put_pair(out, at, key);
        } else {
            len = strcspn(at, " ");
            strbuf_addf(&rest, "%s%.*s", rest.len > 0 ? " " : "", (int)len, at);
            at += len;
        }
    }
    if (rest.len > 0) {
        put_member(out, "text", strbuf_text(&rest));
    }
    strbuf_addc(out, '}');
    strbuf_release(&rest);
}
