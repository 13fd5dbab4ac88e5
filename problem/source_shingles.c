#include "problem/source_shingles.h"

#include "common/mem.h"
#include "common/stats.h"
#include "common/strbuf.h"
#include "problem/normalised_source.h"
#include <ctype.h>
#include <stdlib.h>

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

// The length of the token that begins at text, which is neither empty nor a blank: a word, a
// number, a literal, or one other character.
static size_t token_len(const char *text)
{
    size_t len = 1;
    if (is_word(text[0])) {
        while (is_word(text[len]) || (text[len] == '.' && isdigit((unsigned char)text[0]))) {
            len++;
        }
    } else if (text[0] == '"' || text[0] == '\'') {
        while (text[len] != '\0' && text[len] != text[0] && text[len] != '\n') {
            len += text[len] == '\\' && text[len + 1] != '\0' ? 2 : 1;
        }
        len += text[len] == text[0];
    }
    return len;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

// Sorts the hashes and drops repeated ones.
static void make_set(struct source_shingles *shingles)
{
    size_t kept = 0;
    if (shingles->count > 0) {
        qsort(shingles->hash, shingles->count, sizeof(*shingles->hash), compare);
    }
    for (size_t i = 0; i < shingles->count; i++) {
        if (i == 0 || shingles->hash[i] != shingles->hash[i - 1]) {
            shingles->hash[kept++] = shingles->hash[i];
        }
    }
    shingles->count = kept;
}

// FNV-1a (Fowler, Noll, Vo) of the token.
static uint64_t hash_of(const char *token, size_t len)
{
    uint64_t hash = 0xcbf29ce484222325ULL;
    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ (unsigned char)token[i]) * 0x100000001b3ULL;
    }
    return hash;
}

// The hash of the shingle whose newest token is number `last`, from a ring of token hashes.
static uint64_t shingle_of(const uint64_t ring[static SOURCE_SHINGLE], size_t last, size_t tokens)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < tokens; i++) {
        hash = stats_philox(hash, ring[(last + 1 + SOURCE_SHINGLE - tokens + i) % SOURCE_SHINGLE],
                            tokens);
    }
    return hash;
}

void source_shingles_make(struct source_shingles *ret, const void *source, size_t len)
{
    struct strbuf text = STRBUF_INIT;
    uint64_t ring[SOURCE_SHINGLE] = {0};
    size_t count = 0;

    source_normalise(&text, source, len);
    // A NUL inside ends the text: no compiler reads on behind it either.
    const char *at = strbuf_text(&text);
    *ret = (struct source_shingles){.hash = xcalloc(text.len + 1, sizeof(*ret->hash))};
    while (*at != '\0') {
        if (isspace((unsigned char)*at)) {
            at++;
            continue;
        }
        size_t token = token_len(at);
        ring[count % SOURCE_SHINGLE] = hash_of(at, token);
        count++;
        if (count >= SOURCE_SHINGLE) {
            ret->hash[ret->count++] =
                shingle_of(ring, (count - 1) % SOURCE_SHINGLE, SOURCE_SHINGLE);
        }
        at += token;
    }
    if (count > 0 && count < SOURCE_SHINGLE) {
        ret->hash[ret->count++] = shingle_of(ring, count - 1, count);
    }
    make_set(ret);
    ret->hash = xrealloc(ret->hash, ret->count + 1, sizeof(*ret->hash));
    strbuf_release(&text);
}

void source_shingles_release(struct source_shingles *shingles)
{
    free(shingles->hash);
    *shingles = (struct source_shingles){.hash = NULL};
}

double source_shingles_similarity(const struct source_shingles *a, const struct source_shingles *b)
{
    size_t i = 0, j = 0, both = 0;
    while (i < a->count && j < b->count) {
        uint64_t x = a->hash[i], y = b->hash[j];
        both += x == y;
        i += x <= y;
        j += y <= x;
    }
    size_t all = a->count + b->count - both;
    return all == 0 ? 1 : (double)both / (double)all;
}
