// What a compiler said, which quotes the candidate: every message that is read stands in the text,
// and renaming to the name that is there already changes nothing.
#include "client/diagnostics.h"
#include "common/mem.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void check(int holds)
{
    if (!holds) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    char *text = xstrndup((const char *)data, size);
    struct strbuf same = STRBUF_INIT, renamed = STRBUF_INIT;

    diagnostics_rename(&same, text, "candidate.c", 0);
    bool others = strstr(text, "candidate.cu") || strstr(text, "candidate.ptx") ||
                  strstr(text, "candidate.py");
    check(others || strcmp(strbuf_text(&same), text) == 0);
    diagnostics_rename(&renamed, text, "mine.c", size % 4);
    json_t *messages = diagnostics_json(text);
    check(json_is_array(messages));
    for (size_t i = 0; i < json_array_size(messages); i++) {
        const char *message =
            json_string_value(json_object_get(json_array_get(messages, i), "message"));
        check(!message || strstr(text, message)); // not told when it is no UTF-8
    }
    const char *at = text;
    for (char *name = diagnostics_undeclared(&at); name; name = diagnostics_undeclared(&at)) {
        check(!!strstr(text, name));
        free(name);
    }
    json_decref(messages);
    strbuf_release(&same);
    strbuf_release(&renamed);
    free(text);
    return 0;
}
