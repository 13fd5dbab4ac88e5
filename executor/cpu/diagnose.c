#include "executor/cpu/diagnose.h"
#include "common/mem.h"
#include "executor/compile_result.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define QUOTE_MAX 400 // bytes of a quoted line

// Removes every "./ccAbCdEf.o:" from the line: random names of temporary files help nobody.
static void drop_temporaries(char *line)
{
    enum { BEFORE = 4, RANDOM = 6 };

    for (char *found = strstr(line, "./cc"); found; found = strstr(found + 1, "./cc")) {
        if (strlen(found) > BEFORE + RANDOM && strncmp(found + BEFORE + RANDOM, ".o:", 3) == 0) {
            char *rest = found + BEFORE + RANDOM + 3;
            memmove(found, rest, strlen(rest) + 1);
        }
    }
}

// Returns the line that starts here, malloc'd and cut to QUOTE_MAX.
static char *line_at(const char *start)
{
    size_t len = strcspn(start, "\n");
    char *line = xstrndup(start, len < QUOTE_MAX ? len : QUOTE_MAX);
    drop_temporaries(line);
    compile_result_clean(line, strlen(line)); // the cut may have divided a UTF-8 character
    return line;
}

static const char *next_line(const char *line)
{
    line += strcspn(line, "\n");
    return *line == '\n' ? line + 1 : line;
}

// Returns the first text of the line that stands between ` or ' and ', malloc'd; NULL when there is
// none.
static char *quoted_name(const char *from)
{
    from += strcspn(from, "`'\n");
    if (*from == '\0' || *from == '\n') {
        return NULL;
    }
    from++;
    size_t len = strcspn(from, "'\n");
    return from[len] == '\'' && len > 0 && len < 200 ? xstrndup(from, len) : NULL;
}

static const char *find_in_line(const char *line, const char *text)
{
    const char *found = strstr(line, text);
    return found && found < line + strcspn(line, "\n") ? found : NULL;
}

// Returns a sentence about the first symbol that the linker misses, NULL when it misses none. A
// symbol that the glue misses is the candidate's entry.
static char *undefined_symbol(const char *log, const char *name)
{
    bool in_glue = false;

    for (const char *line = log; *line != '\0'; line = next_line(line)) {
        const char *undefined = find_in_line(line, "undefined reference to "),
                   *function = find_in_line(line, "in function `");
        if (function) {
            in_glue = strncmp(function, "in function `kcast_entry'", 25) == 0;
        }
        if (undefined) {
            char *symbol = quoted_name(undefined), *sentence = NULL;
            if (symbol) {
                sentence = in_glue || find_in_line(line, "glue.c:")
                               ? xasprintf("%s does not define `%s`", name, symbol)
                               : xasprintf("%s uses `%s`, which is defined nowhere", name, symbol);
            }
            free(symbol);
            return sentence;
        }
    }
    return NULL;
}

static bool mentions(const char *log, const char *const *text, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strstr(log, text[i])) {
            return true;
        }
    }
    return false;
}

// Returns a sentence about the limit that the compilation has exceeded, NULL when there is none.
static char *exhausted(const char *log, const struct diagnose_limits *limits)
{
    static const char *const memory[] = {"out of memory",
                                         "virtual memory exhausted",
                                         "Cannot allocate memory",
                                         "memory exhausted",
                                         "Killed signal terminated program",
                                         "terminated with signal 9",
                                         "std::bad_alloc",
                                         "failed to allocate"};
    static const char *const output[] = {"File size limit exceeded", "No space left on device",
                                         "File too large", "File truncated"};
    static const char *const processes[] = {"cannot fork", "fork: Resource temporarily",
                                            "Resource temporarily unavailable"};

    if (mentions(log, output, ARRAY_LEN(output))) {
        return xasprintf("compiling it writes more than the %llu MiB allowed",
                         (unsigned long long)(limits->max_output >> 20));
    }
    if (mentions(log, memory, ARRAY_LEN(memory))) {
        return xasprintf("compiling it takes more than the %llu MiB of memory allowed",
                         (unsigned long long)(limits->max_memory >> 20));
    }
    if (strstr(log, "CPU time limit exceeded")) {
        return xasprintf("compiling it takes longer than the %g seconds of processor time allowed",
                         limits->max_seconds);
    }
    if (limits->processes > 0 && mentions(log, processes, ARRAY_LEN(processes))) {
        return xasprintf("compiling it takes more than the %llu processes allowed",
                         (unsigned long long)limits->processes);
    }
    return NULL;
}

// Returns the first line with the text. Lines of collect2 are skipped: they only say that the
// linker has failed.
static char *first_with(const char *log, const char *text)
{
    for (const char *line = log; *line != '\0'; line = next_line(line)) {
        if (find_in_line(line, text) && strncmp(line, "collect2:", 9) != 0) {
            return line_at(line);
        }
    }
    return NULL;
}

// Returns the first line that is not blank, NULL when there is none.
static char *first_words(const char *log)
{
    for (const char *line = log; *line != '\0'; line = next_line(line)) {
        if (line[strspn(line, " \t\r")] != '\n' && line[strspn(line, " \t\r")] != '\0') {
            return line_at(line);
        }
    }
    return NULL;
}

// Returns a sentence about a compiler that names no error: how it ended, and what it said, if
// anything.
static char *without_error(const char *log, int status)
{
    char *words = first_words(log), *end = compile_result_end(status), *sentence;

    if (status == 0) {
        sentence = words ? xasprintf("the compiler reports success and leaves no object; it says: "
                                     "%s",
                                     words)
                         : xstrdup("the compiler reports success and leaves no object");
    } else {
        sentence = words ? xasprintf("the compiler %s; it says: %s", end, words)
                         : xasprintf("the compiler %s and says nothing", end);
    }
    free(words);
    free(end);
    return sentence;
}

char *diagnose(const char *log, const char *name, const struct diagnose_limits *limits, int status)
{
    static const char *const mark[] = {
        ": fatal error: ", ": Error: ", "error:", "multiple definition of", "/ld: "};
    char *sentence = first_with(log, ": error: ");

    if (!sentence) { // the compiler proper has found no error
        sentence = exhausted(log, limits);
    }
    if (!sentence) {
        sentence = undefined_symbol(log, name);
    }
    for (size_t i = 0; i < ARRAY_LEN(mark) && !sentence; i++) {
        sentence = first_with(log, mark[i]);
    }
    return sentence ? sentence : without_error(log, status);
}
