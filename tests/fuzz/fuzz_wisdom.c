// Any bytes as a wisdom file. They are refused with one sentence that begins with the file's name,
// or give entries that are the same when written and read again, and each is found by its own shape
// at distance 0.
#include "client/tune/wisdom_lookup.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void require(bool truth)
{
    if (!truth) {
        abort();
    }
}

static void look_up(const struct wisdom *wisdom, const struct wisdom_entry *entry, size_t shape)
{
    struct strbuf name = STRBUF_INIT;
    wisdom_case_name(&entry->shape[shape], &name);
    const struct wisdom_query query = {entry->problem, strbuf_text(&name), entry->device_class,
                                       entry->kernel_digest};
    struct err err = ERR_INIT;
    struct wisdom_match match;
    if (wisdom_lookup(&match, wisdom, &query, "w.json", &err) == 0) {
        require(match.distance >= 0);
    } else {
        // The shapes have other names: the kernels belong to two problems of the same name.
        require(err.code == ERR_INVALID);
    }
    strbuf_release(&name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct err err = ERR_INIT;
    struct wisdom wisdom, again;
    int rc = wisdom_parse(&wisdom, (const char *)data, len, "w.json", &err);
    require((rc == 0) == (err.code == ERR_NONE));
    if (rc != 0) {
        require(strncmp(err.text, "w.json: ", 8) == 0 && !strchr(err.text, '\n'));
        require(wisdom.count == 0);
        return 0;
    }
    struct strbuf text = STRBUF_INIT;
    wisdom_text(&wisdom, &text);
    require(wisdom_parse(&again, strbuf_text(&text), text.len, "w.json", &err) == 0);
    require(again.count == wisdom.count);
    for (size_t i = 0; i < wisdom.count; i++) {
        const struct wisdom_entry *entry = wisdom.entry[i];
        require(wisdom_find(&wisdom, entry) == entry);
        require(wisdom_same(entry, again.entry[i]));
        require(json_equal(entry->object, again.entry[i]->object));
        for (size_t j = 0; j < entry->shape_count; j++) {
            look_up(&wisdom, entry, j);
        }
    }
    strbuf_release(&text);
    wisdom_release(&again);
    wisdom_release(&wisdom);
    return 0;
}
