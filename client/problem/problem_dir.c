#include "client/problem/problem_dir.h"

#include "common/file.h"
#include "common/strbuf.h"
#include "problem/candidate_form.h"
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define README_MAX ((size_t)1 << 20)
#define LIST_MAX 4096 // problem folders in one listing

struct texts {
    char **text;
    size_t count;
};

static void add(struct texts *texts, char *text_taken)
{
    texts->text = xrealloc(texts->text, texts->count + 1, sizeof(*texts->text));
    texts->text[texts->count++] = text_taken;
}

void problem_dir_free_texts(char **text, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(text[i]);
    }
    free(text);
}

static bool is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static bool is_problem(const char *path)
{
    char *json = xasprintf("%s/problem.json", path);
    bool yes = file_exists(json);
    free(json);
    return yes;
}

// Adds the folders directly below path, sorted: those that are problems, or those that are not.
static void add_folders(struct texts *texts, const char *path, bool problems)
{
    struct dirent **entry = NULL;
    int count = scandir(path, &entry, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        char *child = xasprintf("%s/%s", path, entry[i]->d_name);
        if (entry[i]->d_name[0] != '.' && is_folder(child) && is_problem(child) == problems &&
            texts->count < LIST_MAX) {
            add(texts, child);
            child = NULL;
        }
        free(child);
        free(entry[i]);
    }
    free(entry);
}

static void add_root(struct texts *texts, char *path_taken)
{
    if (path_taken[0] == '\0' || !is_folder(path_taken)) {
        free(path_taken);
        return;
    }
    const char *path = path_taken;
    add(texts, path_taken);
    add_folders(texts, path, false);
}

void problem_dir_roots(char ***ret, size_t *ret_count)
{
    struct texts texts = {0};
    add_root(&texts, xstrdup("problems"));
    const char *more = getenv("KCAST_PROBLEMS");
    while (more) {
        size_t len = strcspn(more, ":");
        add_root(&texts, xstrndup(more, len));
        more = more[len] == ':' ? more + len + 1 : NULL;
    }
    char *own = NULL;
    if (file_own_dir(&own, NULL) == 0) {
        add_root(&texts, xasprintf("%s/../share/kernelcast/problems", own));
    }
    free(own);
    *ret = texts.text;
    *ret_count = texts.count;
}

void problem_dir_list(char ***ret, size_t *ret_count)
{
    char **root;
    size_t root_count;
    problem_dir_roots(&root, &root_count);
    struct texts texts = {0};
    for (size_t i = 0; i < root_count; i++) {
        add_folders(&texts, root[i], true);
    }
    problem_dir_free_texts(root, root_count);
    *ret = texts.text;
    *ret_count = texts.count;
}

// Finds the folder of a problem that was named without a path. *ret is malloc'd.
static int find_by_name(char **ret, const char *name, struct err *err)
{
    char **root;
    size_t root_count;
    problem_dir_roots(&root, &root_count);
    char *found = NULL;
    struct strbuf where = STRBUF_INIT;
    for (size_t i = 0; i < root_count && !found; i++) {
        found = xasprintf("%s/%s", root[i], name);
        if (!is_problem(found)) {
            free(found);
            found = NULL;
        }
        strbuf_addf(&where, "%s%s", i == 0 ? "" : ", ", root[i]);
    }
    int rc = 0;
    if (!found && root_count == 0) {
        rc = err_set(err, ERR_NOT_FOUND,
                     "there is no problem named \"%s\": no folder ./problems, $KCAST_PROBLEMS is "
                     "not set, and "
                     "none are installed",
                     name);
    } else if (!found) {
        rc = err_set(err, ERR_NOT_FOUND,
                     "there is no problem named \"%s\" in %.700s; `kcast problem list` shows them",
                     name, strbuf_text(&where));
    } else {
        *ret = found;
    }
    strbuf_release(&where);
    problem_dir_free_texts(root, root_count);
    return rc;
}

static int read_file(struct bytes *ret, const char *dir, const char *name, size_t limit,
                     bool required, struct err *err)
{
    char *path = xasprintf("%s/%s", dir, name);
    int rc = 0;
    if (required || file_exists(path)) {
        rc = file_read(ret, path, limit, err);
    }
    if (rc == 0 && required && ret->len == 0) {
        rc = err_set(err, ERR_INVALID, "%s is empty", path);
    }
    if (rc == 0 && memchr(ret->data ? ret->data : (unsigned char *)"", 0, ret->len)) {
        rc = err_set(err, ERR_INVALID, "%s holds a NUL byte, so it is no text", path);
    }
    free(path);
    return rc;
}

// Checks that the problem is named like its folder. The folder's name is taken from its real path,
// because the given path may be "." or end in "..".
static int check_name(const struct problem_dir *dir, struct err *err)
{
    char *real = realpath(dir->path, NULL);
    if (!real) {
        return err_set_errno(err, ERR_SYSTEM, errno, "%s", dir->path);
    }
    int rc = 0;
    if (strcmp(file_base_name(real), dir->problem->name) != 0) {
        rc = err_set(err, ERR_INVALID,
                     "%s/problem.json: the problem is named \"%s\" and its folder \"%s\"; "
                     "the two must be equal",
                     dir->path, dir->problem->name, file_base_name(real));
    }
    free(real);
    return rc;
}

// One of the sources that may be Python for a cuda problem.
struct role {
    const char *c, *cuda, *python; // the names of its file
};

static const struct role reference_role = {"reference.c", "reference.cu", "reference.py"};
static const struct role baseline_role = {"baseline.c", "baseline.cu", "baseline.py"};

static int check_python(const struct problem_dir *dir, const char *name, const struct bytes *source,
                        struct err *err)
{
    if (!dir->problem->cuda) {
        return err_set(err, ERR_INVALID,
                       "%s/%s: a problem in C has no source in Python; remove the file, or make "
                       "\"language\" in problem.json \"cuda\"",
                       dir->path, name);
    }
    return candidate_form((const char *)source->data, source->len) == FORM_PYTHON
               ? 0
               : err_set(err, ERR_INVALID,
                         "%s/%s is not taken for Python: no line of it begins with import, from, "
                         "def, class or @, or one begins with //@",
                         dir->path, name);
}

// Reads the source of this role, from whichever of its files there is.
static int read_role(struct bytes *ret, const char **ret_name, const struct problem_dir *dir,
                     const struct role *role, struct err *err)
{
    const char *name = dir->problem->cuda ? role->cuda : role->c, *python = role->python;
    struct bytes other = {.data = NULL};
    int rc = read_file(&other, dir->path, python, PROBLEM_SOURCE_MAX, false, err);

    if (rc != 0) {
        return rc;
    }
    *ret_name = name;
    rc = read_file(ret, dir->path, name, PROBLEM_SOURCE_MAX, !other.data, err);
    if (rc == 0 && other.data && ret->data) {
        rc = err_set(err, ERR_INVALID, "%s has both %s and %s; keep the one that is meant",
                     dir->path, name, python);
    } else if (rc == 0 && other.data) {
        rc = check_python(dir, python, &other, err);
        *ret = bytes_take(&other);
        *ret_name = python;
    }
    bytes_clear(&other);
    return rc;
}

static int read_template(struct problem_dir *dir, struct err *err)
{
    return read_file(&dir->template_source, dir->path,
                     dir->problem->cuda ? "template.cu" : "template.c", PROBLEM_SOURCE_MAX, false,
                     err);
}

static int load(struct problem_dir *dir, struct err *err)
{
    int rc = read_file(&dir->json, dir->path, "problem.json", PROBLEM_JSON_MAX, true, err);
    if (rc != 0) {
        return rc;
    }
    char *name = xasprintf("%s/problem.json", dir->path);
    rc = problem_parse(&dir->problem, (const char *)dir->json.data, dir->json.len, name, err);
    free(name);
    if (rc != 0) {
        return rc;
    }
    rc = check_name(dir, err);
    if (rc != 0) {
        return rc;
    }
    rc = read_role(&dir->reference, &dir->reference_name, dir, &reference_role, err);
    if (rc != 0) {
        return rc;
    }
    rc = read_role(&dir->baseline, &dir->baseline_name, dir, &baseline_role, err);
    if (rc != 0) {
        return rc;
    }
    rc = read_template(dir, err);
    if (rc != 0) {
        return rc;
    }
    rc = read_file(&dir->readme, dir->path, "README.md", README_MAX, false, err);
    if (rc != 0) {
        return rc;
    }
    dir->json_digest = digest_of(dir->json.data, dir->json.len);
    dir->reference_digest = digest_of(dir->reference.data, dir->reference.len);
    dir->baseline_digest = digest_of(dir->baseline.data, dir->baseline.len);
    return rc;
}

int problem_dir_load(struct problem_dir *ret, const char *problem, struct err *err)
{
    struct problem_dir dir = {0};
    *ret = dir;
    if (problem[0] == '\0') {
        return err_set(err, ERR_USAGE, "the problem's name is empty");
    }
    int rc = 0;
    if (strchr(problem, '/') || is_problem(problem) || strcmp(problem, ".") == 0 ||
        strcmp(problem, "..") == 0) {
        dir.path = xstrdup(problem);
        for (size_t len = strlen(dir.path); len > 1 && dir.path[len - 1] == '/'; len--) {
            dir.path[len - 1] = '\0';
        }
        if (!is_folder(dir.path) && dir.path[0] != '/' && dir.path[0] != '.') {
            free(dir.path); // a name such as "cuda/softmax", which is relative to one of the roots
            dir.path = NULL;
            rc = find_by_name(&dir.path, problem, err);
        } else if (!is_folder(dir.path)) {
            rc = err_set(err, ERR_NOT_FOUND, "%s is no folder, so it is no problem", dir.path);
        } else if (!is_problem(dir.path)) {
            rc = err_set(err, ERR_NOT_FOUND, "%s has no problem.json, so it is no problem",
                         dir.path);
        }
    } else {
        rc = find_by_name(&dir.path, problem, err);
    }
    if (rc == 0) {
        rc = load(&dir, err);
    }
    if (rc == 0) {
        *ret = dir;
    } else {
        problem_dir_release(&dir);
    }
    return rc;
}

void problem_dir_release(struct problem_dir *dir)
{
    free(dir->path);
    problem_free(dir->problem);
    bytes_clear(&dir->json);
    bytes_clear(&dir->reference);
    bytes_clear(&dir->baseline);
    bytes_clear(&dir->template_source);
    bytes_clear(&dir->readme);
    *dir = (struct problem_dir){0};
}

void problem_dir_spec(const struct problem_dir *dir, enum job_kind kind,
                      const struct digest *candidate, struct job_spec *ret)
{
    *ret = (struct job_spec){
        .kind = kind,
        .problem = dir->json_digest,
        .candidate = *candidate,
        .anchor_log2 = NAN,
        .max_seconds = NAN,
        .precision_log2 = NAN,
        .features_only = kind == JOB_COMPILE,
        .no_machine_code = kind == JOB_MEASURE,
    };
    if (kind == JOB_MEASURE) {
        ret->reference = dir->reference_digest;
        ret->baseline = dir->baseline_digest;
    }
}
