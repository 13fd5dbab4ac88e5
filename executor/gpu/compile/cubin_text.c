#include "executor/gpu/compile/cubin_text.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void cubin_text_encode(const struct bytes *cubin, struct strbuf *out)
{
    for (size_t at = 0; at < cubin->len; at += 3) {
        size_t there = cubin->len - at < 3 ? cubin->len - at : 3;
        uint32_t bits = 0;

        for (size_t i = 0; i < 3; i++) {
            bits = bits << 8 | (i < there ? cubin->data[at + i] : 0);
        }
        for (size_t i = 0; i < 4; i++) {
            strbuf_addc(out, i <= there ? alphabet[bits >> (18 - 6 * i) & 63] : '=');
        }
    }
}

// The value of a character of base64, -1 when it is none.
static int value_of(char c)
{
    const char *at = c != '\0' ? strchr(alphabet, c) : NULL;

    return at ? (int)(at - alphabet) : -1;
}

static bool is_blank(char c)
{
    return c == '\n' || c == '\r' || c == ' ' || c == '\t';
}

// Whether only "=", as many as are missing of four characters, and blanks are left.
static bool ends_well(const char *text, size_t len, size_t digits)
{
    size_t missing = 0;

    for (size_t i = 0; i < len; i++) {
        missing += text[i] == '=';
        if (text[i] != '=' && !is_blank(text[i])) {
            return false;
        }
    }
    return digits % 4 != 1 && (digits + missing) % 4 == 0 && missing <= 2;
}

int cubin_text_decode(const char *text, size_t len, struct bytes *ret, struct err *err)
{
    struct bytes out = {.data = xmalloc(len / 4 * 3 + 4)};
    size_t at = 0, digits = 0;
    uint32_t bits = 0;

    for (; at < len && text[at] != '='; at++) {
        int value = value_of(text[at]);

        if (value < 0 && !is_blank(text[at])) {
            break;
        }
        if (value >= 0) {
            bits = bits << 6 | (uint32_t)value;
            digits++;
            if (digits % 4 != 1) { // another byte is complete
                out.data[out.len++] = (unsigned char)(bits >> 2 * (3 - (digits + 3) % 4));
            }
        }
    }
    if (!ends_well(text + at, len - at, digits)) {
        bytes_clear(&out);
        return err_set(err, ERR_INVALID,
                       at < len && text[at] != '=' ? "a character is none of base64"
                                                   : "its base64 is cut off");
    }
    *ret = out;
    return 0;
}

void cubin_text_unpack(const struct nvrtc_input *input, struct nvrtc_output *ret)
{
    size_t len = strlen(input->source), at = candidate_skip_comments(input->source, len);
    struct nvrtc_output out = {.compiled = false};
    struct err err = ERR_INIT;

    if (cubin_text_decode(input->source + at, len - at, &out.cubin, &err) == 0) {
        out.compiled = true;
        out.log = xstrdup("");
        for (size_t i = 0; i < input->name_count; i++) {
            out.symbol[i] = xstrdup(input->name[i]);
        }
    } else {
        out.log =
            xasprintf("%s: error: %s; write it by: base64 FILE.cubin\n", input->file, err.text);
    }
    *ret = out;
}
