// What a file may say is what holds for every command of a person: addresses, credentials, and how
// much is said. What one command is to do (--json, --local) is no matter of a file, where it would
// surprise whoever has forgotten it.
#include "client/global_options.h"

#include "client/credentials.h"
#include "common/file.h"
#include "common/mem.h"
#include "common/version.h"
#include <stdlib.h>
#include <string.h>

#define GLOBAL(field) offsetof(struct session_options, field)

const struct option_row global_option_rows[] = {
    {"pool", 0, OPTION_TEXT, GLOBAL(pool), "URLS", KCAST_DEFAULT_POOL, 0, 0, NULL,
     "daemons to measure with, separated by commas: tcp://HOST:PORT or tls://HOST:PORT "
     "(tls+tcp:// is the same), or dns://NAME:PORT for every address of a name, "
     "dns+tls://NAME:PORT for the same with "
     "certificates for NAME, or file:PATH for the addresses in a file, one a line, that is read "
     "again every few seconds; all that answer share the work; also $KCAST_POOL"},
    {"worker", 0, OPTION_TEXT, GLOBAL(worker), "URLS", KCAST_DEFAULT_WORKER, 0, 0, NULL,
     "workers to ask for forecasts, separated by commas; the first that answers is taken; also "
     "$KCAST_WORKER"},
    {"tls-ca", 0, OPTION_TEXT, GLOBAL(tls_ca), "FILE", NULL, 0, 0, NULL,
     "for tls://: certificates that the server's must be signed by; default: $KCAST_TLS_CA, or "
     "ca.pem in ~/.config/kernelcast"},
    {"tls-cert", 0, OPTION_TEXT, GLOBAL(tls_cert), "FILE", NULL, 0, 0, NULL,
     "for tls://: your certificate; default: $KCAST_TLS_CERT, or cert.pem there"},
    {"tls-key", 0, OPTION_TEXT, GLOBAL(tls_key), "FILE", NULL, 0, 0, NULL,
     "for tls://: its key, readable by you only; default: $KCAST_TLS_KEY, or key.pem there"},
    {"token-file", 0, OPTION_TEXT, GLOBAL(token_file), "FILE", NULL, 0, 0, NULL,
     "for tls://: holds your token, readable by you only; default: $KCAST_TOKEN_FILE, or token "
     "there"},
    {"no-worker", 0, OPTION_FLAG, GLOBAL(no_worker), NULL, NULL, 0, 0, NULL,
     "do without forecasts"},
    {"local", 0, OPTION_FLAG, GLOBAL(local), NULL, NULL, 0, 0, NULL,
     "start a private daemon and worker for this command, on this machine"},
    {"local-state", 0, OPTION_TEXT, GLOBAL(local_state), "DIR", NULL, 0, 0, NULL,
     "state folder for --local, kept; default: a temporary one"},
    {"sandbox", 0, OPTION_CHOICE, GLOBAL(sandbox), "on|off", NULL, 0, 0, "on|off",
     "sandbox of --local's daemon; off is for development only"},
    {"json", 0, OPTION_FLAG, GLOBAL(json), NULL, NULL, 0, 0, NULL,
     "print one JSON object per line on stdout"},
    {"quiet", 'q', OPTION_FLAG, GLOBAL(quiet), NULL, NULL, 0, 0, NULL,
     "no progress and no remarks on stderr"},
    {"help", 'h', OPTION_FLAG, GLOBAL(help), NULL, NULL, 0, 0, NULL, "print this help"},
    {"version", 'V', OPTION_FLAG, GLOBAL(version), NULL, NULL, 0, 0, NULL, "print the version"},
    {0},
};

static const char *const in_files[] = {"pool",        "worker",  "tls-ca",
                                       "tls-cert",    "tls-key", "token-file",
                                       "local-state", "sandbox", "quiet"};

// The rows that a file may have.
static void file_rows(struct option_row *ret)
{
    size_t count = 0;
    for (const struct option_row *row = global_option_rows; row->name; row++) {
        for (size_t i = 0; i < ARRAY_LEN(in_files); i++) {
            if (strcmp(row->name, in_files[i]) == 0) {
                ret[count++] = *row;
            }
        }
    }
    ret[count] = (struct option_row){0};
}

static int read_file(struct session_options *options, const char *path, struct err *err)
{
    struct option_row rows[ARRAY_LEN(in_files) + 1];
    file_rows(rows);
    return file_exists(path) ? options_read_ini(rows, options, path, "kcast", err) : 0;
}

static void read_variable(char **field, const char *name)
{
    const char *value = getenv(name);
    if (value && value[0] != '\0') {
        free(*field);
        *field = xstrdup(value);
    }
}

int global_options_read(struct session_options *options, struct err *err)
{
    char *own = credentials_config_path("config");
    int rc = options_defaults(global_option_rows, options, err);
    if (rc == 0) {
        rc = read_file(options, own, err);
    }
    if (rc == 0) {
        read_variable(&options->pool, "KCAST_POOL");
        read_variable(&options->worker, "KCAST_WORKER");
    }
    free(own);
    return rc;
}

struct global_addresses global_addresses_begin(struct session_options *options)
{
    struct global_addresses ret = {.pool = options->pool, .worker = options->worker};
    options->pool = options->worker = NULL;
    return ret;
}

int global_addresses_end(struct session_options *options, struct global_addresses *addresses_take,
                         struct err *err)
{
    const char *beside = !options->local ? NULL
                         : options->pool ? "pool"
                                         : (options->worker ? "worker" : NULL);
    char **field[] = {&options->pool, &options->worker};
    char *before[] = {addresses_take->pool, addresses_take->worker};
    for (size_t i = 0; i < ARRAY_LEN(field); i++) {
        if (*field[i]) {
            free(before[i]);
        } else {
            *field[i] = before[i];
        }
    }
    *addresses_take = (struct global_addresses){NULL, NULL};
    return beside ? err_set(err, ERR_USAGE,
                            "--local starts a daemon and a worker of its own and would not use "
                            "--%s; leave one of the two out",
                            beside)
                  : 0;
}
