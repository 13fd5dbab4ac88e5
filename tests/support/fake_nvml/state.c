#include "tests/support/fake_nvml/state.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct nvml_device fake_devices[GPU_MAX];
bool fake_initialised;

static bool read_line(const char *key, char value[static 256])
{
    const char *path = getenv("KCAST_FAKE_NVML");
    FILE *file = path ? fopen(path, "re") : NULL;
    size_t length = strlen(key);
    char line[512];
    bool found = false;

    while (file && fgets(line, sizeof(line), file)) {
        if (strncmp(line, key, length) == 0 && line[length] == '=') {
            snprintf(value, 256, "%.*s", (int)strcspn(line + length + 1, "\r\n"),
                     line + length + 1);
            found = true;
        }
    }
    if (file) {
        fclose(file);
    }
    return found;
}

unsigned long long fake_number(const char *key, unsigned long long otherwise)
{
    char value[256];

    return read_line(key, value) ? strtoull(value, NULL, 0) : otherwise;
}

bool fake_text(const struct nvml_device *device, const char *name, char value[static 256])
{
    char key[64];

    snprintf(key, sizeof(key), "GPU%u.%s", device->index, name);
    return read_line(key, value);
}

unsigned fake_count(void)
{
    unsigned long long count = fake_number("count", 1);

    return count > GPU_MAX ? GPU_MAX : (unsigned)count;
}

// Whether a list such as "31,79" contains the word.
static bool has_word(const char *list, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = list; *at != '\0'; at += strcspn(at, ",") + (!!strchr(at, ','))) {
        if (strncmp(at, word, length) == 0 && (at[length] == ',' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

int fake_begin(void)
{
    unsigned long long delay = fake_number("delay_ms", 0);
    struct timespec pause = {(time_t)(delay / 1000), (long)(delay % 1000) * 1000000};

    while (delay > 0 && nanosleep(&pause, &pause) != 0 && errno == EINTR) {
    }
    if (fake_number("gone", 0) != 0) {
        fake_initialised = false;
    }
    return fake_initialised ? NVML_OK : NVML_UNINITIALIZED;
}

// Begins a call about a GPU. reading may be NULL.
int fake_device(const struct nvml_device *device, const char *reading)
{
    int result = fake_begin();

    if (result != NVML_OK) {
        return result;
    }
    if (device < fake_devices || device >= fake_devices + GPU_MAX ||
        device->index >= fake_count()) {
        return NVML_INVALID_ARGUMENT;
    }
    char value[256];
    if (fake_text(device, "lost", value) && strcmp(value, "0") != 0) {
        return NVML_LOST;
    }
    if (reading && fake_text(device, "without", value) && has_word(value, reading)) {
        return NVML_NOT_SUPPORTED;
    }
    return NVML_OK;
}

int fake_give(const struct nvml_device *device, const char *reading, unsigned long long otherwise,
              unsigned long long *ret)
{
    char value[256];
    int result = fake_device(device, reading);

    if (result == NVML_OK) {
        *ret = fake_text(device, reading, value) ? strtoull(value, NULL, 0) : otherwise;
    }
    return result;
}

int fake_give_unsigned(const struct nvml_device *device, const char *reading, unsigned otherwise,
                       unsigned *ret)
{
    unsigned long long value;
    int result = fake_give(device, reading, otherwise, &value);

    if (result == NVML_OK) {
        *ret = (unsigned)value;
    }
    return result;
}

int fake_give_text(const char *text, char *ret, unsigned size)
{
    if (strlen(text) >= size) {
        return NVML_INSUFFICIENT_SIZE;
    }
    memcpy(ret, text, strlen(text) + 1);
    return NVML_OK;
}
