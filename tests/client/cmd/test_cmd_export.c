// kcast export and kcast report: what they print and write for runs that were made here.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/command.h"
#include "client/session.h"
#include "common/file.h"
#include "tests/client/report/report_run.h"
#include <fcntl.h>
#include <jansson.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

// The options of the two commands, laid out as in their own files.
struct export_given {
    char *format;
    char *output;
    bool events;
    char *baseline;
};
struct report_given {
    char *output;
};

static char *work_dir;

static char *make_run(const char *name, const struct made_search *search)
{
    struct run *run = NULL;
    struct err err = ERR_INIT;
    char *path = xasprintf("%s/%s", work_dir, name);
    if (run_create(&run, path, &err) != 0) {
        fail_msg("%s", err.text);
    }
    struct made_sink sink = {.run = run};
    assert_true(made_run(&sink, search));
    run_close(run);
    return path;
}

// Runs the command and returns what it writes to stdout.
static struct bytes output_of(const struct command *command, const void *options, bool json,
                              char *path, int *ret_code)
{
    struct session_options global = {.json = json, .quiet = true};
    struct session *session = NULL;
    struct err err = ERR_INIT;
    assert_int_equal(session_create(&session, &global, &err), 0);
    char *file = xasprintf("%s/stdout", work_dir);
    int saved = dup(STDOUT_FILENO), out = open(file, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(saved >= 0 && out >= 0);
    fflush(stdout);
    assert_true(dup2(out, STDOUT_FILENO) >= 0);
    *ret_code = command->run(session, options, &path, 1, &err);
    fflush(stdout);
    assert_true(dup2(saved, STDOUT_FILENO) >= 0);
    close(saved);
    close(out);
    session_free(session);
    struct bytes ret = {0};
    assert_int_equal(file_read(&ret, file, (size_t)1 << 28, &err), 0);
    free(file);
    return ret;
}

// Parses every line as JSON and returns how many there are. each may be NULL.
static size_t each_line(const struct bytes *text, void (*each)(const json_t *object, size_t line))
{
    size_t lines = 0;
    const char *at = (const char *)text->data, *end = at + text->len;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        assert_non_null(stop);
        json_error_t wrong;
        json_t *object = json_loadb(at, (size_t)(stop - at), JSON_REJECT_DUPLICATES, &wrong);
        if (!object) {
            fail_msg("line %zu: %s", lines + 1, wrong.text);
        }
        assert_true(json_is_object(object));
        if (each) {
            each(object, lines);
        }
        json_decref(object);
        lines++;
        at = stop + 1;
    }
    return lines;
}

static size_t measured, trusted, best;

static void look_at_candidate(const json_t *object, size_t line)
{
    assert_int_equal(json_integer_value(json_object_get(object, "candidate")), line + 1);
    assert_true(json_is_string(json_object_get(object, "source")));
    assert_true(json_is_string(json_object_get(object, "name")));
    const char *fate = json_string_value(json_object_get(object, "fate"));
    assert_non_null(fate);
    const json_t *result = json_object_get(object, "result");
    assert_non_null(result);
    measured += json_is_object(result);
    trusted += strcmp(fate, "trusted") == 0;
    best += json_is_true(json_object_get(object, "best"));
    if (strcmp(fate, "faster") == 0) {
        assert_true(json_real_value(json_object_get(object, "speedup")) > 1);
        assert_true(json_is_real(json_array_get(json_object_get(object, "ci95"), 0)));
        assert_true(json_is_object(json_object_get(object, "compiled")));
    }
    if (json_is_object(json_object_get(object, "forecast"))) {
        assert_int_equal(
            json_array_size(json_object_get(json_object_get(object, "forecast"), "bins")),
            BIN_COUNT);
    }
}

static void every_candidate_is_one_line_of_json(void **state)
{
    (void)state;
    const struct made_search search = {
        .candidates = 150, .seed = 7, .finished = true, .forecasts = true};
    char *path = make_run("plain.run", &search);
    int code;
    struct export_given options = {.format = (char *)(uintptr_t) "jsonl"};
    struct bytes text = output_of(&cmd_export, &options, false, path, &code);
    assert_int_equal(code, EXIT_OK);
    measured = trusted = best = 0;
    assert_int_equal(each_line(&text, look_at_candidate), 150);
    assert_true(measured > 20 && trusted > 20);
    assert_int_equal(best, 1);
    bytes_clear(&text);
    free(path);
}

static void bytes_that_are_no_text_still_give_json(void **state)
{
    (void)state;
    const struct made_search search = {
        .candidates = 20,
        .seed = 9,
        .forecasts = true,
        .suffix = " \"quoted\" \\ <b>\x01",
        .source = "\xFF\xFE \xC0\x80 \"\\\n\t\x01\x7F \xED\xA0\x80 \xF4\x90\x80\x80 \xE2\x82"};
    char *path = make_run("odd.run", &search);
    int code;
    struct export_given options = {.format = (char *)(uintptr_t) "jsonl"};
    struct bytes text = output_of(&cmd_export, &options, false, path, &code);
    assert_int_equal(code, EXIT_OK);
    assert_int_equal(each_line(&text, look_at_candidate), 20);
    bytes_clear(&text);
    options.events = true;
    text = output_of(&cmd_export, &options, false, path, &code);
    assert_int_equal(code, EXIT_OK);
    assert_true(each_line(&text, NULL) > 60);
    bytes_clear(&text);
    free(path);
}

static void look_at_event(const json_t *object, size_t line)
{
    assert_int_equal(json_integer_value(json_object_get(object, "sequence")), line + 1);
    const char *kind = json_string_value(json_object_get(object, "kind"));
    assert_non_null(kind);
    assert_string_equal(json_string_value(json_object_get(object, "event")), kind);
    assert_true(json_is_object(json_object_get(object, "body")));
    if (strcmp(kind, "measured") == 0) { // by name; the body has its number
        const char *verdict = json_string_value(json_object_get(object, "verdict"));
        assert_non_null(verdict);
        assert_string_not_equal(verdict, "unknown");
    }
    if (line == 0) {
        assert_string_equal(kind, "started");
    }
}

static void every_event_is_one_line_of_json(void **state)
{
    (void)state;
    const struct made_search search = {
        .candidates = 40, .seed = 7, .finished = true, .forecasts = true};
    char *path = make_run("events.run", &search);
    int code;
    struct export_given options = {.format = (char *)(uintptr_t) "jsonl", .events = true};
    struct bytes text = output_of(&cmd_export, &options, false, path, &code);
    assert_int_equal(code, EXIT_OK);
    assert_true(each_line(&text, look_at_event) > 120);
    bytes_clear(&text);
    free(path);
}

static void look_at_space_line(const json_t *object, size_t line)
{
    assert_int_equal(json_integer_value(json_object_get(object, "candidate")), line + 1);
    assert_true(json_is_string(json_object_get(object, "verdict")));
    measured += json_is_number(json_object_get(object, "speedup"));
}

static void seen_sequence(const json_t *object, size_t line)
{
    static const int whole[] = {1, 2, 4, 6};
    if (line < 4) {
        assert_int_equal(json_integer_value(json_object_get(object, "sequence")), whole[line]);
    }
}

// What is damaged is told, and the rest is not lost with it.
static void the_events_around_damaged_ones_are_printed(void **state)
{
    (void)state;
    const struct made_search search = {.candidates = 3, .seed = 7, .finished = true};
    char *path = make_run("damaged.run", &search);
    int code;
    struct export_given options = {.format = (char *)(uintptr_t) "jsonl", .events = true};
    struct bytes text = output_of(&cmd_export, &options, false, path, &code);
    size_t all = each_line(&text, NULL);
    bytes_clear(&text);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "UPDATE event SET at = 5 WHERE sequence = 3;"
                                  "DELETE FROM event WHERE sequence = 5",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    text = output_of(&cmd_export, &options, false, path, &code);
    assert_int_equal(code, EXIT_INVALID);
    assert_int_equal(each_line(&text, seen_sequence), all - 2);
    bytes_clear(&text);
    options.events = false; // what follows from the events needs all of them
    text = output_of(&cmd_export, &options, false, path, &code);
    assert_int_equal(code, EXIT_INVALID);
    assert_int_equal(text.len, 0);
    bytes_clear(&text);
    free(path);
}

static void a_run_becomes_a_space_and_its_lines(void **state)
{
    (void)state;
    const struct made_search search = {.candidates = 60, .seed = 7, .finished = true};
    char *path = make_run("whole.run", &search), *space = xasprintf("%s/whole.space", work_dir);
    char *baseline = xasprintf("%s/baseline.c", work_dir);
    int code;
    struct export_given options = {.format = (char *)(uintptr_t) "space"};
    struct bytes text = output_of(&cmd_export, &options, false, path, &code);
    assert_int_equal(code, EXIT_OK);
    assert_int_equal(text.len, 0);
    bytes_clear(&text);
    options.format = (char *)(uintptr_t) "jsonl";
    measured = 0;
    text = output_of(&cmd_export, &options, false, space, &code);
    assert_int_equal(code, EXIT_OK);
    size_t lines = each_line(&text, look_at_space_line);
    assert_true(lines > 40 && lines <= 60 && measured > 30 && measured < lines);
    bytes_clear(&text);
    // The run does not hold its baseline's source, and another file is refused.
    options.format = (char *)(uintptr_t) "gpu-forecasters";
    for (int i = 0; i < 2; i++) {
        text = output_of(&cmd_export, &options, false, i == 0 ? space : path, &code);
        assert_int_equal(code, EXIT_INVALID);
        assert_int_equal(text.len, 0);
        bytes_clear(&text);
        assert_int_equal(file_replace(baseline, "other", 5, false, NULL), 0);
        options.baseline = baseline;
    }
    free(baseline);
    free(space);
    free(path);
}

static void report_goes_beside_the_run_unless_told_otherwise(void **state)
{
    (void)state;
    const struct made_search search = {
        .candidates = 40, .seed = 7, .finished = true, .forecasts = true};
    char *path = make_run("page.run", &search), *page = xasprintf("%s/page.html", work_dir);
    struct report_given options = {0};
    int code;
    // Prints numbers and writes no page.
    struct bytes text = output_of(&cmd_report, &options, true, path, &code);
    assert_int_equal(code, EXIT_OK);
    assert_int_equal(each_line(&text, NULL), 1);
    struct stat status;
    assert_int_not_equal(stat(page, &status), 0);
    bytes_clear(&text);
    text = output_of(&cmd_report, &options, false, path, &code);
    assert_int_equal(code, EXIT_INVALID); // it says that this run lacks its problem
    assert_int_equal(text.len, 0);
    assert_int_equal(stat(page, &status), 0);
    bytes_clear(&text);
    options.output = (char *)(uintptr_t) "-";
    text = output_of(&cmd_report, &options, false, path, &code);
    assert_int_equal(code, EXIT_INVALID);
    assert_int_equal(text.len, (size_t)status.st_size);
    bytes_clear(&text);
    free(path);
    free(page);
}

static void what_is_no_run_is_refused(void **state)
{
    (void)state;
    char *path = xasprintf("%s/none.run", work_dir);
    struct export_given options = {0};
    int code;
    struct bytes text = output_of(&cmd_export, &options, false, path, &code);
    assert_int_equal(code, EXIT_INVALID);
    assert_int_equal(text.len, 0);
    bytes_clear(&text);
    assert_int_equal(file_replace(path, "not a database", 14, false, NULL), 0);
    struct report_given report = {0};
    text = output_of(&cmd_report, &report, false, path, &code);
    assert_int_not_equal(code, EXIT_OK);
    bytes_clear(&text);
    free(path);
}

static int set_up(void **state)
{
    (void)state;
    return file_make_temp_dir(&work_dir, "kcast-test-export", NULL);
}

static int tear_down(void **state)
{
    (void)state;
    int code = file_remove_tree(work_dir, NULL);
    free(work_dir);
    return code;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_candidate_is_one_line_of_json),
        cmocka_unit_test(bytes_that_are_no_text_still_give_json),
        cmocka_unit_test(every_event_is_one_line_of_json),
        cmocka_unit_test(the_events_around_damaged_ones_are_printed),
        cmocka_unit_test(a_run_becomes_a_space_and_its_lines),
        cmocka_unit_test(report_goes_beside_the_run_unless_told_otherwise),
        cmocka_unit_test(what_is_no_run_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
