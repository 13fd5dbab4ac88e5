// Defaults, the command line and INI files (common/options/options_ini.c) all end in
// options_set_field(), which parses a text by the type of its row. A value therefore means the same
// wherever it stands. A refused value leaves the field as it was.
//
// Command line: "--name=value", "--name value", "-nvalue", "-n value", flags alone or joined
// ("-vq"), "--flag=no". Options and other arguments may be mixed. "--" ends the options, and a lone
// "-" is an argument. Names are never abbreviated, because a new option could then break an old
// command line.
#include "common/options.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/options/nearest.h"
#include "common/options/options_field.h"
#include "common/parse.h"
#include "common/strbuf.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WHAT_MAX 128

static void *field_of(void *target, const struct option_row *row)
{
    return (char *)target + row->offset;
}

static bool is_text(enum option_type type)
{
    return type == OPTION_TEXT || type == OPTION_TEXTS || type == OPTION_CHOICE;
}

static void set_text(char **field, char *text_taken)
{
    free(*field);
    *field = text_taken;
}

// Adds a value to those that the field has.
static int add_text(char **field, const char *text, const char *what, struct err *err)
{
    if (strchr(text, '\n')) {
        return err_set(err, ERR_INVALID, "%s: a value has one line", what);
    }
    set_text(field, *field ? xasprintf("%s\n%s", *field, text) : xstrdup(text));
    return 0;
}

static int parse_flag(bool *ret, const char *text, const char *what, struct err *err)
{
    static const char *const yes[] = {"true", "yes", "on", "1"};
    static const char *const no[] = {"false", "no", "off", "0"};

    for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
        if (strcmp(text, yes[i]) == 0 || strcmp(text, no[i]) == 0) {
            *ret = strcmp(text, yes[i]) == 0;
            return 0;
        }
    }
    return err_set(err, ERR_INVALID, "%s: '%.100s' is neither true nor false", what, text);
}

static bool is_choice(const char *choices, const char *text)
{
    size_t len = strlen(text);

    for (const char *p = choices; p; p = strchr(p, '|')) {
        p += *p == '|' ? 1 : 0;
        if (strcspn(p, "|") == len && memcmp(p, text, len) == 0) {
            return true;
        }
    }
    return false;
}

// The limits of a row as bounds of an unsigned field.
static void bounds_u64(const struct option_row *row, uint64_t *min, uint64_t *max)
{
    bool limited = row->max > 0;

    *min = row->min > 0 ? (uint64_t)row->min : 0;
    *max = limited && row->max < 0x1p64 ? (uint64_t)row->max : UINT64_MAX;
}

// Writes a limit as it can be given on a command line: "90s", "64K".
static const char *limit_text(const struct option_row *row, uint64_t value, char buf[static 32])
{
    static const struct unit {
        uint64_t factor;
        const char *name;
    } times[] = {{3600 * NS_PER_S, "h"}, {60 * NS_PER_S, "m"}, {NS_PER_S, "s"},
                 {NS_PER_MS, "ms"},      {1000, "us"},         {1, "ns"}},
      sizes[] = {{(uint64_t)1 << 40, "T"}, {1 << 30, "G"}, {1 << 20, "M"}, {1 << 10, "K"}, {1, ""}};
    const struct unit *unit = row->type == OPTION_DURATION ? times : sizes;

    while (value % unit->factor != 0) {
        unit++;
    }
    (void)snprintf(buf, 32, "%llu%s", (unsigned long long)(value / unit->factor),
                   value == 0 ? "" : unit->name);
    return buf;
}

static int check_u64(const struct option_row *row, uint64_t value, const char *text,
                     const char *what, struct err *err)
{
    uint64_t min;
    uint64_t max;

    bounds_u64(row, &min, &max);
    if (value < min || value > max) {
        char least[32], most[32];

        return max == UINT64_MAX
                   ? err_set(err, ERR_INVALID, "%s: '%s' is less than %s", what, text,
                             limit_text(row, min, least))
                   : err_set(err, ERR_INVALID, "%s: '%s' is outside the allowed range, %s to %s",
                             what, text, limit_text(row, min, least), limit_text(row, max, most));
    }
    return 0;
}

static int set_u64(const struct option_row *row, uint64_t *field, const char *text,
                   const char *what, struct err *err)
{
    uint64_t min;
    uint64_t max;

    if (row->type == OPTION_U64) {
        bounds_u64(row, &min, &max);
        return parse_u64(field, text, min, max, what, err);
    }
    uint64_t value;
    int rc = row->type == OPTION_DURATION ? parse_duration(&value, text, what, err)
                                          : parse_size(&value, text, what, err);
    if (rc == 0) {
        rc = check_u64(row, value, text, what, err);
    }
    if (rc == 0) {
        *field = value;
    }
    return rc;
}

static int set_f64(const struct option_row *row, double *field, const char *text, const char *what,
                   struct err *err)
{
    bool limited = row->min != 0 || row->max != 0;
    // A positive min without a max means "at least".
    bool open = !limited || (row->min > 0 && row->max == 0);

    return parse_f64(field, text, limited ? row->min : -INFINITY, open ? INFINITY : row->max, what,
                     err);
}

int options_set_field(const struct option_row *row, void *target, const char *text,
                      const char *what, struct err *err)
{
    void *field = field_of(target, row);

    switch (row->type) {
    case OPTION_FLAG:
        return parse_flag(field, text, what, err);
    case OPTION_TEXT:
        set_text(field, xstrdup(text));
        return 0;
    case OPTION_TEXTS:
        return add_text(field, text, what, err);
    case OPTION_CHOICE:
        if (!is_choice(row->choices, text)) {
            return err_set(err, ERR_INVALID, "%s: '%.100s' is none of %s", what, text,
                           row->choices);
        }
        set_text(field, xstrdup(text));
        return 0;
    case OPTION_U64:
    case OPTION_DURATION:
    case OPTION_SIZE:
        return set_u64(row, field, text, what, err);
    case OPTION_F64:
        return set_f64(row, field, text, what, err);
    }
    return err_set(err, ERR_INTERNAL, "%s: unknown option type %d", what, (int)row->type);
}

static void zero_field(const struct option_row *row, void *target)
{
    void *field = field_of(target, row);

    if (is_text(row->type)) {
        set_text(field, NULL);
    } else if (row->type == OPTION_FLAG) {
        *(bool *)field = false;
    } else if (row->type == OPTION_F64) {
        *(double *)field = 0.0;
    } else {
        *(uint64_t *)field = 0;
    }
}

int options_defaults(const struct option_row *table, void *target, struct err *err)
{
    for (const struct option_row *row = table; row->name; row++) {
        zero_field(row, target);
        if (!row->default_text) {
            continue;
        }
        if (options_set_field(row, target, row->default_text, row->name, NULL) != 0) {
            // The table is part of the program: this is a defect and not a mistake of the user.
            return err_set(err, ERR_INTERNAL, "the default '%s' of option %s is not valid",
                           row->default_text, row->name);
        }
    }
    return 0;
}

const struct option_row *options_find_name(const struct option_row *table, const char *name,
                                           size_t len)
{
    for (const struct option_row *row = table; row->name; row++) {
        if (strlen(row->name) == len && memcmp(row->name, name, len) == 0) {
            return row;
        }
    }
    return NULL;
}

static const struct option_row *find_letter(const struct option_row *table, char letter)
{
    for (const struct option_row *row = table; row->name; row++) {
        if (row->letter != 0 && row->letter == letter) {
            return row;
        }
    }
    return NULL;
}

// A position in argv, so that an option can take the argument after it.
struct arguments {
    char **argv;
    int argc;
    int next; // index of the first argument that was not used yet
};

// Sets the row's field from value. When value is NULL and the option needs one, takes the next
// argument. `shown` is the option as it was written.
static int take_option(const struct option_row *row, void *target, const char *shown,
                       const char *value, struct arguments *arguments, struct err *err)
{
    if (!value && row->type == OPTION_FLAG) {
        value = "true";
    }
    if (!value) {
        if (arguments->next >= arguments->argc) {
            return err_set(err, ERR_USAGE, "option %s needs a value%s%s", shown,
                           row->argument ? ": " : "", row->argument ? row->argument : "");
        }
        value = arguments->argv[arguments->next++];
    }
    struct err reason = ERR_INIT;
    if (options_set_field(row, target, value, shown, &reason) != 0) {
        // Whatever is wrong with the value, the error is that the command line is wrong.
        return err_set(err, ERR_USAGE, "option %s", reason.text);
    }
    return 0;
}

// Names the option that may have been meant, if there is one.
static int unknown_option(const struct option_row *table, const char *name, size_t len,
                          struct err *err)
{
    struct nearest nearest = {.word = name, .len = len};

    for (const struct option_row *row = table; row->name; row++) {
        nearest_try(&nearest, row->name);
    }
    if (nearest.best) {
        return err_set(err, ERR_USAGE, "unknown option --%.*s; did you mean --%s?",
                       (int)(len < 80 ? len : 80), name, nearest.best);
    }
    return err_set(err, ERR_USAGE, "unknown option --%.*s; --help lists all",
                   (int)(len < 80 ? len : 80), name);
}

static int take_long(const struct option_row *table, void *target, const char *argument,
                     struct arguments *arguments, struct err *err)
{
    const char *name = argument + 2;
    size_t len = strcspn(name, "=");
    const struct option_row *row = options_find_name(table, name, len);

    if (!row) {
        return unknown_option(table, name, len, err);
    }
    char shown[WHAT_MAX];
    (void)snprintf(shown, sizeof(shown), "--%s", row->name);
    return take_option(row, target, shown, name[len] == '=' ? name + len + 1 : NULL, arguments,
                       err);
}

static int take_letters(const struct option_row *table, void *target, const char *argument,
                        struct arguments *arguments, struct err *err)
{
    for (const char *p = argument + 1; *p != '\0'; p++) {
        const struct option_row *row = find_letter(table, *p);
        char shown[3] = {'-', *p, '\0'};

        if (!row) {
            return err_set(err, ERR_USAGE, "unknown option -%c in '%.80s'; --help lists all", *p,
                           argument);
        }
        if (row->type != OPTION_FLAG) {
            // The rest of the argument is the value.
            return take_option(row, target, shown, p[1] ? p + 1 : NULL, arguments, err);
        }
        int rc = take_option(row, target, shown, NULL, arguments, err);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

int options_parse(const struct option_row *table, void *target, int argc, char **argv,
                  char ***ret_args, size_t *ret_count, struct err *err)
{
    struct arguments arguments = {.argv = argv, .argc = argc, .next = 1};
    char **args = xcalloc((size_t)(argc > 0 ? argc : 0) + 1, sizeof(*args));
    bool only_arguments = false;
    size_t count = 0;
    int rc = 0;

    while (arguments.next < argc) {
        char *argument = argv[arguments.next++];

        if (only_arguments || argument[0] != '-' || argument[1] == '\0') {
            args[count++] = argument;
        } else if (strcmp(argument, "--") == 0) {
            only_arguments = true;
        } else if (argument[1] == '-') {
            rc = take_long(table, target, argument, &arguments, err);
        } else {
            rc = take_letters(table, target, argument, &arguments, err);
        }
        if (rc != 0) {
            goto out;
        }
    }
    *ret_args = args;
    *ret_count = count;
    args = NULL;
out:
    free(args);
    return rc;
}

void options_release(const struct option_row *table, void *target)
{
    for (const struct option_row *row = table; row->name; row++) {
        if (is_text(row->type)) {
            set_text(field_of(target, row), NULL);
        }
    }
}

bool options_same(const struct option_row *row, const void *a, const void *b)
{
    const char *x = (const char *)a + row->offset;
    const char *y = (const char *)b + row->offset;
    const char *text_x;
    const char *text_y;

    switch (row->type) {
    case OPTION_FLAG:
        return *(const bool *)x == *(const bool *)y;
    case OPTION_TEXT:
    case OPTION_TEXTS:
    case OPTION_CHOICE:
        memcpy(&text_x, x, sizeof(text_x));
        memcpy(&text_y, y, sizeof(text_y));
        return text_x && text_y ? strcmp(text_x, text_y) == 0 : text_x == text_y;
    case OPTION_F64:
        return memcmp(x, y, sizeof(double)) == 0;
    case OPTION_U64:
    case OPTION_DURATION:
    case OPTION_SIZE:
        return memcmp(x, y, sizeof(uint64_t)) == 0;
    }
    return false;
}
