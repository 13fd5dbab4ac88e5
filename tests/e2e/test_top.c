// `kcast top` on a terminal of 80 by 24 (a pty): the daemon is on it, keys and another size are
// obeyed, and the terminal is afterwards what it was before. Without a terminal it prints one page.
#include "common/clock.h"
#include "proto/verdict.h"
#include "tests/support/daemon_client.h"
#include "tests/support/own_url.h"
#include <poll.h>
#include <pty.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <utmp.h>

#include <cmocka.h>

#define SEEN_MAX ((size_t)1 << 20)

struct terminal {
    pid_t pid;
    int fd;
    char *seen; // since the last forget
    size_t len;
    struct termios before;
};

static void open_terminal(struct terminal *t, const struct daemon_client *client, const char *term)
{
    char *kcast = program_path("kcast");

    *t = (struct terminal){.seen = malloc(SEEN_MAX)};
    struct winsize size = {.ws_row = 24, .ws_col = 80};
    int slave;
    assert_int_equal(openpty(&t->fd, &slave, NULL, NULL, &size), 0);
    assert_int_equal(tcgetattr(slave, &t->before), 0);
    t->pid = fork();
    assert_true(t->pid >= 0);
    if (t->pid == 0) {
        (void)login_tty(slave);
        setenv("TERM", term, 1);
        execl(kcast, kcast, "--pool", remote_url(client->remote), "top", "--interval=100ms",
              (char *)NULL);
        _exit(127);
    }
    close(slave);
    free(kcast);
}

static void forget(struct terminal *t)
{
    t->len = 0;
}

// Reads until this has been written to the terminal. False when the program closed it before, or
// when it never comes.
static bool wait_for(struct terminal *t, const char *text)
{
    uint64_t from_ns = clock_now_ns(&clock_system);

    t->seen[t->len] = '\0';
    while (!strstr(t->seen, text)) {
        struct pollfd fd = {.fd = t->fd, .events = POLLIN};
        ssize_t got;

        if (clock_now_ns(&clock_system) - from_ns > PROGRAM_LIMIT_MS * NS_PER_MS ||
            poll(&fd, 1, PROGRAM_LIMIT_MS) != 1 ||
            (got = read(t->fd, t->seen + t->len, SEEN_MAX - 1 - t->len)) <= 0) {
            return false;
        }
        t->len += (size_t)got;
        t->seen[t->len] = '\0';
    }
    return true;
}

static void press(const struct terminal *t, char key)
{
    assert_int_equal(write(t->fd, &key, 1), 1);
}

// It ends with this code, and the terminal's settings are as they were.
static void expect_end(struct terminal *t, int code)
{
    assert_true(wait_for(t, "\x1b[?1049l")); // the other screen is left
    int status;
    assert_int_equal(waitpid(t->pid, &status, 0), t->pid);
    struct termios after;
    assert_int_equal(tcgetattr(t->fd, &after), 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), code);
    assert_int_equal(after.c_lflag, t->before.c_lflag);
    assert_int_equal(after.c_iflag, t->before.c_iflag);
    assert_int_equal(after.c_oflag, t->before.c_oflag);
    close(t->fd);
    free(t->seen);
}

static void it_shows_the_daemon_and_obeys_keys(void **state)
{
    struct daemon_client *client = *state;
    struct terminal t;
    char *gate = daemon_client_gate(client, "gate");
    char *source = xasprintf("//! gate %s\n", gate);

    open_terminal(&t, client, "xterm");
    assert_true(wait_for(&t, "\x1b[?1049h"));
    assert_true(wait_for(&t, "cpu0"));
    assert_true(wait_for(&t, "0 of 1 devices busy"));
    assert_true(wait_for(&t, "q quit"));
    (void)daemon_client_accepted(client, "one", source);
    (void)daemon_client_gate_wait(gate);
    forget(&t);
    assert_true(wait_for(&t, "busy")); // by itself
    forget(&t);
    press(&t, 't');
    assert_true(wait_for(&t, "time *"));
    forget(&t);
    struct winsize small = {.ws_row = 12, .ws_col = 50};
    assert_int_equal(ioctl(t.fd, TIOCSWINSZ, &small), 0);
    assert_true(wait_for(&t, "kcast top")); // drawn anew
    assert_true(wait_for(&t, "q quit"));
    press(&t, 'q');
    expect_end(&t, 0);
    daemon_client_gate_open(gate);
    free(source);
    free(gate);
}

// Starts the daemon at an address of this test's own, and another one there afterwards.
static void it_goes_on_when_the_daemon_is_started_again(void **state)
{
    struct daemon_client *client = *state;
    struct terminal t;
    char *anywhere = xasprintf("--listen=%s", own_url());

    client->option[0] = anywhere;
    assert_true(daemon_client_start(client));
    char *there = xasprintf("--listen=%s", client->program.url);
    open_terminal(&t, client, "xterm");
    assert_true(wait_for(&t, "q quit"));
    daemon_client_disconnect(client);
    assert_int_equal(program_stop(&client->program), 0);
    assert_true(wait_for(&t, "no answer (trying again)"));
    client->option[0] = there;
    assert_true(daemon_client_start(client));
    char *gate = daemon_client_gate(client, "gate");
    char *source = xasprintf("//! gate %s\n", gate);
    struct job_spec spec = daemon_client_spec(client, source);
    forget(&t);
    (void)daemon_client_submit_ok(client, "afterwards", "one", &spec);
    assert_true(wait_for(&t, "afterwards"));
    (void)daemon_client_gate_wait(gate);
    press(&t, 'q');
    expect_end(&t, 0);
    daemon_client_gate_open(gate);
    free(source);
    free(gate);
    free(there);
    free(anywhere);
}

// Opens a terminal and presses these keys, the last of which ends it, when the search is on the
// page.
static void open_and_press(const struct daemon_client *client, const char *keys)
{
    struct terminal t;

    open_terminal(&t, client, "xterm");
    assert_true(wait_for(&t, "test"));
    for (; *keys != '\0'; keys++) {
        press(&t, *keys);
    }
    expect_end(&t, 0);
}

// The key for it asks first, and any other answer than y leaves the jobs alone.
static void a_search_is_cancelled_after_a_question(void **state)
{
    struct daemon_client *client = *state;
    char *gate = daemon_client_gate(client, "gate");
    char *source = xasprintf("//! gate %s\n", gate);

    uint64_t held = daemon_client_accepted(client, "one", source);
    (void)daemon_client_gate_wait(gate);
    uint64_t waiting = daemon_client_accepted(client, "two", "//! log2 1\n");
    open_and_press(client, "cnq");
    open_and_press(client, "yq"); // without the question
    struct status status;
    daemon_client_status(client, &status);
    assert_int_equal(status.searches_count, 1);
    assert_int_equal(status.searches[0].unfinished, 2);
    message_clear(&status_message, &status);
    open_and_press(client, "cyq");
    daemon_client_expect(client, held, JOB_CANCELLED, 0);
    daemon_client_expect(client, waiting, JOB_CANCELLED, 0);
    free(source);
    free(gate);
}

static void a_signal_restores_the_terminal(void **state)
{
    struct terminal t;

    open_terminal(&t, *state, "xterm");
    assert_true(wait_for(&t, "q quit"));
    assert_int_equal(kill(t.pid, SIGTERM), 0);
    expect_end(&t, 0);
}

static void a_terminal_that_cannot_is_refused(void **state)
{
    struct terminal t;

    open_terminal(&t, *state, "no-such-terminal");
    assert_true(wait_for(&t, "cannot show pages; set TERM"));
    int status;
    assert_int_equal(waitpid(t.pid, &status, 0), t.pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 0);
    close(t.fd);
    free(t.seen);
}

static void without_a_terminal_it_prints_a_page(void **state)
{
    struct daemon_client *client = *state;
    char *kcast = program_path("kcast");
    uint64_t job = daemon_client_accepted(client, "one", "//! log2 1\n");

    daemon_client_expect(client, job, JOB_DONE, VERDICT_FASTER);
    struct program program;
    program_init(&program);
    program_start(&program,
                  (const char *[]){kcast, "--pool", remote_url(client->remote), "top", NULL}, NULL);
    assert_int_equal(program_wait(&program), 0);
    char *output = program_output(&program);
    assert_non_null(strstr(output, "results since the start: faster 1\n"));
    assert_non_null(strstr(output, "cpu0     ready"));
    assert_non_null(strstr(output, "1 search has ended\n")); // without its job it is not shown
    assert_null(strstr(output, "\x1b"));
    free(output);
    program_release(&program);
    free(kcast);
}

#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, daemon_client_set_up_started, daemon_client_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_shows_the_daemon_and_obeys_keys),
        cmocka_unit_test_setup_teardown(it_goes_on_when_the_daemon_is_started_again,
                                        daemon_client_set_up, daemon_client_tear_down),
        TEST(a_search_is_cancelled_after_a_question),
        TEST(a_signal_restores_the_terminal),
        TEST(a_terminal_that_cannot_is_refused),
        TEST(without_a_terminal_it_prints_a_page),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
