// Any bytes as what the gzip stream of a space holds. They are refused with one sentence, or give a
// space that can be packed again to the same space.
#include "client/space/space.h"
#include "client/space/space_json.h"
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void require(bool truth)
{
    if (!truth) {
        abort();
    }
}

static void show(const struct space *space, size_t i)
{
    struct strbuf lines = STRBUF_INIT, source = STRBUF_INIT;
    const struct bytes *text = &space->candidate[i].source;
    strbuf_add(&source, text->data, text->len);
    space_json_candidate(&lines, space, i);
    space_json_pair(&lines, space, i, &space->head.baseline_text, &source);
    char *second = strchr(lines.data, '\n') + 1;
    json_t *one = json_loadb(lines.data, (size_t)(second - lines.data), 0, NULL);
    json_t *two = json_loads(second, 0, NULL);
    require(json_is_string(json_object_get(one, "name")) && json_object_size(two) == 10);
    json_decref(one);
    json_decref(two);
    strbuf_release(&source);
    strbuf_release(&lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct err err = ERR_INIT;
    struct space space, again;
    int rc = space_parse(&space, data, len, "x.space", &err);
    require((rc == 0) == (err.code == ERR_NONE));
    if (rc != 0) {
        require(strncmp(err.text, "x.space: ", 9) == 0 && !strchr(err.text, '\n'));
        return 0;
    }
    require(space.head.candidates >= 1);
    struct strbuf packed = STRBUF_INIT;
    require(space_pack(&space, "x.space", &packed, &err) == 0);
    require(space_parse(&again, packed.data, packed.len, "x.space", &err) == 0);
    require(message_equal(&space_head_message, &space.head, &again.head));
    double best = space_best_log2(&space);
    for (size_t i = 0; i < space.head.candidates; i++) {
        require(message_equal(&space_candidate_message, &space.candidate[i], &again.candidate[i]));
        require(!(space_log2(&space.candidate[i]) > best));
        show(&space, i);
    }
    strbuf_release(&packed);
    space_release(&again);
    space_release(&space);
    return 0;
}
