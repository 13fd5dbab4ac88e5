// Parses a manifest in three passes over the lines of the source. The first reads macros; the
// second scratch areas, tensor maps and specialised params; the third launches, whose arguments may
// name any of those. An expression may use the int params, then the macros. f64 params keep their
// places in the list of names without a name.
#include "problem/manifest.h"
#include "common/mem.h"
#include "common/parse.h"
#include "problem/manifest_line.h"
#include <stdlib.h>
#include <string.h>

// ---- macros ----

// Reads a line "#define NAME 123". Ignores every other line that begins with #.
static int take_constant(struct scan *p)
{
    struct manifest *m = p->manifest;

    p->at++;
    scan_blanks(p);
    if (!span_is(scan_word(p), "define")) {
        return 0;
    }
    scan_blanks(p);
    struct span word = scan_word(p);
    struct span value = span_trim((struct span){.at = p->at, .len = (size_t)(p->end - p->at)});
    for (size_t i = 0; i + 1 < value.len; i++) {
        if (value.at[i] == '/' && (value.at[i + 1] == '/' || value.at[i + 1] == '*')) {
            value = span_trim((struct span){.at = value.at, .len = i});
        }
    }
    if (word.len == 0 || word.len > MANIFEST_NAME_MAX || value.len == 0 || value.len > 24) {
        return 0;
    }
    if (value.len > 2 && value.at[0] == '(' && value.at[value.len - 1] == ')') { // "(-1)"
        value = span_trim((struct span){.at = value.at + 1, .len = value.len - 2});
    }
    char *copy = xstrndup(value.at, value.len);
    struct err ignored = ERR_INIT;
    int64_t number;
    bool ok = parse_i64(&number, copy, INT64_MIN, INT64_MAX, "macro", &ignored) == 0;
    free(copy);
    if (!ok) {
        return 0;
    }
    for (size_t i = 0; i < m->constant_count; i++) {
        if (span_is(word, p->constant_name[i])) {
            return 0; // the first definition counts: a template's point puts its own in front
        }
    }
    if (m->constant_count == MANIFEST_CONSTANT_MAX) {
        return 0; // an expression that uses this macro is refused for an unknown name
    }
    p->constant_name[m->constant_count] = xstrndup(word.at, word.len);
    m->constant[m->constant_count++] = number;
    return 0;
}

// ---- names ----

// Refuses a name that is missing, too long or used already.
static int check_new_name(struct scan *p, struct span name)
{
    const struct problem *problem = p->problem;

    if (name.len == 0 || name.len > MANIFEST_NAME_MAX) {
        return scan_fail(p, name.at, "a name of at most 63 letters, digits and _ is missing here");
    }
    bool taken = false;
    for (size_t i = 0; i < problem->tensor_count; i++) {
        taken = taken || span_is(name, problem->tensor[i].name);
    }
    for (size_t i = 0; i < problem->param_count; i++) {
        taken = taken || span_is(name, problem->param[i].name);
    }
    for (size_t i = 0; i < p->manifest->scratch_count; i++) {
        taken = taken || span_is(name, p->manifest->scratch[i].name);
    }
    for (size_t i = 0; i < p->manifest->tensormap_count; i++) {
        taken = taken || span_is(name, p->manifest->tensormap[i].name);
    }
    return taken ? scan_fail_name(p, name, "is the name of something else already") : 0;
}

// ---- scratch, specialize, tensormap ----

static int parse_scratch(struct scan *p)
{
    struct manifest *m = p->manifest;

    scan_blanks(p);
    struct span name = scan_word(p);
    int rc = check_new_name(p, name);
    if (rc != 0) {
        return rc;
    }
    if (m->scratch_count == MANIFEST_SCRATCH_MAX) {
        return scan_fail(p, name.at, "more than 16 scratch areas");
    }
    struct manifest_scratch *scratch = &m->scratch[m->scratch_count++];
    scratch->name = xstrndup(name.at, name.len);
    while (!scan_at_end(p) && rc == 0) {
        struct span key = scan_word(p), value;
        rc = scan_value(p, &value);
        if (rc != 0) {
            break;
        }
        if (span_is(key, "bytes") && !scratch->bytes) {
            rc = scan_expr(p, value, EXPR_ARITHMETIC, &scratch->bytes);
        } else if (span_is(key, "init") && (span_is(value, "zero") || span_is(value, "poison"))) {
            scratch->zero = span_is(value, "zero");
        } else {
            rc = scan_fail(p, key.at, "scratch takes bytes=… once and init=zero or init=poison");
        }
    }
    return rc == 0 && !scratch->bytes ? scan_fail(p, name.at, "scratch needs bytes=…") : rc;
}

static int parse_specialize(struct scan *p)
{
    if (p->role == MANIFEST_REFERENCE) {
        return scan_fail(p, p->at, "a reference may not specialize");
    }
    size_t count = 0;
    while (!scan_at_end(p)) {
        struct span name = scan_word(p);
        size_t index;

        if (!scan_find_param(p, name, &index) || p->problem->param[index].type != PARAM_INT) {
            return name.len == 0 ? scan_fail(p, p->at, "a param's name is missing here")
                                 : scan_fail_name(p, name, "is no int param of the problem");
        }
        p->manifest->specialized[index] = true;
        p->manifest->specializes = true;
        count++;
        scan_blanks(p);
        if (p->at < p->end && *p->at == ',') {
            p->at++;
        }
    }
    return count > 0 ? 0 : scan_fail(p, p->at, "specialize needs a param");
}

static int parse_box(struct scan *p, struct span value, struct manifest_tensormap *map)
{
    struct span item[SCAN_ITEM_MAX];
    size_t count = 0, rank = p->problem->tensor[map->tensor].rank;
    int rc = scan_list(p, value, item, &count);

    if (rc == 0 && (count != rank || count > 5)) {
        return scan_fail(p, value.at,
                         "box needs one extent for each axis of the tensor, at most 5");
    }
    for (size_t i = 0; i < count && rc == 0; i++) {
        expr_free(map->box[i]);
        map->box[i] = NULL;
        rc = scan_expr(p, item[i], EXPR_ARITHMETIC, &map->box[i]);
    }
    return rc;
}

static int parse_tensormap(struct scan *p)
{
    struct manifest *m = p->manifest;

    scan_blanks(p);
    struct span name = scan_word(p);
    int rc = check_new_name(p, name);
    if (rc != 0) {
        return rc;
    }
    if (m->tensormap_count == MANIFEST_TENSORMAP_MAX) {
        return scan_fail(p, name.at, "more than 16 tensor maps");
    }
    struct manifest_tensormap *map = &m->tensormap[m->tensormap_count++];
    map->name = xstrndup(name.at, name.len);
    bool has_tensor = false;
    struct span box = {.at = NULL};
    while (!scan_at_end(p) && rc == 0) {
        struct span key = scan_word(p), value;
        rc = scan_value(p, &value);
        if (rc != 0) {
            break;
        }
        if (span_is(key, "tensor")) {
            has_tensor = scan_find_tensor(p, value, &map->tensor);
            rc = has_tensor ? 0 : scan_fail_name(p, value, "is no tensor of the problem");
        } else if (span_is(key, "box")) {
            box = value;
        } else if (span_is(key, "swizzle") && span_is(value, "0")) {
            map->swizzle = 0;
        } else if (span_is(key, "swizzle") && span_is(value, "32")) {
            map->swizzle = 32;
        } else if (span_is(key, "swizzle") && span_is(value, "64")) {
            map->swizzle = 64;
        } else if (span_is(key, "swizzle") && span_is(value, "128")) {
            map->swizzle = 128;
        } else {
            rc = scan_fail(p, key.at,
                           "tensormap takes tensor=…, box=(…) and swizzle=0, 32, 64 or 128");
        }
    }
    if (rc == 0 && (!has_tensor || !box.at)) {
        rc = scan_fail(p, name.at, "tensormap needs tensor=… and box=(…)");
    }
    return rc == 0 ? parse_box(p, box, map) : rc;
}

// ---- lines ----

enum pass { PASS_CONSTANTS, PASS_NAMES, PASS_LAUNCHES };

static int parse_directive(struct scan *p, enum pass pass)
{
    p->at += 3;
    scan_blanks(p);
    struct span word = scan_word(p);
    if (span_is(word, "tune")) {
        return 0;
    }
    if (span_is(word, "launch")) {
        return pass == PASS_LAUNCHES ? scan_launch(p) : 0;
    }
    if (pass == PASS_LAUNCHES) {
        return 0;
    }
    if (span_is(word, "scratch")) {
        return parse_scratch(p);
    }
    if (span_is(word, "specialize")) {
        return parse_specialize(p);
    }
    if (span_is(word, "tensormap")) {
        return parse_tensormap(p);
    }
    return scan_fail(p, word.at,
                     "//@ is followed by launch, scratch, specialize, tensormap or tune");
}

static int parse_line(struct scan *p, enum pass pass)
{
    scan_blanks(p);
    if (pass == PASS_CONSTANTS) {
        return p->at < p->end && *p->at == '#' ? take_constant(p) : 0;
    }
    return p->end - p->at >= 3 && memcmp(p->at, "//@", 3) == 0 ? parse_directive(p, pass) : 0;
}

static int parse_lines(struct scan *p, const char *source, size_t len, enum pass pass)
{
    const char *at = source, *end = source + len;
    int rc = 0;

    for (p->number = 1; at < end && rc == 0; p->number++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));

        p->line = p->at = at;
        p->end = newline ? newline : end;
        at = p->end + 1;
        if (p->end > p->line && p->end[-1] == '\r') {
            p->end--;
        }
        rc = parse_line(p, pass);
    }
    return rc;
}

// Collects the names that expressions may use.
static void collect_names(struct scan *p)
{
    p->name_count = 0;
    for (size_t i = 0; i < p->problem->param_count; i++) {
        p->name[p->name_count++] =
            p->problem->param[i].type == PARAM_INT ? p->problem->param[i].name : "";
    }
    for (size_t i = 0; i < p->manifest->constant_count; i++) {
        p->name[p->name_count++] = p->constant_name[i];
    }
}

// Whether some launch gets this argument.
static bool launched_with(const struct manifest *m, enum manifest_arg_kind kind, size_t tensor)
{
    for (size_t i = 0; i < m->launch_count; i++) {
        for (size_t k = 0; k < m->launch[i].arg_count; k++) {
            if (m->launch[i].arg[k].kind == kind && m->launch[i].arg[k].index == tensor) {
                return true;
            }
        }
    }
    return false;
}

// Checks that there is a launch, and that the launches of a reference get all that it has to
// compute.
static int check_launches(struct scan *p)
{
    if (p->manifest->launch_count == 0) {
        return err_set(p->err, ERR_INVALID,
                       "%s:1:1: there is no launch line; write //@ launch KERNEL grid=(…) "
                       "block=(…) args=(…)",
                       p->path);
    }
    for (size_t i = 0; i < p->problem->tensor_count && p->role == MANIFEST_REFERENCE; i++) {
        const struct tensor *tensor = &p->problem->tensor[i];
        bool expected = launched_with(p->manifest, ARG_EXPECTED, i);

        if (tensor->direction != DIRECTION_IN &&
            (!expected || !launched_with(p->manifest, ARG_SCALE, i))) {
            return err_set(p->err, ERR_INVALID,
                           "%s:%u:1: no launch gets %s%s, which a reference has to compute",
                           p->path, p->manifest->launch[0].line, tensor->name,
                           expected                               ? "_scale"
                           : tensor->direction == DIRECTION_INOUT ? "_out"
                                                                  : "");
        }
    }
    return 0;
}

int manifest_parse(struct manifest **ret, const char *source, size_t len, const char *path,
                   const struct problem *problem, enum manifest_role role, struct err *err)
{
    struct err own = ERR_INIT;
    struct scan p = {.path = path, .problem = problem, .role = role, .err = err ? err : &own};

    p.manifest = xcalloc(1, sizeof(*p.manifest));
    int rc = memchr(source, '\0', len) ? err_set(p.err, ERR_INVALID, "%s: holds a byte 0", path)
                                       : parse_lines(&p, source, len, PASS_CONSTANTS);
    collect_names(&p);
    for (enum pass pass = PASS_NAMES; pass <= PASS_LAUNCHES && rc == 0; pass++) {
        rc = parse_lines(&p, source, len, pass);
    }
    if (rc == 0) {
        rc = check_launches(&p);
    }
    for (size_t i = 0; i < p.manifest->constant_count; i++) {
        free(p.constant_name[i]);
    }
    if (rc != 0) {
        manifest_free(p.manifest);
        return rc;
    }
    *ret = p.manifest;
    return 0;
}

static void free_three(struct expr *three[static 3])
{
    for (size_t i = 0; i < 3; i++) {
        expr_free(three[i]);
    }
}

void manifest_free(struct manifest *manifest)
{
    if (!manifest) {
        return;
    }
    for (size_t i = 0; i < manifest->launch_count; i++) {
        struct manifest_launch *launch = &manifest->launch[i];

        free(launch->kernel);
        free_three(launch->grid);
        free_three(launch->block);
        free_three(launch->cluster);
        expr_free(launch->smem);
        expr_free(launch->condition);
        for (size_t k = 0; k < launch->arg_count; k++) {
            expr_free(launch->arg[k].expr);
        }
    }
    for (size_t i = 0; i < manifest->scratch_count; i++) {
        free(manifest->scratch[i].name);
        expr_free(manifest->scratch[i].bytes);
    }
    for (size_t i = 0; i < manifest->tensormap_count; i++) {
        free(manifest->tensormap[i].name);
        for (size_t k = 0; k < PROBLEM_RANK_MAX; k++) {
            expr_free(manifest->tensormap[i].box[k]);
        }
    }
    free(manifest->launch);
    free(manifest);
}
