#include "executor/compile_result.h"
#include "common/mem.h"
#include <stdlib.h>

void compile_result_refuse(struct compiled *compiled, enum verdict verdict, char *reason_take)
{
    if (compiled->verdict == VERDICT_NONE) {
        compiled->verdict = verdict;
        compiled->reason = reason_take;
    } else {
        free(reason_take);
    }
}

void compile_result_refuse_slow(struct compiled *compiled, const struct compile_plan *plan)
{
    compile_result_refuse(
        compiled, VERDICT_COMPILE_ERROR,
        xasprintf("compiling it takes longer than the %g seconds allowed", plan->max_seconds));
}

void compile_result_refuse_large(struct compiled *compiled, const struct compile_plan *plan)
{
    compile_result_refuse(compiled, VERDICT_COMPILE_ERROR,
                          xasprintf("its object is larger than the %llu MiB allowed",
                                    (unsigned long long)(plan->max_output >> 20)));
}

// Returns the length of the UTF-8 sequence at p, 0 when it is not valid.
static size_t utf8_length(const unsigned char *p, size_t left)
{
    size_t n = p[0] < 0x80                   ? 1
               : p[0] >= 0xc2 && p[0] < 0xe0 ? 2
               : p[0] >= 0xe0 && p[0] < 0xf0 ? 3
               : p[0] >= 0xf0 && p[0] < 0xf5 ? 4
                                             : 0;

    if (n == 0 || n > left) {
        return 0;
    }
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] >= 0xa0) ||
        (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] >= 0x90)) {
        return 0; // overlong, a surrogate, or beyond U+10FFFF
    }
    return n;
}

void compile_result_clean(char *text, size_t len)
{
    unsigned char *p = (unsigned char *)text;

    for (size_t i = 0; i < len;) {
        size_t n = utf8_length(p + i, len - i);
        if (n == 0 || (n == 1 && (p[i] < ' ' || p[i] == 0x7f) && p[i] != '\n' && p[i] != '\t')) {
            p[i] = '?';
            n = 1;
        }
        i += n;
    }
}
