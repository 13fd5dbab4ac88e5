#include "problem/source_facts.h"

#include "common/mem.h"
#include "common/strbuf.h"
#include "problem/candidate_form.h"
#include "problem/manifest.h"
#include "problem/normalised_source.h"
#include "problem/python_definitions.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASHES 16
#define DEFINE_MAX 32
#define DEFINE_NAME_MAX 48
#define NAME_ROOM 64

// Words that tell how a kernel does its work. One that ends in '*' is the beginning of a word.
static const struct word {
    const char *text, *class;
} words[] = {
    {"for", "loops"},
    {"while", "loops"},
    {"if", "branches"},
    {"float", "float"},
    {"double", "double"},
    {"half*", "half"},
    {"__half*", "half"},
    {"__nv_bfloat*", "half"},
    {"float2", "vectors"},
    {"float4", "vectors"},
    {"double2", "vectors"},
    {"int2", "vectors"},
    {"int4", "vectors"},
    {"uint2", "vectors"},
    {"uint4", "vectors"},
    {"_mm*", "vectors"},
    {"__m128*", "vectors"},
    {"__m256*", "vectors"},
    {"__m512*", "vectors"},
    {"vector_size", "vectors"},
    {"simd", "vectors"},
    {"__shared__", "shared"},
    {"__syncthreads*", "barriers"},
    {"__syncwarp", "barriers"},
    {"__shfl*", "shuffles"},
    {"__ballot*", "shuffles"},
    {"__reduce*", "shuffles"},
    {"atomic*", "atomics"},
    {"__atomic*", "atomics"},
    {"asm", "assembly"},
    {"__asm__", "assembly"},
    {"mma*", "matrix"},
    {"wmma", "matrix"},
    {"wgmma*", "matrix"},
    {"cp", "copies"},
    {"__pipeline*", "copies"},
    {"cuda", "copies"},
    {"memcpy*", "copies"},
    {"__ldg", "loads"},
    {"__ldc*", "loads"},
    {"__stc*", "loads"},
    {"prefetch*", "prefetch"},
    {"__builtin_prefetch", "prefetch"},
    {"unroll", "unroll"},
    {"pragma", "pragmas"},
    {"omp", "pragmas"},
    {"restrict", "restrict"},
    {"__restrict*", "restrict"},
    {"const", "const"},
    {"__launch_bounds__", "bounds"},
    {"exp*", "special"},
    {"__exp*", "special"},
    {"log*", "special"},
    {"sqrt*", "special"},
    {"rsqrt*", "special"},
    {"sin*", "special"},
    {"cos*", "special"},
    {"tanh*", "special"},
    {"fma*", "fma"},
    {"__fma*", "fma"},
    {"__builtin*", "builtins"},
    {"malloc", "memory"},
    {"alloca", "memory"},
};

// Those of kernels in Python, beside the others.
static const struct word python_words[] = {
    {"static_range", "loops"},     {"float32", "float"}, {"float64", "double"},
    {"float16", "half"},           {"bfloat16", "half"}, {"dot*", "matrix"},
    {"debug_barrier", "barriers"}, {"load", "loads"},    {"inline_asm*", "assembly"},
};

struct facts {
    struct fact *fact; // room for SOURCE_FACTS_MAX
    size_t count;
    size_t defines; // of these, definitions
};

static struct fact *find(const struct facts *facts, const char *name)
{
    for (size_t i = 0; i < facts->count; i++) {
        if (strcmp(facts->fact[i].name, name) == 0) {
            return &facts->fact[i];
        }
    }
    return NULL;
}

// Adds to the fact of this name, which begins with 0.
static void add(struct facts *facts, const char *name, double value)
{
    struct fact *fact = find(facts, name);
    if (fact) {
        fact->value += value;
    } else if (facts->count < SOURCE_FACTS_MAX) {
        facts->fact[facts->count++] = (struct fact){.name = xstrdup(name), .value = value};
    }
}

// ---- words ----

static bool is_letter(char c)
{
    return isalpha((unsigned char)c) || c == '_';
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool matches(const struct word *word, const char *text, size_t len)
{
    size_t own = strlen(word->text);
    if (word->text[own - 1] == '*') {
        return len >= own - 1 && memcmp(text, word->text, own - 1) == 0;
    }
    return len == own && memcmp(text, word->text, own) == 0;
}

static const char *find_class(const struct word *list, size_t count, const char *text, size_t len)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i].text[0] == text[0] && matches(&list[i], text, len)) {
            return list[i].class;
        }
    }
    return NULL;
}

static const char *class_of(const char *text, size_t len, bool python)
{
    const char *class = find_class(words, ARRAY_LEN(words), text, len);
    return class || !python ? class : find_class(python_words, ARRAY_LEN(python_words), text, len);
}

// FNV-1a, of few bytes.
static unsigned hash_of(const char *text, size_t len)
{
    unsigned hash = 2166136261U;
    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ (unsigned char)text[i]) * 16777619U;
    }
    return (hash ^ hash >> 16) % HASHES;
}

static void add_words(struct facts *facts, const char *text, size_t len, bool python)
{
    double hashes[HASHES] = {0}, count = 0, numbers = 0;
    char name[NAME_ROOM];
    for (size_t i = 0, n; i < len; i += n) {
        for (n = 1; is_word(text[i]) && i + n < len && is_word(text[i + n]);) {
            n++;
        }
        if (is_letter(text[i])) {
            const char *class = class_of(text + i, n, python);
            count++;
            hashes[hash_of(text + i, n)] += !class;
            if (class) {
                snprintf(name, sizeof(name), "word:%s", class);
                add(facts, name, 1);
            }
        } else {
            numbers += isdigit((unsigned char)text[i]) != 0;
        }
    }
    add(facts, "words", count);
    add(facts, "numbers", numbers);
    for (size_t i = 0; i < HASHES; i++) {
        snprintf(name, sizeof(name), "hash:%zu", i);
        add(facts, name, hashes[i]);
    }
}

// ---- definitions ----

// Adds a definition, unless the name has one.
static void add_definition(void *owner, const char *name, size_t len, long long value)
{
    struct facts *facts = owner;
    char fact[NAME_ROOM];
    if (len > DEFINE_NAME_MAX || facts->defines == DEFINE_MAX) {
        return;
    }
    snprintf(fact, sizeof(fact), "define:%.*s", (int)len, name);
    if (!find(facts, fact)) {
        add(facts, fact, (double)value);
        facts->defines++;
    }
}

// Adds the definition on this line, if it is one of an integer.
static void add_define(struct facts *facts, const char *line)
{
    static const char begin[] = "#define ";
    if (strncmp(line, begin, strlen(begin)) != 0) {
        return;
    }
    const char *at = line + strlen(begin);
    size_t len = 0;
    while (is_word(at[len])) {
        len++;
    }
    if (len == 0 || at[len] != ' ') {
        return;
    }
    char *end;
    errno = 0;
    long long value = strtoll(at + len + 1, &end, 0);
    bool integer = end != at + len + 1 && errno == 0;
    while (integer && *end && strchr("uUlL", *end)) {
        end++;
    }
    if (integer && (*end == '\0' || *end == ' ')) {
        add_definition(facts, at, len, value);
    }
}

static void add_defines(struct facts *facts, const char *text)
{
    char *copy = xstrdup(text), *rest = copy, *line;
    while ((line = strsep(&rest, "\n"))) {
        add_define(facts, line);
    }
    free(copy);
}

// ---- launches ----

static void add_first_shape(struct facts *facts, const struct manifest_shape *shape)
{
    static const char *const axis[] = {"x", "y", "z"};
    char name[NAME_ROOM];
    for (size_t i = 0; i < 3; i++) {
        snprintf(name, sizeof(name), "launch:block_%s", axis[i]);
        add(facts, name, shape->block[i]);
        snprintf(name, sizeof(name), "launch:grid_%s", axis[i]);
        add(facts, name, shape->grid[i]);
    }
    add(facts, "launch:smem", shape->smem);
}

// Adds what the manifest says, as far as it can be read.
static void add_launches(struct facts *facts, const char *source, size_t len,
                         const struct problem *problem)
{
    struct manifest *manifest = NULL;
    struct err err = ERR_INIT;
    if (!problem || problem->bench_count == 0 || strcmp(problem->language, "cuda") != 0 ||
        manifest_parse(&manifest, source, len, "source", problem, MANIFEST_CANDIDATE, &err) != 0) {
        return;
    }
    bool first = true;
    for (size_t i = 0; i < manifest->launch_count; i++) {
        struct manifest_shape shape;
        if (manifest_launch_shape(manifest, i, &problem->bench[0], problem, &shape, &err) != 0 ||
            shape.skipped) {
            continue;
        }
        if (first) {
            add_first_shape(facts, &shape);
        }
        first = false;
        double blocks = (double)shape.grid[0] * shape.grid[1] * shape.grid[2];
        add(facts, "launch:launches", 1);
        add(facts, "launch:blocks", blocks);
        add(facts, "launch:threads", blocks * shape.block[0] * shape.block[1] * shape.block[2]);
    }
    manifest_free(manifest);
}

size_t source_facts(const void *source, size_t len, const struct problem *problem,
                    struct fact **ret)
{
    struct facts facts = {.fact = xcalloc(SOURCE_FACTS_MAX, sizeof(*facts.fact))};
    struct strbuf text = STRBUF_INIT;
    bool python = candidate_form(source, len) == FORM_PYTHON;
    source_normalise(&text, source, len);
    add(&facts, "bytes", (double)text.len);
    add_words(&facts, strbuf_text(&text), text.len, python);
    add_launches(&facts, source, len, problem);
    if (python) {
        python_definitions(strbuf_text(&text), add_definition, &facts);
    } else {
        add_defines(&facts, strbuf_text(&text));
    }
    strbuf_release(&text);
    *ret = facts.fact;
    return facts.count;
}
