// The candidates of a command line: files that become blobs of a daemon pool. Their daemon is one
// that invents its answers but wants every blob.
#include "client/cmd/candidates.h"
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
    struct candidate_file *file = NULL;
    struct err err = ERR_INIT;
    assert_int_equal(candidates_read(&file, path, 2, &err), 0);
    candidates_add(file, 2, f->daemon_pool);
    const struct digest wanted = digest_of(first, strlen(first));
    assert_memory_equal(&file[0].digest, &wanted, sizeof(wanted));
    for (size_t i = 0; i < 2; i++) {
        assert_ptr_equal(file[i].path, path[i]);
        assert_true(!file[i].compiled && !file[i].result && !file[i].done);
        assert_int_equal(file[i].error.code, ERR_NONE);
        f->source[i] = file[i].digest;
        free(path[i]);
    }
    submit(f, 0, 2, JOB_MEASURE);
    run_until(f, 2);
    assert_int_equal(f->refused.code, ERR_NONE);
    expect_once(f, 0, 2);
    candidates_free(file, 2);
}

static void the_same_source_twice_is_one_blob_and_two_candidates(void **state)
{
    struct fixture *f = *state;
    char *same = write_text("one.c", "int x;\n"), *copy = write_text("two.c", "int x;\n");
    char *path[3] = {same, same, copy};
    struct candidate_file *file = NULL;
    assert_int_equal(candidates_read(&file, path, 3, NULL), 0);
    candidates_add(file, 3, f->daemon_pool);
    assert_memory_equal(&file[0].digest, &file[1].digest, sizeof(file[0].digest));
    assert_memory_equal(&file[0].digest, &file[2].digest, sizeof(file[0].digest));
    assert_ptr_equal(file[2].path, copy);
    candidates_free(file, 3);
    free(same);
    free(copy);
}

static void bytes_that_are_no_text_are_a_source_like_others(void **state)
{
    (void)state;
    char *path = write_file("zero.c", "\0\xff", 2);
    struct candidate_file *file = NULL;
    assert_int_equal(candidates_read(&file, &path, 1, NULL), 0);
    const struct digest wanted = digest_of("\0\xff", 2);
    assert_memory_equal(&file[0].digest, &wanted, sizeof(wanted));
    candidates_free(file, 1);
    free(path);
}

// The good file before it is not kept either.
static void refuse(char *wrong, int rc, const char *words)
{
    char *path[2] = {write_text("good.c", "int good;\n"), wrong};
    struct candidate_file *file = NULL;
    struct err err = ERR_INIT;
    assert_int_equal(candidates_read(&file, path, 2, &err), rc);
    assert_non_null(strstr(err.text, wrong));
    if (!strstr(err.text, words)) {
        fail_msg("\"%s\" does not say \"%s\"", err.text, words);
    }
    assert_null(file);
    free(path[0]);
}

static void a_file_that_is_none_is_named(void **state)
{
    (void)state;
    char *missing = xasprintf("%s/missing.c", folder), *empty = write_text("empty.c", "");
    refuse(missing, ERR_NOT_FOUND, "");
    refuse(empty, ERR_INVALID, "is empty");
    refuse(folder, ERR_SYSTEM, "");
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
    struct candidate_file *file = NULL;
    assert_int_equal(candidates_read(&file, &longest, 1, NULL), 0);
    candidates_free(file, 1);
    refuse(longer, ERR_LIMIT, "");
    free(longest);
    free(longer);
    free(text);
}

static void what_a_command_has_put_in_is_freed_with_the_candidates(void **state)
{
    (void)state;
    struct candidate_file *file = xcalloc(3, sizeof(*file));
    file[0].compiled = xcalloc(1, sizeof(*file->compiled));
    file[0].compiled->reason = xstrdup("no");
    file[2].result = xcalloc(1, sizeof(*file->result));
    file[2].result->speedup = xcalloc(1, sizeof(struct estimate));
    candidates_free(file, 3);
    candidates_free(NULL, 3);
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
        cmocka_unit_test(no_two_commands_have_the_same_search),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
