#include "net/rpc/old_framing.h"

#include "proto/messages.h"
#include <stdint.h>
#include <string.h>

const unsigned char old_framing_greeting[8] = {'K', 'C', 'A', 'S', 'T', 0, 0, 1};

const char old_framing_reason[] = "it frames messages as kernelcast did before it spoke nng's "
                                  "protocol, and is of an older release";

size_t old_framing_length(const unsigned char *head)
{
    return (size_t)head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
}

void old_framing_refuse(struct strbuf *out, const void *request, size_t len,
                        const struct err *error)
{
    static const unsigned char no_length[OLD_FRAMING_LENGTH_LEN];
    struct request asked = {0};
    struct reply reply = {.version = 1,
                          .error = (char *)(uintptr_t)err_name(error->code),
                          .text = (char *)(uintptr_t)error->text};

    // A request that cannot be read has the id 0, by which it was answered in that framing.
    if (message_read(&request_message, &asked, request, len, NULL) == 0) {
        reply.id = asked.id;
        if (asked.token) {
            explicit_bzero(asked.token, strlen(asked.token));
        }
        message_clear(&request_message, &asked);
    }
    size_t at = out->len;
    strbuf_add(out, no_length, sizeof(no_length));
    if (message_pack(&reply_message, &reply, out, NULL) != 0) {
        out->len = at; // cannot happen: name and text are within their limits
        return;
    }
    size_t body = out->len - at - sizeof(no_length);
    for (size_t i = 0; i < OLD_FRAMING_LENGTH_LEN; i++) {
        out->data[at + i] = (char)(unsigned char)(body >> 8 * i);
    }
}
