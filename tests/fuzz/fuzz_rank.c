// Any bytes as an endpoint's answer to a ranking. It is refused, or gives an order of all
// candidates and probabilities.
#include "worker/llm/answer.h"
#include "worker/llm/rank_answer.h"
#include <math.h>
#include <stdlib.h>

#define COUNT 9

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct err err = ERR_INIT, why = ERR_INIT;
    struct answer answer;
    size_t order[COUNT], named = 0;
    double p[COUNT];
    bool seen[COUNT] = {false};

    if (answer_read(&answer, (const char *)data, len, &why, &err) == 0 && answer.ranking &&
        rank_answer_read(answer.ranking, COUNT, order, p, &named, &why) == 0) {
        if (named < 1 || named > COUNT) {
            abort();
        }
        for (size_t i = 0; i < COUNT; i++) {
            if (order[i] >= COUNT || seen[order[i]] ||
                (!isnan(p[i]) && !(p[i] >= 0 && p[i] <= 1))) {
                abort();
            }
            seen[order[i]] = true;
        }
    }
    answer_release(&answer);
    return 0;
}
