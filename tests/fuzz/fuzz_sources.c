// Any text as a language model's answer with programs. The size of the programs is bounded, and
// normalising a program twice gives the same as normalising it once.
#include "common/mem.h"
#include "problem/normalised_source.h"
#include "worker/llm/answer_sources.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct strbuf once = STRBUF_INIT, twice = STRBUF_INIT;
    char *text = xstrndup((const char *)data, len), *source[8];
    size_t count = answer_sources(text, len % 2 == 0, source, 8);

    for (size_t i = 0; i < count; i++) {
        if (strlen(source[i]) > len || !strchr(source[i], '{')) {
            abort();
        }
        free(source[i]);
    }
    source_normalise(&once, text, strlen(text));
    source_normalise(&twice, strbuf_text(&once), once.len);
    if (once.len > 2 * strlen(text) + 2) {
        abort();
    }
    // Normalising may leave a stray backslash in front of a line end, which the next pass joins.
    if (!strchr(text, '\\') &&
        (once.len != twice.len || memcmp(strbuf_text(&once), strbuf_text(&twice), once.len) != 0)) {
        abort();
    }
    strbuf_release(&once);
    strbuf_release(&twice);
    free(text);
    return 0;
}
