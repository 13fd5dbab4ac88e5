// Any status and bytes as an endpoint's refusal. What is quoted of it is one printable line, only a
// refusal of the request names features, and the style that follows it can be kept as a text and
// asks plainly after three refusals at most.
#include "worker/endpoint/request_style.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_line(const char *text)
{
    if (strlen(text) > REFUSAL_WORDS_MAX) {
        abort();
    }
    for (const char *c = text; *c != '\0'; c++) {
        if (*c < ' ' || *c > '~' || *c == '"') {
            abort();
        }
    }
}

// Refuses request after request with the same words.
static void check_style(const struct refusal *refusal, enum api_form form)
{
    struct request_style style = request_style_first(form), read;
    struct strbuf text = STRBUF_INIT;
    uint64_t limit = 4096;
    unsigned refusals = 0;

    while (request_style_refused(&style, &style, refusal, limit, NULL)) {
        limit = request_style_limit(&style, 4096);
        if (++refusals > 64) {
            abort(); // it never ends
        }
        if (refusals == 3 && style.format != OUTPUT_TEXT) {
            abort();
        }
    }
    style.refusals = style.unusable = 0;
    request_style_write(&text, &style);
    if (request_style_read(&read, form, strbuf_text(&text), text.len, NULL) != 0 ||
        memcmp(&read, &style, sizeof(read)) != 0) {
        abort();
    }
    strbuf_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const long status[] = {200, 400, 401, 402, 403, 404, 422, 429, 500, 501, 503};
    struct refusal refusal;

    if (len == 0) {
        return 0;
    }
    refusal_read(&refusal, status[data[0] % (sizeof(status) / sizeof(*status))],
                 (const char *)data + 1, len - 1);
    check_line(refusal.words);
    check_line(refusal.place);
    if ((refusal.features != 0 && refusal.kind != REFUSAL_REQUEST) ||
        !(isnan(refusal.retry_ms) || refusal.retry_ms >= 0) ||
        strlen(refusal_meaning(refusal.kind)) == 0) {
        abort();
    }
    for (int form = 0; form < API_FORM_COUNT; form++) {
        check_style(&refusal, (enum api_form)form);
    }
    struct request_style style;
    if (request_style_read(&style, API_CHAT, (const char *)data + 1, len - 1, NULL) == 0 &&
        (style.format >= OUTPUT_FORMAT_COUNT || style.limit > LIMIT_NONE)) {
        abort();
    }
    return 0;
}
