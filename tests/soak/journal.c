// Writes and reads journals; journal.h has the format.
#include "tests/soak/journal.h"
#include "common/file.h"
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define JOURNAL_MAX ((size_t)256 << 20)

char *journal_path(const char *dir, unsigned client)
{
    return xasprintf("%s/client-%u", dir, client);
}

int journal_open(const char *dir, unsigned client)
{
    char *path = journal_path(dir, client);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    if (fd < 0) {
        perror(path);
        abort();
    }
    free(path);
    return fd;
}

void journal_add(int fd, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    char line[1024];
    int len = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (len >= (int)sizeof(line)) {
        len = (int)sizeof(line) - 1;
        line[len - 1] = '\n';
    }
    if (write(fd, line, (size_t)len) != len) {
        perror("journal");
        abort();
    }
}

void journal_read(const char *dir, unsigned client,
                  void (*visit)(void *owner, const struct journal_line *line), void *owner)
{
    char *path = journal_path(dir, client);
    struct bytes text = {0};
    char *save = NULL;

    if (file_read(&text, path, JOURNAL_MAX, NULL) == 0) {
        for (char *at = strtok_r((char *)text.data, "\n", &save); at;
             at = strtok_r(NULL, "\n", &save)) {
            struct journal_line line = {.what = at[0]};
            char *end;

            line.index = (unsigned)strtoul(at + 1, &end, 10);
            line.text = end;
            line.first = strtoull(end, &end, 10);
            line.second = strtoull(end, NULL, 16);
            visit(owner, &line);
        }
    }
    bytes_clear(&text);
    free(path);
}
