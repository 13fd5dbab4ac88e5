#include "tests/support/exec_stub.h"
#include "common/digest.h"
#include "common/file.h"
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INPUT_MAX ((size_t)256 << 20)

struct exec_stub exec_stub;

void exec_die(const char *text)
{
    fprintf(stderr, "fake-exec: %s\n", text);
    _exit(9);
}

// The argument of "//! word" in text, malloc'd; NULL when the word is not there.
char *exec_word(const char *text, const char *name)
{
    char *mark = xasprintf("//! %s", name);
    const char *at = text;
    char *found = NULL;

    while (!found && (at = strstr(at, mark))) {
        at += strlen(mark);
        if (*at == ' ' || *at == '\n' || *at == '\0') {
            at += strspn(at, " ");
            found = xstrndup(at, strcspn(at, "\n"));
        }
    }
    free(mark);
    return found;
}

bool exec_has(const char *text, const char *name)
{
    char *argument = exec_word(text, name);
    bool is_there = argument;

    free(argument);
    return is_there;
}

void exec_note(const char *what, const char *text)
{
    const char *path = getenv("KCAST_FAKE_LOG");
    struct digest digest = digest_of(text, strlen(text));
    char hex[DIGEST_HEX_LEN + 1];
    char line[128];
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;

    if (fd >= 0) {
        digest_hex(&digest, hex);
        (void)snprintf(line, sizeof(line), "%s%s %.16s\n", exec_stub.framed ? "cuda-" : "", what,
                       hex);
        if (write(fd, line, strlen(line)) < 0) {
            exec_die("log");
        }
        close(fd);
    }
}

static void pass_gate(const char *path)
{
    char *go = xasprintf("%s.go", path);
    char pid[32];
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    (void)snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
    if (fd < 0 || write(fd, pid, strlen(pid)) < 0) {
        exec_die("gate");
    }
    close(fd);
    fd = open(go, O_RDONLY | O_CLOEXEC);
    close(fd);
    free(go);
}

void exec_gate(const char *text, const char *name)
{
    char *path = exec_word(text, name);

    if (path) {
        pass_gate(path);
        free(path);
    }
}

void exec_sleep_forever(void)
{
    for (;;) {
        (void)pause();
    }
}

void exec_put_head(size_t len)
{
    unsigned char head[4] = {(unsigned char)len, (unsigned char)(len >> 8),
                             (unsigned char)(len >> 16), (unsigned char)(len >> 24)};
    struct err err = ERR_INIT;

    if (file_write_fd(STDOUT_FILENO, head, sizeof(head), "stdout", &err) != 0) {
        exec_die(err.text);
    }
}

void exec_put(const struct message *message, const void *value)
{
    struct strbuf packed = STRBUF_INIT;
    struct err err = ERR_INIT;

    if (message_pack(message, value, &packed, &err) != 0) {
        exec_die(err.text);
    }
    if (exec_stub.framed) {
        exec_put_head(packed.len);
    }
    if (file_write_fd(STDOUT_FILENO, packed.data, packed.len, "stdout", &err) != 0) {
        exec_die(err.text);
    }
    strbuf_release(&packed);
}

// False at the end of stdin before the first byte.
static bool get_all(void *data, size_t len)
{
    size_t have = 0;

    while (have < len) {
        ssize_t n = read(STDIN_FILENO, (char *)data + have, len - have);

        if (n <= 0 && have == 0) {
            return false;
        }
        if (n <= 0) {
            exec_die("stdin ended within a frame");
        }
        have += (size_t)n;
    }
    return true;
}

static struct bytes get_frame(void)
{
    unsigned char head[4];

    if (!get_all(head, sizeof(head))) {
        _exit(0);
    }
    struct bytes plan = {0};
    plan.len =
        (size_t)head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
    plan.data = xmalloc(plan.len + 1);
    if (plan.len > 0 && !get_all(plan.data, plan.len)) {
        exec_die("stdin ended within a frame");
    }
    return plan;
}

struct bytes exec_plan(void)
{
    if (exec_stub.framed) {
        return get_frame();
    }
    struct bytes plan = {0};
    struct err err = ERR_INIT;
    if (file_read_fd(&plan, STDIN_FILENO, INPUT_MAX, "stdin", &err) != 0) {
        exec_die(err.text);
    }
    return plan;
}

double exec_hill(const char *text)
{
    double ret = 1, value;
    int length = 0;

    for (int i = 0; sscanf(text, " #define %*s %lf%n", &value, &length) == 1; i++) {
        double away = log2(fmax(value, 0) + 1) - (1 + i % 3);

        ret -= 0.01 * away * away;
        text += length;
    }
    return ret;
}
