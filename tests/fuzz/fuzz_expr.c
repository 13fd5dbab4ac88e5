// Two properties of expressions. Arbitrary text: what parses also parses, and evaluates equally,
// from its own text, in parentheses and as a condition. Generated text: the value is the one that
// the generator's own evaluator computes in 128 bits.
#include "common/strbuf.h"
#include "problem/expr.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {"M", "N", "", "UNROLL"};
#define NAME_COUNT (sizeof names / sizeof names[0])

struct outcome {
    int rc;
    int64_t value; // valid when rc is 0
};

static struct outcome evaluate(const struct expr *expr, const int64_t *values)
{
    struct outcome outcome = {0, 0};
    struct err err = ERR_INIT;

    outcome.rc = expr_eval(&outcome.value, expr, values, &err);
    if ((outcome.rc != 0) != (err.text[0] != '\0') || strchr(err.text, '\n')) {
        abort();
    }
    return outcome;
}

static void require_equal(const char *text, enum expr_kind kind, const int64_t *values,
                          struct outcome expected)
{
    struct expr *expr = NULL;

    if (expr_parse(&expr, text, kind, names, NAME_COUNT, NULL) != 0) {
        abort();
    }
    struct outcome outcome = evaluate(expr, values);
    if (outcome.rc != expected.rc || outcome.value != expected.value) {
        abort();
    }
    expr_free(expr);
}

static void try_text(const char *text, enum expr_kind kind, const int64_t *values)
{
    struct expr *expr = NULL, *again = NULL;
    struct err err = ERR_INIT;
    size_t column = 0;

    if (expr_parse_at(&expr, text, kind, names, NAME_COUNT, &column, &err) != 0) {
        if (column < 1 || column > EXPR_TEXT_MAX + 1 || err.text[0] == '\0' ||
            strchr(err.text, '\n')) {
            abort();
        }
        return;
    }
    struct outcome outcome = evaluate(expr, values);
    require_equal(expr_text(expr), kind, values, outcome);
    require_equal(text, EXPR_CONDITIONS, values, outcome);
    struct strbuf wrapped = STRBUF_INIT;
    strbuf_addf(&wrapped, " (%s )", text);
    // At the limits of length and depth there may be no room for the parentheses.
    if (expr_parse(&again, strbuf_text(&wrapped), kind, names, NAME_COUNT, NULL) == 0) {
        require_equal(strbuf_text(&wrapped), kind, values, outcome);
    }
    expr_free(again);
    strbuf_release(&wrapped);
    expr_free(expr);
}

// ---- generated expressions: all operations are in parentheses, so no precedence is needed ----

struct source {
    const uint8_t *data;
    size_t size;
};

static unsigned take(struct source *source)
{
    if (source->size == 0) {
        return 0;
    }
    source->size--;
    return *source->data++;
}

static bool fits(__int128 value)
{
    return value >= INT64_MIN && value <= INT64_MAX;
}

struct term {
    bool fails;
    __int128 value;
};

static __int128 floor_div(__int128 a, __int128 b)
{
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

static struct term combine(unsigned op, struct term a, struct term b)
{
    struct term out = {a.fails || b.fails, 0};

    if (op == 3 || op == 4 || op == 5) {
        out.fails = out.fails || b.value == 0 || (a.value == INT64_MIN && b.value == -1);
    }
    if (out.fails) {
        return out;
    }
    switch (op) {
    case 0:
        out.value = a.value + b.value;
        break;
    case 1:
        out.value = a.value - b.value;
        break;
    case 2:
        out.value = a.value * b.value;
        break;
    case 3:
        out.value = a.value / b.value;
        break;
    case 4:
        out.value = a.value % b.value;
        break;
    case 5:
        out.value = -floor_div(-a.value, b.value);
        break;
    case 6:
        out.value = a.value < b.value ? a.value : b.value;
        break;
    case 7:
        out.value = a.value > b.value ? a.value : b.value;
        break;
    case 8:
        out.value = a.value < b.value;
        break;
    case 9:
        out.value = a.value >= b.value;
        break;
    case 10:
        out.value = a.value == b.value;
        break;
    default:
        out.value = a.value != b.value;
        break;
    }
    out.fails = !fits(out.value);
    return out;
}

static struct term generate(struct source *source, struct strbuf *out, unsigned depth,
                            const int64_t *values)
{
    static const char *const infix[] = {" + ", "-",  " *", "/ ",   " % ", NULL,
                                        NULL,  NULL, "<",  " >= ", "==",  " !="};
    static const char *const prefix[] = {[5] = "ceildiv(", [6] = "min(", [7] = "max ( "};
    unsigned choice = depth == 0 ? take(source) % 2 : take(source) % 17;
    struct term a, b;

    if (choice == 0) {
        int64_t value = (int64_t)take(source) - 128;
        if (take(source) % 8 == 0) {
            value = value < 0 ? INT64_MIN - value - 1 : INT64_MAX - value;
        }
        strbuf_addf(out, "%lld", (long long)value);
        return (struct term){false, value};
    }
    if (choice == 1) {
        size_t name = (size_t[]){0, 1, 3}[take(source) % 3];
        strbuf_adds(out, names[name]);
        return (struct term){false, values[name]};
    }
    if (choice == 2) {
        strbuf_adds(out, "-(");
        a = generate(source, out, depth - 1, values);
        strbuf_addc(out, ')');
        return combine(1, (struct term){false, 0}, a);
    }
    if (choice == 3) {
        strbuf_adds(out, "!(");
        a = generate(source, out, depth - 1, values);
        strbuf_addc(out, ')');
        a.value = a.value == 0;
        return a;
    }
    choice -= 4;
    bool call = choice < 12 && !infix[choice];
    strbuf_adds(out, call ? prefix[choice] : choice < 12 ? "(" : "((");
    a = generate(source, out, depth - 1, values);
    strbuf_adds(out, call                               ? ","
                     : choice < 12                      ? infix[choice]
                     : choice == 12 && a.value % 2 == 0 ? ")&&("
                                                        : ")||(");
    bool is_and = choice >= 12 && a.value % 2 == 0;
    b = generate(source, out, depth - 1, values);
    strbuf_adds(out, choice < 12 ? ")" : "))");
    if (choice < 12) {
        return combine(choice, a, b);
    }
    if (a.fails || (is_and ? a.value == 0 : a.value != 0)) {
        return (struct term){a.fails, !is_and && !a.fails};
    }
    return (struct term){b.fails, !b.fails && b.value != 0};
}

static void try_generated(struct source source, const int64_t *values)
{
    struct strbuf text = STRBUF_INIT;
    struct expr *expr = NULL;
    struct term term = generate(&source, &text, 5, values);

    if (text.len <= EXPR_TEXT_MAX) {
        // The parts "(a)" and "(b)" of "(a)&&(b)" have parentheses, so precedence cannot change the
        // meaning.
        if (expr_parse(&expr, strbuf_text(&text), EXPR_CONDITIONS, names, NAME_COUNT, NULL) != 0) {
            abort();
        }
        struct outcome outcome = evaluate(expr, values);
        if ((outcome.rc != 0) != term.fails ||
            (!term.fails && outcome.value != (int64_t)term.value)) {
            abort();
        }
        expr_free(expr);
    }
    strbuf_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source source = {data, size};
    unsigned mode = take(&source);
    int64_t values[NAME_COUNT];

    for (size_t i = 0; i < NAME_COUNT; i++) {
        values[i] = (int64_t)take(&source) - 16;
        if (mode & 4) {
            values[i] = values[i] < 0 ? INT64_MIN - values[i] - 1 : INT64_MAX - values[i];
        }
    }
    if (mode % 2 == 1) {
        try_generated(source, values);
        return 0;
    }
    char *text = strndup((const char *)source.data, source.size);
    try_text(text, mode & 2 ? EXPR_CONDITIONS : EXPR_ARITHMETIC, values);
    free(text);
    return 0;
}
