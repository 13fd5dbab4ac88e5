// Design note. Values come from peers and compilers and are not escaped in the line: a quoted value
// may have quotes inside. Its end is the first quote after which the line ends or another key=
// begins, which is what a reader would take it for.
#include "common/log_json.h"
#include <stdbool.h>
#include <string.h>

#define KEY_MAX 64

static bool is_key(char c)
{
    return (c >= 'a' && c <= 'z') || c == '_' || (c >= '0' && c <= '9') || c == '-';
}

// Length of "key=" at text; 0 when there is none.
static size_t key_len(const char *text)
{
    size_t len = 0;

    while (len < KEY_MAX && is_key(text[len])) {
        len++;
    }
    return len > 0 && text[len] == '=' ? len + 1 : 0;
}

// Length of the valid UTF-8 character at text, which is not ASCII; 0 when it is none.
static size_t utf8_len(const unsigned char *text)
{
    size_t len = text[0] >= 0xC2 && text[0] <= 0xDF   ? 2
                 : text[0] >= 0xE0 && text[0] <= 0xEF ? 3
                 : text[0] >= 0xF0 && text[0] <= 0xF4 ? 4
                                                      : 0;

    for (size_t i = 1; i < len; i++) {
        if ((text[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    // Surrogates, and what has a shorter form or none.
    if ((text[0] == 0xE0 && text[1] < 0xA0) || (text[0] == 0xED && text[1] > 0x9F) ||
        (text[0] == 0xF0 && text[1] < 0x90) || (text[0] == 0xF4 && text[1] > 0x8F)) {
        return 0;
    }
    return len;
}

static void put_string(struct strbuf *out, const char *text, size_t len)
{
    const unsigned char *at = (const unsigned char *)text;
    const unsigned char *end = at + len;

    strbuf_addc(out, '"');
    while (at < end) {
        size_t multi = *at >= 0x80 ? utf8_len(at) : 0;

        if (multi > 0 && at + multi <= end) {
            strbuf_add(out, at, multi);
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

// The end of a quoted value; text is behind its first quote.
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

static bool is_ours(const char *key, size_t len)
{
    static const char *const names[] = {"time", "program", "level", "event", "text"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strlen(names[i]) == len && memcmp(names[i], key, len) == 0) {
            return true;
        }
    }
    return false;
}

// One key=value at text; what comes after it.
static const char *put_pair(struct strbuf *out, const char *text, size_t key)
{
    const char *value = text + key;
    bool quoted = value[0] == '"';

    value += quoted;
    const char *end = quoted ? closing_quote(value) : value + strcspn(value, " ");
    strbuf_addf(out, ",\"%s%.*s\":", is_ours(text, key - 1) ? "_" : "", (int)(key - 1), text);
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
