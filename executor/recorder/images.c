// The images that were given to the CUDA driver: code of the candidate and of the libraries that it
// uses. They are copied, because nobody promises to keep them.
#include "executor/recorder/recorder.h"
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IMAGES_MAX 4096

struct image {
    const unsigned char *data; // a copy
    uint64_t bytes;
    void *handle; // CUmodule or CUlibrary
    int is_library;
};

static struct image image[IMAGES_MAX];
static size_t image_count;
static pthread_mutex_t image_lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

// How long an ELF file is: it ends with its section headers, its program headers or a section.
static uint64_t elf_bytes(const unsigned char *at)
{
    uint64_t sections, programs, end;
    uint16_t section_size, section_count, program_size, program_count;

    memcpy(&programs, at + 32, 8);
    memcpy(&sections, at + 40, 8);
    memcpy(&program_size, at + 54, 2);
    memcpy(&program_count, at + 56, 2);
    memcpy(&section_size, at + 58, 2);
    memcpy(&section_count, at + 60, 2);
    end = greater(sections + (uint64_t)section_size * section_count,
                  programs + (uint64_t)program_size * program_count);
    for (uint16_t i = 0; i < section_count && section_size >= 64; i++) {
        const unsigned char *header = at + sections + (uint64_t)i * section_size;
        uint64_t offset, bytes;
        uint32_t type;

        memcpy(&type, header + 4, 4);
        memcpy(&offset, header + 24, 8);
        memcpy(&bytes, header + 32, 8);
        end = type == 8 ? end : greater(end, offset + bytes); // 8: it has no bytes in the file
    }
    return end;
}

// Finds the image itself and its length. 0: of an unknown kind, such as PTX.
static uint64_t find_image(const void *given, const unsigned char **ret)
{
    const unsigned char *at = given;
    uint32_t magic;

    memcpy(&magic, at, sizeof(magic));
    if (magic == 0x466243b1) { // nvcc's wrapper, which points to the container
        memcpy(&at, at + 8, sizeof(at));
        memcpy(&magic, at, sizeof(magic));
    }
    *ret = at;
    if (magic == 0xba55ed50) { // a container
        uint16_t header;
        uint64_t payload;

        memcpy(&header, at + 6, sizeof(header));
        memcpy(&payload, at + 8, sizeof(payload));
        return header + payload;
    }
    return memcmp(at, "\177ELF", 4) == 0 ? elf_bytes(at) : 0;
}

void note_image(const void *given, void *handle, int is_library)
{
    const unsigned char *at = NULL;
    uint64_t bytes = find_image(given, &at);

    (void)pthread_mutex_lock(&image_lock);
    if (bytes > 0 && image_count < IMAGES_MAX) {
        unsigned char *copy = malloc(bytes);

        if (copy) {
            memcpy(copy, at, bytes);
            image[image_count++] = (struct image){copy, bytes, handle, is_library};
        }
    }
    (void)pthread_mutex_unlock(&image_lock);
}

// How many images there are, and one of them.
EXPORT size_t kr_images(void);
size_t kr_images(void)
{
    return image_count;
}

EXPORT const struct image *kr_image(size_t number);
const struct image *kr_image(size_t number)
{
    return number < image_count ? &image[number] : NULL;
}

// An image that the driver reads from a file itself.
void note_file(const char *path, void *handle)
{
    FILE *file = fopen(path, "rb");
    long bytes = file && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : 0;
    unsigned char *data = bytes > 64 ? malloc((size_t)bytes) : NULL;

    if (data && fseek(file, 0, SEEK_SET) == 0 &&
        fread(data, 1, (size_t)bytes, file) == (size_t)bytes) {
        note_image(data, handle, 0);
    }
    free(data);
    if (file) {
        (void)fclose(file);
    }
}
