// Any bytes as any message. They are refused, or the message can be packed, read again to the same
// value, and printed. And any bytes as the start of a request whose token is looked for before the
// rest has arrived: what is found is what the whole request has, however little of it is there.
#include "proto/messages.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void find_token(const uint8_t *data, size_t len)
{
    char found[REQUEST_TOKEN_MAX + 1];
    char again[REQUEST_TOKEN_MAX + 1];
    bool any = request_find_token(data, len, found);
    struct request request;

    for (size_t part = 0; part < len; part += 1 + len / 64) {
        char *copy = xmemdup(data, part); // so that a byte too many is seen

        if (request_find_token(copy, part, again) && (!any || strcmp(found, again) != 0)) {
            abort();
        }
        free(copy);
    }
    if (message_read(&request_message, &request, data, len, NULL) == 0) {
        if (any && (!request.token || strcmp(request.token, found) != 0)) {
            abort();
        }
        message_clear(&request_message, &request);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len < 1) {
        return 0;
    }
    find_token(data + 1, len - 1);
    const struct message *message = all_messages[data[0] % all_messages_count];
    void *value = xcalloc(1, message->size), *again = xcalloc(1, message->size);
    struct strbuf packed = STRBUF_INIT, json = STRBUF_INIT;
    struct err err = ERR_INIT;
    if (message_read(message, value, data + 1, len - 1, &err) == 0) {
        if (message_pack(message, value, &packed, &err) != 0) {
            // A message that was read is within the limits, so it can be packed.
            abort();
        }
        if (message_read(message, again, packed.data, packed.len, &err) != 0 ||
            !message_equal(message, value, again)) {
            abort();
        }
        message_json(message, value, &json);
        message_clear(message, again);
        message_clear(message, value);
    }
    strbuf_release(&packed);
    strbuf_release(&json);
    free(value);
    free(again);
    return 0;
}
