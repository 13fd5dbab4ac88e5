// Any bytes as the JSON lines of a file of candidates. They are refused with a sentence, or every
// candidate has a name and a source.
#include "client/propose/generator.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct err err = ERR_INIT;
    struct generator *generator = NULL;
    char *copy = xstrndup((const char *)data, len); // NUL-terminated, as a file's bytes are
    const struct bytes text = {.data = (unsigned char *)copy, .len = strlen(copy)};
    if (generator_files(&generator, &text, "pool.jsonl", &err) == 0) {
        struct strbuf source = STRBUF_INIT, name = STRBUF_INIT;
        if (generator->point_count == 0) {
            abort();
        }
        generator->ops->name(generator, generator->point_count - 1, &name);
        generator->ops->source(generator, generator->point_count - 1, &source);
        if (source.len == 0) {
            abort();
        }
        strbuf_release(&source);
        strbuf_release(&name);
        generator_free(generator);
    } else if (err.text[0] == 0) {
        abort();
    }
    free(copy);
    return 0;
}
