// kcast import: makes a space from a file of another tool.
#include "client/command.h"
#include "client/session.h"
#include "client/show.h"
#include "client/space/space_import.h"
#include "common/file.h"
#include "common/mem.h"
#include "common/printable.h"
#include "common/strbuf.h"
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PACKED_SUFFIX ".gz"

struct import_options {
    char *output;
    char *problem;
    char *device;
    char *baseline;
};

static const struct option_row rows[] = {
    {"output", 'o', OPTION_TEXT, offsetof(struct import_options, output), "SPACE", NULL, 0, 0, NULL,
     "where the space goes; default: the file's name with .space"},
    {"problem", 0, OPTION_TEXT, offsetof(struct import_options, problem), "NAME", NULL, 0, 0, NULL,
     "the problem to take of several, or what to call a problem without a name"},
    {"device", 0, OPTION_TEXT, offsetof(struct import_options, device), "NAME", NULL, 0, 0, NULL,
     "the same for the device"},
    {"baseline", 0, OPTION_TEXT, offsetof(struct import_options, baseline), "WHICH", NULL, 0, 0,
     NULL,
     "what speedups are over: for kernel-tuner and ktt \"NAME=VALUE,…\" of a configuration "
     "(default: the "
     "correct one of median time), for gpu-forecasters the anchor of the row WHICH (default: the "
     "commonest anchor)"},
    {.name = NULL},
};

static const struct {
    const char *name;
    int (*read)(struct space *ret, const void *data, size_t len, const char *path,
                const struct space_import *how, struct err *err);
} kinds[] = {
    {"kernel-tuner", space_import_kernel_tuner},
    {"ktt", space_import_ktt},
    {"gpu-forecasters", space_import_forecasters},
};

static void say(struct session *session, const struct space *space, const char *path)
{
    size_t correct = 0;
    for (uint64_t i = 0; i < space->head.candidates; i++) {
        correct += !isnan(space_log2(&space->candidate[i]));
    }
    if (session_options(session)->json) {
        json_t *object = json_object();
        json_object_set_new(object, "space", show_text(path));
        json_object_set_new(object, "problem", show_text(space->head.problem));
        json_object_set_new(object, "device_class", show_text(space->head.device_class));
        json_object_set_new(object, "candidates", json_integer((json_int_t)space->head.candidates));
        json_object_set_new(object, "correct", json_integer((json_int_t)correct));
        json_object_set_new(object, "launch_costs",
                            json_integer((json_int_t)space->head.launch_costs));
        json_object_set_new(object, "origin", show_text(space->head.origin));
        show_print(object);
    } else if (!session_options(session)->quiet) {
        printable_printf(stderr, "kcast: %s\n", space->head.origin);
        printable_printf(stderr, "kcast: wrote %llu candidates, %zu of them correct, to %s\n",
                         (unsigned long long)space->head.candidates, correct, path);
    }
}

static void warn_of_costs(const struct space *space, const char *path)
{
    struct strbuf sentence = STRBUF_INIT;

    space_add_cost_warning(space, path, &sentence);
    session_warn(sentence.data);
    strbuf_release(&sentence);
}

// Where a space goes that nobody has named: FILE.json and FILE.json.gz become FILE.space. The
// caller frees the result.
static char *default_output(const char *path)
{
    size_t len = strlen(path), packed = strlen(PACKED_SUFFIX);
    bool is_packed = len > packed && strcmp(path + len - packed, PACKED_SUFFIX) == 0;
    char *plain = xstrndup(path, is_packed ? len - packed : len);
    char *ret = space_path_of(plain);

    free(plain);
    return ret;
}

static int import(struct session *session, const void *options, char **argument,
                  size_t argument_count, struct err *err)
{
    (void)argument_count;
    const struct import_options *given = options;
    const struct space_import how = {
        .problem = given->problem, .device = given->device, .baseline = given->baseline};
    size_t kind = 0;
    while (kind < ARRAY_LEN(kinds) && strcmp(argument[0], kinds[kind].name) != 0) {
        kind++;
    }
    if (kind == ARRAY_LEN(kinds)) {
        return err_exit(err_set(err, ERR_USAGE,
                                "\"%.100s\" is no kind of file that can be imported; kernel-tuner, "
                                "ktt and gpu-forecasters are",
                                argument[0]));
    }
    char *path = given->output ? xstrdup(given->output) : default_output(argument[1]);
    struct bytes data = {0};
    struct space space;
    int rc = file_check_output(path, argument[1], err);
    rc = rc == 0 ? file_read(&data, argument[1], IMPORT_FILE_MAX, err) : rc;
    rc = rc == 0 ? space_import_unpack(&data, argument[1], err) : rc;
    rc = rc == 0 ? kinds[kind].read(&space, data.data, data.len, argument[1], &how, err) : rc;
    bytes_clear(&data);
    if (rc == 0) {
        rc = space_write(&space, path, err);
        if (rc == 0) {
            say(session, &space, path);
            warn_of_costs(&space, path);
        }
        space_release(&space);
    }
    free(path);
    return rc == 0 ? EXIT_OK : err_exit(rc);
}

const struct command cmd_import = {
    .name = "import",
    .arguments = "kernel-tuner|ktt|gpu-forecasters FILE",
    .help = "Make a space of measurements that another tool has taken",
    .option = rows,
    .options_size = sizeof(struct import_options),
    .argument_min = 2,
    .argument_max = 2,
    .run = import,
};
