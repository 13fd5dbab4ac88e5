// Any text as a language model's answer with programs and edits. The size of the programs is
// bounded, they are what was wanted, and normalising a program twice gives the same as normalising
// it once, as long as it stays the same kind of program.
#include "common/mem.h"
#include "problem/candidate_form.h"
#include "problem/normalised_source.h"
#include "problem/source_shingles.h"
#include "worker/llm/answer_edits.h"
#include "worker/llm/answer_sources.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char program[] =
    "// a\n//@ launch k grid=(1)\n__global__ void run(int n)\n{\n    n++;\n}\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

// A source is wholly like itself, and as much like another one as that is like it.
static void check_shingles(const uint8_t *data, size_t len)
{
    struct source_shingles one, half;

    source_shingles_make(&one, data, len);
    source_shingles_make(&half, data, len / 2);
    double alike = source_shingles_similarity(&one, &half);
    if (source_shingles_similarity(&one, &one) != 1 || !(alike >= 0) || alike > 1 ||
        alike != source_shingles_similarity(&half, &one)) {
        abort();
    }
    source_shingles_release(&one);
    source_shingles_release(&half);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct strbuf once = STRBUF_INIT, twice = STRBUF_INIT;
    char *text = xstrndup((const char *)data, len), *source[8];
    const struct answer_wanted wanted = {
        .launches = len % 3 == 0,
        .python = len % 7 == 0,
        .entry = len % 3 == 1 ? "run" : NULL,
        .program = len % 5 == 0 ? program : NULL,
        .program_len = strlen(program),
    };
    size_t count = answer_sources(&wanted, text, len % 2 == 0, source, 8, NULL);
    // Edits may add blanks of the program to each of their lines; else nothing is added.
    size_t most =
        answer_edits_are(text, strlen(text)) ? ANSWER_SOURCE_MAX : len + strlen(program) + 1;

    for (size_t i = 0; i < count; i++) {
        if (strlen(source[i]) > most ||
            (wanted.python
                 ? candidate_form(source[i], strlen(source[i])) != FORM_PYTHON
                 : !strchr(source[i], '{') || (wanted.launches && !strstr(source[i], "launch")) ||
                       (wanted.entry && !strstr(source[i], wanted.entry)))) {
            abort();
        }
        free(source[i]);
    }
    check_shingles(data, len);
    source_normalise(&once, text, strlen(text));
    source_normalise(&twice, strbuf_text(&once), once.len);
    if (once.len > 2 * strlen(text) + 2) {
        abort();
    }
    // Normalising may leave a stray backslash in front of a line end, which the next pass joins,
    // and may bring together what then looks like a cubin or Python, which are other kinds of text.
    enum candidate_form before = candidate_form(text, strlen(text));
    enum candidate_form after = candidate_form(strbuf_text(&once), once.len);
    bool same_kind = (before == FORM_CUBIN) == (after == FORM_CUBIN) &&
                     (before == FORM_PYTHON) == (after == FORM_PYTHON);
    if (!strchr(text, '\\') && same_kind &&
        (once.len != twice.len || memcmp(strbuf_text(&once), strbuf_text(&twice), once.len) != 0)) {
        abort();
    }
    strbuf_release(&once);
    strbuf_release(&twice);
    free(text);
    return 0;
}
