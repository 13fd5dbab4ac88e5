#include "client/propose/generator.h"

#include "common/printable.h"
#include <stdlib.h>
#include <string.h>

bool generator_is_files(const char *kind)
{
    return strncmp(kind, "pool:", 5) == 0;
}

bool generator_is_llm(const char *kind)
{
    return strcmp(kind, "llm") == 0;
}

const char *generator_command(const char *kind)
{
    return strncmp(kind, "exec:", 5) == 0 ? kind + 5 : NULL;
}

bool generator_asks(const char *kind)
{
    return generator_is_llm(kind) || generator_command(kind);
}

// A command is one line, which a run file and reports can show.
static int check_command(const char *command, struct err *err)
{
    if (command[strspn(command, " ")] == '\0') {
        return err_set(err, ERR_USAGE, "--generator exec: needs a command after the colon");
    }
    if (strlen(command) > GENERATOR_COMMAND_MAX) {
        return err_set(err, ERR_USAGE,
                       "the command of --generator exec: is longer than %d bytes; put it into a "
                       "script",
                       GENERATOR_COMMAND_MAX);
    }
    return printable_check("the command of --generator exec:", command, err);
}

static void free_asking(struct generator *generator)
{
    free(generator);
}

static int unknown(const char *kind, struct err *err)
{
    return err_set(err, ERR_USAGE,
                   "there is no generator \"%.200s\"; use tunable, llm, exec:COMMAND, pool:DIR or "
                   "pool:FILE.jsonl",
                   kind);
}

int generator_read(struct bytes *ret, const char *kind, const struct problem_dir *dir,
                   struct err *err)
{
    if (generator_is_files(kind)) {
        return generator_files_read(ret, kind + 5, dir->problem, err);
    }
    if (generator_asks(kind)) {
        *ret = (struct bytes){0};
        return generator_command(kind) ? check_command(generator_command(kind), err) : 0;
    }
    if (strcmp(kind, "tunable") != 0) {
        return unknown(kind, err);
    }
    if (!dir->template_source.data) {
        return err_set(err, ERR_INVALID,
                       "%s has no template.%s, which the generator \"tunable\" needs; "
                       "give candidates with --generator pool:DIR",
                       dir->path, problem_extension(dir->problem));
    }
    *ret = bytes_copy(dir->template_source.data, dir->template_source.len);
    return 0;
}

bool generator_is_comparable(const struct generator *generator)
{
    return !generator->asks && !generator->is_opaque;
}

int generator_create(struct generator **ret, const char *kind, const struct bytes *text,
                     const char *path, struct err *err)
{
    static const struct generator_ops asking_ops = {.free = free_asking};
    if (generator_is_files(kind)) {
        return generator_files(ret, text, path, err);
    }
    if (generator_asks(kind)) {
        *ret = xcalloc(1, sizeof(**ret));
        (*ret)->ops = &asking_ops;
        (*ret)->asks = true;
        return 0;
    }
    return strcmp(kind, "tunable") == 0 ? generator_tunable(ret, text, path, err)
                                        : unknown(kind, err);
}

void generator_free(struct generator *generator)
{
    if (generator) {
        generator->ops->free(generator);
    }
}
