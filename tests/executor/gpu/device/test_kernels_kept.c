// The executor's own kernels are compiled once and kept in the folder that KCAST_KERNELS names.
// Skipped without a compiler.
#include "common/digest.h"
#include "common/file.h"
#include "executor/gpu/compile/toolkit.h"
#include "executor/gpu/device/kernels.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD (2 * sizeof(struct digest))

struct kept {
    char *folder, *path;
};

static struct bytes built(void)
{
    struct err err = ERR_INIT;
    struct bytes cubin;

    if (kernels_build("sm_90", &cubin, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return cubin;
}

static struct bytes file_of(const struct kept *kept)
{
    struct err err = ERR_INIT;
    struct bytes file;

    if (file_read(&file, kept->path, (size_t)16 << 20, &err) != 0) {
        fail_msg("%s", err.text);
    }
    assert_true(file.len > HEAD);
    return file;
}

// Puts this text where the cubin is, with its digest before it, behind the first digest of `head`.
static void plant(const struct kept *kept, const struct bytes *head, const char *text)
{
    char file[HEAD + 100];
    struct digest digest = digest_of(text, strlen(text));
    struct err err = ERR_INIT;

    memcpy(file, head->data, sizeof(digest));
    memcpy(file + sizeof(digest), &digest, sizeof(digest));
    memcpy(file + HEAD, text, strlen(text));
    assert_int_equal(file_replace(kept->path, file, HEAD + strlen(text), false, &err), 0);
}

static bool is_a_cubin(const struct bytes *bytes)
{
    return bytes->len > 1000 && memcmp(bytes->data,
                                       "\x7f"
                                       "ELF",
                                       4) == 0;
}

static void the_second_process_takes_what_the_first_has_kept(void **state)
{
    const struct kept *kept = *state;
    struct bytes cubin = built(), file = file_of(kept);

    assert_true(is_a_cubin(&cubin));
    assert_int_equal(file.len, HEAD + cubin.len);
    assert_memory_equal((char *)file.data + HEAD, cubin.data, cubin.len);
    plant(kept, &file, "no cubin at all");
    struct bytes taken = built();
    assert_int_equal(taken.len, strlen("no cubin at all"));
    assert_memory_equal(taken.data, "no cubin at all", taken.len);
    bytes_clear(&taken);
    bytes_clear(&file);
    bytes_clear(&cubin);
}

// Of another text or compiler, changed, too short, empty.
static void what_does_not_fit_is_compiled_anew(void **state)
{
    const struct kept *kept = *state;
    struct bytes cubin = built(), file = file_of(kept);
    unsigned char *bytes = file.data;
    struct err err = ERR_INIT;
    const size_t flipped[] = {0, sizeof(struct digest), HEAD, file.len - 1};
    const size_t cut[] = {0, 10, HEAD, file.len - 1};

    for (size_t i = 0; i < sizeof(flipped) / sizeof(flipped[0]) + 4; i++) {
        size_t at = i < 4 ? flipped[i] : 0, len = i < 4 ? file.len : cut[i - 4];

        bytes[at] ^= (unsigned char)(i < 4);
        assert_int_equal(file_replace(kept->path, bytes, len, false, &err), 0);
        bytes[at] ^= (unsigned char)(i < 4);
        struct bytes again = built(), renewed = file_of(kept);
        assert_int_equal(again.len, cubin.len);
        assert_memory_equal(again.data, cubin.data, cubin.len);
        assert_int_equal(renewed.len, file.len);
        assert_memory_equal(renewed.data, file.data, file.len);
        bytes_clear(&renewed);
        bytes_clear(&again);
    }
    bytes_clear(&file);
    bytes_clear(&cubin);
}

static void without_a_folder_nothing_is_kept(void **state)
{
    const struct kept *kept = *state;

    assert_int_equal(setenv("KCAST_KERNELS", "/nowhere/at/all", 1), 0);
    struct bytes cubin = built();
    assert_true(is_a_cubin(&cubin));
    bytes_clear(&cubin);
    assert_int_equal(unsetenv("KCAST_KERNELS"), 0);
    cubin = built();
    assert_true(is_a_cubin(&cubin));
    bytes_clear(&cubin);
    struct err err = ERR_INIT;
    struct bytes file;
    assert_int_not_equal(file_read(&file, kept->path, 100, &err), 0);
}

static int set_up(void **state)
{
    struct kept *kept = calloc(1, sizeof(*kept));
    struct err err = ERR_INIT;

    if (file_make_temp_dir(&kept->folder, "kernels", &err) != 0) {
        fail_msg("%s", err.text);
    }
    kept->path = xasprintf("%s/sm_90.cubin", kept->folder);
    *state = kept;
    return setenv("KCAST_KERNELS", kept->folder, 1);
}

static int tear_down(void **state)
{
    struct kept *kept = *state;
    struct err err = ERR_INIT;
    int rc = file_remove_tree(kept->folder, &err);

    free(kept->folder);
    free(kept->path);
    free(kept);
    return rc;
}

static int find_compiler(void **state)
{
    struct toolkit toolkit;
    struct err err = ERR_INIT;

    (void)state;
    if (toolkit_find(&toolkit, &err) != 0) {
        printf("skipped because %s\n", err.text);
        exit(0);
    }
    toolkit_release(&toolkit);
    return 0;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_second_process_takes_what_the_first_has_kept),
        TEST(what_does_not_fit_is_compiled_anew),
        TEST(without_a_folder_nothing_is_kept),
    };
#undef TEST

    return cmocka_run_group_tests(tests, find_compiler, NULL);
}
