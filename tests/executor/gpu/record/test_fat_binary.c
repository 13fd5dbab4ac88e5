// Which cubin is taken out of a fat binary, and that a damaged one is refused. What nvcc 13.0 wrote
// is in tests/data/cuda (fat_binary.sh there makes it).
#include "common/file.h"
#include "executor/gpu/compile/cubin.h"
#include "executor/gpu/record/fat_binary.h"
#include "tests/support/gpu_cubin.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MOST ((size_t)1 << 20)

static struct bytes load(const char *name)
{
    const char *root = getenv("KCAST_ROOT");
    char *path = xasprintf("%s/tests/data/cuda/%s", root ? root : ".", name);
    struct err err = ERR_INIT;
    struct bytes bytes = {.len = 0};

    if (file_read(&bytes, path, 1 << 20, &err) != 0) {
        fail_msg("%s", err.text);
    }
    free(path);
    return bytes;
}

static void refused(const struct bytes *image, unsigned device, size_t most, int code,
                    const char *words)
{
    struct bytes cubin = {.len = 0};
    struct err err = ERR_INIT;
    int rc = fat_binary_cubin(image, device, most, &cubin, &err);

    if (rc != code || !strstr(err.text, words)) {
        fail_msg("%d %s; expected: %s", rc, err.text, words);
    }
    assert_null(cubin.data);
}

// It has code for sm_75, sm_80 and sm_90, and PTX.
static void each_way_of_nvcc_to_compress_is_read(void **state)
{
    static const char *const names[] = {"fat_none.fatbin", "fat_speed.fatbin", "fat_size.fatbin"};
    static const struct {
        unsigned device, taken;
    } row[] = {{80, 80}, {86, 80}, {89, 80}, {90, 90}, {75, 75}};
    struct bytes first[ARRAY_LEN(row)] = {{.len = 0}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct bytes image = load(names[i]);

        assert_true(is_fat_binary(&image));
        for (size_t k = 0; k < ARRAY_LEN(row); k++) {
            struct bytes cubin;
            struct err err = ERR_INIT;
            unsigned taken = 0;

            if (fat_binary_cubin(&image, row[k].device, MOST, &cubin, &err) != 0 ||
                cubin_check(&cubin, &err) != 0 || cubin_architecture(&cubin, &taken, &err) != 0) {
                fail_msg("%s: %s", names[i], err.text);
            }
            assert_int_equal(taken, row[k].taken);
            if (i == 0) {
                first[k] = cubin;
                continue;
            }
            assert_int_equal(cubin.len, first[k].len); // the same code, however it is packed
            assert_memory_equal(cubin.data, first[k].data, cubin.len);
            bytes_clear(&cubin);
        }
        refused(&image, 100, MOST, ERR_UNSUPPORTED,
                "a fat binary has no machine code for sm_100, only sm_75, sm_80");
        refused(&image, 90, 1000, ERR_LIMIT, "1000 bytes");
        bytes_clear(&image);
    }
    for (size_t k = 0; k < ARRAY_LEN(row); k++) {
        bytes_clear(&first[k]);
    }
}

static void code_for_just_this_device_goes_before_code_that_also_runs(void **state)
{
    static const unsigned char container[] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0};
    static const struct {
        unsigned architecture;
        uint64_t flags;
    } row[] = {{86, 0}, {80, 0}, {89, 0x100000}, {87, 0x200000}, {86, 0x100000}, {86, 0x200000}};
    static const struct {
        unsigned device;
        char taken;
    } expected[] = {{80, 1}, {86, 4}, {87, 3}, {89, 2}, {88, 3}};
    unsigned char image[16 + ARRAY_LEN(row) * 72] = {0};
    const uint64_t payload = sizeof(image) - 16, eight = 8;
    const uint32_t header = 64;

    (void)state;
    memcpy(image, container, sizeof(container));
    memcpy(image + 8, &payload, 8);
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        unsigned char *at = image + 16 + 72 * i;

        at[0] = 2;
        memcpy(at + 4, &header, 4);
        memcpy(at + 8, &eight, 8);
        memcpy(at + 28, &row[i].architecture, 4);
        memcpy(at + 40, &row[i].flags, 8);
        at[64] = (unsigned char)i;
    }
    const struct bytes all = {.data = image, .len = sizeof(image)};
    for (size_t i = 0; i < ARRAY_LEN(expected); i++) {
        struct bytes cubin;
        struct err err = ERR_INIT;

        assert_int_equal(fat_binary_cubin(&all, expected[i].device, MOST, &cubin, &err), 0);
        assert_int_equal(cubin.len, 8);
        assert_int_equal(cubin.data[0], expected[i].taken);
        bytes_clear(&cubin);
    }
    refused(&all, 75, MOST, ERR_UNSUPPORTED, "nvcc -arch=sm_75, or TORCH_CUDA_ARCH_LIST=7.5");
}

static void ptx_alone_is_named(void **state)
{
    struct bytes ptx = {.data = (unsigned char *)"", .len = 0};
    struct bytes image = gpu_fat_binary(&ptx, 70, GPU_PLAIN);

    (void)state;
    refused(&image, 90, MOST, ERR_UNSUPPORTED,
            "a fat binary has no machine code for sm_90, only PTX of sm_80, sm_70; compile it");
    bytes_clear(&image);
}

// A copy, so that sanitizers notice reads beyond its end.
static void try_copy(const struct bytes *image, size_t len)
{
    struct bytes cut = {.data = malloc(len + 1), .len = len}, cubin = {.len = 0};
    struct err err = ERR_INIT;

    cut.data = realloc(cut.data, len > 0 ? len : 1);
    memcpy(cut.data, image->data, len);
    (void)!fat_binary_cubin(&cut, 90, MOST, &cubin, &err);
    bytes_clear(&cubin);
    bytes_clear(&cut);
}

static void what_is_cut_off_or_changed_is_refused_or_harmless(void **state)
{
    struct bytes cubin = gpu_cubin("fk_scale", "counter");

    (void)state;
    for (int packing = GPU_PLAIN; packing <= GPU_ZSTD; packing++) {
        struct bytes image = gpu_fat_binary(&cubin, 90, (enum gpu_packing)packing);

        for (size_t len = 0; len < image.len; len++) {
            struct bytes cut = {.data = image.data, .len = len};

            refused(&cut, 90, MOST, ERR_INVALID, "the fat binary is damaged: ");
            try_copy(&image, len);
        }
        for (size_t i = 0; i < image.len; i++) {
            for (int bit = 0; bit < 8; bit++) {
                image.data[i] ^= (unsigned char)(1 << bit);
                try_copy(&image, image.len);
                image.data[i] ^= (unsigned char)(1 << bit);
            }
        }
        bytes_clear(&image);
    }
    bytes_clear(&cubin);
}

// What says that it becomes larger than it does, or smaller.
static void what_it_becomes_is_as_long_as_it_says(void **state)
{
    struct bytes cubin = gpu_cubin("fk_scale", NULL);

    (void)state;
    for (int packing = GPU_LZ4; packing <= GPU_ZSTD; packing++) {
        struct bytes image = gpu_fat_binary(&cubin, 90, (enum gpu_packing)packing);
        unsigned char *says = image.data + 16 + 64 + 16 + 56; // behind the entry of the PTX

        for (int more = -1; more <= 1; more += 2) {
            uint64_t wrong = cubin.len + (uint64_t)more;

            memcpy(says, &wrong, 8);
            refused(&image, 90, MOST, ERR_INVALID, "the cubin cannot be unpacked");
        }
        memset(says, 0xff, 8);
        refused(&image, 90, MOST, ERR_LIMIT, "the cubin in a fat binary");
        memset(says, 0, 8);
        refused(&image, 90, MOST, ERR_INVALID, "does not say how long it is");
        bytes_clear(&image);
    }
    bytes_clear(&cubin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_way_of_nvcc_to_compress_is_read),
        cmocka_unit_test(code_for_just_this_device_goes_before_code_that_also_runs),
        cmocka_unit_test(ptx_alone_is_named),
        cmocka_unit_test(what_is_cut_off_or_changed_is_refused_or_harmless),
        cmocka_unit_test(what_it_becomes_is_as_long_as_it_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
