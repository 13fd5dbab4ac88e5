// Checks that HTML or SVG text is well-formed: every element that is opened is closed, in order;
// attributes are quoted; & and < are escaped.
#ifndef TESTS_CLIENT_REPORT_REPORT_MARKUP_H
#define TESTS_CLIENT_REPORT_REPORT_MARKUP_H

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define MARKUP_DEPTH 64

static inline bool markup_complain(const char *what, const char *at)
{
    fprintf(stderr, "%s: %.60s\n", what, at);
    return false;
}

// The end of the tag that starts at text ("<…>"). NULL when it has no end or an attribute is not of
// the form name="value".
static inline const char *markup_tag_end(const char *text)
{
    const char *c = text + 1;
    while (*c != '\0' && *c != '>' && !isspace((unsigned char)*c) && *c != '/') {
        c++;
    }
    if (text[1] == '/') {
        while (*c != '\0' && *c != '>') {
            c++;
        }
    }
    while (*c != '\0' && *c != '>') {
        if (isspace((unsigned char)*c) || *c == '/') {
            c++;
            continue;
        }
        while (*c != '\0' && *c != '=' && *c != '>' && *c != '<' && *c != '"') {
            c++;
        }
        if (c[0] != '=' || c[1] != '"') {
            return NULL;
        }
        for (c += 2; *c != '\0' && *c != '"' && *c != '<'; c++) {
            ;
        }
        if (*c != '"') {
            return NULL;
        }
        c++;
    }
    return *c == '>' ? c : NULL;
}

static inline bool markup_entity(const char *c)
{
    static const char *const known[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strncmp(c, known[i], strlen(known[i])) == 0) {
            return true;
        }
    }
    return false;
}

static inline bool markup_balanced(const char *text)
{
    char open[MARKUP_DEPTH][24];
    size_t depth = 0;
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '&' && !markup_entity(c)) {
            return markup_complain("bare &", c);
        }
        if (*c != '<') {
            continue;
        }
        if (strncmp(c, "<!doctype html>", 15) == 0) {
            c += 14;
            continue;
        }
        const char *end = markup_tag_end(c);
        if (!end) {
            return markup_complain("broken tag", c);
        }
        bool closing = c[1] == '/';
        char name[24];
        size_t len = strcspn(c + 1 + closing, " />\n");
        if (len == 0 || len >= sizeof name) {
            return markup_complain("strange tag", c);
        }
        memcpy(name, c + 1 + closing, len);
        name[len] = '\0';
        if (closing) {
            if (depth == 0 || strcmp(open[depth - 1], name) != 0) {
                return markup_complain("closes what is not open", c);
            }
            depth--;
        } else if (end[-1] != '/' && strcmp(name, "meta") != 0) {
            if (depth == MARKUP_DEPTH) {
                return markup_complain("too deep", c);
            }
            (void)snprintf(open[depth], sizeof(open[depth]), "%s", name);
            depth++;
            if (strcmp(name, "style") == 0) {
                end = strstr(end, "</style>");
                if (!end) {
                    return markup_complain("open style", c);
                }
                end--;
            }
        }
        c = end;
    }
    return depth == 0 || markup_complain("never closed", open[depth - 1]);
}

static inline size_t markup_count(const char *text, const char *what)
{
    size_t count = 0;
    for (const char *c = strstr(text, what); c; c = strstr(c + 1, what)) {
        count++;
    }
    return count;
}

#endif
