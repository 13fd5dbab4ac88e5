// Defaults, the command line and INI files all end in set_field(), which parses a text by the type
// of its row. A value therefore means the same wherever it stands. A refused value leaves the field
// as it was.
//
// Command line: "--name=value", "--name value", "-nvalue", "-n value", flags alone or joined
// ("-vq"), "--flag=no". Options and other arguments may be mixed. "--" ends the options, and a lone
// "-" is an argument. Names are never abbreviated, because a new option could then break an old
// command line.
//
// INI: libinih splits the lines, but this file hands them to it one by one. As packaged, the
// library does not tell its handler the line number, silently joins indented lines to the value
// above, and breaks lines that exceed its buffer.
#include "common/options.h"
#include "common/file.h"
#include "common/parse.h"
#include "common/strbuf.h"
#include <ini.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define INI_FILE_MAX ((size_t)1 << 20)
#define WHAT_MAX 128

static void *field_of(void *target, const struct option_row *row)
{
    return (char *)target + row->offset;
}

static bool is_text(enum option_type type)
{
    return type == OPTION_TEXT || type == OPTION_CHOICE;
}

static void set_text(char **field, char *text_taken)
{
    free(*field);
    *field = text_taken;
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

static int check_u64(const struct option_row *row, uint64_t value, const char *text,
                     const char *what, struct err *err)
{
    uint64_t min;
    uint64_t max;

    bounds_u64(row, &min, &max);
    if (value < min || value > max) {
        return err_set(err, ERR_INVALID, "%s: '%s' is outside the allowed range, %llu to %llu %s",
                       what, text, (unsigned long long)min, (unsigned long long)max,
                       row->type == OPTION_DURATION ? "nanoseconds" : "bytes");
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

// Parses text into the field of the row. `what` names the option in the error sentence.
static int set_field(const struct option_row *row, void *target, const char *text, const char *what,
                     struct err *err)
{
    void *field = field_of(target, row);

    switch (row->type) {
    case OPTION_FLAG:
        return parse_flag(field, text, what, err);
    case OPTION_TEXT:
        set_text(field, xstrdup(text));
        return 0;
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
        if (set_field(row, target, row->default_text, row->name, NULL) != 0) {
            // The table is part of the program: this is a defect and not a mistake of the user.
            return err_set(err, ERR_INTERNAL, "the default '%s' of option %s is not valid",
                           row->default_text, row->name);
        }
    }
    return 0;
}

static const struct option_row *find_name(const struct option_row *table, const char *name,
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
    if (set_field(row, target, value, shown, &reason) != 0) {
        // Whatever is wrong with the value, the error is that the command line is wrong.
        return err_set(err, ERR_USAGE, "option %s", reason.text);
    }
    return 0;
}

static int take_long(const struct option_row *table, void *target, const char *argument,
                     struct arguments *arguments, struct err *err)
{
    const char *name = argument + 2;
    size_t len = strcspn(name, "=");
    const struct option_row *row = find_name(table, name, len);

    if (!row) {
        return err_set(err, ERR_USAGE, "unknown option --%.*s", (int)(len < 80 ? len : 80), name);
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
            return err_set(err, ERR_USAGE, "unknown option -%c in '%.80s'", *p, argument);
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

// The state that the line reader and the entry handler of one INI file share.
struct ini_job {
    const struct option_row *table;
    void *target;
    const char *path;
    const char *section;
    const char *cursor; // the rest of the file's text
    int line;           // number of the last line that libinih got
    int failed_line;    // the line at which err was set, 0: none
    struct err *err;    // never NULL
};

__attribute__((format(printf, 2, 3))) static void refuse_line(struct ini_job *job,
                                                              const char *format, ...)
{
    if (job->failed_line != 0) {
        return;
    }
    va_list args;
    va_start(args, format);
    char text[ERR_TEXT_MAX];
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    job->failed_line = job->line;
    (void)err_set(job->err, ERR_INVALID, "%s:%d: %s", job->path, job->line, text);
}

// Stands in for fgets. Returns one whole line per call and never a part of one, without its
// indentation, which libinih would take for a continuation of the value above.
static char *next_line(char *out, int size, void *stream)
{
    struct ini_job *job = stream;
    size_t len = strcspn(job->cursor, "\n");
    size_t blank = strspn(job->cursor, " \t");
    const char *start = job->cursor + (blank < len ? blank : len);
    size_t kept = (size_t)(job->cursor + len - start);

    if (*job->cursor == '\0') {
        return NULL;
    }
    job->line++;
    if (kept + 2 > (size_t)size) {
        if (*start != '#' && *start != ';') {
            refuse_line(job, "longer than %d characters", size - 2);
        }
        kept = 0;
    }
    memcpy(out, start, kept);
    out[kept] = '\n';
    out[kept + 1] = '\0';
    job->cursor += len + (job->cursor[len] == '\n' ? 1 : 0);
    return out;
}

// Called by libinih for each entry. Returns 0 when it refuses the entry. libinih goes on all the
// same, so only the first refusal counts.
static int on_entry(void *user, const char *section, const char *name, const char *value)
{
    struct ini_job *job = user;
    const struct option_row *row = find_name(job->table, name, strlen(name));

    if (job->failed_line != 0) {
        return 0;
    }
    if (strcmp(section, job->section) != 0) {
        if (section[0] == '\0') {
            refuse_line(job, "'%.60s' stands outside of section [%s]", name, job->section);
        } else {
            refuse_line(job, "unknown section [%s], only [%s] is known", section, job->section);
        }
        return 0;
    }
    if (!row) {
        refuse_line(job, "unknown key '%.60s'", name);
        return 0;
    }
    struct err reason = ERR_INIT;
    if (set_field(row, job->target, value, row->name, &reason) != 0) {
        refuse_line(job, "%s", reason.text);
        return 0;
    }
    return 1;
}

int options_read_ini(const struct option_row *table, void *target, const char *path,
                     const char *section, struct err *err)
{
    struct err first = ERR_INIT;
    struct ini_job job = {
        .table = table, .target = target, .path = path, .section = section, .err = &first};
    struct bytes text = {0};
    int rc = file_read(&text, path, INI_FILE_MAX, err);
    if (rc != 0) {
        return rc;
    }
    if (memchr(text.data, '\0', text.len)) {
        rc = err_set(err, ERR_INVALID, "%s: not a text file", path);
        goto out;
    }
    job.cursor = (const char *)text.data;
    int bad_line = ini_parse_stream(next_line, &job, on_entry, &job);
    if (bad_line > 0 && (job.failed_line == 0 || bad_line < job.failed_line)) {
        // libinih returns the first line that it or the handler refuses. It refused this one
        // itself.
        err_clear(&first);
        (void)err_set(&first, ERR_INVALID, "%s:%d: neither 'key = value' nor '[section]'", path,
                      bad_line);
    } else if (bad_line < 0) {
        (void)err_set(&first, ERR_SYSTEM, "%s: cannot be parsed", path);
    }
    rc = first.code == ERR_NONE ? 0 : err_set(err, first.code, "%s", first.text);
out:
    bytes_clear(&text);
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

// Adds "  -o, --output=FILE", without the letter when there is none.
static void add_left_column(struct strbuf *out, const struct option_row *row)
{
    if (row->letter) {
        strbuf_addf(out, "  -%c, --%s", row->letter, row->name);
    } else {
        strbuf_addf(out, "      --%s", row->name);
    }
    if (row->type != OPTION_FLAG) {
        strbuf_addf(out, "=%s", row->argument ? row->argument : "VALUE");
    }
}

void options_print(const struct option_row *table, FILE *out)
{
    struct strbuf left = STRBUF_INIT;
    size_t width = 0;

    for (const struct option_row *row = table; row->name; row++) {
        strbuf_reset(&left);
        add_left_column(&left, row);
        width = left.len > width ? left.len : width;
    }
    for (const struct option_row *row = table; row->name; row++) {
        strbuf_reset(&left);
        add_left_column(&left, row);
        fprintf(out, "%-*s  %s", (int)width, strbuf_text(&left), row->help);
        if (row->choices) {
            fprintf(out, "; one of %s", row->choices);
        }
        if (row->default_text && row->type != OPTION_FLAG && row->default_text[0] != '\0') {
            fprintf(out, " (default: %s)", row->default_text);
        }
        fputc('\n', out);
    }
    strbuf_release(&left);
}
