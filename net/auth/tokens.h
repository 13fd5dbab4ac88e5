// The tokens file: who may call, as what, until when. It has no token in it, only salted SHA-256s
// of them. A token is the text "kc1.TENANT.SECRET", SECRET being 32 random bytes in hex: nothing
// that could be guessed, so that a fast hash is enough. Each tenant has one.
//
// The file's lines are "TENANT ROLE CREATED EXPIRES SALT DIGEST", separated by one blank each;
// times are 2026-01-31T23:59:59Z, and EXPIRES may be "-" for never. Empty lines and those that
// begin with # mean nothing.
#ifndef NET_AUTH_TOKENS_H
#define NET_AUTH_TOKENS_H

#include "common/digest.h"
#include "common/strbuf.h"
#include "net/auth/caller.h"
#include <stdint.h>

#define TOKEN_SALT_LEN 16
#define TOKEN_TEXT_MAX 192 // bytes of a token
#define TOKENS_MAX 1024    // in one file
#define TOKENS_FILE_MAX ((size_t)1 << 20)

struct token {
    char tenant[TENANT_MAX + 1];
    enum caller_role role;
    int64_t created_s; // since 1970
    int64_t expires_s; // 0: never
    unsigned char salt[TOKEN_SALT_LEN];
    struct digest digest; // of salt and secret
};

struct tokens;

struct tokens *tokens_create(void);      // none
void tokens_free(struct tokens *tokens); // NULL is fine
// ERR_INVALID names the line and what is wrong with it. name: of the file, for that sentence.
MUST_CHECK int tokens_parse(struct tokens **ret, const char *text, const char *name,
                            struct err *err);
// From a file that nobody but its owner may read.
MUST_CHECK int tokens_read(struct tokens **ret, const char *path, struct err *err);
// The file's text, appended.
void tokens_write(const struct tokens *tokens, struct strbuf *out);

size_t tokens_count(const struct tokens *tokens);
const struct token *tokens_at(const struct tokens *tokens, size_t index);

// Makes one; *ret_text is the token itself, to be wiped and freed by the caller. ERR_CONFLICT when
// the tenant has one already, ERR_LIMIT when there are too many.
MUST_CHECK int tokens_add(struct tokens *tokens, const char *tenant, enum caller_role role,
                          int64_t now_s, int64_t expires_s, char **ret_text, struct err *err);
// ERR_NOT_FOUND when the tenant has none.
MUST_CHECK int tokens_remove(struct tokens *tokens, const char *tenant, struct err *err);

// The row of this token: its digest is right, and it has not expired. How long that takes does not
// depend on where a wrong secret differs. ERR_DENIED says why not, and never the token.
MUST_CHECK int tokens_check(const struct tokens *tokens, const char *text, int64_t now_s,
                            const struct token **ret, struct err *err);
// The row with that tenant and digest, whatever else has changed; NULL when it has gone.
const struct token *tokens_find(const struct tokens *tokens, const char *tenant,
                                const struct digest *digest);

// "2026-01-31T23:59:59Z".
#define TOKEN_TIME_LEN 20
void token_time(int64_t seconds, char out[static TOKEN_TIME_LEN + 1]);

#endif
