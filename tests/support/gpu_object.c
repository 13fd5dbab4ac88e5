#include "tests/support/gpu_object.h"
#include "common/strbuf.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void gpu_object_init(struct cuda_object *object, const char *source)
{
    message_init(&cuda_object_message, object);
    object->source = bytes_copy(source, strlen(source));
    object->target = xstrdup("sm_90");
}

// "fk_scale 8 8 4 4"
static void read_kernel(struct cuda_kernel *kernel, char *text)
{
    message_init(&cuda_kernel_message, kernel);
    kernel->name = xstrdup(strsep(&text, " "));
    kernel->symbol = xstrdup(kernel->name);
    kernel->sizes = xcalloc(64, sizeof(*kernel->sizes));
    kernel->offsets = xcalloc(64, sizeof(*kernel->offsets));
    char *word;
    uint64_t offset = 0;
    while ((word = strsep(&text, " "))) {
        uint64_t size = strtoull(word, NULL, 10);

        offset = (offset + size - 1) / size * size;
        kernel->offsets[kernel->offsets_count++] = offset;
        kernel->sizes[kernel->sizes_count++] = size;
        offset += size;
    }
}

void gpu_object_add(struct cuda_object *object, const struct bytes *image, const char *kernels,
                    const int64_t *values, size_t value_count)
{
    char *copy = xstrdup(kernels), *rest = copy, *one;

    object->variants =
        xrealloc(object->variants, object->variants_count + 1, sizeof(*object->variants));
    struct cuda_variant *variant = &object->variants[object->variants_count++];
    message_init(&cuda_variant_message, variant);
    variant->values = xcalloc(value_count + 1, sizeof(*variant->values));
    for (size_t i = 0; i < value_count; i++) {
        variant->values[variant->values_count++] = (uint64_t)values[i];
    }
    variant->kernels = xcalloc(64, sizeof(*variant->kernels));
    struct strbuf names = STRBUF_INIT;
    strbuf_adds(&names, "fake:");
    while ((one = strsep(&rest, ";"))) {
        struct cuda_kernel *kernel = &variant->kernels[variant->kernels_count++];

        read_kernel(kernel, one);
        strbuf_addf(&names, "%s ", kernel->symbol);
    }
    // With the NUL that ends the names.
    variant->cubin = image ? bytes_copy(image->data, image->len)
                           : bytes_copy(strbuf_text(&names), names.len + 1);
    strbuf_release(&names);
    free(copy);
}

void gpu_object_global(struct cuda_object *object, const char *symbol)
{
    struct cuda_variant *variant = &object->variants[object->variants_count - 1];

    variant->globals =
        xrealloc(variant->globals, variant->globals_count + 1, sizeof(*variant->globals));
    message_init(&cuda_global_message, &variant->globals[variant->globals_count]);
    variant->globals[variant->globals_count++].symbol = xstrdup(symbol);
}

struct bytes gpu_object_pack(struct cuda_object *object)
{
    struct strbuf packed;

    strbuf_init(&packed, (size_t)32 << 20);
    struct err err = ERR_INIT;
    if (message_pack(&cuda_object_message, object, &packed, &err) != 0) {
        fprintf(stderr, "packing an object: %s\n", err.text);
        abort();
    }
    message_clear(&cuda_object_message, object);
    return strbuf_detach_bytes(&packed);
}

struct bytes gpu_object(const char *source, const char *kernels)
{
    struct cuda_object object;

    gpu_object_init(&object, source);
    gpu_object_add(&object, NULL, kernels, NULL, 0);
    return gpu_object_pack(&object);
}
