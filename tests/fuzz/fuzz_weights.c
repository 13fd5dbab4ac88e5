// Any text as the value of --weights. What is taken is in range and survives the run file.
#include "client/policy/costs.h"
#include "common/mem.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char *text = xstrndup((const char *)data, len);
    struct cost_weights weights, again;
    struct err err = ERR_INIT;

    if (cost_weights_read(&weights, text, &err) == 0) {
        struct run_started started;
        message_init(&run_started_message, &started);
        cost_weights_put(&weights, &started);
        again = cost_weights_of(&started);
        if (!(weights.device >= 0) || weights.money > 1e6 ||
            memcmp(&weights, &again, sizeof(weights)) != 0) {
            abort();
        }
    }
    free(text);
    return 0;
}
