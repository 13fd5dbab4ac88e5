// Problem folders: they are found by path and by name, read whole, and refused with a sentence that
// names the file.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/problem/problem_dir.h"
#include "common/file.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *folder; // a temporary folder that is a root of problems
static char *hill;   // path of the problem in it

static void write_text(const char *path, const char *text)
{
    struct err err = ERR_INIT;
    assert_int_equal(file_replace(path, text, strlen(text), false, &err), 0);
}

static int set_up(void **state)
{
    static const char *const names[] = {"problem.json", "reference.c", "baseline.c", "template.c",
                                        "README.md"};
    const char *root = getenv("KCAST_ROOT");
    (void)state;
    struct err err = ERR_INIT;
    if (file_make_temp_dir(&folder, "kcast-test", &err) != 0) {
        return -1;
    }
    hill = xasprintf("%s/cpu/hill", folder);
    if (file_make_dirs(hill, &err) != 0) {
        return -1;
    }
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct bytes bytes;
        char *from = xasprintf("%s/tests/data/client/hill/%s", root ? root : ".", names[i]);
        char *to = xasprintf("%s/%s", hill, names[i]);
        if (file_read(&bytes, from, 1 << 20, &err) != 0 ||
            file_replace(to, bytes.data, bytes.len, false, &err) != 0) {
            fprintf(stderr, "%s\n", err.text);
            return -1;
        }
        bytes_clear(&bytes);
        free(from);
        free(to);
    }
    setenv("KCAST_PROBLEMS", folder, 1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    int rc = file_remove_tree(folder, &err);
    free(folder);
    free(hill);
    return rc;
}

static void refused(const char *problem, int code, const char *part)
{
    struct problem_dir dir;
    struct err err = ERR_INIT;
    assert_int_equal(problem_dir_load(&dir, problem, &err), code);
    if (!strstr(err.text, part)) {
        fail_msg("\"%s\" does not say \"%s\"", err.text, part);
    }
    assert_null(dir.path);
}

static void is_found_by_name_and_by_path(void **state)
{
    char *with_slash = xasprintf("%s//", hill);
    const char *const ways[] = {"hill", hill, with_slash};
    (void)state;
    struct problem_dir dir;
    struct err err = ERR_INIT;
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        assert_int_equal(problem_dir_load(&dir, ways[i], &err), 0);
        assert_string_equal(dir.problem->name, "hill");
        assert_string_equal(dir.path, hill);
        assert_true(dir.template_source.len > 0 && dir.readme.len > 0);
        struct digest digest = digest_of(dir.baseline.data, dir.baseline.len);
        assert_true(digest_equal(&digest, &dir.baseline_digest));
        problem_dir_release(&dir);
    }
    assert_int_equal(chdir(hill), 0);
    assert_int_equal(problem_dir_load(&dir, ".", &err), 0);
    problem_dir_release(&dir);
    assert_int_equal(chdir("/"), 0);
    free(with_slash);
}

static void is_listed(void **state)
{
    (void)state;
    char **path;
    size_t count;
    problem_dir_list(&path, &count);
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        found = found || strcmp(path[i], hill) == 0;
    }
    assert_true(found);
    problem_dir_free_texts(path, count);
}

static void template_and_readme_may_be_missing(void **state)
{
    char *template = xasprintf("%s/template.c", hill), *readme = xasprintf("%s/README.md", hill);
    (void)state;
    (void)unlink(template);
    (void)unlink(readme);
    struct problem_dir dir;
    struct err err = ERR_INIT;
    assert_int_equal(problem_dir_load(&dir, hill, &err), 0);
    assert_null(dir.template_source.data);
    assert_null(dir.readme.data);
    problem_dir_release(&dir);
    free(template);
    free(readme);
}

static void put(const char *dir, const char *name, const char *text)
{
    char *path = xasprintf("%s/%s", dir, name);

    if (text) {
        write_text(path, text);
    } else {
        assert_int_equal(unlink(path), 0);
    }
    free(path);
}

// A cuda problem without sources. Returns its folder, which the caller frees.
static char *make_cuda(void)
{
    static const char json[] =
        "{\"name\": \"gpu\", \"title\": \"t\", \"license\": \"MIT\", \"language\": \"cuda\","
        "\"params\": [{\"name\": \"n\", \"type\": \"int\"}], \"tensors\": [{\"name\": \"y\","
        "\"direction\": \"out\", \"dtype\": \"f32\", \"shape\": [\"n\"], \"tolerance\": 1}],"
        "\"cases\": {\"check\": [{\"n\": 5}], \"bench\": [{\"params\": {\"n\": 9}, \"weight\": "
        "1}]},"
        "\"cache\": \"cold\", \"work\": {\"flops\": \"n\", \"bytes\": \"4*n\"}}";
    char *gpu = xasprintf("%s/gpu", folder);

    assert_int_equal(file_make_dirs(gpu, NULL), 0);
    put(gpu, "problem.json", json);
    return gpu;
}

// The sources of a cuda problem are .cu files. It may have .c files, which are not read.
static void cuda_sources_have_their_own_names(void **state)
{
    static const char *const files[] = {"reference.cu", "baseline.cu", "template.cu"};
    char *gpu = make_cuda();
    struct problem_dir dir;
    struct err err = ERR_INIT;

    (void)state;
    put(gpu, "reference.c", "c");
    refused(gpu, ERR_NOT_FOUND, "reference.cu");
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        put(gpu, files[i], files[i]);
    }
    assert_int_equal(problem_dir_load(&dir, gpu, &err), 0);
    assert_string_equal((const char *)dir.reference.data, "reference.cu");
    assert_string_equal((const char *)dir.baseline.data, "baseline.cu");
    assert_string_equal((const char *)dir.template_source.data, "template.cu");
    problem_dir_release(&dir);
    free(gpu);
}

// Of each source there is one file. Another reference, in whatever language, is another digest.
static void reference_and_baseline_may_be_python(void **state)
{
    static const char python[] = "def reference(y): return y, y\n";
    char *gpu = make_cuda();
    struct problem_dir dir;
    struct err err = ERR_INIT;

    (void)state;
    put(gpu, "reference.cu", "reference.cu");
    put(gpu, "baseline.cu", "baseline.cu");
    put(gpu, "reference.py", python);
    refused(gpu, ERR_INVALID, "gpu has both reference.cu and reference.py; keep the one");
    put(gpu, "reference.cu", NULL);
    assert_int_equal(problem_dir_load(&dir, gpu, &err), 0);
    assert_string_equal((const char *)dir.reference.data, python);
    assert_string_equal(dir.reference_name, "reference.py");
    assert_string_equal(dir.baseline_name, "baseline.cu");
    struct digest digest = digest_of(python, strlen(python));
    assert_true(digest_equal(&dir.reference_digest, &digest));
    problem_dir_release(&dir);
    put(gpu, "reference.py", "y = 1\n");
    refused(gpu, ERR_INVALID, "reference.py is not taken for Python: no line of it begins with");
    put(gpu, "reference.py", "");
    refused(gpu, ERR_INVALID, "reference.py");
    put(gpu, "reference.py", NULL);
    refused(gpu, ERR_NOT_FOUND, "reference.cu");
    put(gpu, "reference.cu", "reference.cu");
    put(gpu, "baseline.py", python);
    refused(gpu, ERR_INVALID, "gpu has both baseline.cu and baseline.py; keep the one");
    put(gpu, "baseline.cu", NULL);
    assert_int_equal(problem_dir_load(&dir, gpu, &err), 0);
    assert_string_equal(dir.reference_name, "reference.cu");
    assert_string_equal(dir.baseline_name, "baseline.py");
    problem_dir_release(&dir);
    put(hill, "reference.py", python);
    refused("hill", ERR_INVALID, "both reference.c and reference.py");
    put(hill, "reference.py", NULL);
    free(gpu);
}

static void what_is_wrong_is_named(void **state)
{
    char *reference = xasprintf("%s/reference.c", hill), *json = xasprintf("%s/problem.json", hill);
    char *renamed = xasprintf("%s/cpu/mountain", folder),
         *baseline = xasprintf("%s/baseline.c", hill);
    (void)state;
    refused("", ERR_USAGE, "empty");
    refused("valley", ERR_NOT_FOUND, folder);
    refused("/nowhere", ERR_NOT_FOUND, "/nowhere");
    refused(folder, ERR_NOT_FOUND, "no problem.json");
    write_text(baseline, "");
    refused("hill", ERR_INVALID, "baseline.c is empty");
    (void)unlink(reference);
    refused("hill", ERR_NOT_FOUND, "reference.c");
    assert_int_equal(rename(hill, renamed), 0);
    refused("mountain", ERR_INVALID, "\"hill\" and its folder \"mountain\"");
    assert_int_equal(rename(renamed, hill), 0);
    write_text(json, "{\"name\": ");
    refused("hill", ERR_INVALID, "problem.json");
    free(reference);
    free(json);
    free(renamed);
    free(baseline);
}

static void spec_of_a_measurement_names_all_sources(void **state)
{
    (void)state;
    struct problem_dir dir;
    struct err err = ERR_INIT;
    assert_int_equal(problem_dir_load(&dir, "hill", &err), 0);
    struct job_spec spec;
    problem_dir_spec(&dir, JOB_MEASURE, &dir.baseline_digest, &spec);
    assert_true(digest_equal(&spec.reference, &dir.reference_digest));
    struct strbuf packed = STRBUF_INIT;
    assert_int_equal(message_pack(&job_spec_message, &spec, &packed, &err), 0);
    problem_dir_spec(&dir, JOB_COMPILE, &dir.baseline_digest, &spec);
    assert_true(digest_is_zero(&spec.reference));
    strbuf_release(&packed);
    problem_dir_release(&dir);
}

static void roots_are_those_that_exist_each_before_its_subfolders(void **state)
{
    (void)state;
    char *one = xasprintf("%s/one", folder), *two = xasprintf("%s/two", folder);
    char *sub = xasprintf("%s/one/zeta", folder), *other = xasprintf("%s/one/alpha", folder);
    char *hidden = xasprintf("%s/one/.git", folder);
    char *const made[] = {sub, other, hidden, two};
    for (size_t i = 0; i < ARRAY_LEN(made); i++) {
        assert_int_equal(file_make_dirs(made[i], NULL), 0);
    }
    char *list = xasprintf(":%s::%s/nowhere:%s:", two, folder, one);
    setenv("KCAST_PROBLEMS", list, 1);
    char **root;
    size_t count, first = SIZE_MAX;
    problem_dir_roots(&root, &count);
    for (size_t i = 0; i < count; i++) {
        assert_int_not_equal(root[i][0], '\0');
        assert_null(strstr(root[i], "nowhere"));
        assert_null(strstr(root[i], ".git"));
        first = strcmp(root[i], two) == 0 ? i : first;
    }
    assert_true(first != SIZE_MAX && first + 3 < count);
    assert_string_equal(root[first + 1], one);
    assert_string_equal(root[first + 2], other);
    assert_string_equal(root[first + 3], sub);
    problem_dir_free_texts(root, count);
    unsetenv("KCAST_PROBLEMS");
    size_t without;
    problem_dir_roots(&root, &without);
    assert_int_equal(count - without, 4);
    problem_dir_free_texts(root, without);
    problem_dir_free_texts(NULL, 0);
    setenv("KCAST_PROBLEMS", folder, 1);
    assert_int_equal(file_remove_tree(one, NULL), 0);
    assert_int_equal(file_remove_tree(two, NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(made); i++) {
        free(made[i]);
    }
    free(one);
    free(list);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(is_found_by_name_and_by_path),
        TEST(roots_are_those_that_exist_each_before_its_subfolders),
        TEST(is_listed),
        TEST(template_and_readme_may_be_missing),
        TEST(cuda_sources_have_their_own_names),
        TEST(reference_and_baseline_may_be_python),
        TEST(what_is_wrong_is_named),
        TEST(spec_of_a_measurement_names_all_sources),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
