// What a command that lasts says: with a fake clock, into a pipe and into a terminal of a known
// width.
#include "client/status_line.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include "common/clock.h"
#include "common/mem.h"
#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

// What was written to a file that is read by fd, as a text.
static const char *written(int fd, char *text, size_t size)
{
    ssize_t len = read(fd, text, size - 1);
    text[len > 0 ? len : 0] = '\0';
    return text;
}

struct fixture {
    struct clock clock;
    struct status_line *line; // writes into a pipe; NULL before begin
    FILE *out;
    int end; // where the pipe is read
    char text[512];
};

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    clock_fake_init(&f->clock, NS_PER_S);
    *state = f;
    return 0;
}

static void begin(struct fixture *f, bool quiet)
{
    int end[2];

    assert_int_equal(pipe2(end, O_NONBLOCK), 0);
    f->end = end[0];
    f->out = fdopen(end[1], "w");
    f->line = status_line_create(f->out, quiet, &f->clock);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    if (f->line) {
        status_line_free(f->line);
        fclose(f->out);
        close(f->end);
    }
    free(f);
    return 0;
}

static void without_a_terminal_there_is_a_line_every_half_a_minute(void **state)
{
    struct fixture *f = *state;

    begin(f, false);
    assert_false(status_line_due(f->line));
    clock_fake_advance(&f->clock, 29 * NS_PER_S);
    assert_false(status_line_due(f->line));
    clock_fake_advance(&f->clock, NS_PER_S);
    assert_true(status_line_due(f->line));
    status_line_write(f->line, "measured 1 of 2\n30 s");
    assert_string_equal(written(f->end, f->text, sizeof(f->text)),
                        "kcast: measured 1 of 2, 30 s\n");
    assert_false(status_line_due(f->line));
    clock_fake_advance(&f->clock, 30 * NS_PER_S);
    assert_true(status_line_due(f->line));
}

static void a_reason_for_waiting_is_said_when_it_changes(void **state)
{
    struct fixture *f = *state;

    begin(f, false);
    status_line_waits(f->line, NULL);
    status_line_waits(f->line, "waiting: cpu0 is draining (lunch)");
    status_line_waits(f->line, "waiting: cpu0 is draining (lunch)");
    assert_string_equal(written(f->end, f->text, sizeof(f->text)),
                        "kcast: waiting: cpu0 is draining (lunch)\n");
    status_line_waits(f->line, NULL);
    status_line_waits(f->line, "waiting: cpu0 is draining (lunch)");
    assert_string_equal(written(f->end, f->text, sizeof(f->text)),
                        "kcast: waiting: cpu0 is draining (lunch)\n");
}

static void quiet_is_quiet(void **state)
{
    struct fixture *f = *state;

    begin(f, true);
    clock_fake_advance(&f->clock, 1000 * NS_PER_S);
    assert_false(status_line_due(f->line));
    status_line_write(f->line, "x");
    status_line_waits(f->line, "y");
    status_line_say(f->line, "z");
    assert_string_equal(written(f->end, f->text, sizeof(f->text)), "");
}

// Opens a terminal of so many columns; what is written to *ret is read from the descriptor.
static int open_terminal(FILE **ret, unsigned short columns)
{
    struct winsize size = {.ws_col = columns, .ws_row = 24};
    struct termios mode;
    int master = posix_openpt(O_RDWR | O_NOCTTY);

    assert_true(master >= 0);
    assert_int_equal(grantpt(master), 0);
    assert_int_equal(unlockpt(master), 0);
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    assert_true(slave >= 0);
    assert_int_equal(ioctl(slave, TIOCSWINSZ, &size), 0);
    assert_int_equal(tcgetattr(slave, &mode), 0);
    cfmakeraw(&mode);
    assert_int_equal(tcsetattr(slave, TCSANOW, &mode), 0);
    *ret = fdopen(slave, "w");
    return master;
}

// What a terminal was given comes in parts of any size.
static void expect_terminal(int master, const char *expected)
{
    char text[512] = "";
    struct pollfd readable = {.fd = master, .events = POLLIN};
    size_t len = 0;

    while (len < strlen(expected) && poll(&readable, 1, 60 * 1000) == 1) {
        ssize_t n = read(master, text + len, sizeof(text) - 1 - len);
        assert_true(n > 0);
        len += (size_t)n;
    }
    assert_string_equal(text, expected);
}

static void a_terminal_gets_whole_clauses_and_never_a_part_of_a_word(void **state)
{
    static const char clauses[] = "device 41.2 s of 60.0 s\nabout 19.1 s left\nmeasured 7 of 40";
    static const struct {
        unsigned short columns;
        const char *line;
    } row[] = {
        {80, "\rdevice 41.2 s of 60.0 s, about 19.1 s left, measured 7 of 40\033[K"},
        {60, "\rdevice 41.2 s of 60.0 s, about 19.1 s left\033[K"},
        {43, "\rdevice 41.2 s of 60.0 s, about 19.1 s left\033[K"},
        {42, "\rdevice 41.2 s of 60.0 s\033[K"},
        {20, "\rdevice 41.2 s of\033[K"},
    };
    struct fixture *f = *state;

    assert_int_equal(setenv("TERM", "xterm", 1), 0);
    assert_int_equal(unsetenv("COLUMNS"), 0);
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        FILE *out;
        int master = open_terminal(&out, row[i].columns);
        struct status_line *line = status_line_create(out, false, &f->clock);
        assert_true(status_line_due(line));
        status_line_write(line, clauses);
        expect_terminal(master, row[i].line);
        assert_false(status_line_due(line));
        status_line_say(line, "a sentence");
        expect_terminal(master, "\r\033[Kkcast: a sentence\n");
        clock_fake_advance(&f->clock, NS_PER_S);
        assert_true(status_line_due(line));
        status_line_free(line);
        fclose(out);
        close(master);
    }
}

static void a_long_reason_is_cut_between_words(void **state)
{
    static const char clauses[] =
        "measured 0 of 1\n3.6 s\nwaiting: cpu0 is draining (new fan in the "
        "machine by the window, back at noon)";
    static const struct {
        unsigned short columns;
        const char *line;
    } row[] = {
        {80,
         "\rmeasured 0 of 1, 3.6 s, waiting: cpu0 is draining (new fan in the machine by …\033[K"},
        {60, "\rmeasured 0 of 1, 3.6 s, waiting: cpu0 is draining (new …\033[K"},
        {50, "\rmeasured 0 of 1, 3.6 s, waiting: cpu0 is …\033[K"},
        {40, "\rmeasured 0 of 1, 3.6 s\033[K"},
    };
    struct fixture *f = *state;
    assert_int_equal(setenv("TERM", "xterm", 1), 0);
    assert_int_equal(unsetenv("COLUMNS"), 0);
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        FILE *out;
        int master = open_terminal(&out, row[i].columns);
        struct status_line *line = status_line_create(out, false, &f->clock);
        status_line_write(line, clauses);
        expect_terminal(master, row[i].line);
        status_line_free(line);
        fclose(out);
        close(master);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_a_terminal_there_is_a_line_every_half_a_minute,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_reason_for_waiting_is_said_when_it_changes, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(quiet_is_quiet, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_terminal_gets_whole_clauses_and_never_a_part_of_a_word,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_long_reason_is_cut_between_words, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
