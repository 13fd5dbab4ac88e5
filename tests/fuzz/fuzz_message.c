// Any bytes as any message. They are refused, or the message can be packed, read again to the same
// value, and printed.
#include "proto/messages.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len < 1) {
        return 0;
    }
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
