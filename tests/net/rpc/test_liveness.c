// Watching a connection: the kernel is asked to probe the other host, and watching ends without a
// word. That a host is found out is shown where one can be cut off.
#include "net/rpc/liveness.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

struct pair {
    uv_loop_t loop;
    int ours, theirs;
    int deaths;
};

static void on_dead(void *owner)
{
    ((struct pair *)owner)->deaths++;
}

static void open_pair(struct pair *pair)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof(address);

    *pair = (struct pair){.deaths = 0};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &len), 0);
    pair->ours = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(pair->ours, (struct sockaddr *)&address, len), 0);
    pair->theirs = accept(listener, NULL, NULL);
    assert_true(pair->theirs >= 0);
    close(listener);
    assert_int_equal(uv_loop_init(&pair->loop), 0);
}

static void close_pair(struct pair *pair)
{
    assert_int_equal(uv_run(&pair->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&pair->loop), 0); // nothing is left of the watching
    assert_int_equal(pair->deaths, 0);
    close(pair->ours);
    close(pair->theirs);
}

static int option(int fd, int level, int name)
{
    int value = -1;
    socklen_t len = sizeof(value);

    assert_int_equal(getsockopt(fd, level, name, &value, &len), 0);
    return value;
}

static void an_idle_host_is_probed_within_ten_seconds(void **state)
{
    (void)state;
    struct pair pair;
    open_pair(&pair);
    assert_int_equal(option(pair.ours, SOL_SOCKET, SO_KEEPALIVE), 0);
    struct liveness *liveness = liveness_watch(&pair.loop, pair.ours, NULL, on_dead, &pair);
    assert_int_equal(option(pair.ours, SOL_SOCKET, SO_KEEPALIVE), 1);
    int idle = option(pair.ours, IPPROTO_TCP, TCP_KEEPIDLE);
    int between = option(pair.ours, IPPROTO_TCP, TCP_KEEPINTVL);
    int probes = option(pair.ours, IPPROTO_TCP, TCP_KEEPCNT);
    assert_true(idle >= 1 && between >= 1 && probes >= 3); // some may get lost
    assert_in_range(idle + between * probes, 5, 10);
    // A program that does not read keeps its connection: there is no limit on unread data.
    assert_int_equal(option(pair.ours, IPPROTO_TCP, TCP_USER_TIMEOUT), 0);
    // The other side's socket is the other side's business.
    assert_int_equal(option(pair.theirs, SOL_SOCKET, SO_KEEPALIVE), 0);
    liveness_end(liveness);
    close_pair(&pair);
}

static void what_is_watched_no_more_says_nothing(void **state)
{
    (void)state;
    struct pair pair;
    open_pair(&pair);
    struct liveness *liveness[3];
    for (size_t i = 0; i < 3; i++) {
        liveness[i] = liveness_watch(&pair.loop, pair.ours, NULL, on_dead, &pair);
    }
    assert_int_equal(shutdown(pair.theirs, SHUT_RDWR), 0);
    for (size_t i = 0; i < 3; i++) {
        liveness_end(liveness[i]);
    }
    liveness_end(NULL);
    close_pair(&pair);
}

// What is no connection cannot be probed, and is not taken for a silent host either.
static void a_descriptor_that_is_no_connection_is_harmless(void **state)
{
    (void)state;
    struct pair pair;
    open_pair(&pair);
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    struct liveness *liveness = liveness_watch(&pair.loop, pipes[0], NULL, on_dead, &pair);
    assert_non_null(liveness);
    liveness_end(liveness);
    close(pipes[0]);
    close(pipes[1]);
    close_pair(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_idle_host_is_probed_within_ten_seconds),
        cmocka_unit_test(what_is_watched_no_more_says_nothing),
        cmocka_unit_test(a_descriptor_that_is_no_connection_is_harmless),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
