// What a search is told of spaces that it begins with.
#include "client/space/space_warm.h"

#include "client/space/space.h"
#include "common/file.h"
#include "tests/replay/toy.h"
#include <stdlib.h>

static char *folder;

static int set_up(void **state)
{
    (void)state;
    return file_make_temp_dir(&folder, "kcast-test", NULL);
}

static int tear_down(void **state)
{
    (void)state;
    int rc = file_remove_tree(folder, NULL);
    free(folder);
    return rc;
}

// Writes the toy space as one of this device, every speedup multiplied by 2^shift. Returns its
// path.
static char *write_toy(const char *device, double shift)
{
    struct space space = toy_space();
    struct err err = ERR_INIT;
    char *path = xasprintf("%s/%s.space", folder, device);
    free(space.head.device_class);
    space.head.device_class = xstrdup(device);
    for (size_t i = 0; i < TOY_POINTS; i++) {
        if (space.candidate[i].result && space.candidate[i].result->speedup) {
            space.candidate[i].result->speedup->log2 += shift;
        }
    }
    if (space_write(&space, path, &err) != 0) {
        fail_msg("%s", err.text);
    }
    space_release(&space);
    return path;
}

static void vendors_are_known_by_their_devices_names(void **state)
{
    (void)state;
    assert_true(space_same_vendor("NVIDIA H200, sm_90", "GeForce RTX 3090"));
    assert_true(space_same_vendor("Tesla V100", "quadro p4000"));
    assert_true(space_same_vendor("AMD Instinct", "Radeon PRO W6600"));
    assert_false(space_same_vendor("NVIDIA H200", "AMD Instinct"));
    assert_true(space_same_vendor("cpu x86-64, 2 cores", "cpu arm"));
    assert_false(space_same_vendor("cpu x86-64", "NVIDIA H200"));
}

static void speedups_are_over_the_best_and_the_vendors_come_first(void **state)
{
    (void)state;
    char *amd = write_toy("AMD Instinct", 3), *nvidia = write_toy("Tesla V100", 0);
    char *list = xasprintf("%s,%s", amd, nvidia);
    struct bytes text;
    struct err err = ERR_INIT;
    if (space_warm_text(&text, list, "NVIDIA H200", NULL, &err) != 0) {
        fail_msg("%s", err.text);
    }
    size_t lines = 0, zeros = 0, nulls = 0;
    for (const char *at = (const char *)text.data, *end; (end = strchr(at, '\n')); at = end + 1) {
        char *line = xstrndup(at, (size_t)(end - at));
        zeros += strstr(line, "\"log2\":0.0") ? 1 : 0;
        nulls += strstr(line, "\"log2\":null") ? 1 : 0;
        lines++;
        free(line);
    }
    assert_int_equal(lines, 2 * TOY_POINTS);
    assert_int_equal(zeros, 2); // the best of each
    assert_true(nulls > 0);
    bytes_clear(&text);
    // With one space each, the texts say in which order both stand.
    struct bytes one;
    assert_int_equal(space_warm_text(&one, nvidia, "NVIDIA H200", NULL, NULL), 0);
    assert_int_equal(space_warm_text(&text, list, "NVIDIA H200", NULL, NULL), 0);
    assert_memory_equal(text.data, one.data, one.len);
    bytes_clear(&one);
    bytes_clear(&text);
    free(amd);
    free(nvidia);
    free(list);
}

static void what_the_worker_knows_is_told_like_spaces(void **state)
{
    (void)state;
    char *nvidia = write_toy("Tesla V100", 0);
    double values[] = {16, 2, 3, 32, 2, 3}, log2[] = {1.5, 0.5}, other[] = {1, NAN}, few[] = {1};
    struct recalled group[] = {
        {(char *)"toy", (char *)"AMD Instinct", other, 2, values, 6},
        {(char *)"toy", (char *)"GeForce RTX 3090", log2, 2, values, 6},
        {(char *)"toy", (char *)"NVIDIA A100", few, 1, values, 6}, // numbers that do not fit
    };
    const struct recall_reply reply = {.groups = group, .groups_count = ARRAY_LEN(group)};
    static const char *const names[] = {"A", "B", "C"};
    const struct space_warm_known known = {.reply = &reply, .param = names, .params = 3};
    static const char worker[] = "{\"params\":{\"A\":16.0,\"B\":2.0,\"C\":3.0},\"log2\":0.0}\n"
                                 "{\"params\":{\"A\":32.0,\"B\":2.0,\"C\":3.0},\"log2\":-1.0}\n"
                                 "{\"params\":{\"A\":16.0,\"B\":2.0,\"C\":3.0},\"log2\":0.0}\n"
                                 "{\"params\":{\"A\":32.0,\"B\":2.0,\"C\":3.0},\"log2\":null}\n";
    struct bytes text, one;
    struct err err = ERR_INIT;
    if (space_warm_text(&text, NULL, "NVIDIA H200", &known, &err) != 0) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(text.len, strlen(worker));
    assert_memory_equal(text.data, worker, text.len);
    bytes_clear(&text);
    // A space of the vendor, the worker's group of the vendor, and then the worker's other one.
    assert_int_equal(space_warm_text(&one, nvidia, "NVIDIA H200", NULL, NULL), 0);
    assert_int_equal(space_warm_text(&text, nvidia, "NVIDIA H200", &known, NULL), 0);
    assert_int_equal(text.len, one.len + strlen(worker));
    assert_memory_equal(text.data, one.data, one.len);
    assert_memory_equal(text.data + one.len, worker, strlen(worker));
    bytes_clear(&one);
    bytes_clear(&text);
    free(nvidia);
}

static void what_cannot_be_begun_with_is_refused(void **state)
{
    (void)state;
    struct bytes text;
    struct err err = ERR_INIT;
    assert_int_equal(space_warm_text(&text, "", "NVIDIA H200", NULL, &err), ERR_USAGE);
    assert_non_null(strstr(err.text, "--warm"));
    err = (struct err)ERR_INIT;
    assert_int_equal(space_warm_text(&text, "no-such.space", "NVIDIA H200", NULL, &err),
                     ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, "no-such.space"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vendors_are_known_by_their_devices_names),
        cmocka_unit_test(speedups_are_over_the_best_and_the_vendors_come_first),
        cmocka_unit_test(what_the_worker_knows_is_told_like_spaces),
        cmocka_unit_test(what_cannot_be_begun_with_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
