#include "common/log.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Standard error is redirected to a temporary file while an event is logged, so that the test can
// read the line.
struct capture {
    FILE *file;         // receives stderr
    int saved;          // the real stderr
    char text[1 << 20]; // what was written
    size_t len;         // of text
};

static struct capture capture; // too large for the stack

static void begin(void)
{
    capture.file = tmpfile();
    assert_non_null(capture.file);
    capture.saved = dup(STDERR_FILENO);
    assert_int_equal(dup2(fileno(capture.file), STDERR_FILENO), STDERR_FILENO);
}

static const char *end(void)
{
    assert_int_equal(dup2(capture.saved, STDERR_FILENO), STDERR_FILENO);
    close(capture.saved);
    rewind(capture.file);
    capture.len = fread(capture.text, 1, sizeof(capture.text) - 1, capture.file);
    capture.text[capture.len] = '\0';
    fclose(capture.file);
    return capture.text;
}

static void use_journal(bool journal, enum log_level level)
{
    if (journal) {
        setenv("JOURNAL_STREAM", "8:1", 1);
    } else {
        unsetenv("JOURNAL_STREAM");
    }
    log_init("kcastd", level);
}

static void journal_lines_start_with_the_level(void **state)
{
    (void)state;
    use_journal(true, LOG_DEBUG);
    begin();
    log_event(LOG_ERROR, "broken why=%s", "x");
    log_event(LOG_DEBUG, "detail n=%d", 2);
    assert_string_equal(end(), "<3>broken why=x\n<7>detail n=2\n");
}

static void terminal_lines_start_with_time_program_and_level(void **state)
{
    (void)state;
    use_journal(false, LOG_INFO);
    begin();
    log_event(LOG_WARNING, "slow ms=%d", 70);
    const char *text = end();
    int year;
    int millis;
    int used = 0;
    assert_int_equal(sscanf(text, "%4d-%*2d-%*2dT%*2d:%*2d:%*2d.%3dZ%n", &year, &millis, &used), 2);
    assert_int_equal(used, 24);
    assert_true(year >= 2024);
    assert_string_equal(text + used, " kcastd warning slow ms=70\n");
}

static void levels_have_names(void **state)
{
    (void)state;
    assert_int_equal(log_level_of("error"), LOG_ERROR);
    assert_int_equal(log_level_of("debug"), LOG_DEBUG);
    assert_int_equal(log_level_of("loud"), LOG_INFO);
}

static void events_above_the_level_are_dropped(void **state)
{
    (void)state;
    use_journal(true, LOG_NOTICE);
    begin();
    log_event(LOG_INFO, "no");
    log_event(LOG_DEBUG, "no");
    log_event(LOG_NOTICE, "yes");
    assert_string_equal(end(), "<5>yes\n");
}

static void control_characters_are_escaped(void **state)
{
    (void)state;
    use_journal(true, LOG_INFO);
    begin();
    log_event(LOG_INFO, "a\nb\tc\rd\x1b[31me\x7f");
    assert_string_equal(end(), "<6>a\\nb\\tc\\rd\\x1b[31me\\x7f\n");
}

static void utf8_stays_but_c1_and_broken_bytes_are_escaped(void **state)
{
    (void)state;
    use_journal(true, LOG_INFO);
    begin();
    log_event(LOG_INFO,
              "\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80|\xC2\x9B|\xFF|\xE2\x80\xAE|\xE2\x82");
    assert_string_equal(
        end(),
        "<6>\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80|\\xc2\\x9b|\\xff|\\xe2\\x80\\xae|\\xe2\\x82\n");
}

static void long_events_are_cut_and_say_so(void **state)
{
    (void)state;
    char big[10000];
    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    use_journal(true, LOG_INFO);
    begin();
    log_event(LOG_INFO, "%s", big);
    memset(big, '\x01', sizeof(big) - 1);
    log_event(LOG_INFO, "%s", big);
    const char *text = end();
    assert_true(strcspn(text, "\n") < 4096);
    assert_true(strcspn(text, "\n") > 4000);
    assert_memory_equal(text + strcspn(text, "\n") - 6, " [cut]\n<6>\\x01", 14);
    assert_true(capture.len <= 2 * 4096);
    assert_string_equal(text + capture.len - 7, " [cut]\n");
}

static void errno_survives(void **state)
{
    (void)state;
    use_journal(true, LOG_INFO);
    begin();
    errno = ERANGE;
    log_event(LOG_INFO, "x");
    assert_int_equal(errno, ERANGE);
    close(STDERR_FILENO);
    log_event(LOG_INFO, "nowhere to go");
    assert_int_equal(errno, ERANGE);
    end();
}

#define THREADS 4
#define EVENTS 500

static void *log_many(void *arg)
{
    for (int i = 0; i < EVENTS; i++) {
        log_event(LOG_INFO, "event thread=%d i=%d %s", *(int *)arg, i, "padding-padding-padding");
    }
    return NULL;
}

static void lines_of_threads_do_not_mix(void **state)
{
    (void)state;
    use_journal(true, LOG_INFO);
    begin();
    pthread_t thread[THREADS];
    int id[THREADS];
    for (int t = 0; t < THREADS; t++) {
        id[t] = t;
        assert_int_equal(pthread_create(&thread[t], NULL, log_many, &id[t]), 0);
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(thread[t], NULL);
    }
    int next[THREADS] = {0};
    int lines = 0;
    for (const char *p = end(); *p; p = strchr(p, '\n') + 1) {
        int t = -1;
        int i = -1;
        int used = 0;

        assert_int_equal(
            sscanf(p, "<6>event thread=%d i=%d padding-padding-padding%n", &t, &i, &used), 2);
        assert_int_equal(p[used], '\n');
        assert_in_range(t, 0, THREADS - 1);
        assert_int_equal(i, next[t]++);
        lines++;
    }
    assert_int_equal(lines, THREADS * EVENTS);
}

static void what_callers_cause_gets_a_line_a_second(void **state)
{
    (void)state;
    const uint64_t second = 1000000000ULL;
    struct log_limit limit = {0};
    uint64_t untold = 99;
    assert_true(log_limit_passes(&limit, 5 * second, &untold));
    assert_int_equal(untold, 0);
    for (int i = 0; i < 3; i++) {
        assert_false(log_limit_passes(&limit, 6 * second - 1, &untold));
    }
    assert_true(log_limit_passes(&limit, 6 * second, &untold));
    assert_int_equal(untold, 3);
    assert_true(log_limit_passes(&limit, 7 * second, &untold));
    assert_int_equal(untold, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(journal_lines_start_with_the_level),
        cmocka_unit_test(terminal_lines_start_with_time_program_and_level),
        cmocka_unit_test(levels_have_names),
        cmocka_unit_test(events_above_the_level_are_dropped),
        cmocka_unit_test(control_characters_are_escaped),
        cmocka_unit_test(utf8_stays_but_c1_and_broken_bytes_are_escaped),
        cmocka_unit_test(long_events_are_cut_and_say_so),
        cmocka_unit_test(errno_survives),
        cmocka_unit_test(lines_of_threads_do_not_mix),
        cmocka_unit_test(what_callers_cause_gets_a_line_a_second),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
