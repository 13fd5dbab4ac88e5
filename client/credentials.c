#include "client/credentials.h"

#include "common/file.h"
#include "common/mem.h"
#include "net/auth/tokens.h"
#include <stdlib.h>
#include <string.h>

char *credentials_config_path(const char *name)
{
    const char *xdg = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");

    return xdg && xdg[0] == '/' ? xasprintf("%s/kernelcast/%s", xdg, name)
                                : xasprintf("%s/.config/kernelcast/%s", home ? home : "", name);
}

// The path of one file, malloc'd. *ret_named: the user or the environment named it.
static char *path_of(const char *given, const char *variable, const char *name, bool *ret_named)
{
    const char *environment = getenv(variable);

    *ret_named = given || (environment && environment[0] != '\0');
    if (*ret_named) {
        return xstrdup(given ? given : environment);
    }
    return credentials_config_path(name);
}

// Reads a token: one line, without its end.
static int read_token(char **ret, const char *path, struct err *err)
{
    struct bytes data = {0};
    int rc = file_read_private(&data, path, TOKEN_TEXT_MAX + 2, err);

    if (rc != 0) {
        return rc;
    }
    size_t len = strcspn((const char *)data.data, "\r\n \t");
    if (len == 0 || len > TOKEN_TEXT_MAX ||
        strspn((char *)data.data + len, "\r\n \t") + len != data.len) {
        rc = err_set(err, ERR_INVALID, "%s: not one line with a token", path);
    } else {
        *ret = xstrndup((const char *)data.data, len);
    }
    file_wipe(&data);
    return rc;
}

int credentials_load(struct credentials *ret, const struct credential_files *files, struct err *err)
{
    struct credentials loaded = {0};
    bool named;
    char *ca = path_of(files->ca, "KCAST_TLS_CA", "ca.pem", &named);
    char *cert = path_of(files->cert, "KCAST_TLS_CERT", "cert.pem", &named);
    char *key = path_of(files->key, "KCAST_TLS_KEY", "key.pem", &named);
    char *token = path_of(files->token, "KCAST_TOKEN_FILE", "token", &named);
    struct tls_files tls = {.ca = ca, .cert = cert, .key = key};
    int rc = tls_create(&loaded.tls, TLS_CALLER, &tls, err);

    if (rc == 0 && (named || file_exists(token))) {
        rc = read_token(&loaded.token, token, err);
    }
    if (rc == 0) {
        *ret = loaded;
    } else {
        credentials_release(&loaded);
        rc = err_wrap(err, "tls:// takes certificates (see `kcast tls init`)");
    }
    free(ca);
    free(cert);
    free(key);
    free(token);
    return rc;
}

void credentials_release(struct credentials *credentials)
{
    if (credentials->token) {
        explicit_bzero(credentials->token, strlen(credentials->token));
        free(credentials->token);
    }
    tls_release(credentials->tls);
    *credentials = (struct credentials){0};
}
