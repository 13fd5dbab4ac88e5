// What tests of prompts share: texts that a request borrows, and what stands in a prompt and in
// which order.
#ifndef TESTS_WORKER_PROMPT_PROMPT_FIXTURE_H
#define TESTS_WORKER_PROMPT_PROMPT_FIXTURE_H

#include "common/mem.h"
#include "common/strbuf.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

// The text's bytes without its final NUL; they stay the caller's.
static inline struct bytes borrowed(const char *text)
{
    return (struct bytes){.data = (unsigned char *)(uintptr_t)text, .len = strlen(text)};
}

static inline void text_has(const struct strbuf *out, const char *text)
{
    if (!strstr(strbuf_text(out), text)) {
        fail_msg("\"%s\" is not in:\n%s", text, strbuf_text(out));
    }
}

static inline void text_lacks(const struct strbuf *out, const char *text)
{
    if (strstr(strbuf_text(out), text)) {
        fail_msg("\"%s\" is in:\n%s", text, strbuf_text(out));
    }
}

// Fails unless the texts come in this order. A NULL ends them.
static inline void text_in_order(const struct strbuf *out, const char *const *text)
{
    const char *at = strbuf_text(out);
    for (size_t i = 0; text[i]; i++) {
        at = strstr(at, text[i]);
        if (!at) {
            fail_msg("\"%s\" is not where it should be in:\n%s", text[i], strbuf_text(out));
        }
    }
}

#endif
