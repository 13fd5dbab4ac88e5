#include "client/credentials.h"

#include "common/file.h"
#include "common/mem.h"
#include "net/tokens.h"
#include <stdlib.h>
#include <string.h>

// malloc'd; *ret_named: somebody named it.
static char *path_of(const char *given, const char *variable, const char *name, bool *ret_named)
{
    const char *environment = getenv(variable);
    const char *xdg = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");

    *ret_named = given != NULL || (environment != NULL && environment[0] != '\0');
    if (*ret_named) {
        return xstrdup(given != NULL ? given : environment);
    }
    if (xdg != NULL && xdg[0] == '/') {
        return xasprintf("%s/kernelcast/%s", xdg, name);
    }
    return xasprintf("%s/.config/kernelcast/%s", home != NULL ? home : "", name);
}

// One line, without its end.
static int read_token(char **ret, const char *path, struct err *err)
{
    struct bytes data = {0};
    int code = file_read_private(&data, path, TOKEN_TEXT_MAX + 2, err);
    size_t len;

    if (code != 0) {
        return code;
    }
    len = strcspn((const char *)data.data, "\r\n \t");
    if (len == 0 || len > TOKEN_TEXT_MAX ||
        strspn((char *)data.data + len, "\r\n \t") + len != data.len) {
        code = err_set(err, ERR_INVALID, "%s: not one line with a token", path);
    } else {
        *ret = xstrndup((const char *)data.data, len);
    }
    file_wipe(&data);
    return code;
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
    int code = tls_create(&loaded.tls, TLS_CALLER, &tls, err);

    if (code == 0 && (named || file_exists(token))) {
        code = read_token(&loaded.token, token, err);
    }
    if (code == 0) {
        *ret = loaded;
    } else {
        credentials_release(&loaded);
        code = err_wrap(err, "tls:// takes certificates (see `kcast tls init`)");
    }
    free(ca);
    free(cert);
    free(key);
    free(token);
    return code;
}

void credentials_release(struct credentials *credentials)
{
    if (credentials->token != NULL) {
        explicit_bzero(credentials->token, strlen(credentials->token));
        free(credentials->token);
    }
    tls_release(credentials->tls);
    *credentials = (struct credentials){0};
}
