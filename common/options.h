// Command-line options and configuration files from one table of rows: name, type, default, range,
// help. Command-line parsing, the INI reader, --help and the check of the documentation all read
// the same rows. Every program has such tables. This module knows none of their options.
#ifndef COMMON_OPTIONS_H
#define COMMON_OPTIONS_H

#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

// What an option's argument is, and the type of the field that it sets.
enum option_type {
    OPTION_FLAG,     // bool, without an argument
    OPTION_TEXT,     // char *, malloc'd; a later value frees the earlier one
    OPTION_U64,      // uint64_t within [min, max]
    OPTION_F64,      // double within [min, max]
    OPTION_DURATION, // uint64_t in nanoseconds, written like "30s"
    OPTION_SIZE,     // uint64_t in bytes, written like "64M"
    OPTION_CHOICE,   // char *, malloc'd, one of `choices`
    OPTION_TEXTS, // char *, malloc'd: the values of all times that it is given, divided by newlines
};

struct option_row {
    const char *name; // long option without dashes, and INI key; NULL ends the table
    char letter;      // short option, 0: none
    enum option_type type;
    size_t offset;            // of the field in the target struct
    const char *argument;     // the argument as --help shows it, such as "URL"; NULL for flags
    const char *default_text; // parsed before everything else; NULL: the field stays zero
    // Limits of numbers in the unit of the field (ns, bytes). Both 0: no limits. min above 0 and
    // max 0: no upper limit.
    double min, max;
    const char *choices; // of an OPTION_CHOICE, as "a|b|c"
    const char *help;    // one sentence without a full stop
};

// Sets every field of target to its default. target is zeroed memory or was filled before; then its
// texts are freed. ERR_INTERNAL when a default of the table is not valid.
MUST_CHECK int options_defaults(const struct option_row *table, void *target, struct err *err);

// Parses argv from argv[1] on. "--" ends the options. *ret_args becomes a malloc'd array of the
// *ret_count other arguments, which point into argv. ERR_USAGE names the option and what is wrong
// with it. --help and --version are rows like any other: the caller looks at their fields.
MUST_CHECK int options_parse(const struct option_row *table, void *target, int argc, char **argv,
                             char ***ret_args, size_t *ret_count, struct err *err);

// Reads "[section]" of an INI file, whose keys are option names. An unknown key or another section
// is an error that names file and line. For the command line to win over the file, the caller reads
// the file first.
MUST_CHECK int options_read_ini(const struct option_row *table, void *target, const char *path,
                                const char *section, struct err *err);

// Sections "[prefix NAME]" of an INI file, with a target each.
struct options_group {
    const char *prefix;
    const struct option_row *table;
    // Opens the target of a section, once for each header. NULL and *err when the name is not good.
    void *(*open)(void *owner, const char *name, struct err *err);
    void *owner;
};

// Like options_read_ini, for a file that may also have sections of a group.
MUST_CHECK int options_read_ini_groups(const struct option_row *table, void *target,
                                       const char *path, const char *section,
                                       const struct options_group *group, struct err *err);

// Whether the row's field has the same value in both targets.
bool options_same(const struct option_row *row, const void *a, const void *b);

// Frees the texts of target and sets them to NULL.
void options_release(const struct option_row *table, void *target);

// Prints the rows for --help in two columns, with choices and defaults, wrapped at the width of
// wrap_width().
void options_print(const struct option_row *table, FILE *out);
// The same for the keys of a section: "url = URL" instead of "--url=URL".
void options_print_keys(const struct option_row *table, FILE *out);
// Prints an empty line, a heading and the exit codes of common/exit.h, which are those of all
// programs, wrapped at the same width.
void options_print_exit_codes(FILE *out);

#endif
