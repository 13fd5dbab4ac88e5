// Any bytes as what the gzip stream of a space holds: refused with one sentence, or a space that
// can be packed again, and what that gives is the same space.
#include "client/space.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void require(bool truth)
{
    if (!truth)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct err err = ERR_INIT;
    struct space space, again;
    struct strbuf packed = STRBUF_INIT;
    int code = space_parse(&space, data, len, "x.space", &err);
    require((code == 0) == (err.code == ERR_NONE));
    if (code != 0) {
        require(strncmp(err.text, "x.space: ", 9) == 0 && strchr(err.text, '\n') == NULL);
        return 0;
    }
    require(space.head.candidates >= 1);
    require(space_pack(&space, "x.space", &packed, &err) == 0);
    require(space_parse(&again, packed.data, packed.len, "x.space", &err) == 0);
    require(message_equal(&space_head_message, &space.head, &again.head));
    double best = space_best_log2(&space);
    for (size_t i = 0; i < space.head.candidates; i++) {
        require(message_equal(&space_candidate_message, &space.candidate[i], &again.candidate[i]));
        require(!(space_log2(&space.candidate[i]) > best));
    }
    strbuf_release(&packed);
    space_release(&again);
    space_release(&space);
    return 0;
}
