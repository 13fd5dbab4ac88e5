// Any bytes as the headers of an answer. The wait that they ask for is absent or within bounds.
#include "common/mem.h"
#include "worker/endpoint/rate_limit.h"
#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char *text = xstrndup((const char *)data, len);
    double ms = rate_limit_retry_ms(text, 1760000000);

    if (!isnan(ms) && !(ms > 0 && ms <= RATE_LIMIT_RETRY_MAX_MS)) {
        abort();
    }
    free(text);
    return 0;
}
