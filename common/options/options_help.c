// The rows of an option table for people. What an option is stands in the left column, or, where it
// is too long for that, on a line of its own above its help.
#include "common/exit.h"
#include "common/options.h"
#include "common/strbuf.h"
#include "common/wrap.h"

#define LEFT_MAX 32 // columns of the left column at most, with the blanks behind it

// Adds "  -o, --output=FILE", without the letter when there is none; of a key "  output = FILE".
static void add_left_column(struct strbuf *out, const struct option_row *row, bool key)
{
    if (key) {
        strbuf_addf(out, "  %s = %s", row->name, row->argument ? row->argument : "VALUE");
        return;
    }
    if (row->letter) {
        strbuf_addf(out, "  -%c, --%s", row->letter, row->name);
    } else {
        strbuf_addf(out, "      --%s", row->name);
    }
    if (row->type != OPTION_FLAG) {
        strbuf_addf(out, "=%s", row->argument ? row->argument : "VALUE");
    }
}

static void print_rows(const struct option_row *table, FILE *out, bool key)
{
    struct strbuf left = STRBUF_INIT, right = STRBUF_INIT;
    size_t indent = 0;

    for (const struct option_row *row = table; row->name; row++) {
        strbuf_reset(&left);
        add_left_column(&left, row, key);
        size_t columns = wrap_columns(strbuf_text(&left)) + 2;
        indent = columns > indent ? columns : indent;
    }
    indent = indent < LEFT_MAX ? indent : LEFT_MAX;
    for (const struct option_row *row = table; row->name; row++) {
        strbuf_reset(&left);
        strbuf_reset(&right);
        add_left_column(&left, row, key);
        strbuf_adds(&right, row->help);
        if (row->choices) {
            strbuf_addf(&right, "; one of %s", row->choices);
        }
        if (row->default_text && row->type != OPTION_FLAG && row->default_text[0] != '\0') {
            strbuf_addf(&right, " (default: %s)", row->default_text);
        }
        wrap_print_columns(out, strbuf_text(&left), indent, strbuf_text(&right), wrap_width(out));
    }
    strbuf_release(&left);
    strbuf_release(&right);
}

void options_print(const struct option_row *table, FILE *out)
{
    print_rows(table, out, false);
}

void options_print_keys(const struct option_row *table, FILE *out)
{
    print_rows(table, out, true);
}

void options_print_exit_codes(FILE *out)
{
    size_t width = wrap_width(out);
    char left[16];
    wrap_print(out, "\nexit codes:\n");
#define X(id, value, text)                                                                         \
    (void)snprintf(left, sizeof(left), "  %3d", value);                                            \
    wrap_print_columns(out, left, 7, text, width);
    EXIT_CODES(X)
#undef X
}
