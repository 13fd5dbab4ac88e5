// Requests to one daemon after the other: which failure becomes the command's.
#include "client/cmd/daemon_call.h"
#include "tests/client/cmd/printed.h"
#include <stdlib.h>
#include <uv.h>

static void a_daemon_that_is_not_connected_fails_with_the_reason_of_then(void **state)
{
    (void)state;
    struct daemon_link link = {.url = (char *)(uintptr_t) "tcp://a:1"};
    (void)err_set(&link.why, ERR_DENIED, "tcp://a:1: 100%% of tokens are wrong");
    struct status_request request = {0};
    struct status status = {.compile_slots = 7};
    struct err err = ERR_INIT;
    int rc = daemon_call(&link, OP_STATUS, &status_request_message, &request, &status_message,
                         &status, 1000, &err);
    assert_int_equal(rc, ERR_DENIED);
    assert_int_equal(err.code, ERR_DENIED);
    assert_string_equal(err.text, "tcp://a:1: 100% of tokens are wrong");
    assert_int_equal(status.compile_slots, 7);
}

// The port is one that the kernel has given to a socket which does not listen.
static void a_daemon_that_has_gone_fails_within_its_time(void **state)
{
    (void)state;
    uv_loop_t loop;
    uv_tcp_t bound;
    struct sockaddr_in any;
    struct sockaddr_storage at;
    int len = sizeof(at);
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(uv_tcp_init(&loop, &bound), 0);
    assert_int_equal(uv_ip4_addr("127.0.0.1", 0, &any), 0);
    assert_int_equal(uv_tcp_bind(&bound, (const struct sockaddr *)&any, 0), 0);
    assert_int_equal(uv_tcp_getsockname(&bound, (struct sockaddr *)&at, &len), 0);
    char *url = xasprintf("tcp://127.0.0.1:%u", ntohs(((const struct sockaddr_in *)&at)->sin_port));
    struct daemon_link link = {.url = url};
    assert_int_equal(remote_create(&link.remote, &loop, url, NULL), 0);
    struct status_request request = {0};
    struct status status;
    struct err err = ERR_INIT;
    int rc = daemon_call(&link, OP_STATUS, &status_request_message, &request, &status_message,
                         &status, 1, &err);
    assert_true(rc == ERR_TIMED_OUT || rc == ERR_UNREACHABLE);
    assert_int_equal(err.code, rc);
    printed_has(err.text, url);
    remote_close(link.remote);
    uv_close((uv_handle_t *)&bound, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    free(url);
}

static void the_first_failure_is_the_commands_and_others_are_said(void **state)
{
    (void)state;
    struct err first = ERR_INIT, second = ERR_INIT, err = ERR_INIT;
    (void)err_set(&first, ERR_UNREACHABLE, "tcp://a:1: %s", "%n refused");
    (void)err_set(&second, ERR_DENIED, "tcp://b:2: denied");
    int rc = 0;
    struct printed printed = printed_begin(stderr);
    daemon_call_failed(&rc, &first, &err);
    char *text = printed_end(&printed);
    assert_string_equal(text, ""); // main says it in the end
    free(text);
    assert_int_equal(rc, ERR_UNREACHABLE);
    assert_string_equal(err.text, "tcp://a:1: %n refused");
    printed = printed_begin(stderr);
    daemon_call_failed(&rc, &second, &err);
    text = printed_end(&printed);
    assert_string_equal(text, "kcast: tcp://b:2: denied\n");
    free(text);
    assert_int_equal(rc, ERR_UNREACHABLE);
    assert_int_equal(err.code, ERR_UNREACHABLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_daemon_that_is_not_connected_fails_with_the_reason_of_then),
        cmocka_unit_test(a_daemon_that_has_gone_fails_within_its_time),
        cmocka_unit_test(the_first_failure_is_the_commands_and_others_are_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
