// A name from problem.json or from a template line becomes a parameter, a function or a macro of
// generated C. Names that would give that text another meaning are refused here, so that the author
// reads a sentence and not a compiler's message: keywords, macros that gcc predefines without
// underscores, names of <stdint.h>, and names of the generated glue.
#include "problem/identifier.h"
#include "common/mem.h"
#include <string.h>

// Keywords of C11, their GNU spellings without underscores, and macros in lower case that gcc
// predefines.
static const char *const keywords[] = {
    "asm",   "auto",   "break",    "case",   "char",     "const",    "continue", "default",
    "do",    "double", "else",     "enum",   "extern",   "float",    "for",      "goto",
    "if",    "inline", "int",      "linux",  "long",     "register", "restrict", "return",
    "short", "signed", "sizeof",   "static", "struct",   "switch",   "typedef",  "typeof",
    "union", "unix",   "unsigned", "void",   "volatile", "while",
};

// A macro of <stdint.h> has one of these prefixes and one of the suffixes below.
static const char *const macro_prefixes[] = {"INT",         "UINT",   "PTRDIFF_", "SIZE_",
                                             "SIG_ATOMIC_", "WCHAR_", "WINT_"};
static const char *const macro_suffixes[] = {"_MIN", "_MAX", "_C", "_WIDTH"};

static bool is_letter(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

size_t identifier_span(const char *text)
{
    size_t len = 0;
    while (is_letter(text[len]) || (len > 0 && text[len] >= '0' && text[len] <= '9')) {
        len++;
    }
    return len;
}

static bool starts_with(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool ends_with(const char *name, const char *suffix)
{
    size_t len = strlen(name), suffix_len = strlen(suffix);
    return len >= suffix_len && strcmp(name + len - suffix_len, suffix) == 0;
}

static bool is_stdint_macro(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(macro_prefixes); i++) {
        for (size_t j = 0; j < ARRAY_LEN(macro_suffixes); j++) {
            if (starts_with(name, macro_prefixes[i]) && ends_with(name, macro_suffixes[j])) {
                return true;
            }
        }
    }
    return false;
}

const char *identifier_refusal(const char *name)
{
    size_t len = identifier_span(name);
    if (len == 0 || name[len] != '\0') {
        return "is not a C identifier";
    }
    if (len > IDENTIFIER_MAX) {
        return "is longer than 63 characters";
    }
    for (size_t i = 0; i < ARRAY_LEN(keywords); i++) {
        if (strcmp(name, keywords[i]) == 0) {
            return "is a C keyword";
        }
    }
    if (name[0] == '_' && (name[1] == '_' || (name[1] >= 'A' && name[1] <= 'Z'))) {
        return "is reserved for the compiler";
    }
    if (ends_with(name, "_t") || is_stdint_macro(name)) {
        return "may be a name of <stdint.h>";
    }
    if (starts_with(name, "kcast_")) {
        return "begins with kcast_, which is kept for generated code";
    }
    return NULL;
}
