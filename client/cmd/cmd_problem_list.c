// kcast problem list: lists the problems that can be named without a path.
#include "client/command.h"
#include "client/problem/problem_dir.h"
#include "client/session.h"
#include "client/show.h"
#include "common/printable.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_json(const char *path, const struct problem_dir *dir, const struct err *err)
{
    json_t *object = json_object();
    json_object_set_new(object, "path", show_text(path));
    if (dir) {
        json_object_set_new(object, "name", show_text(dir->problem->name));
        json_object_set_new(object, "title", show_text(dir->problem->title));
        json_object_set_new(object, "license", show_text(dir->problem->license));
        json_object_set_new(object, "template", json_boolean(dir->template_source.data));
    } else {
        json_object_set_new(object, "error", show_text(err->text));
    }
    show_print(object);
}

// The end of the path by which the problem is found: its folder's name, or two components such as
// "cuda/softmax" when several folders have the same name.
static const char *short_name(const char *path, char **all, size_t count)
{
    const char *name = strrchr(path, '/') + 1;
    size_t same = 0;
    for (size_t i = 0; i < count; i++) {
        same += strcmp(strrchr(all[i], '/') + 1, name) == 0;
    }
    if (same < 2) {
        return name;
    }
    name--; // the slash before the folder's name
    while (name > path && name[-1] != '/') {
        name--;
    }
    return name;
}

static int list_run(struct session *session, const void *options, char **argument,
                    size_t argument_count, struct err *err)
{
    (void)options;
    (void)argument;
    (void)argument_count;
    const bool json = session_options(session)->json;
    char **path = NULL;
    size_t count = 0, broken = 0;
    problem_dir_list(&path, &count);
    for (size_t i = 0; i < count; i++) {
        struct problem_dir dir;
        struct err wrong = ERR_INIT;
        bool good = problem_dir_load(&dir, path[i], &wrong) == 0;
        broken += !good;
        if (json) {
            print_json(path[i], good ? &dir : NULL, &wrong);
        } else if (good) {
            printable_printf(stdout, "%-16s %s  %s%s\n", short_name(path[i], path, count), path[i],
                             dir.problem->title, dir.template_source.data ? "" : "  (no template)");
        } else {
            printable_printf(stderr, "kcast: %s\n", wrong.text);
        }
        if (good) {
            problem_dir_release(&dir);
        }
    }
    problem_dir_free_texts(path, count);
    if (count == 0) {
        int rc = err_set(err, ERR_NOT_FOUND,
                         "no problem folder in ./problems, $KCAST_PROBLEMS or the installed ones");
        return err_exit(rc);
    }
    return broken == 0 ? EXIT_OK : EXIT_NEGATIVE;
}

const struct command cmd_problem_list = {
    .name = "problem list",
    .help = "List the problems that can be named without a path",
    .argument_max = 0,
    .run = list_run,
};
