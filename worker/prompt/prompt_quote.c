#include "worker/prompt/prompt_quote.h"

#include "common/digest.h"
#include <math.h>
#include <string.h>

// Whether a byte is shown as it is; others are shown as '?'.
static bool is_plain(unsigned char c)
{
    return c == '\n' || c == '\t' || (c >= ' ' && c < 127);
}

static void add_plain(struct strbuf *out, const unsigned char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        size_t begin = i;

        while (i < len && is_plain(data[i])) {
            i++;
        }
        strbuf_add(out, data + begin, i - begin);
        if (i < len) {
            strbuf_adds(out, "?");
        }
    }
}

void prompt_quote(struct strbuf *out, const char *what, const void *data, size_t len, size_t max)
{
    struct digest digest = digest_of(data, len);
    char hex[DIGEST_HEX_LEN + 1];
    size_t shown = len < max ? len : max;

    digest_hex(&digest, hex);
    hex[16] = '\0';
    strbuf_addf(out, "==== %s %s\n", what, hex);
    add_plain(out, data, shown);
    if (shown < len) {
        strbuf_addf(out, "\n(%zu more bytes are left out)", len - shown);
    }
    strbuf_addf(out, "\n==== end %s\n", hex);
}

void prompt_quote_list(struct strbuf *out, const char *what, const char *lines)
{
    strbuf_addf(out, "==== %s list\n", what);
    add_plain(out, (const unsigned char *)lines, strlen(lines));
    strbuf_adds(out, "==== end list\n");
}

void prompt_facts(struct strbuf *out, const char *what, const struct fact *fact, size_t count)
{
    if (count == 0) {
        return;
    }
    strbuf_addf(out, "%s:", what);
    for (size_t i = 0; i < count; i++) {
        strbuf_addf(out, "%s %s=%.6g", i == 0 ? "" : ",", fact[i].name, fact[i].value);
    }
    strbuf_adds(out, "\n");
}

// The first place of `what` in the text, or its end.
static const char *find(const char *at, const char *end, const char *what)
{
    const char *found = memmem(at, (size_t)(end - at), what, strlen(what));

    return found ? found : end;
}

void prompt_without_comments(struct strbuf *out, const void *data, size_t len)
{
    const char *at = data, *end = at + len;

    while (at < end) {
        const char *begin = find(at, end, "<!--"), *behind = begin;

        strbuf_add(out, at, (size_t)(begin - at));
        if (begin < end) {
            // "<!-->" and "<!--->" are whole comments in HTML.
            behind = find(begin + 2, end, "-->");
            behind += behind < end ? 3 : 0;
        }
        at = behind;
    }
}

void prompt_case_speedups(struct strbuf *out, const double *log2, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        strbuf_adds(out, i == 0 ? " (by case " : ", ");
        if (isnan(log2[i])) {
            strbuf_adds(out, "?");
        } else {
            strbuf_addf(out, "%.3g", exp2(log2[i]));
        }
    }
    strbuf_adds(out, count > 0 ? ")" : "");
}
