// Any text as a tokens file. It is refused with a sentence that names a line, or gives rows that
// are written and read again unchanged and that no guessed token matches. The first line is also
// used as a token that a caller shows.
#include "common/mem.h"
#include "net/auth/tokens.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void require(bool truth)
{
    if (!truth) {
        abort();
    }
}

static void check(const struct tokens *tokens, const char *shown)
{
    struct strbuf first = STRBUF_INIT, second = STRBUF_INIT;
    tokens_write(tokens, &first);
    struct tokens *again = NULL;
    struct err err = ERR_INIT;
    require(tokens_parse(&again, strbuf_text(&first), "again", &err) == 0);
    tokens_write(again, &second);
    require(strcmp(strbuf_text(&first), strbuf_text(&second)) == 0);
    for (size_t i = 0; i < tokens_count(tokens); i++) {
        const struct token *token = tokens_at(tokens, i);
        require(caller_check_tenant(token->tenant, NULL) == 0 && token->role <= CALLER_ADMIN);
        require(tokens_find(again, token->tenant, &token->digest));
        require(token->created_s > 0 && token->expires_s >= 0);
    }
    const struct token *row = NULL;
    require(tokens_check(tokens, shown, 1, &row, &err) == ERR_DENIED && !row);
    tokens_free(again);
    strbuf_release(&first);
    strbuf_release(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct tokens *tokens = NULL;
    struct err err = ERR_INIT;
    char *text = xstrndup((const char *)data, len);
    char *shown = xstrndup(text, strcspn(text, "\n"));
    if (tokens_parse(&tokens, text, "f", &err) == 0) {
        check(tokens, shown);
    } else {
        require(err.code == ERR_INVALID && strncmp(err.text, "f, line ", 8) == 0);
    }
    tokens_free(tokens);
    free(shown);
    free(text);
    return 0;
}
