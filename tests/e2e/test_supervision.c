// What systemd sees of kcastd: READY, STATUS, STOPPING, and the watchdog, which beats while the
// loop turns and only then; and SIGHUP, which takes over what it can and says what it cannot.
#include "common/file.h"
#include "common/heartbeat.h"
#include "proto/verdict.h"
#include "tests/support/daemon_client.h"
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

// The next datagram that has text in it; others are passed over.
static void read_until(struct daemon_client *client, const char *text)
{
    char note[4096] = "";

    while (!strstr(note, text)) {
        struct pollfd fd = {.fd = client->program.notify_fd, .events = POLLIN};

        assert_int_equal(poll(&fd, 1, PROGRAM_LIMIT_MS), 1);
        ssize_t len = recv(fd.fd, note, sizeof(note) - 1, 0);
        assert_true(len >= 0);
        note[len] = '\0';
    }
}

// Whether anything with this text has come and not been read.
static bool has_come(struct daemon_client *client, const char *text)
{
    char note[4096];
    bool found = false;
    ssize_t len;

    while ((len = recv(client->program.notify_fd, note, sizeof(note) - 1, MSG_DONTWAIT)) >= 0) {
        note[len] = '\0';
        found |= strstr(note, text) ? 1 : 0;
    }
    return found;
}

static void the_watchdog_beats_while_the_loop_turns(void **state)
{
    struct daemon_client *client = *state;

    client->variable[0] = "WATCHDOG_USEC=20000";
    assert_true(daemon_client_start(client));
    struct pollfd notify = {.events = POLLIN};
    notify.fd = client->program.notify_fd;
    for (int i = 0; i < 5; i++) {
        read_until(client, "WATCHDOG=1");
    }
    // A loop that does not turn: the process is stopped, as one that hangs would be.
    assert_int_equal(kill(client->program.pid, SIGSTOP), 0);
    int status;
    assert_int_equal(waitpid(client->program.pid, &status, WUNTRACED), client->program.pid);
    assert_true(WIFSTOPPED(status));
    (void)has_come(client, "");
    assert_int_equal(poll(&notify, 1, 100), 0); // five beats long
    assert_int_equal(kill(client->program.pid, SIGCONT), 0);
    read_until(client, "WATCHDOG=1");
}

static void nobody_asked_for_a_watchdog(void **state)
{
    (void)state;
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
    assert_int_equal(heartbeat_interval_ms(), 0);
    setenv("WATCHDOG_USEC", "30000000", 1);
    assert_int_equal(heartbeat_interval_ms(), 15000);
    setenv("WATCHDOG_PID", "1", 1);
    assert_int_equal(heartbeat_interval_ms(), 0);
    unsetenv("WATCHDOG_PID");
    setenv("WATCHDOG_USEC", "soon", 1);
    assert_int_equal(heartbeat_interval_ms(), 0);
    setenv("WATCHDOG_USEC", "500", 1);
    assert_int_equal(heartbeat_interval_ms(), 1);
    unsetenv("WATCHDOG_USEC");
}

static void the_status_says_what_it_does(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *source = xasprintf("//! gate %s\n", gate);

    assert_true(daemon_client_start(client));
    read_until(client, "0 of 1 devices busy");
    (void)daemon_client_accepted(client, "one", source);
    (void)daemon_client_gate_wait(gate);
    read_until(client, "1 of 1 devices busy");
    daemon_client_gate_open(gate);
    read_until(client, "0 of 1 devices busy");
    daemon_client_disconnect(client);
    assert_int_equal(kill(client->program.pid, SIGTERM), 0);
    read_until(client, "STOPPING=1");
    assert_int_equal(program_wait(&client->program), 0);
    free(source);
    free(gate);
}

static void write_config(const char *path, const char *text)
{
    struct err err = ERR_INIT;

    assert_int_equal(file_replace(path, text, strlen(text), false, &err), 0);
}

static void hang_up(struct daemon_client *client)
{
    assert_int_equal(kill(client->program.pid, SIGHUP), 0);
    read_until(client, "RELOADING=1\nMONOTONIC_USEC=");
    read_until(client, "READY=1");
}

static void a_reload_takes_over_what_it_can(void **state)
{
    struct daemon_client *client = *state;
    char *path = xasprintf("%s/kcastd.ini", client->program.dir);
    char *option = xasprintf("--config=%s", path);
    char *gate = daemon_client_gate(client, "gate");
    char *source = xasprintf("//! gate %s\n", gate);

    write_config(path, "[kcastd]\nqueue-max = 5\n");
    client->option[0] = option;
    assert_true(daemon_client_start(client));
    (void)daemon_client_accepted(client, "one", source);
    (void)daemon_client_gate_wait(gate);
    write_config(path, "[kcastd]\nqueue-max = 1\nlog-level = debug\nshare-gpus = true\n");
    hang_up(client);
    struct job_spec spec = daemon_client_spec(client, "//! log2 1\n");
    struct submitted reply;
    struct err err = ERR_INIT;
    assert_int_equal(daemon_client_submit(client, "test", "two", &spec, &reply, &err), ERR_BUSY);
    char *log = program_log(&client->program);
    assert_non_null(strstr(log, "reloaded changed=\"queue-max log-level\" needs_restart="
                                "\"share-gpus\""));
    free(log);
    write_config(path, "[kcastd]\nqueue-max = many\n");
    hang_up(client);
    log = program_log(&client->program);
    assert_non_null(strstr(log, "reload-failed reason=\""));
    free(log);
    daemon_client_gate_open(gate);
    unlink(path);
    free(source);
    free(gate);
    free(option);
    free(path);
}

// What runs ends and is delivered; what waits is there again after the next start.
static void a_host_is_vacated(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *source = xasprintf("//! gate %s\n//! log2 1\n", gate);
    uint64_t running, waiting;

    assert_true(daemon_client_start(client));
    running = daemon_client_accepted(client, "one", source);
    (void)daemon_client_gate_wait(gate);
    waiting = daemon_client_accepted(client, "two", "//! log2 2\n");
    struct job_spec spec = daemon_client_spec(client, "//! log2 3\n");
    assert_int_equal(kill(client->program.pid, SIGUSR1), 0);
    read_until(client, "not well: no device takes jobs; cpu0 is draining: kcastd ends");
    struct submitted reply;
    struct err err = ERR_INIT;
    assert_int_equal(daemon_client_submit(client, "test", "three", &spec, &reply, &err), ERR_BUSY);
    daemon_client_gate_open(gate);
    daemon_client_disconnect(client);
    assert_int_equal(program_wait(&client->program), 0);
    assert_true(daemon_client_start(client));
    daemon_client_expect(client, running, JOB_DONE, VERDICT_FASTER);
    daemon_client_expect(client, waiting, JOB_DONE, VERDICT_FASTER);
    assert_int_equal(daemon_client_runs(client, "measure", source), 1);
    free(source);
    free(gate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_watchdog_beats_while_the_loop_turns,
                                        daemon_client_set_up, daemon_client_tear_down),
        cmocka_unit_test(nobody_asked_for_a_watchdog),
        cmocka_unit_test_setup_teardown(the_status_says_what_it_does, daemon_client_set_up,
                                        daemon_client_tear_down),
        cmocka_unit_test_setup_teardown(a_host_is_vacated, daemon_client_set_up,
                                        daemon_client_tear_down),
        cmocka_unit_test_setup_teardown(a_reload_takes_over_what_it_can, daemon_client_set_up,
                                        daemon_client_tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
