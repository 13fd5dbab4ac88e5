// One child process: its input and output, how it is ended, and what its end says. The
// process is a shell script that behaves as its first argument says.
#include "common/file.h"
#include "daemon/run/child.h"
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const char script[] = "#!/bin/sh\n"
                             "case $1 in\n"
                             "echo) cat ;;\n"
                             "say) printf '%s' \"$2\" ;;\n"
                             "fail) echo first >&2; echo sorry >&2; exit 3 ;;\n"
                             "wait) echo ready; exec tail -f /dev/null ;;\n"
                             "deaf) trap '' TERM; echo ready; exec tail -f /dev/null ;;\n"
                             "leave) tail -f /dev/null & echo ready ;;\n"
                             "esac\n";

struct fixture {
    uv_loop_t loop;
    char *dir;
    char *path;
    struct children *children;
    struct child *child;
    char output[256];
    size_t output_len;
    bool ended;
    struct child_end end;
};

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    (void)signal(SIGPIPE, SIG_IGN);
    assert_int_equal(uv_loop_init(&f->loop), 0);
    assert_int_equal(file_make_temp_dir(&f->dir, "kcast-child", NULL), 0);
    f->path = xasprintf("%s/exec", f->dir);
    FILE *file = fopen(f->path, "we");
    assert_non_null(file);
    assert_true(fputs(script, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(f->path, 0700), 0);
    assert_int_equal(children_create(&f->children, &f->loop, f->path, NULL, NULL, NULL), 0);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(children_count(f->children), 0);
    children_free(f->children);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    assert_int_equal(file_remove_tree(f->dir, NULL), 0);
    free(f->path);
    free(f->dir);
    free(f);
    return 0;
}

static void on_output(void *owner, const char *data, size_t len)
{
    struct fixture *f = owner;

    assert_false(f->ended);
    assert_true(f->output_len + len < sizeof(f->output));
    memcpy(f->output + f->output_len, data, len);
    f->output_len += len;
    f->output[f->output_len] = '\0';
}

static void on_end(void *owner, const struct child_end *end)
{
    struct fixture *f = owner;

    assert_false(f->ended);
    f->ended = true;
    f->end = *end;
}

static int try_start(struct fixture *f, const char *mode, const char *argument, struct err *err)
{
    struct child_config config = {
        .mode = mode,
        .argument = argument,
        .grace_ms = 20,
        .on_output = on_output,
        .on_end = on_end,
        .owner = f,
    };

    f->ended = false;
    f->output_len = 0;
    f->output[0] = '\0';
    return child_start(&f->child, f->children, &config, err);
}

static void start(struct fixture *f, const char *mode, const char *argument)
{
    struct err err = ERR_INIT;

    if (try_start(f, mode, argument, &err) != 0) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(children_count(f->children), 1);
    assert_false(child_is_ending(f->child));
}

static void until_ready(struct fixture *f)
{
    while (!strchr(f->output, '\n')) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
}

static void expect_end(struct fixture *f, bool ok, const char *reason)
{
    while (!f->ended) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
    assert_int_equal(f->end.ok, ok);
    assert_false(f->end.stuck);
    assert_string_equal(f->end.reason, reason);
    assert_int_equal(children_count(f->children), 0);
}

static void what_is_written_is_read_to_its_end(void **state)
{
    struct fixture *f = *state;
    struct bytes body = bytes_copy("body", 4);

    start(f, "echo", NULL);
    child_write(f->child, "head", 4, &body, true);
    assert_null(body.data);
    expect_end(f, true, "");
    assert_string_equal(f->output, "headbody");
}

static void input_that_stays_open_takes_more(void **state)
{
    struct fixture *f = *state;
    struct bytes body = bytes_copy("one\n", 4);

    start(f, "echo", NULL);
    child_write(f->child, "", 0, &body, false);
    until_ready(f);
    assert_false(child_is_writing(f->child));
    body = bytes_copy("two", 3);
    child_write(f->child, "", 0, &body, false);
    while (child_is_writing(f->child)) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
    child_close_input(f->child);
    expect_end(f, true, "");
    assert_string_equal(f->output, "one\ntwo");
}

static void mode_and_argument_are_given_and_nothing_else(void **state)
{
    struct fixture *f = *state;

    start(f, "say", "a b");
    expect_end(f, true, "");
    assert_string_equal(f->output, "a b");
}

static void an_exit_code_is_told_with_the_last_line_of_stderr(void **state)
{
    struct fixture *f = *state;

    start(f, "fail", NULL);
    expect_end(f, false, "kcast-exec fail ended with exit code 3: sorry");
}

static void one_that_is_terminated_says_why(void **state)
{
    struct fixture *f = *state;

    start(f, "wait", NULL);
    until_ready(f);
    child_terminate(f->child, "was stopped");
    assert_true(child_is_ending(f->child));
    child_terminate(f->child, "was stopped again"); // the first reason is told
    expect_end(f, false, "kcast-exec wait was stopped");
}

static void one_that_ignores_sigterm_is_killed_after_the_grace(void **state)
{
    struct fixture *f = *state;

    start(f, "deaf", NULL);
    until_ready(f);
    child_terminate(f->child, "was stopped");
    expect_end(f, false, "kcast-exec deaf was stopped");
}

static void a_limit_that_passes_terminates_and_a_new_one_replaces_it(void **state)
{
    struct fixture *f = *state;

    start(f, "wait", NULL);
    child_limit(f->child, 1, "was too slow");
    child_limit(f->child, 0, NULL);
    until_ready(f);
    child_limit(f->child, 1, "did not answer");
    expect_end(f, false, "kcast-exec wait did not answer");
}

static void all_can_be_killed_at_once(void **state)
{
    struct fixture *f = *state;

    start(f, "deaf", NULL);
    until_ready(f);
    children_kill(f->children);
    expect_end(f, false, "kcast-exec deaf was ended by signal 9 (Killed)");
}

// A process that it leaves behind holds its output open, and is killed with its process group.
static void nothing_of_it_is_left(void **state)
{
    struct fixture *f = *state;

    start(f, "leave", NULL);
    expect_end(f, true, "");
    assert_string_equal(f->output, "ready\n");
}

static void one_that_cannot_be_started_calls_nobody(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(unlink(f->path), 0);
    struct err err = ERR_INIT;
    assert_int_not_equal(try_start(f, "echo", NULL, &err), 0);
    assert_non_null(strstr(err.text, "cannot be started"));
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_false(f->ended);
    assert_int_equal(children_count(f->children), 0);
}

static void a_program_that_cannot_be_run_is_found_at_once(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(chmod(f->path, 0600), 0);
    struct children *children = NULL;
    assert_int_equal(children_create(&children, &f->loop, f->path, NULL, NULL, NULL), ERR_SYSTEM);
    assert_null(children);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_is_written_is_read_to_its_end),
        TEST(input_that_stays_open_takes_more),
        TEST(mode_and_argument_are_given_and_nothing_else),
        TEST(an_exit_code_is_told_with_the_last_line_of_stderr),
        TEST(one_that_is_terminated_says_why),
        TEST(one_that_ignores_sigterm_is_killed_after_the_grace),
        TEST(a_limit_that_passes_terminates_and_a_new_one_replaces_it),
        TEST(all_can_be_killed_at_once),
        TEST(nothing_of_it_is_left),
        TEST(one_that_cannot_be_started_calls_nobody),
        TEST(a_program_that_cannot_be_run_is_found_at_once),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
