#include "common/parse.h"
#include "tests/support/fake_gpu/fake.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fake_uuid(unsigned ordinal, unsigned char ret[16])
{
    static const unsigned char base[16] = {0xfa, 0x4e, 0, 0, 0, 0, 0x40, 0, 0x80, 0};

    memcpy(ret, base, sizeof(base));
    ret[15] = (unsigned char)ordinal;
}

void fake_uuid_text(unsigned ordinal, char ret[static 41])
{
    unsigned char u[16];

    fake_uuid(ordinal, u);
    snprintf(ret, 41, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13],
             u[14], u[15]);
}

int fake_visible(const struct fake_settings *settings)
{
    static bool known;
    static char only[41];
    if (!known) {
        const char *named = getenv("CUDA_VISIBLE_DEVICES");
        snprintf(only, sizeof(only), "%s", named && strncmp(named, "GPU-", 4) == 0 ? named : "");
        known = true;
    }
    for (unsigned i = 0; only[0] && i < settings->count; i++) {
        char uuid[41];
        fake_uuid_text(i, uuid);
        if (strcmp(uuid, only) == 0) {
            return (int)i;
        }
    }
    return only[0] ? (int)settings->count : -1;
}

static bool number(uint64_t *ret, const char *text)
{
    return parse_u64(ret, text, 0, UINT64_MAX, "setting", NULL) == 0;
}

static bool small(unsigned *ret, const char *text, uint64_t max)
{
    uint64_t value;

    if (parse_u64(&value, text, 0, max, "setting", NULL) != 0) {
        return false;
    }
    *ret = (unsigned)value;
    return true;
}

// "sick", "oom:3", "slow:100:25"
static bool read_fault(struct fake_settings *s, char *text)
{
    static const struct {
        const char *word;
        int numbers;
    } known[] = {{"no-device", 0}, {"init", 0}, {"context", 0}, {"sick", 0}, {"oom", 1},
                 {"full", 1},      {"slow", 2}, {"dies", 1},    {"stall", 0}};
    char *first = strchr(text, ':'), *second = NULL;

    if (text[0] == '@') {
        return snprintf(s->fault_file, sizeof(s->fault_file), "%s", text + 1) <
               (int)sizeof(s->fault_file);
    }
    if (first) {
        *first++ = '\0';
        second = strchr(first, ':');
    }
    if (second) {
        *second++ = '\0';
    }
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(text, known[i].word) != 0) {
            continue;
        }
        snprintf(s->fault, sizeof(s->fault), "%s", text);
        return (known[i].numbers >= 1) == (!!first) && (known[i].numbers >= 2) == (!!second) &&
               (!first || number(&s->fault_at, first)) &&
               (!second || parse_f64(&s->fault_percent, second, 0, 1e6, "setting", NULL) == 0);
    }
    return false;
}

bool fake_fault(struct fake_settings *settings, const char *word)
{
    char text[64] = "";
    FILE *file;

    if (settings->fault_file[0] != '\0') {
        settings->fault[0] = '\0';
        file = fopen(settings->fault_file, "re");
        if (file) {
            if (!fgets(text, sizeof(text), file) || !read_fault(settings, text)) {
                settings->fault[0] = '\0';
            }
            fclose(file);
        }
    }
    return strcmp(settings->fault, word) == 0;
}

static bool read_one(struct fake_settings *s, const char *key, char *value)
{
    if (strcmp(key, "count") == 0) {
        return small(&s->count, value, FAKE_GPU_MAX);
    } else if (strcmp(key, "name") == 0) {
        return snprintf(s->name, sizeof(s->name), "%s", value) < (int)sizeof(s->name);
    } else if (strcmp(key, "arch") == 0) {
        return small(&s->arch, value, 255);
    } else if (strcmp(key, "block") == 0) {
        return small(&s->block, value, 1024);
    } else if (strcmp(key, "pageable") == 0) {
        return small(&s->pageable, value, 1);
    } else if (strcmp(key, "memory") == 0) {
        return parse_size(&s->memory_bytes, value, "setting", NULL) == 0;
    } else if (strcmp(key, "l2") == 0) {
        return parse_size(&s->l2_bytes, value, "setting", NULL) == 0;
    } else if (strcmp(key, "seed") == 0) {
        return number(&s->seed, value);
    } else if (strcmp(key, "noise") == 0) {
        bool ok = parse_f64(&s->noise, value, 0, 50, "setting", NULL) == 0;
        s->noise /= 100;
        return ok;
    }
    return strcmp(key, "fault") == 0 && read_fault(s, value);
}

bool fake_settings_read(struct fake_settings *settings, const char *text)
{
    struct fake_settings s = {.count = 1,
                              .arch = 90,
                              .name = "NVIDIA H200",
                              .memory_bytes = 512ULL << 20,
                              .l2_bytes = 1 << 20,
                              .seed = 1,
                              .noise = 0.005};
    char buf[512], *next = buf, *one;

    if (snprintf(buf, sizeof(buf), "%s", text ? text : "") >= (int)sizeof(buf)) {
        return false;
    }
    while ((one = strsep(&next, ";"))) {
        char *value = strchr(one, '=');

        if (*one == '\0') {
            continue;
        }
        if (!value) {
            return false;
        }
        *value++ = '\0';
        if (!read_one(&s, one, value)) {
            return false;
        }
    }
    *settings = s;
    return true;
}
