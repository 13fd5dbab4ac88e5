// Any bytes as a text from outside. What is made of it holds nothing that a terminal obeys, a JSON
// text stays the JSON text that it was, and a name is taken exactly when nothing has to be escaped.
#include "common/printable.h"
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

// Ends the program unless all is printable, but for newlines and tabs where these may be.
static void expect_printable(const char *text, size_t len, bool lines)
{
    for (size_t at = 0, step; at < len; at += step) {
        bool blank = lines && (text[at] == '\n' || text[at] == '\t');

        step = blank ? 1 : printable_length((const unsigned char *)text + at, len - at);
        if (step == 0) {
            abort();
        }
    }
}

// The text as a JSON string, escaped, is read as the same text.
static void check_json(const char *text, size_t len)
{
    json_t *value = json_stringn(text, len), *again;
    char *json = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
    struct strbuf shown = STRBUF_INIT;

    if (json) {
        printable_add_json(&shown, json, strlen(json));
        expect_printable(strbuf_text(&shown), shown.len, true);
        again = json_loadb(shown.data, shown.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        if (!again || !json_equal(value, again)) {
            abort();
        }
        json_decref(again);
    }
    strbuf_release(&shown);
    free(json);
    json_decref(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char *text = xcalloc(len + 1, 1);
    struct strbuf line = STRBUF_INIT, lines = STRBUF_INIT;

    if (len > 0) {
        memcpy(text, data, len);
    }
    printable_add(&line, text, len);
    expect_printable(strbuf_text(&line), line.len, false);
    printable_add_lines(&lines, text, len);
    expect_printable(strbuf_text(&lines), lines.len, true);
    check_json(text, len);
    bool plain = line.len == len && (len == 0 || memcmp(line.data, text, len) == 0);
    if (strlen(text) == len && plain != (printable_check("a name", text, NULL) == 0)) {
        abort();
    }
    printable_clean(text, len);
    expect_printable(text, len, true);
    strbuf_release(&line);
    strbuf_release(&lines);
    free(text);
    return 0;
}
