// Any bytes as what a program proposes. They are candidates that fit into the messages of a search,
// or a sentence says which line is none; the candidates before it are as good.
#include "client/program/answer.h"

#include "common/mem.h"
#include "common/strbuf.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct err err = ERR_INIT;
    struct propose_reply reply;
    char *copy = xmemdup(data, len); // of exactly this length

    message_init(&propose_reply_message, &reply);
    int rc = program_answer_read(&reply, copy, len, &err);
    if ((rc != 0) != (err.text[0] != '\0') || reply.proposals_count > ANSWER_CANDIDATES_MAX) {
        abort();
    }
    for (size_t i = 0; i < reply.proposals_count; i++) {
        if (reply.proposals[i].source.len == 0) {
            abort();
        }
    }
    struct strbuf packed = STRBUF_INIT;
    struct err why = ERR_INIT;
    if (message_pack(&propose_reply_message, &reply, &packed, &why) != 0) {
        abort();
    }
    strbuf_release(&packed);
    message_clear(&propose_reply_message, &reply);
    free(copy);
    return 0;
}
