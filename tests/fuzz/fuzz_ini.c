// Any bytes as a configuration file, and as numbers, durations, sizes and URLs of a command line.
#include "common/file.h"
#include "common/options.h"
#include "common/parse.h"
#include "net/url.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct target {
    char *text, *choice;
    uint64_t count, time, size;
    double share;
    bool flag;
};

static const struct option_row table[] = {
    {"text", 't', OPTION_TEXT, offsetof(struct target, text), "TEXT", "x", 0, 0, NULL, "a text"},
    {"choice", 0, OPTION_CHOICE, offsetof(struct target, choice), "A", "on", 0, 0, "on|off",
     "a choice"},
    {"count", 0, OPTION_U64, offsetof(struct target, count), "N", "3", 1, 9, NULL, "a count"},
    {"time", 0, OPTION_DURATION, offsetof(struct target, time), "TIME", "3s", 0, 0, NULL, "a time"},
    {"size", 0, OPTION_SIZE, offsetof(struct target, size), "SIZE", "3M", 0, 0, NULL, "a size"},
    {"share", 0, OPTION_F64, offsetof(struct target, share), "SHARE", "0.5", 0, 1, NULL, "a share"},
    {"flag", 0, OPTION_FLAG, offsetof(struct target, flag), NULL, NULL, 0, 0, NULL, "a flag"},
    {0},
};

static void read_file(const uint8_t *data, size_t len)
{
    char path[32];
    int fd = memfd_create("ini", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    struct err err = ERR_INIT;
    struct target target = {0};
    if (file_write_fd(fd, data, len, path, &err) == 0 &&
        options_defaults(table, &target, &err) == 0 &&
        options_read_ini(table, &target, path, "kcastd", &err) == 0 &&
        (target.count < 1 || target.count > 9 || !(target.share >= 0 && target.share <= 1))) {
        abort();
    }
    options_release(table, &target);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char *text = xstrndup((const char *)data, len);
    read_file(data, len);
    struct err err = ERR_INIT;
    struct url url;
    if (url_parse(&url, text, &err) == 0 && strlen(url.host) == 0) {
        abort();
    }
    uint64_t number;
    if (parse_duration(&number, text, "x", &err) == 0 ||
        parse_size(&number, text, "x", &err) == 0 ||
        parse_u64(&number, text, 0, 100, "x", &err) == 0) {
        number = 0;
    }
    double real;
    if (parse_f64(&real, text, -1, 1, "x", &err) == 0 && !(real >= -1 && real <= 1)) {
        abort();
    }
    free(text);
    return 0;
}
