// Any bytes as the head of an HTTP request. An accepted head has a complete path and host, and a
// head that arrives in pieces is treated as if it had arrived at once.
#include "net/http/http_request.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    // Exactly as long as the data, so that reading beyond it is detected.
    char *text = malloc(len > 0 ? len : 1);
    unsigned status, piece = 0;
    if (!text) {
        abort();
    }
    memcpy(text, data, len);
    struct http_request request = {.path = ""};
    status = http_request_read(&request, text, len);
    if (status == 200 && (request.path[0] != '/' || strchr(request.path, '?'))) {
        abort();
    }
    if (status != 0 && strcmp(http_status_text(status), "Unknown") == 0) {
        abort();
    }
    for (size_t i = 0; i <= len && piece == 0; i++) {
        piece = http_request_read(&request, text, i);
    }
    if (piece != status) {
        abort();
    }
    free(text);
    return 0;
}
