// kcast wisdom: lists the configurations of a wisdom file, or prints the -D options for a shape.
#include "client/command.h"
#include "client/session.h"
#include "client/show.h"
#include "client/tune/wisdom_lookup.h"
#include "common/digest.h"
#include "common/file.h"
#include "common/mem.h"
#include "common/printable.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL_BYTES_MAX ((size_t)1 << 20)

struct options {
    char *problem, *shape, *device_class, *kernel;
    bool exact;
};

#define ROW(field) offsetof(struct options, field)

static const struct option_row rows[] = {
    {"problem", 'p', OPTION_TEXT, ROW(problem), "NAME", NULL, 0, 0, NULL,
     "entries of this problem only"},
    {"case", 0, OPTION_TEXT, ROW(shape), "SHAPE", NULL, 0, 0, NULL,
     "print the -D options for this shape, \"M=300 N=200 K=100\", or for the nearest one there is"},
    {"exact", 0, OPTION_FLAG, ROW(exact), NULL, NULL, 0, 0, NULL,
     "refuse a nearest shape: exit code 1"},
    {"device-class", 0, OPTION_TEXT, ROW(device_class), "CLASS", NULL, 0, 0, NULL,
     "entries of this class of devices only; default: the only one there is"},
    {"kernel", 0, OPTION_TEXT, ROW(kernel), "FILE", NULL, 0, 0, NULL,
     "entries of exactly this kernel only; default, for a shape: the one tuned last"},
    {0},
};

static void entry_cases(const struct wisdom_entry *entry, struct strbuf *out)
{
    for (size_t i = 0; i < entry->shape_count; i++) {
        strbuf_adds(out, i > 0 ? ", " : "");
        wisdom_case_name(&entry->shape[i], out);
    }
}

static const char *define_of(const struct wisdom_entry *entry)
{
    return entry->configured ? entry->define : "the baseline";
}

static void list(const struct wisdom *wisdom, const struct options *options,
                 const char *kernel_digest, bool json)
{
    for (size_t i = 0; i < wisdom->count; i++) {
        const struct wisdom_entry *entry = wisdom->entry[i];
        if ((options->problem && strcmp(entry->problem, options->problem) != 0) ||
            (options->device_class && strcmp(entry->device_class, options->device_class) != 0) ||
            (kernel_digest && strcmp(entry->kernel_digest, kernel_digest) != 0)) {
            continue;
        }
        struct strbuf cases = STRBUF_INIT;
        entry_cases(entry, &cases);
        if (json) {
            show_print(json_incref(entry->object));
        } else {
            printable_printf(stdout, "%s  %s  %s  %.3fx  %s  (%s, %s)\n", entry->problem,
                             strbuf_text(&cases), define_of(entry), exp2(entry->log2),
                             entry->device_class, entry->kernel, entry->tuned_at);
        }
        strbuf_release(&cases);
    }
}

static void say_match(const struct wisdom_match *match)
{
    struct strbuf text = STRBUF_INIT;
    wisdom_case_name(&match->entry->shape[match->shape], &text);
    printable_printf(stderr,
                     "kcast: %s %s (distance %.3g), %.3fx the baseline on %s, of %s, tuned %s\n",
                     match->exact ? "exactly" : "nearest is", strbuf_text(&text), match->distance,
                     exp2(match->entry->log2), match->entry->device_class, match->entry->kernel,
                     match->entry->tuned_at);
    if (match->entry->shape_count > 1) {
        printable_printf(stderr, "kcast: the configuration is for %zu shapes together\n",
                         match->entry->shape_count);
    }
    strbuf_release(&text);
}

static int look_up(const struct wisdom *wisdom, const struct options *options,
                   const char *kernel_digest, const char *path,
                   const struct session_options *global, struct err *err)
{
    const struct wisdom_query query = {options->problem, options->shape, options->device_class,
                                       kernel_digest};
    struct wisdom_match match;
    int rc = wisdom_lookup(&match, wisdom, &query, path, err);
    if (rc != 0) {
        return err_exit(rc);
    }
    bool refused = options->exact && !match.exact;
    if (global->json) {
        show_print(json_pack("{s:s, s:f, s:i, s:O}", "match", match.exact ? "exact" : "nearest",
                             "distance", match.distance, "case", (int)match.shape, "entry",
                             match.entry->object));
    } else if (match.entry->configured && !refused) {
        printable_printf(stdout, "%s\n", match.entry->define);
    }
    if (!global->quiet) {
        say_match(&match);
        if (!match.entry->configured) {
            printable_printf(stderr,
                             "kcast: no configuration was faster than the baseline there\n");
        }
    }
    return match.entry->configured && !refused ? EXIT_OK : EXIT_NEGATIVE;
}

static int run_wisdom(struct session *session, const void *own, char **argument, size_t count,
                      struct err *err)
{
    const struct options *options = own;
    const char *path = count > 0 ? argument[0] : WISDOM_DEFAULT;
    struct wisdom wisdom = {0};
    struct bytes kernel = {0};
    int rc =
        options->shape && !options->problem ? err_set(err, ERR_USAGE, "--case needs --problem NAME")
        : options->exact && !options->shape ? err_set(err, ERR_USAGE, "--exact needs --case SHAPE")
                                            : wisdom_read(&wisdom, path, false, err);
    if (rc == 0 && options->kernel) {
        rc = file_read(&kernel, options->kernel, KERNEL_BYTES_MAX, err);
    }
    int exit_code = EXIT_OK;
    if (rc == 0) {
        char hex[DIGEST_HEX_LEN + 1];
        const struct digest digest = digest_of(kernel.data, kernel.len);
        digest_hex(&digest, hex);
        const char *wanted = options->kernel ? hex : NULL;
        if (!options->shape) {
            list(&wisdom, options, wanted, session_options(session)->json);
        } else {
            exit_code = look_up(&wisdom, options, wanted, path, session_options(session), err);
        }
    }
    bytes_clear(&kernel);
    wisdom_release(&wisdom);
    return rc != 0 ? err_exit(rc) : exit_code;
}

const struct command cmd_wisdom = {
    .name = "wisdom",
    .arguments = "[FILE]",
    .help = "List the configurations of a wisdom file, or print the one for a shape",
    .option = rows,
    .options_size = sizeof(struct options),
    .argument_max = 1,
    .run = run_wisdom,
};
