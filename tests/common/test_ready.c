#include "common/ready.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

// Binds a datagram socket to `name` and puts the name into NOTIFY_SOCKET. A name that begins with
// '@' is abstract.
static int listen_at(const char *name)
{
    size_t len = strlen(name);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    assert_true(fd >= 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    assert_true(len < sizeof(address.sun_path));
    memcpy(address.sun_path, name, len);
    if (name[0] == '@') {
        address.sun_path[0] = '\0';
    }
    assert_int_equal(bind(fd, (struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)),
                     0);
    setenv("NOTIFY_SOCKET", name, 1);
    return fd;
}

static void message_arrives_at_a_path(void **state)
{
    (void)state;
    char dir[] = "/tmp/kcast-test-ready.XXXXXX";
    assert_non_null(mkdtemp(dir));
    char path[64];
    assert_true(snprintf(path, sizeof(path), "%s/notify", dir) < (int)sizeof(path));
    int fd = listen_at(path);
    ready_notify("READY=1\nSTATUS=listening on %s", "tcp://127.0.0.1:7410");
    char text[256] = "";
    assert_int_equal(recv(fd, text, sizeof(text) - 1, 0), 48);
    assert_string_equal(text, "READY=1\nSTATUS=listening on tcp://127.0.0.1:7410");
    close(fd);
    unlink(path);
    rmdir(dir);
    ready_notify("STOPPING=1"); // nobody listens: no error and no output
}

static void message_arrives_in_the_abstract_name_space(void **state)
{
    (void)state;
    char name[64];
    (void)snprintf(name, sizeof(name), "@kcast-test-ready-%d", (int)getpid());
    int fd = listen_at(name);
    ready_notify("WATCHDOG=1");
    char text[64] = "";
    assert_int_equal(recv(fd, text, sizeof(text) - 1, 0), 10);
    assert_string_equal(text, "WATCHDOG=1");
    close(fd);
}

static void long_message_is_cut(void **state)
{
    (void)state;
    char name[64];
    (void)snprintf(name, sizeof(name), "@kcast-test-ready-%d", (int)getpid());
    int fd = listen_at(name);
    ready_notify("STATUS=%5000s", "x");
    char text[8192];
    ssize_t len = recv(fd, text, sizeof(text), 0);
    assert_in_range(len, 1000, 4096);
    assert_memory_equal(text, "STATUS=  ", 9);
    close(fd);
}

static void nothing_is_sent_without_a_usable_address(void **state)
{
    (void)state;
    char name[300];
    (void)snprintf(name, sizeof(name), "@kcast-test-ready-%d", (int)getpid());
    int fd = listen_at(name);
    unsetenv("NOTIFY_SOCKET");
    ready_notify("READY=1");
    setenv("NOTIFY_SOCKET", "", 1);
    ready_notify("READY=1");
    setenv("NOTIFY_SOCKET", "relative", 1);
    ready_notify("READY=1");
    memset(name, 'a', sizeof(name) - 1);
    name[0] = '/';
    name[sizeof(name) - 1] = '\0';
    setenv("NOTIFY_SOCKET", name, 1);
    ready_notify("READY=1");
    assert_int_equal(recv(fd, name, sizeof(name), 0), -1);
    assert_int_equal(errno, EAGAIN);
    close(fd);
    unsetenv("NOTIFY_SOCKET");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(message_arrives_at_a_path),
        cmocka_unit_test(message_arrives_in_the_abstract_name_space),
        cmocka_unit_test(long_message_is_cut),
        cmocka_unit_test(nothing_is_sent_without_a_usable_address),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
