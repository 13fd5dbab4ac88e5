#include "worker/prompt/prompt_common.h"

#include <string.h>

// How many bytes, at most max, two texts end with in common.
static size_t common_of(const struct bytes *a, const struct bytes *b, size_t max)
{
    size_t len = 0;

    max = a->len < max ? a->len : max;
    max = b->len < max ? b->len : max;
    while (len < max && a->data[a->len - len - 1] == b->data[b->len - len - 1]) {
        len++;
    }
    return len;
}

// Shortens the common end to what a program that has most of it has, too.
static size_t joined(const struct bytes *first, const struct bytes *program, size_t len)
{
    size_t same = common_of(first, program, len);

    return same >= len / 2 && same >= PROMPT_COMMON_MIN ? same : len;
}

struct bytes prompt_common_end(const struct forecast_request *request)
{
    if (request->candidates_count < 2) {
        return (struct bytes){.data = NULL};
    }
    const struct search_context *context = request->context;
    const struct bytes *first = &request->candidates[0].source;
    size_t len = first->len;
    for (size_t i = 1; i < request->candidates_count && len >= PROMPT_COMMON_MIN; i++) {
        len = common_of(first, &request->candidates[i].source, len);
    }
    if (context) {
        len = joined(first, &context->incumbent, len);
        for (size_t i = 0; i < context->neighbours_count; i++) {
            len = joined(first, &context->neighbours[i].source, len);
        }
    }
    if (len < PROMPT_COMMON_MIN) {
        return (struct bytes){.data = NULL};
    }
    unsigned char *begin = first->data + first->len - len, *line = memchr(begin, '\n', len);
    len = line ? len - (size_t)(line + 1 - begin) : 0;
    return len >= PROMPT_COMMON_MIN ? (struct bytes){.data = line + 1, .len = len}
                                    : (struct bytes){.data = NULL};
}

bool prompt_ends_with(const struct bytes *source, const struct bytes *common)
{
    return common->len > 0 && source->len >= common->len &&
           memcmp(source->data + source->len - common->len, common->data, common->len) == 0;
}
