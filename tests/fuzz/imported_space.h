// Looks at a space that was made of some file. The targets that import share this.
#ifndef TESTS_FUZZ_IMPORTED_SPACE_H
#define TESTS_FUZZ_IMPORTED_SPACE_H

#include "client/space/space_import.h"
#include "client/space/space_json.h"
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static inline void require(bool truth)
{
    if (!truth) {
        abort();
    }
}

// The space can be written and printed, and at least its baseline is correct.
static inline void look_at(const struct space *space)
{
    struct err err = ERR_INIT;
    struct strbuf packed = STRBUF_INIT;
    require(space_pack(space, "f.json", &packed, &err) == 0);
    struct space again;
    require(space_parse(&again, packed.data, packed.len, "f.json", &err) == 0);
    require(message_equal(&space_head_message, &space->head, &again.head));
    size_t correct = 0;
    for (size_t i = 0; i < space->head.candidates; i++) {
        const struct space_candidate *c = &space->candidate[i];
        require(message_equal(&space_candidate_message, c, &again.candidate[i]));
        require(c->params_count > 0);
        correct += isfinite(space_log2(c));
        require(!c->result || c->result->seconds->held >= 0);
        struct strbuf line = STRBUF_INIT;
        space_json_candidate(&line, space, i);
        json_t *object = json_loadb(line.data, line.len, 0, NULL);
        require(json_is_object(object) && json_object_get(object, "verdict"));
        json_decref(object);
        strbuf_release(&line);
    }
    require(correct > 0);
    space_release(&again);
    strbuf_release(&packed);
}

#endif
