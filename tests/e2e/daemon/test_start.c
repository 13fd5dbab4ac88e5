// How kcastd starts and ends: options, what it refuses with which exit code, signals.
#include "common/file.h"
#include "proto/verdict.h"
#include "tests/support/daemon_client.h"
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

// It must end with this code, and the one sentence that is its last line must contain text.
static void expect_refusal(struct daemon_client *client, int code, const char *text)
{
    assert_false(daemon_client_start(client));
    assert_int_equal(program_wait(&client->program), code);
    char *log = program_log(&client->program);
    char *sentence = strstr(log, "kcastd: ");
    if (!sentence || !strstr(sentence, text)) {
        fail_msg("%s", log);
    }
    assert_ptr_equal(strchr(sentence, '\n'), sentence + strlen(sentence) - 1);
    free(log);
}

static void a_wrong_option_is_a_wrong_command_line(void **state)
{
    struct daemon_client *client = *state;

    client->option[0] = "--no-such-option";
    expect_refusal(client, EXIT_USAGE, "no-such-option");
    client->option[0] = "argument";
    expect_refusal(client, EXIT_USAGE, "argument");
    client->option[0] = "--queue-max=0";
    expect_refusal(client, EXIT_USAGE, "queue-max");
    client->option[0] = "--devices=tpu";
    expect_refusal(client, EXIT_USAGE, "--devices tpu");
    client->option[0] = "--devices=cpu:0";
    expect_refusal(client, EXIT_USAGE, "cpu:N");
}

static void more_devices_than_processors_are_refused(void **state)
{
    struct daemon_client *client = *state;
    char *devices = xasprintf("--devices=cpu:%ld", sysconf(_SC_NPROCESSORS_ONLN) + 1);

    client->option[0] = devices;
    expect_refusal(client, EXIT_INVALID, "processors");
    free(devices);
}

static void a_bad_url_is_refused(void **state)
{
    struct daemon_client *client = *state;

    client->option[0] = "--listen=udp://x";
    assert_false(daemon_client_start(client));
    assert_int_not_equal(program_wait(&client->program), 0);
}

static void an_open_listener_is_refused(void **state)
{
    struct daemon_client *client = *state;

    client->option[0] = "--listen=tcp://0.0.0.0:0";
    expect_refusal(client, EXIT_DENIED, "loopback");
}

static void a_port_that_is_taken_is_refused(void **state)
{
    struct daemon_client *client = *state;

    assert_true(daemon_client_start(client));
    struct daemon_client other;
    daemon_client_init(&other);
    char *listen = xasprintf("--listen=%s", client->program.url);
    other.option[0] = listen;
    expect_refusal(&other, EXIT_BUSY, client->program.url);
    daemon_client_release(&other);
    free(listen);
}

static void without_a_sandbox_it_does_not_serve_unless_told_to(void **state)
{
    struct daemon_client *client = *state;

    client->variable[0] = "KCAST_FAKE_PROBE=no-sandbox";
    expect_refusal(client, EXIT_SANDBOX, "user namespaces are not allowed");
    client->option[0] = "--sandbox=off";
    assert_true(daemon_client_start(client));
    struct job_info info;
    daemon_client_wait(client, daemon_client_accepted(client, "k", "int x;\n"), &info);
    assert_string_equal(info.result->sandbox, "off");
    message_clear(&job_info_message, &info);
}

static void results_without_a_sandbox_do_not_answer_with_one(void **state)
{
    struct daemon_client *client = *state;

    client->option[0] = "--sandbox=off";
    assert_true(daemon_client_start(client));
    daemon_client_expect(client, daemon_client_accepted(client, "k", "int x;\n"), JOB_DONE, 0);
    daemon_client_disconnect(client);
    assert_int_equal(program_stop(&client->program), 0);
    client->option[0] = NULL;
    assert_true(daemon_client_start(client));
    daemon_client_expect(client, daemon_client_accepted(client, "l", "int x;\n"), JOB_DONE, 0);
    assert_int_equal(daemon_client_runs(client, "measure", "int x;\n"), 2);
    assert_int_equal(daemon_client_runs(client, "compile", "int x;\n"), 2);
}

static void a_probe_that_fails_is_told(void **state)
{
    struct daemon_client *client = *state;

    client->variable[0] = "KCAST_FAKE_PROBE=crash";
    expect_refusal(client, EXIT_SYSTEM, "the probe has crashed");
    client->variable[0] = "KCAST_FAKE_PROBE=garbage";
    expect_refusal(client, EXIT_PROTOCOL, "kcast-exec probe");
}

static void a_missing_executor_is_told(void **state)
{
    struct daemon_client *client = *state;

    client->option[0] = "--exec=/nowhere/kcast-exec";
    expect_refusal(client, EXIT_SYSTEM, "/nowhere/kcast-exec");
    client->option[0] = "--exec=/etc/passwd";
    expect_refusal(client, EXIT_SYSTEM, "/etc/passwd");
}

static void a_configuration_file_is_read_and_options_win(void **state)
{
    struct daemon_client *client = *state;
    char *path = xasprintf("%s/kcastd.ini", client->program.dir);
    char *option = xasprintf("--config=%s", path);
    const char text[] = "[kcastd]\nqueue-max = 1\nlisten = tcp://192.0.2.1:1\n";
    char *gate = daemon_client_gate(client, "gate");
    char *candidate = xasprintf("//! gate %s\n", gate);

    assert_int_equal(file_replace(path, text, strlen(text), false, NULL), 0);
    client->option[0] = option;
    assert_true(daemon_client_start(client)); // --listen comes from the command line
    struct job_spec spec = daemon_client_spec(client, candidate);
    struct submitted reply;
    struct err err = ERR_INIT;
    assert_int_equal(daemon_client_submit(client, "s", "a", &spec, &reply, &err), 0);
    assert_int_equal(daemon_client_submit(client, "s", "b", &spec, &reply, &err), ERR_BUSY);
    daemon_client_disconnect(client);
    assert_int_equal(program_stop(&client->program), 0);
    assert_int_equal(file_replace(path, "[kcastd]\nqueue = 1\n", 19, false, NULL), 0);
    expect_refusal(client, EXIT_INVALID, "kcastd.ini:2");
    free(candidate);
    free(gate);
    free(option);
    free(path);
}

static void help_and_version_do_nothing_else(void **state)
{
    struct daemon_client *client = *state;
    const char *option[] = {"--help", "--version"};
    const char *expected[] = {"--parent-death", "kcastd "};

    for (size_t i = 0; i < 2; i++) {
        client->option[0] = option[i];
        assert_false(daemon_client_start(client));
        assert_int_equal(program_wait(&client->program), 0);
        char *output = program_output(&client->program);
        assert_non_null(strstr(output, expected[i]));
        free(output);
    }
    assert_false(file_exists(client->state));
}

static void sigterm_and_sigint_end_it_in_good_order(void **state)
{
    struct daemon_client *client = *state;

    assert_true(daemon_client_start(client));
    daemon_client_disconnect(client);
    assert_int_equal(program_stop(&client->program), 0);
    assert_true(daemon_client_start(client));
    daemon_client_disconnect(client);
    assert_int_equal(kill(client->program.pid, SIGINT), 0);
    assert_int_equal(program_wait(&client->program), 0);
}

static void sigterm_during_the_probe_ends_it(void **state)
{
    struct daemon_client *client = *state;

    client->variable[0] = "KCAST_FAKE_PROBE=hang";
    client->no_wait = true;
    assert_true(daemon_client_start(client));
    pid_t pid[4];
    while (program_children(client->program.pid, pid, 4) == 0) {
        sched_yield();
    }
    assert_int_equal(program_stop(&client->program), 0);
}

// The executor ignores SIGTERM; its grace is long. The second signal does not wait for it.
static void a_second_signal_ends_it_at_once(void **state)
{
    struct daemon_client *client = *state;

    client->option[0] = "--exec-grace=1h";
    assert_true(daemon_client_start(client));
    uint64_t job = daemon_client_accepted(client, "k", "//! run-deaf\n");
    do {
        daemon_client_until(client, job, JOB_RUNNING);
    } while (daemon_client_runs(client, "deaf", NULL) == 0);
    pid_t pid[4];
    size_t count = program_children(client->program.pid, pid, 4);
    assert_in_range(count, 1, 4);
    daemon_client_disconnect(client);
    assert_int_equal(kill(client->program.pid, SIGTERM), 0);
    while (!client->program.stopping) {
        assert_true(program_read_note(&client->program));
    }
    assert_int_equal(program_stop(&client->program), EXIT_INTERRUPTED);
    for (size_t i = 0; i < count; i++) {
        while (program_alive(pid[i])) {
            sched_yield();
        }
    }
}

// The parent is a shell; the daemon says STOPPING when that has been killed, and goes.
static void with_parent_death_it_does_not_outlive_its_parent(void **state)
{
    struct daemon_client *client = *state;
    char *kcastd = program_path("kcastd");
    char *exec = program_support_path("fake_exec");
    const char *argv[] = {"/bin/sh",
                          "-c",
                          "\"$@\" & wait",
                          "sh",
                          kcastd,
                          "--exec",
                          exec,
                          "--state",
                          client->state,
                          "--listen",
                          "tcp://127.0.0.1:0",
                          "--parent-death",
                          NULL};

    program_start(&client->program, argv, NULL);
    assert_true(program_wait_ready(&client->program));
    pid_t pid[4];
    assert_int_equal(program_children(client->program.pid, pid, 4), 1);
    assert_int_equal(program_kill(&client->program), -9);
    while (program_alive(pid[0])) {
        sched_yield();
    }
    free(exec);
    free(kcastd);
}

int main(void)
{
#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, daemon_client_set_up, daemon_client_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_wrong_option_is_a_wrong_command_line),
        TEST(more_devices_than_processors_are_refused),
        TEST(a_bad_url_is_refused),
        TEST(an_open_listener_is_refused),
        TEST(a_port_that_is_taken_is_refused),
        TEST(without_a_sandbox_it_does_not_serve_unless_told_to),
        TEST(results_without_a_sandbox_do_not_answer_with_one),
        TEST(a_probe_that_fails_is_told),
        TEST(a_missing_executor_is_told),
        TEST(a_configuration_file_is_read_and_options_win),
        TEST(help_and_version_do_nothing_else),
        TEST(sigterm_and_sigint_end_it_in_good_order),
        TEST(sigterm_during_the_probe_ends_it),
        TEST(a_second_signal_ends_it_at_once),
        TEST(with_parent_death_it_does_not_outlive_its_parent),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
