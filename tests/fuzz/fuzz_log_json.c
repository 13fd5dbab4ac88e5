// Any bytes as an event of the log. Its object is JSON that a strict reader accepts.
#include "common/log/log_json.h"
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char *text = xstrndup((const char *)data, len);
    struct log_line line = {"2026-01-31T12:00:00.000Z", "kcastd", "info", text};
    struct strbuf out = STRBUF_INIT;
    log_json(&out, &line);
    json_t *root = json_loadb(out.data, out.len, 0, NULL);
    if (!root) {
        abort();
    }
    json_decref(root);
    strbuf_release(&out);
    free(text);
    return 0;
}
