// Design note. An image is as large as the library that it is part of, tens of MiB, and of its
// kernels few are launched; the code of the others is zeros (cubin_keep_kernels). So images are
// packed in an object, which daemon and disk keep, and unpacked where they are loaded.
#include "executor/gpu/program/recording.h"
#include <stdlib.h>
#include <zstd.h>

#define LEVEL 3

void recording_pack_images(struct cuda_recording *recording)
{
    for (size_t i = 0; i < recording->images_count; i++) {
        struct recorded_image *image = &recording->images[i];
        size_t room = ZSTD_compressBound(image->data.len);
        struct bytes packed = {.data = xmalloc(room)};

        packed.len = ZSTD_compress(packed.data, room, image->data.data, image->data.len, LEVEL);
        if (ZSTD_isError(packed.len) || packed.len >= image->data.len) {
            free(packed.data); // it stays as it is, whatever was said of it
            image->bytes = 0;
            continue;
        }
        image->bytes = image->data.len;
        bytes_clear(&image->data);
        image->data = packed;
    }
}

static int unpack(struct recorded_image *image, size_t *left, struct err *err)
{
    void *data = NULL;
    int rc = mem_try_alloc(&data, image->bytes, 1, *left, "the images of a recording", err);

    if (rc != 0) {
        return rc;
    }
    struct bytes whole = {.data = data, .len = image->bytes};
    size_t n = ZSTD_decompress(whole.data, whole.len, image->data.data, image->data.len);
    if (ZSTD_isError(n) || n != whole.len) {
        bytes_clear(&whole);
        return err_set(err, ERR_INVALID, "an image of a recording cannot be unpacked");
    }
    *left -= whole.len;
    bytes_clear(&image->data);
    image->data = whole;
    image->bytes = 0;
    return 0;
}

int recording_unpack_images(struct cuda_recording *recording, struct err *err)
{
    size_t left = RECORDING_IMAGES_MAX;
    int rc = 0;

    for (size_t i = 0; i < recording->images_count && rc == 0; i++) {
        if (recording->images[i].bytes > 0) {
            rc = unpack(&recording->images[i], &left, err);
        }
    }
    return rc;
}
