#include "daemon/run/environment.h"
#include "common/mem.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VARIABLE_MAX 64

static bool passes_on(const char *variable)
{
    static const char *const name[] = {
        "PATH=",         "TMPDIR=",       "KCAST_",         "LD_LIBRARY_PATH=", "CUDA_",
        "ASAN_OPTIONS=", "LSAN_OPTIONS=", "UBSAN_OPTIONS=", "TSAN_OPTIONS="};

    for (size_t i = 0; i < ARRAY_LEN(name); i++) {
        if (strncmp(variable, name[i], strlen(name[i])) == 0) {
            return true;
        }
    }
    return false;
}

char **environment_create(const char *scratch)
{
    char **environment = xcalloc(VARIABLE_MAX + 1, sizeof(*environment));
    size_t count = 0;

    for (char **variable = environ; variable && *variable && count < VARIABLE_MAX - 2; variable++) {
        bool replaced = scratch && strncmp(*variable, "TMPDIR=", 7) == 0;

        if (passes_on(*variable) && !replaced) {
            environment[count++] = xstrdup(*variable);
        }
    }
    if (scratch) {
        environment[count++] = xasprintf("TMPDIR=%s", scratch);
    }
    environment[count] = xstrdup("LC_ALL=C");
    return environment;
}

void environment_free(char **environment)
{
    for (char **variable = environment; variable && *variable; variable++) {
        free(*variable);
    }
    free(environment);
}
