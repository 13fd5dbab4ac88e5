// Command-line options and configuration from one table: name, type, default, range, help. --help, the INI reader and the
// check of the documentation all read the same rows.
#ifndef COMMON_OPTIONS_H
#define COMMON_OPTIONS_H

#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum option_type {
    OPTION_FLAG,     // bool; no argument
    OPTION_TEXT,     // char *, malloc'd; replaced
    OPTION_U64,      // uint64_t within [min, max]
    OPTION_F64,      // double within [min, max]
    OPTION_DURATION, // uint64_t nanoseconds, "30s"
    OPTION_SIZE,     // uint64_t bytes, "64M"
    OPTION_CHOICE,   // char *, one of `choices` ("a|b|c")
};

struct option_row {
    const char *name; // long option without dashes and INI key; NULL ends the table
    char letter;      // short option or 0
    enum option_type type;
    size_t offset;            // of the field in the target struct
    const char *argument;     // how --help shows the argument, "URL"; NULL for flags
    const char *default_text; // parsed before everything else; NULL: field stays zero
    double min,
        max; // for numbers, in the field's unit (ns, bytes); both 0: no limit; min > 0 alone: no upper limit
    const char *choices; // for OPTION_CHOICE
    const char *help;    // one sentence, no full stop
};

// Sets every field of target to its default. target is zeroed memory or was filled before (old texts are freed).
MUST_CHECK int options_defaults(const struct option_row *table, void *target, struct err *err);

// Parses argv (argv[0] is skipped) and returns the non-option arguments in *ret_args (points into argv, malloc'd array,
// *ret_count entries). "--" ends options. ERR_USAGE names the option and what is wrong. --help and --version are rows
// like any other: the caller looks at its fields.
MUST_CHECK int options_parse(const struct option_row *table, void *target, int argc, char **argv,
                             char ***ret_args, size_t *ret_count, struct err *err);

// Reads "[section]" of an INI file (libinih); keys are option names. Unknown keys and sections other than known ones are errors
// naming file and line. An option given before on the command line wins if the caller parses the file first.
MUST_CHECK int options_read_ini(const struct option_row *table, void *target, const char *path,
                                const char *section, struct err *err);

// Whether the row's field has the same value in both targets.
bool options_same(const struct option_row *row, const void *a, const void *b);

// Frees the texts.
void options_release(const struct option_row *table, void *target);

// Prints the rows for --help, one per line, aligned, with defaults.
void options_print(const struct option_row *table, FILE *out);

#endif
