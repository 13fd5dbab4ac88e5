// kcast token: changes and lists the tokens file of a daemon or worker. One process writes at a
// time. The file is replaced as a whole and keeps its owner.
#include "client/command.h"
#include "client/session.h"
#include "client/show.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/mem.h"
#include "common/printable.h"
#include "net/auth/tokens.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define DAY_S 86400

struct token_options {
    char *file;
    char *role;
    uint64_t days;
};

#define AT(field) offsetof(struct token_options, field)
#define TOKENS_ROW                                                                                 \
    {                                                                                              \
        "tokens", 0, OPTION_TEXT, AT(file), "FILE", NULL, 0, 0, NULL,                              \
            "the file that kcastd or kcast-worker is given as --tokens"                            \
    }

static const struct option_row rows[] = {TOKENS_ROW, {0}};
static const struct option_row add_rows[] = {
    TOKENS_ROW,
    {"role", 0, OPTION_CHOICE, AT(role), "ROLE", "submit", 0, 0, "observe|submit|admin",
     "look; have work done as well; or everything, for everybody"},
    {"days", 0, OPTION_U64, AT(days), "N", "0", 0, 36500, NULL,
     "how long it is good for; 0: until it is revoked"},
    {0},
};

static int64_t now_s(void)
{
    return clock_wall_ns(&clock_system) / (int64_t)NS_PER_S;
}

static int check_file(const struct token_options *options, struct err *err)
{
    return options->file && options->file[0] != '\0'
               ? 0
               : err_set(err, ERR_USAGE, "which file? give --tokens FILE");
}

// Blocks until it has the lock. *ret_fd holds the lock until it is closed.
static int lock(int *ret_fd, const char *path, struct err *err)
{
    char *name = xasprintf("%s.lock", path);
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
    int rc = 0;
    if (fd < 0 || flock(fd, LOCK_EX) != 0) {
        rc = err_set_errno(err, ERR_SYSTEM, errno, "%s: cannot be locked", name);
        if (fd >= 0) {
            close(fd);
        }
    } else {
        *ret_fd = fd;
    }
    free(name);
    return rc;
}

// Writes the tokens to the file, readable by its owner only.
static int replace(const struct tokens *tokens, const char *path, struct err *err)
{
    struct strbuf text = STRBUF_INIT;
    struct stat old;
    bool existed = stat(path, &old) == 0;
    mode_t mask = umask(077);
    tokens_write(tokens, &text);
    int rc = file_replace(path, text.data, text.len, true, err);
    (void)umask(mask);
    if (rc == 0 && existed && old.st_uid != geteuid() && chown(path, old.st_uid, old.st_gid) != 0) {
        rc = err_set_errno(err, ERR_SYSTEM, errno, "%s: cannot be given back to its owner", path);
    }
    strbuf_release(&text);
    return rc;
}

static int open_tokens(struct tokens **ret, const char *path, bool may_be_missing, struct err *err)
{
    if (may_be_missing && !file_exists(path)) {
        *ret = tokens_create();
        return 0;
    }
    return tokens_read(ret, path, true, err); // root looks after the file of kcastd's user
}

static void print_new(const struct session *session, const char *tenant, const char *role,
                      const char *text)
{
    if (session_options(session)->json) {
        show_print(json_pack("{s:s, s:s, s:s}", "tenant", tenant, "role", role, "token", text));
        return;
    }
    printable_printf(stdout, "%s\n", text);
    if (!session_options(session)->quiet) {
        printable_printf(
            stderr,
            "This is shown once. %s puts it into ~/.config/kernelcast/token (chmod 600); SIGHUP "
            "makes it known to what runs already.\n",
            tenant);
    }
}

static int run_add(struct session *session, const void *own, char **argument, size_t count,
                   struct err *err)
{
    (void)count;
    const struct token_options *options = own;
    int64_t now = now_s();
    int64_t expires = options->days == 0 ? 0 : now + (int64_t)options->days * DAY_S;
    int fd = -1;
    struct tokens *tokens = NULL;
    char *text = NULL;
    int rc = check_file(options, err);
    if (rc != 0) {
        goto out;
    }
    enum caller_role role;
    rc = caller_role_parse(&role, options->role, err);
    if (rc != 0) {
        goto out;
    }
    rc = lock(&fd, options->file, err);
    if (rc != 0) {
        goto out;
    }
    rc = open_tokens(&tokens, options->file, true, err);
    if (rc != 0) {
        goto out;
    }
    rc = tokens_add(tokens, argument[0], role, now, expires, &text, err);
    if (rc != 0) {
        goto out;
    }
    rc = replace(tokens, options->file, err);
    if (rc == 0) {
        print_new(session, argument[0], options->role, text);
    }
out:
    if (text) {
        explicit_bzero(text, strlen(text));
        free(text);
    }
    tokens_free(tokens);
    if (fd >= 0) {
        close(fd);
    }
    return rc == 0 ? EXIT_OK : err_exit(rc);
}

static int run_revoke(struct session *session, const void *own, char **argument, size_t count,
                      struct err *err)
{
    (void)count;
    const struct token_options *options = own;
    int fd = -1;
    struct tokens *tokens = NULL;
    int rc = check_file(options, err);
    if (rc != 0) {
        goto out;
    }
    rc = lock(&fd, options->file, err);
    if (rc != 0) {
        goto out;
    }
    rc = open_tokens(&tokens, options->file, false, err);
    if (rc != 0) {
        goto out;
    }
    rc = tokens_remove(tokens, argument[0], err);
    if (rc != 0) {
        goto out;
    }
    rc = replace(tokens, options->file, err);
    if (rc == 0 && !session_options(session)->quiet) {
        printable_printf(stderr, "%s has no token any more, from the next SIGHUP on.\n",
                         argument[0]);
    }
out:
    tokens_free(tokens);
    if (fd >= 0) {
        close(fd);
    }
    return rc == 0 ? EXIT_OK : err_exit(rc);
}

static void print_row(const struct token *token, bool json, int64_t now)
{
    char created[TOKEN_TIME_LEN + 1];
    bool over = token->expires_s != 0 && token->expires_s <= now;
    token_time(token->created_s, created);
    char expires[TOKEN_TIME_LEN + 1];
    token_time(token->expires_s, expires);
    if (json) {
        show_print(json_pack("{s:s, s:s, s:s, s:o, s:b}", "tenant", token->tenant, "role",
                             caller_role_name(token->role), "created", created, "expires",
                             show_text(token->expires_s != 0 ? expires : NULL), "expired", over));
    } else {
        printable_printf(stdout, "%-16s  %-7s  %s  %s%s\n", token->tenant,
                         caller_role_name(token->role), created,
                         token->expires_s != 0 ? expires : "never", over ? " (expired)" : "");
    }
}

static int run_list(struct session *session, const void *own, char **argument, size_t count,
                    struct err *err)
{
    (void)argument;
    (void)count;
    const struct token_options *options = own;
    bool json = session_options(session)->json;
    struct tokens *tokens = NULL;
    int rc = check_file(options, err);
    if (rc == 0) {
        rc = open_tokens(&tokens, options->file, false, err);
    }
    if (rc != 0) {
        return err_exit(rc);
    }
    if (!json) {
        printable_printf(stdout, "%-16s  %-7s  %-20s  %s\n", "tenant", "role", "created",
                         "expires");
    }
    for (size_t i = 0; i < tokens_count(tokens); i++) {
        print_row(tokens_at(tokens, i), json, now_s());
    }
    tokens_free(tokens);
    return EXIT_OK;
}

const struct command cmd_token_add = {
    .name = "token add",
    .arguments = "TENANT",
    .help = "Let a person or program call daemons and workers; prints the token, once",
    .option = add_rows,
    .options_size = sizeof(struct token_options),
    .argument_min = 1,
    .argument_max = 1,
    .run = run_add,
};

const struct command cmd_token_revoke = {
    .name = "token revoke",
    .arguments = "TENANT",
    .help = "Take that right away again",
    .option = rows,
    .options_size = sizeof(struct token_options),
    .argument_min = 1,
    .argument_max = 1,
    .run = run_revoke,
};

const struct command cmd_token_list = {
    .name = "token list",
    .help = "Show who has a token, with which role, until when",
    .option = rows,
    .options_size = sizeof(struct token_options),
    .run = run_list,
};
