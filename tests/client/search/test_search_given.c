// Searches in which a program shares the work with files of the user's (--generator pool:…,exec:…):
// what it is to start from. The real kcast against a daemon that invents its answers.
#include "tests/client/search/search_fixture.h"

#define FILES 4 // a batch of them

// Keeps each request, and prints three candidates of its own.
static const char program[] =
    "#!/bin/sh\nread -r line\nprintf '%s\\n' \"$line\" >>\"$0.log\"\n"
    "draw=${line#*\\\"draw\\\":} draw=${draw%%,*}\n"
    "for i in 1 2 4; do printf '{\"source\":\"#define A %s\\\\n#define B 1\\\\n#define C %s\\\\n\"}"
    "\\n' $i $draw; done\n";

static void write_text(const char *path, const char *text, mode_t mode)
{
    assert_int_equal(file_replace(path, text, strlen(text), false, NULL), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void write_files(const char *folder)
{
    assert_int_equal(file_make_dirs(folder, NULL), 0);
    for (int i = 0; i < FILES; i++) {
        char *path = xasprintf("%s/%d.c", folder, i);
        char *text = xasprintf("#define A %d\n#define B 1\n#define C 777\n", 1 << i);

        write_text(path, text, 0600);
        free(text);
        free(path);
    }
}

// Checks a request that was made before its candidates saw any outcome. Returns the number of the
// candidate that it starts from.
static json_int_t check_request(const json_t *request)
{
    const json_t *parent = json_object_get(request, "parent");
    json_int_t from = json_integer_value(json_object_get(parent, "candidate"));

    assert_in_range(from, 1, FILES);
    assert_non_null(strstr(json_string_value(json_object_get(parent, "source")), "#define C 777"));
    assert_null(json_object_get(parent, "verdict")); // though it may be there by now
    assert_null(json_object_get(parent, "speedup"));
    return from;
}

static void before_outcomes_it_is_the_files_in_turns(void **state)
{
    struct fixture *f = *state;
    char *files = xasprintf("%s/files", f->folder), *script = xasprintf("%s/propose", f->folder);
    char *run = xasprintf("%s/run", f->folder), *log = xasprintf("%s.log", script);
    char *generators = xasprintf("pool:%s,exec:%s", files, script);

    write_files(files);
    write_text(script, program, 0700);
    const char *const argument[] = {
        "search", f->problem,     "--run", run,           "--batch",  "4", "--policy",
        "all",    "--candidates", "24",    "--generator", generators, NULL};
    struct kcast_result outcome;
    collect(f, spawn(f, NULL, argument), &outcome);
    if (outcome.status != 0) {
        fail_msg("%s", outcome.err);
    }
    char *text = read_text(log);
    unsigned from = 0;
    for (char *at = text; *at != '\0'; at += strcspn(at, "\n") + 1) {
        json_auto_t *request = json_loads(at, JSON_DISABLE_EOF_CHECK, NULL);

        if (json_array_size(json_object_get(request, "results")) == 0) {
            from |= 1u << check_request(request);
        }
    }
    assert_true(from != 0);
    assert_true((from & (from - 1)) != 0); // not always the same
    clear(&outcome);
    free(text);
    free(generators);
    free(log);
    free(run);
    free(script);
    free(files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(before_outcomes_it_is_the_files_in_turns, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
