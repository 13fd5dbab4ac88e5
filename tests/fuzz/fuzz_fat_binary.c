// Any bytes as a fat binary. It is refused, or gives bytes that are not more than were allowed, the
// same ones again, and that a cubin's checks stand.
#include "executor/gpu/compile/cubin.h"
#include "executor/gpu/record/fat_binary.h"
#include <stdlib.h>
#include <string.h>

#define MOST ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const struct bytes image = {.data = (unsigned char *)(uintptr_t)data, .len = len};
    struct bytes cubin = {.len = 0}, again = {.len = 0};
    struct err err = ERR_INIT;

    if (fat_binary_cubin(&image, 90, MOST, &cubin, &err) != 0) {
        return cubin.data ? abort(), 0 : 0;
    }
    if (!is_fat_binary(&image) || cubin.len > MOST ||
        fat_binary_cubin(&image, 90, cubin.len, &again, &err) != 0 || again.len != cubin.len ||
        (cubin.len > 0 && memcmp(again.data, cubin.data, cubin.len) != 0)) {
        abort();
    }
    (void)!cubin_check(&cubin, &err);
    bytes_clear(&cubin);
    bytes_clear(&again);
    return 0;
}
