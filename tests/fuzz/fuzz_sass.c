// Any bytes as a listing of nvdisasm. They are read within bounds, and every count is a number that
// is not more than the number of lines.
#include "executor/gpu/compile/sass.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    size_t count = 0, lines = 1;

    for (size_t i = 0; i < len; i++) {
        lines += data[i] == '\n';
    }
    struct fact *list = NULL;
    sass_features((const char *)data, len, &list, &count);
    double total = count > 0 ? list[0].value : 0;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(list[i].value) || list[i].value < 0 || list[i].value > (double)lines ||
            list[i].value > total) {
            abort();
        }
        message_clear(&fact_message, &list[i]);
    }
    free(list);
    return 0;
}
