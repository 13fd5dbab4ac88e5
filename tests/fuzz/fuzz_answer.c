// Any bytes as an endpoint's answer. They are refused, defer, or give a forecast that is a
// distribution.
#include "worker/llm/answer.h"
#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct err err = ERR_INIT, why = ERR_INIT;
    struct answer answer;
    double sum = 0;

    if (answer_read(&answer, (const char *)data, len, &why, &err) == 0 && answer.has_forecast &&
        !answer.forecast.defers) {
        const struct answer_forecast *f = &answer.forecast;

        for (size_t i = 0; i < BIN_COUNT; i++) {
            if (!(f->bins[i] >= 0 && f->bins[i] <= 1)) {
                abort();
            }
            sum += f->bins[i];
        }
        if (fabs(sum - 1) > 1e-6 || (f->p_correct < 0 || f->p_correct > 1) || f->stated < -1 ||
            f->stated >= BIN_COUNT) {
            abort();
        }
    }
    answer_release(&answer);
    return 0;
}
