// Any bytes as a cubin. They are refused, or all that is found lies inside them and is found again.
#include "executor/gpu/compile/cubin.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const struct bytes cubin = {.data = (unsigned char *)(uintptr_t)data, .len = len};
    struct cuda_kernel kernel, again;
    uint64_t code, constants;

    message_init(&cuda_kernel_message, &kernel);
    message_init(&cuda_kernel_message, &again);
    struct err err = ERR_INIT;
    if (cubin_parameters(&cubin, "bump", &kernel, &err) == 0) {
        if (kernel.sizes_count > CUBIN_PARAMETERS_MAX ||
            cubin_parameters(&cubin, "bump", &again, &err) != 0 ||
            again.sizes_count != kernel.sizes_count) {
            abort();
        }
    }
    unsigned number;
    if (cubin_check(&cubin, &err) == 0 &&
        (!is_cubin(&cubin) || cubin_architecture(&cubin, &number, &err) != 0)) {
        abort();
    }
    struct cuda_global *globals = NULL;
    size_t count = 0;
    if (cubin_globals(&cubin, &globals, &count, &err) == 0) {
        for (size_t i = 0; i < count; i++) {
            if (strlen(globals[i].symbol) >= len) {
                abort();
            }
        }
    }
    char forbidden[64];
    if (cubin_forbidden(&cubin, forbidden, &err) == 0 && strlen(forbidden) >= 64) {
        abort();
    }
    (void)!cubin_sizes(&cubin, &code, &constants, &err);
    struct bytes copy = bytes_copy(cubin.data, cubin.len);
    const char *const kept[] = {"bump"};
    cubin_keep_kernels(&copy, kept, 1);
    bytes_clear(&copy);
    for (size_t i = 0; i < count; i++) {
        message_clear(&cuda_global_message, &globals[i]);
    }
    free(globals);
    message_clear(&cuda_kernel_message, &kernel);
    message_clear(&cuda_kernel_message, &again);
    return 0;
}
