#include "tests/cheats/compose.h"
#include "common/file.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The benchmark cases of the battery: a launch of the baseline takes between 20 and 200 us, so that
// a measurement takes a fraction of a second. Two cases, because what one leaves behind may be
// found in the other.
static const struct {
    const char *name, *bench;
} problem_table[COMPOSE_PROBLEMS] = {
    {"conv2d", "{\"params\": {\"H\": 48, \"W\": 96}, \"weight\": 1}, {\"params\": {\"H\": 37, "
               "\"W\": 60}, \"weight\": 1}"},
    {"histogram",
     "{\"params\": {\"N\": 120000}, \"weight\": 1}, {\"params\": {\"N\": 60003}, \"weight\": 1}"},
    {"rmsnorm", "{\"params\": {\"R\": 64, \"N\": 512, \"eps\": 1e-5}, \"weight\": 1},"
                " {\"params\": {\"R\": 150, \"N\": 100, \"eps\": 1e-5}, \"weight\": 1}"},
    {"scan",
     "{\"params\": {\"N\": 80000}, \"weight\": 1}, {\"params\": {\"N\": 40007}, \"weight\": 1}"},
    {"sgemm", "{\"params\": {\"M\": 64, \"N\": 64, \"K\": 48}, \"weight\": 1},"
              " {\"params\": {\"M\": 40, \"N\": 56, \"K\": 50}, \"weight\": 1}"},
    {"softmax", "{\"params\": {\"R\": 50, \"N\": 400}, \"weight\": 1}, {\"params\": {\"R\": 128, "
                "\"N\": 64}, \"weight\": 1}"},
    {"transpose", "{\"params\": {\"M\": 250, \"N\": 260}, \"weight\": 1}, {\"params\": {\"M\": "
                  "150, \"N\": 300}, \"weight\": 1}"},
};

__attribute__((noreturn)) static void die(const char *text, const char *path)
{
    fprintf(stderr, "%s: %s\n", path, text);
    exit(2);
}

static struct bytes read_file(const char *folder, const char *name)
{
    const char *root = getenv("KCAST_ROOT");
    char *path = xasprintf("%s/%s/%s", root ? root : ".", folder, name);
    struct bytes bytes;
    struct err err = ERR_INIT;

    if (file_read(&bytes, path, PROBLEM_SOURCE_MAX, &err) != 0) {
        die(err.text, path);
    }
    free(path);
    return bytes;
}

// ---- problems ----

// Puts the battery's benchmark cases in the place of the problem's own.
static struct bytes with_bench(const struct bytes *json, const char *bench, const char *name)
{
    const char *text = (const char *)json->data;
    const char *begin = strstr(text, "\"bench\": [");
    const char *end = begin ? strstr(begin, "],") : NULL;
    struct strbuf out = STRBUF_INIT;

    if (!end) {
        die("no list of benchmark cases was found in problem.json", name);
    }
    strbuf_add(&out, text, (size_t)(begin - text));
    strbuf_addf(&out, "\"bench\": [%s", bench);
    strbuf_adds(&out, end);
    return strbuf_detach_bytes(&out);
}

void compose_problems(struct cheat_problem out[static COMPOSE_PROBLEMS], bool full)
{
    for (size_t i = 0; i < COMPOSE_PROBLEMS; i++) {
        const char *name = problem_table[i].name;
        char *folder = xasprintf("problems/cpu/%s", name), *kit = xasprintf("%s.c", name);
        struct bytes json = read_file(folder, "problem.json");
        struct err err = ERR_INIT;

        out[i] = (struct cheat_problem){.name = name,
                                        .reference = read_file(folder, "reference.c"),
                                        .baseline = read_file(folder, "baseline.c"),
                                        .kit = read_file("tests/cheats/kit", kit)};
        out[i].json = full ? json : with_bench(&json, problem_table[i].bench, name);
        if (problem_parse(&out[i].problem, (const char *)out[i].json.data, out[i].json.len, name,
                          &err) != 0) {
            die(err.text, name);
        }
        if (!full) {
            bytes_clear(&json);
        }
        free(folder);
        free(kit);
    }
}

void compose_problems_release(struct cheat_problem *problems)
{
    for (size_t i = 0; i < COMPOSE_PROBLEMS; i++) {
        bytes_clear(&problems[i].json);
        problem_free(problems[i].problem);
        bytes_clear(&problems[i].reference);
        bytes_clear(&problems[i].baseline);
        bytes_clear(&problems[i].kit);
    }
}

// ---- mechanisms ----

static uint32_t problem_bits(char *words, const char *path)
{
    uint32_t bits = 0;
    char *save = NULL;

    for (char *word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        uint32_t bit = 0;
        for (size_t i = 0; i < COMPOSE_PROBLEMS; i++) {
            bit |= strcmp(word, problem_table[i].name) == 0 ? 1U << i : 0;
        }
        if (bit == 0) {
            die("names a problem that there is not", path);
        }
        bits |= bit;
    }
    return bits;
}

// Returns the rest of a line that begins with the mark, NULL for any other line. malloc'd.
static char *after_mark(const char *line, const char *mark)
{
    size_t len = strlen(mark);

    return strncmp(line, mark, len) == 0 ? xstrndup(line + len, strcspn(line + len, "\n")) : NULL;
}

static void add(struct mechanisms *out, const char *file, const char *text, const char *variant,
                const char *containing)
{
    struct mechanism m = {.on = (1U << COMPOSE_PROBLEMS) - 1, .text = xstrdup(text)};
    size_t stem = strlen(file) - 2;
    char *words = xstrdup(variant), *save = NULL, *name = strtok_r(words, " ", &save);

    m.name =
        name ? xasprintf("%.*s/%s", (int)stem, file, name) : xasprintf("%.*s", (int)stem, file);
    struct strbuf defines = STRBUF_INIT;
    for (char *word = name ? strtok_r(NULL, " ", &save) : NULL; word;
         word = strtok_r(NULL, " ", &save)) {
        char *value = strchr(word, '=');
        if (value) {
            *value = '\0';
        }
        strbuf_addf(&defines, "#define %s %s\n", word, value ? value + 1 : "1");
    }
    m.defines = strbuf_detach(&defines);
    free(words);
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        char *on = after_mark(line, "//@ on ");
        m.on = on ? problem_bits(on, file) : m.on;
        free(on);
        char *refused = after_mark(line, "//@ refused ");
        m.refused = refused ? refused : m.refused;
    }
    m.has_own_twin = strstr(text, "TWIN");
    if (containing && !strstr(m.name, containing)) {
        free(m.name);
        free(m.text);
        free(m.defines);
        free(m.refused);
        return;
    }
    out->list = xgrow(out->list, out->count, sizeof(*out->list));
    out->list[out->count++] = m;
}

static void add_file(struct mechanisms *out, const char *folder, const char *file,
                     const char *containing)
{
    struct bytes bytes = read_file(folder, file);
    const char *text = (const char *)bytes.data;
    size_t variants = 0;

    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        char *variant = after_mark(line, "//@ variant ");
        if (variant) {
            add(out, file, text, variant, containing);
            variants++;
        }
        free(variant);
    }
    if (variants == 0) {
        add(out, file, text, "", containing);
    }
    bytes_clear(&bytes);
}

static int is_source(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);

    return len > 2 && strcmp(entry->d_name + len - 2, ".c") == 0;
}

void compose_mechanisms(struct mechanisms *out, const char *folder, const char *containing)
{
    const char *root = getenv("KCAST_ROOT");
    char *below = xasprintf("tests/cheats/%s", folder);
    char *path = xasprintf("%s/%s", root ? root : ".", below);
    struct dirent **entry;
    int count = scandir(path, &entry, is_source, alphasort);

    *out = (struct mechanisms){.count = 0};
    if (count <= 0) {
        die("has no mechanisms", path);
    }
    for (int i = 0; i < count; i++) {
        add_file(out, below, entry[i]->d_name, containing);
        free(entry[i]);
    }
    free(entry);
    free(path);
    free(below);
}

void compose_mechanisms_release(struct mechanisms *mechanisms)
{
    for (size_t i = 0; i < mechanisms->count; i++) {
        free(mechanisms->list[i].name);
        free(mechanisms->list[i].text);
        free(mechanisms->list[i].defines);
        free(mechanisms->list[i].refused);
    }
    free(mechanisms->list);
    *mechanisms = (struct mechanisms){.count = 0};
}

// ---- the source ----

// Appends the integer parameters of the benchmark cases, which everybody can read.
static void add_bench(const struct problem *problem, struct strbuf *out)
{
    strbuf_adds(out, "static const int64_t bench_shape[][3] = {\n");
    for (size_t i = 0; i < problem->bench_count; i++) {
        strbuf_adds(out, "    {");
        size_t count = 0;
        for (size_t p = 0; p < problem->param_count && count < 3; p++) {
            if (problem->param[p].type == PARAM_INT) {
                strbuf_addf(out, "%s%lld", count++ > 0 ? ", " : "",
                            (long long)problem->bench[i].i[p]);
            }
        }
        strbuf_adds(out, "},\n");
    }
    strbuf_adds(out, "};\n");
}

static void add_bytes(struct strbuf *out, const struct bytes *bytes)
{
    strbuf_add(out, (const char *)bytes->data, bytes->len);
}

void compose_source(const struct cheat_problem *problem, const struct mechanism *mechanism,
                    bool twin, struct strbuf *out)
{
    struct bytes prelude = read_file("tests/cheats/kit", "prelude.c");

    strbuf_addf(out, "%s#define ON_%s 1\n%s#include <stdint.h>\n",
                twin && mechanism && mechanism->has_own_twin ? "#define TWIN 1\n" : "",
                problem->name, mechanism ? mechanism->defines : "");
    add_bench(problem->problem, out);
    add_bytes(out, &prelude);
    strbuf_addf(out, "#define %s kc_baseline\n", problem->problem->entry);
    problem_header(problem->problem, false, out);
    // How fast a loop is depends on where it lies in its cache lines, which must not differ.
    strbuf_adds(out, "extern __typeof__(kc_baseline) kc_baseline "
                     "__attribute__((noinline, aligned(4096)));\n");
    add_bytes(out, &problem->baseline);
    strbuf_addf(out, "#undef %s\n", problem->problem->entry);
    add_bytes(out, &problem->kit);
    strbuf_adds(out, !mechanism || (twin && !mechanism->has_own_twin)
                         ? "static void cheat(const struct call *c)\n{\n    honest(c);\n}\n"
                         : mechanism->text);
    bytes_clear(&prelude);
}
