// Any bytes as a file of KTT. They are refused with one sentence, or give a space that can
// be written and printed.
#include "tests/fuzz/imported_space.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static const struct space_import how[] = {
        {NULL, NULL, NULL}, {"p", "d", NULL}, {"add", "d", "BLOCK=16,KIND=float"}};
    for (size_t i = 0; i < ARRAY_LEN(how); i++) {
        struct err err = ERR_INIT;
        struct space space;
        if (space_import_ktt(&space, data, len, "f.json", &how[i], &err) != 0) {
            require(strncmp(err.text, "f.json", 6) == 0);
            continue;
        }
        look_at(&space);
        space_release(&space);
    }
    return 0;
}
