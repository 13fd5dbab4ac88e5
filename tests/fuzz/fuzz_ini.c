// Any bytes as a configuration file, also one with sections of endpoints, and as numbers,
// durations, sizes and URLs of a command line.
#include "common/file.h"
#include "common/options.h"
#include "common/parse.h"
#include "net/url.h"
#include "worker/endpoint/endpoint_section.h"

#include <stdio.h>
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

// ---- sections of endpoints ----

struct own {
    char *name;
};

static const struct option_row own_table[] = {
    {"name", 0, OPTION_TEXT, offsetof(struct own, name), "TEXT", NULL, 0, 0, NULL, "a name"},
    {.name = NULL},
};

static void check(const struct endpoint_section *section)
{
    struct endpoint_config config;

    if (endpoint_section_read(&config, section, NULL) != 0) {
        return;
    }
    if (!config.url || !config.model || config.form >= API_FORM_COUNT || config.key ||
        !(config.weight > 0) || !(config.in_flight >= 1) ||
        (config.extra && json_object_get(config.extra, "stream"))) {
        abort();
    }
    free((char *)(uintptr_t)config.url);
    json_decref((json_t *)(uintptr_t)config.extra);
}

// What is taken of sections of endpoints has a url, a model and a form, and no two have one name.
static void read_sections(const uint8_t *data, size_t len)
{
    struct endpoint_sections sections = {.count = 0};
    const struct options_group group = {.prefix = "endpoint",
                                        .table = endpoint_section_table,
                                        .open = endpoint_sections_open,
                                        .owner = &sections};
    struct own own = {.name = NULL};
    struct err err = ERR_INIT;
    char path[32];
    int fd = memfd_create("ini", MFD_CLOEXEC);

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (file_write_fd(fd, data, len, path, &err) == 0 &&
        options_read_ini_groups(own_table, &own, path, "worker", &group, &err) == 0) {
        for (size_t i = 0; i < sections.count; i++) {
            check(&sections.section[i]);
            for (size_t k = 0; k < i; k++) {
                if (strcmp(sections.section[i].name, sections.section[k].name) == 0) {
                    abort();
                }
            }
        }
    }
    endpoint_sections_release(&sections);
    options_release(own_table, &own);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    char *text = xstrndup((const char *)data, len);
    read_file(data, len);
    read_sections(data, len);
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
