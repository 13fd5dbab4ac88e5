// Any bytes as a listing of objdump. They are read within bounds, and every count is a finite
// number that is not more than the number of lines.
#include "executor/cpu/features.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    size_t lines = 1;

    for (size_t i = 0; i < len; i++) {
        lines += data[i] == '\n';
    }
    double value[FEATURE_COUNT];
    features_read((const char *)data, len, value);
    for (size_t i = 0; i < FEATURE_COUNT; i++) {
        if (!isfinite(value[i]) || value[i] < 0) {
            abort();
        }
        if (i != FEATURE_entry_bytes && i != FEATURE_function_bytes && value[i] > (double)lines) {
            abort();
        }
    }
    return 0;
}
