// Wisdom files: what is written is read again, a damaged file is refused, other entries stay, and a
// lookup finds the nearest shape.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/tune/wisdom_lookup.h"
#include "common/file.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char *folder, *file;

static const char digest_a[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
static const char digest_b[] = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

// Makes an entry for sgemm at one shape. With mb 0 nothing was faster than the baseline.
static json_t *object(int m, int n, int mb, double log2, const char *day)
{
    json_t *params = mb != 0 ? json_pack("{s:i, s:i}", "MB", mb, "OFF", -1) : json_null();
    char define[40], at[40];
    snprintf(define, sizeof(define), "-DMB=%d -DOFF=-1", mb);
    snprintf(at, sizeof(at), "2026-01-%sT00:00:00Z", day);
    json_t *ret = json_pack(
        "{s:s, s:[{s:{s:i, s:i, s:f}}], s:s, s:o, s:o, s:f, s:s, s:s, s:s, s:s, s:s, s:s, s:s}",
        "problem", "sgemm", "cases", "params", "M", m, "N", n, "scale", 0.1, "device_class",
        "cpu/x", "params", params, "define", mb != 0 ? json_string(define) : json_null(),
        "log2_speedup", log2, "kernel", "template.c", "kernel_digest", digest_a, "problem_digest",
        digest_a, "reference_digest", digest_a, "baseline_digest", digest_a, "toolchain",
        "gcc 12.2.0", "tuned_at", at);
    assert_non_null(ret);
    return ret;
}

static struct wisdom_entry *entry_take(json_t *from)
{
    struct wisdom_entry *entry = NULL;
    struct err err = ERR_INIT;
    if (wisdom_entry_read(&entry, from, "w.json", "$", &err) != 0) {
        fail_msg("%s", err.text);
    }
    json_decref(from);
    return entry;
}

static void set(json_t *in, const char *key, json_t *value)
{
    assert_int_equal(json_object_set_new(in, key, value), 0);
}

static void merge(json_t *from, bool wanted_kept)
{
    struct err err = ERR_INIT;
    bool kept;
    if (wisdom_merge_take(file, entry_take(from), &kept, &err) != 0) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(kept, wanted_kept);
}

static struct wisdom reread(void)
{
    struct wisdom wisdom;
    struct err err = ERR_INIT;
    if (wisdom_read(&wisdom, file, false, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return wisdom;
}

static int set_up(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    int rc = file_make_temp_dir(&folder, "kcast-test", &err);
    file = rc == 0 ? xasprintf("%s/wisdom.json", folder) : NULL;
    return rc;
}

static int tear_down(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    int rc = file_remove_tree(folder, &err);
    free(folder);
    free(file);
    return rc;
}

// ---- merging ----

static void test_entries_are_added_and_replaced(void **state)
{
    (void)state;
    merge(object(256, 256, 32, 2, "01"), false);
    merge(object(512, 512, 64, 3, "01"), false);
    json_t *gpu = object(256, 256, 128, 5, "02");
    set(gpu, "device_class", json_string("cuda: NVIDIA H200"));
    merge(gpu, false);
    json_t *changed = object(256, 256, 8, 1, "02");
    set(changed, "kernel_digest", json_string(digest_b));
    merge(changed, false);
    json_t *extra = object(256, 256, 16, 4, "03");
    set(extra, "later_key", json_pack("[i]", 7));
    merge(extra, false); // faster: replaces the first
    struct wisdom wisdom = reread();
    assert_int_equal(wisdom.count, 4);
    assert_string_equal(wisdom.entry[0]->define, "-DMB=16 -DOFF=-1");
    assert_string_equal(wisdom.entry[1]->define, "-DMB=64 -DOFF=-1");
    assert_string_equal(wisdom.entry[2]->define, "-DMB=128 -DOFF=-1");
    assert_string_equal(wisdom.entry[3]->define, "-DMB=8 -DOFF=-1");
    wisdom_release(&wisdom);
    merge(object(1024, 1024, 16, 4, "03"), false);
    wisdom = reread();
    assert_int_equal(wisdom.count, 5);
    // Keys of later releases stay.
    assert_non_null(json_object_get(wisdom.entry[0]->object, "later_key"));
    wisdom_release(&wisdom);
}

static void test_the_faster_of_one_toolchain_stays(void **state)
{
    (void)state;
    merge(object(256, 256, 32, 2, "01"), false);
    merge(object(256, 256, 16, 1, "02"), true);
    merge(object(256, 256, 0, 0, "02"), true);
    struct wisdom wisdom = reread();
    assert_string_equal(wisdom.entry[0]->define, "-DMB=32 -DOFF=-1");
    wisdom_release(&wisdom);
    json_t *newer = object(256, 256, 16, 1, "03");
    set(newer, "toolchain", json_string("gcc 14.1.0"));
    merge(newer, false); // an entry of another toolchain is replaced
    wisdom = reread();
    assert_int_equal(wisdom.count, 1);
    assert_string_equal(wisdom.entry[0]->define, "-DMB=16 -DOFF=-1");
    wisdom_release(&wisdom);
}

static void test_cases_are_a_set(void **state)
{
    (void)state;
    json_t *one = object(1, 2, 4, 1, "01"), *two = object(3, 4, 4, 1, "01");
    json_t *together = object(1, 2, 8, 1, "01"), *turned = object(3, 4, 8, 1, "01");
    json_array_append(json_object_get(together, "cases"),
                      json_array_get(json_object_get(two, "cases"), 0));
    json_array_append(json_object_get(turned, "cases"),
                      json_array_get(json_object_get(one, "cases"), 0));
    struct wisdom_entry *a = entry_take(one), *b = entry_take(two), *ab = entry_take(together),
                        *ba = entry_take(turned);
    assert_true(wisdom_same(ab, ba));
    assert_false(wisdom_same(a, b));
    assert_false(wisdom_same(a, ab));
    assert_false(wisdom_same(ab, b));
    wisdom_entry_free(a);
    wisdom_entry_free(b);
    wisdom_entry_free(ab);
    wisdom_entry_free(ba);
}

// Eight processes add ten entries each at the same time.
static void test_writers_at_once_lose_nothing(void **state)
{
    (void)state;
    enum { WRITERS = 8, EACH = 10 };
    for (int w = 0; w < WRITERS; w++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        for (int i = 0; pid == 0 && i < EACH; i++) {
            struct wisdom_entry *entry = NULL;
            json_t *from = object(w + 1, i + 1, 4, 1, "01");
            bool kept;
            if (wisdom_entry_read(&entry, from, "", "", NULL) != 0 ||
                wisdom_merge_take(file, entry, &kept, NULL) != 0) {
                _exit(1);
            }
            json_decref(from);
        }
        if (pid == 0) {
            _exit(0);
        }
    }
    for (int w = 0; w < WRITERS; w++) {
        int status = -1;
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    struct wisdom wisdom = reread();
    assert_int_equal(wisdom.count, WRITERS * EACH);
    wisdom_release(&wisdom);
}

// ---- what is refused ----

static void refuse(const char *text, int wanted, const char *sentence)
{
    struct wisdom wisdom;
    struct err err = ERR_INIT;
    int rc = wisdom_parse(&wisdom, text, strlen(text), "w.json", &err);
    assert_int_equal(rc, wanted);
    assert_int_equal(wisdom.count, 0);
    if (strncmp(err.text, "w.json: ", 8) != 0 || !strstr(err.text, sentence)) {
        fail_msg("\"%s\" does not say \"%s\"", err.text, sentence);
    }
}

// Makes a file whose entry is changed at one key.
static void refuse_value(const char *key, json_t *value, const char *sentence)
{
    json_t *from = object(256, 256, 32, 2, "01");
    set(from, key, value);
    json_t *root =
        json_pack("{s:s, s:i, s:[o]}", "format", WISDOM_FORMAT, "version", 1, "entries", from);
    char *text = json_dumps(root, 0);
    refuse(text, ERR_CORRUPT, sentence);
    free(text);
    json_decref(root);
}

static void test_damaged_files_are_refused(void **state)
{
    (void)state;
    refuse("", ERR_CORRUPT, "no JSON");
    refuse("{\"format\": \"kernelcast-wisdom\", \"versi", ERR_CORRUPT, "line 1");
    refuse("[]", ERR_CORRUPT, "$.format");
    refuse("{\"format\": \"x\", \"version\": 1, \"entries\": []}", ERR_CORRUPT, "no wisdom file");
    refuse("{\"format\": \"kernelcast-wisdom\", \"version\": 2, \"entries\": []}", ERR_VERSION,
           "version 2");
    refuse("{\"format\": \"kernelcast-wisdom\", \"version\": 1, \"entries\": {}}", ERR_CORRUPT,
           "entries");
    refuse("{\"format\": \"kernelcast-wisdom\", \"version\": 1, \"entries\": [3]}", ERR_CORRUPT,
           "$.entries[0]");
    refuse_value("define", json_string("-DMB=33 -DOFF=-1"), "$.entries[0].define");
    refuse_value("define", json_null(), "$.entries[0].define");
    refuse_value("params", json_pack("{s:s}", "MB", "`reboot`"), "$.entries[0].params");
    refuse_value("params", json_pack("{s:i}", "MB;reboot", 1), "$.entries[0].params");
    refuse_value("params", json_pack("{s:f}", "MB", 1.5), "$.entries[0].params");
    refuse_value("kernel_digest", json_string("abc"), "64 hex digits");
    refuse_value("device_class", json_string("x\033[2J"), "control characters");
    refuse_value("problem", json_null(), "$.entries[0].problem");
    refuse_value("tuned_at", json_string("yesterday"), "$.entries[0].tuned_at");
    refuse_value("log2_speedup", json_string("2"), "$.entries[0].log2_speedup");
    refuse_value("cases", json_array(), "$.entries[0].cases");
    refuse_value("cases", json_pack("[{}]"), "$.entries[0].cases");
    refuse_value("cases", json_pack("[{s:{s:s}}]", "params", "M", "1"), "$.entries[0].cases");
}

static void test_one_thing_twice_is_refused(void **state)
{
    (void)state;
    json_t *root = json_pack("{s:s, s:i, s:[o, o]}", "format", WISDOM_FORMAT, "version", 1,
                             "entries", object(1, 1, 2, 1, "01"), object(1, 1, 4, 1, "01"));
    char *text = json_dumps(root, 0);
    refuse(text, ERR_CORRUPT, "$.entries[1]: an earlier entry is for the same thing");
    free(text);
    json_decref(root);
}

static void test_a_damaged_file_is_not_replaced(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    assert_int_equal(file_replace(file, "{\"form", 6, false, &err), 0);
    assert_int_equal(wisdom_check(file, &err), ERR_CORRUPT);
    bool kept;
    assert_int_equal(wisdom_merge_take(file, entry_take(object(1, 1, 2, 1, "01")), &kept, NULL),
                     ERR_CORRUPT);
    struct bytes after;
    assert_int_equal(file_read(&after, file, 100, NULL), 0);
    assert_memory_equal(after.data, "{\"form", 6);
    bytes_clear(&after);
}

static void test_a_folder_that_is_none_is_refused(void **state)
{
    char *path = xasprintf("%s/nowhere/w.json", folder);
    (void)state;
    struct err err = ERR_INIT;
    assert_int_equal(wisdom_check(path, &err), ERR_SYSTEM);
    assert_non_null(strstr(err.text, "w.json.lock: cannot be created"));
    free(path);
}

// ---- lookups ----

static struct wisdom made_wisdom(void)
{
    struct wisdom wisdom = {0};
    bool kept;
    wisdom_put_take(&wisdom, entry_take(object(256, 256, 32, 2, "05")), &kept);
    wisdom_put_take(&wisdom, entry_take(object(1024, 64, 64, 3, "06")), &kept);
    wisdom_put_take(&wisdom, entry_take(object(8, 8, 0, 0, "07")), &kept);
    return wisdom;
}

static struct wisdom_match find(const struct wisdom *wisdom, const char *shape)
{
    const struct wisdom_query query = {"sgemm", shape, NULL, NULL};
    struct wisdom_match match = {0};
    struct err err = ERR_INIT;
    if (wisdom_lookup(&match, wisdom, &query, "w.json", &err) != 0) {
        fail_msg("%s", err.text);
    }
    return match;
}

static void test_the_nearest_shape_answers(void **state)
{
    struct wisdom wisdom = made_wisdom();
    (void)state;
    struct wisdom_match match = find(&wisdom, "M=256 N=256");
    assert_true(match.exact && match.entry == wisdom.entry[0]);
    match = find(&wisdom, "N=256  scale=0.1 M=256");
    assert_true(match.exact && match.entry == wisdom.entry[0]);
    match = find(&wisdom, "M=256 N=256 scale=0.2"); // near, but not the same
    assert_true(!match.exact && match.entry == wisdom.entry[0]);
    match = find(&wisdom, "M=511 N=256");
    assert_true(!match.exact && match.entry == wisdom.entry[0]);
    assert_true(fabs(match.distance - (9 - log2(257))) < 1e-12);
    match = find(&wisdom, "M=900 N=50");
    assert_true(match.entry == wisdom.entry[1]);
    match = find(&wisdom, "M=0 N=-3");
    assert_true(match.entry == wisdom.entry[2] && !match.entry->configured);
    wisdom_release(&wisdom);
}

static void test_one_shape_goes_before_all_and_the_last_kernel_before_others(void **state)
{
    struct wisdom wisdom = made_wisdom();
    json_t *all = object(256, 256, 7, 9, "09"), *edited = object(4096, 4096, 5, 1, "10");
    (void)state;
    json_array_append_new(json_object_get(all, "cases"),
                          json_pack("{s:{s:i, s:i, s:f}}", "params", "M", 4, "N", 4, "scale", 0.1));
    bool kept;
    wisdom_put_take(&wisdom, entry_take(all), &kept);
    assert_true(find(&wisdom, "M=256 N=256").entry == wisdom.entry[0]);
    assert_true(find(&wisdom, "M=4 N=4").entry == wisdom.entry[3]);
    set(edited, "kernel_digest", json_string(digest_b));
    wisdom_put_take(&wisdom, entry_take(edited), &kept);
    assert_true(find(&wisdom, "M=256 N=256").entry == wisdom.entry[4]);
    const struct wisdom_query query = {"sgemm", "M=256 N=256", "cpu/x", digest_a};
    struct wisdom_match match;
    assert_int_equal(wisdom_lookup(&match, &wisdom, &query, "w.json", NULL), 0);
    assert_true(match.entry == wisdom.entry[0]);
    wisdom_release(&wisdom);
}

static void refuse_query(const struct wisdom *wisdom, struct wisdom_query query, int wanted,
                         const char *sentence)
{
    struct wisdom_match match;
    struct err err = ERR_INIT;
    assert_int_equal(wisdom_lookup(&match, wisdom, &query, "w.json", &err), wanted);
    if (!strstr(err.text, sentence)) {
        fail_msg("\"%s\" does not say \"%s\"", err.text, sentence);
    }
}

static void test_questions_that_have_no_answer(void **state)
{
    struct wisdom wisdom = made_wisdom();
    json_t *other = object(1, 1, 2, 1, "01");
    (void)state;
    refuse_query(&wisdom, (struct wisdom_query){"dgemm", "M=1", NULL, NULL}, ERR_NOT_FOUND,
                 "dgemm");
    refuse_query(&wisdom, (struct wisdom_query){"sgemm", "M=1", NULL, NULL}, ERR_INVALID,
                 "the parameter N is missing");
    refuse_query(&wisdom, (struct wisdom_query){"sgemm", "M=1 Q=2", NULL, NULL}, ERR_INVALID,
                 "\"Q\"");
    refuse_query(&wisdom, (struct wisdom_query){"sgemm", "M=1 M=2", NULL, NULL}, ERR_INVALID,
                 "twice");
    refuse_query(&wisdom, (struct wisdom_query){"sgemm", "M=x N=2", NULL, NULL}, ERR_INVALID,
                 "M=x");
    refuse_query(&wisdom, (struct wisdom_query){"sgemm", "M", NULL, NULL}, ERR_INVALID, "\"M\"");
    refuse_query(&wisdom, (struct wisdom_query){"sgemm", "M=1 N=1", "cpu/y", NULL}, ERR_NOT_FOUND,
                 "cpu/y");
    refuse_query(&wisdom, (struct wisdom_query){"sgemm", "M=1 N=1", NULL, digest_b}, ERR_NOT_FOUND,
                 "this kernel");
    set(other, "device_class", json_string("cpu/y"));
    bool kept;
    wisdom_put_take(&wisdom, entry_take(other), &kept);
    refuse_query(&wisdom, (struct wisdom_query){"sgemm", "M=1 N=1", NULL, NULL}, ERR_USAGE,
                 "--device-class");
    wisdom_release(&wisdom);
}

int main(void)
{
#define IN_FOLDER(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_entries_are_added_and_replaced),
        IN_FOLDER(test_the_faster_of_one_toolchain_stays),
        cmocka_unit_test(test_cases_are_a_set),
        IN_FOLDER(test_writers_at_once_lose_nothing),
        cmocka_unit_test(test_damaged_files_are_refused),
        cmocka_unit_test(test_one_thing_twice_is_refused),
        IN_FOLDER(test_a_damaged_file_is_not_replaced),
        IN_FOLDER(test_a_folder_that_is_none_is_refused),
        cmocka_unit_test(test_the_nearest_shape_answers),
        cmocka_unit_test(test_one_shape_goes_before_all_and_the_last_kernel_before_others),
        cmocka_unit_test(test_questions_that_have_no_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
