// Any bytes as the text that a search begins warm with: it is refused, or its points are found.
#include "client/propose/warm.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const char grid[] = "//@ tune A in (1, 2, 3, 4)\n//@ tune B in (0, 1, 2)\nint x;\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const struct bytes point_text = {.data = (unsigned char *)(uintptr_t)grid, .len = strlen(grid)},
                       text = {.data = (unsigned char *)(uintptr_t)data, .len = len};
    struct generator *generator;
    struct warm *warm;
    struct err err = ERR_INIT;

    if (generator_create(&generator, "tunable", &point_text, "grid", &err) != 0) {
        abort();
    }
    if (warm_create(&warm, &text, "text", generator, &err) == 0) {
        struct run_state run_state = {.candidate_count = 0};
        struct strategy_view view = {.run_state = &run_state, .generator = generator};
        struct strategy_choice choice[12];
        size_t count = warm_choose(warm, &view, 12, choice);
        if (count < WARM_TRIED || isnan(warm_log2(warm, choice[0].point)) ||
            !warm_holds(warm, &view)) {
            abort();
        }
        warm_free(warm);
    } else if (err.text[0] == '\0') {
        abort();
    }
    generator_free(generator);
    return 0;
}
