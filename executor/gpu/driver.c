#include "executor/gpu/driver.h"
#include "common/library.h"
#include "common/mem.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRED true
#define OPTIONAL false
#define OLDEST_VERSION "525" // the driver of CUDA 12.0

int driver_load(struct driver *driver, struct err *err)
{
    static const char *const names[] = {"libcuda.so.1", NULL};
    struct driver loaded = {.library = NULL};
    const struct library_symbol symbols[] = {
#define X(need, field, symbol, parameters) {symbol, &loaded.field, need},
        DRIVER_FUNCTIONS(X)
#undef X
    };
    struct err why = ERR_INIT;
    int rc = library_open(&loaded.library, names, symbols, ARRAY_LEN(symbols), &why);

    if (rc != 0) {
        return err_set(err, why.code, "%s; install the NVIDIA driver, version %s or later",
                       why.text, OLDEST_VERSION);
    }
    (void)setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    *driver = loaded;
    return 0;
}

const char *driver_error(const struct driver *driver, cu_result result, char buf[static 256])
{
    const char *name = NULL, *text = NULL;

    if (driver->error_name(result, &name) != CU_OK || !name) {
        snprintf(buf, 256, "CUDA error %d", result);
    } else if (driver->error_string(result, &text) != CU_OK || !text) {
        snprintf(buf, 256, "%s", name);
    } else {
        snprintf(buf, 256, "%s (%s)", name, text);
    }
    return buf;
}

int driver_check(const struct driver *driver, cu_result result, const char *what, struct err *err)
{
    if (result == CU_OK) {
        return 0;
    }
    char buf[256];
    return err_set(err, ERR_SYSTEM, "%s: %s", what, driver_error(driver, result, buf));
}
