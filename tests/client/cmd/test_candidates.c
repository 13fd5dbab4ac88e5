// The candidates of a command line: files that become blobs of a daemon pool. Their daemon is one
// that invents its answers but wants every blob.
#include "client/cmd/candidates/candidates.h"
#include "common/file.h"
#include "problem/problem.h"
#include "tests/client/pool/daemon_pool_fixture.h"
#include <stdlib.h>

static char *folder;

static int set_up(void **state)
{
    struct err err = ERR_INIT;
    assert_int_equal(file_make_temp_dir(&folder, "kcast-test", &err), 0);
    struct fixture *f = begin(&usual, &usual);
    open_daemon_pool(f, "candidates");
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct err err = ERR_INIT;
    end(*state);
    int rc = file_remove_tree(folder, &err);
    free(folder);
    return rc;
}

// The path is malloc'd.
static char *write_file(const char *name, const void *data, size_t len)
{
    struct err err = ERR_INIT;
    char *path = xasprintf("%s/%s", folder, name);
    assert_int_equal(file_replace(path, data, len, false, &err), 0);
    return path;
}

static char *write_text(const char *name, const char *text)
{
    return write_file(name, text, strlen(text));
}

static void files_become_blobs_that_jobs_can_be_submitted_with(void **state)
{
    static const char first[] = "#define A 2\n#define B 2\n#define C 901\n";
    static const char second[] = "#define A 2\n#define B 2\n#define C 902\n";
    struct fixture *f = *state;
    char *path[2] = {write_text("one.c", first), write_text("two.c", second)};
    struct candidates all = {0};
    struct err err = ERR_INIT;
    assert_int_equal(candidates_read(&all, path, 2, "c", NULL, &err), 0);
    candidates_add(&all, f->daemon_pool);
    const struct digest wanted = digest_of(first, strlen(first));
    assert_memory_equal(&all.file[0].digest, &wanted, sizeof(wanted));
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(all.file[i].path, path[i]);
        assert_true(!all.file[i].compiled && !all.file[i].result && !all.file[i].done);
        assert_int_equal(all.file[i].error.code, ERR_NONE);
        f->source[i] = all.file[i].digest;
        free(path[i]);
    }
    submit(f, 0, 2, JOB_MEASURE);
    run_until(f, 2);
    assert_int_equal(f->refused.code, ERR_NONE);
    expect_once(f, 0, 2);
    candidates_free(&all);
}

static void the_same_source_twice_is_one_blob_and_two_candidates(void **state)
{
    struct fixture *f = *state;
    char *same = write_text("one.c", "int x;\n"), *copy = write_text("two.c", "int x;\n");
    char *path[3] = {same, same, copy};
    struct candidates all = {0};
    assert_int_equal(candidates_read(&all, path, 3, "c", NULL, NULL), 0);
    candidates_add(&all, f->daemon_pool);
    assert_memory_equal(&all.file[0].digest, &all.file[1].digest, sizeof(all.file[0].digest));
    assert_memory_equal(&all.file[0].digest, &all.file[2].digest, sizeof(all.file[0].digest));
    assert_string_equal(all.file[2].path, copy);
    candidates_free(&all);
    free(same);
    free(copy);
}

static void bytes_that_are_no_text_are_a_source_like_others(void **state)
{
    (void)state;
    char *path = write_file("zero.c", "\0\xff", 2);
    struct candidates all = {0};
    assert_int_equal(candidates_read(&all, &path, 1, "c", NULL, NULL), 0);
    const struct digest wanted = digest_of("\0\xff", 2);
    assert_memory_equal(&all.file[0].digest, &wanted, sizeof(wanted));
    candidates_free(&all);
    free(path);
}

// The good file before it is not kept either.
static void refuse(char *wrong, int rc, const char *words)
{
    char *path[2] = {write_text("good.c", "int good;\n"), wrong};
    struct candidates all = {0};
    struct err err = ERR_INIT;
    assert_int_equal(candidates_read(&all, path, 2, "c", NULL, &err), rc);
    assert_non_null(strstr(err.text, wrong));
    if (!strstr(err.text, words)) {
        fail_msg("\"%s\" does not say \"%s\"", err.text, words);
    }
    assert_null(all.file);
    free(path[0]);
}

static void a_file_that_is_none_is_named(void **state)
{
    (void)state;
    char *missing = xasprintf("%s/missing.c", folder), *empty = write_text("empty.c", "");
    char *nothing = xasprintf("%s/nothing", folder);
    struct err err = ERR_INIT;
    assert_int_equal(file_make_dirs(nothing, &err), 0);
    refuse(missing, ERR_NOT_FOUND, "");
    refuse(empty, ERR_INVALID, "is empty");
    refuse(nothing, ERR_INVALID, "no file whose name ends in .c");
    free(nothing);
    free(missing);
    free(empty);
}

static void the_longest_source_is_read_and_a_longer_one_is_not(void **state)
{
    (void)state;
    char *text = xcalloc(PROBLEM_SOURCE_MAX + 1, 1);
    memset(text, ' ', PROBLEM_SOURCE_MAX + 1);
    char *longest = write_file("longest.c", text, PROBLEM_SOURCE_MAX);
    char *longer = write_file("longer.c", text, PROBLEM_SOURCE_MAX + 1);
    struct candidates all = {0};
    assert_int_equal(candidates_read(&all, &longest, 1, "c", NULL, NULL), 0);
    candidates_free(&all);
    refuse(longer, ERR_LIMIT, "");
    free(longest);
    free(longer);
    free(text);
}

static void what_a_command_has_put_in_is_freed_with_the_candidates(void **state)
{
    (void)state;
    struct candidates all = {.file = xcalloc(3, sizeof(*all.file)), .count = 3};
    all.file[0].compiled = xcalloc(1, sizeof(*all.file[0].compiled));
    all.file[0].compiled->reason = xstrdup("no");
    all.file[2].result = xcalloc(1, sizeof(*all.file[2].result));
    all.file[2].result->speedup = xcalloc(1, sizeof(struct estimate));
    candidates_free(&all);
    candidates_free(&all);
}

static void a_folder_stands_for_its_sources_in_the_order_of_names(void **state)
{
    (void)state;
    char *path[] = {write_text("b.c", "int b;"), write_text("a.c", "int a;"),
                    write_text("no.txt", "x"), write_text(".c", "hidden")};
    struct candidates all = {0};
    char *slash = xasprintf("%s/", folder);
    for (size_t round = 0; round < 2; round++) {
        char *given = round == 0 ? folder : slash;
        assert_int_equal(candidates_read(&all, &given, 1, "c", NULL, NULL), 0);
        assert_int_equal(all.count, 2);
        assert_string_equal(all.file[0].path, path[1]);
        assert_string_equal(all.file[1].path, path[0]);
        candidates_free(&all);
    }
    for (size_t i = 0; i < ARRAY_LEN(path); i++) {
        free(path[i]);
    }
    free(slash);
}

static void a_dash_is_stdin_once(void **state)
{
    (void)state;
    char dash[] = "-", *path[] = {dash, dash}, *source = write_text("piped.c", "int piped;\n");
    struct candidates all = {0};
    struct err err = ERR_INIT;
    assert_non_null(freopen(source, "r", stdin));
    assert_int_equal(candidates_read(&all, path, 1, "c", NULL, &err), 0);
    const struct digest wanted = digest_of("int piped;\n", 11);
    assert_memory_equal(&all.file[0].digest, &wanted, sizeof(wanted));
    assert_string_equal(candidates_name(&all.file[0]), "<stdin>");
    candidates_free(&all);
    assert_non_null(freopen(source, "r", stdin));
    assert_int_equal(candidates_read(&all, path, 2, "c", NULL, &err), ERR_USAGE);
    free(source);
}

static void no_two_commands_have_the_same_search(void **state)
{
    (void)state;
    char *first = candidates_search_name("measure"), *second = candidates_search_name("measure");
    assert_string_not_equal(first, second);
    assert_int_equal(strlen(first), strlen("measure-") + 16);
    assert_int_equal(strncmp(first, "measure-", 8), 0);
    assert_int_equal(strspn(first + 8, "0123456789abcdef"), 16);
    free(first);
    free(second);
}

int main(void)
{
#define WITH_POOL(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WITH_POOL(files_become_blobs_that_jobs_can_be_submitted_with),
        WITH_POOL(the_same_source_twice_is_one_blob_and_two_candidates),
        WITH_POOL(bytes_that_are_no_text_are_a_source_like_others),
        WITH_POOL(a_file_that_is_none_is_named),
        WITH_POOL(the_longest_source_is_read_and_a_longer_one_is_not),
        cmocka_unit_test(what_a_command_has_put_in_is_freed_with_the_candidates),
        WITH_POOL(a_folder_stands_for_its_sources_in_the_order_of_names),
        WITH_POOL(a_dash_is_stdin_once),
        cmocka_unit_test(no_two_commands_have_the_same_search),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
