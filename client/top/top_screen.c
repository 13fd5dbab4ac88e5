// The only file that knows ncurses. Colours are used where the terminal has them; bold and reverse
// work anywhere.
#include "client/top/top.h"
#include <curses.h>
#include <stdio.h>
#include <stdlib.h>
#include <term.h>
#include <unistd.h>

struct top_screen {
    SCREEN *screen;
};

// Whether the terminal is known and its cursor can be moved. This is asked before newterm is
// called, because newterm leaks memory when it fails.
static bool can_show(void)
{
    int what = 0;
    bool can = setupterm(NULL, STDOUT_FILENO, &what) == OK;
    const char *move = can ? tigetstr("cup") : NULL;

    can = can && move && move != (const char *)-1;
    if (cur_term) {
        (void)del_curterm(cur_term);
    }
    return can;
}

int top_screen_open(struct top_screen **ret, struct err *err)
{
    static const short colour[] = {
        [TOP_GOOD] = COLOR_GREEN, [TOP_WARNING] = COLOR_YELLOW, [TOP_BAD] = COLOR_RED};
    const char *term = getenv("TERM");
    SCREEN *screen = can_show() ? newterm(NULL, stdout, stdin) : NULL;

    if (!screen) {
        return err_set(err, ERR_UNSUPPORTED,
                       "the terminal \"%s\" cannot show pages; set TERM, or use `kcast top | cat`",
                       term ? term : "");
    }
    (void)cbreak();
    (void)noecho();
    (void)nonl();
    (void)keypad(stdscr, TRUE);
    (void)curs_set(0);
    if (has_colors()) {
        (void)start_color();
        (void)use_default_colors();
        for (short i = TOP_GOOD; i <= TOP_BAD; i++) {
            (void)init_pair(i, colour[i], -1);
        }
    }
    *ret = xmalloc(sizeof(**ret));
    (*ret)->screen = screen;
    return 0;
}

void top_screen_close(struct top_screen *screen)
{
    (void)endwin();
    delscreen(screen->screen);
    free(screen);
}

void top_screen_size(size_t *ret_width, size_t *ret_height)
{
    *ret_width = COLS > 0 ? (size_t)COLS : 1;
    *ret_height = LINES > 0 ? (size_t)LINES : 1;
}

static chtype attribute(enum top_style style)
{
    switch (style) {
    case TOP_TITLE:
        return A_BOLD;
    case TOP_HEADER:
        return A_REVERSE;
    case TOP_FAINT:
        return A_DIM;
    case TOP_GOOD:
    case TOP_WARNING:
    case TOP_BAD:
        return has_colors() ? (chtype)COLOR_PAIR(style) : style == TOP_GOOD ? A_NORMAL : A_BOLD;
    case TOP_PLAIN:
        break;
    }
    return A_NORMAL;
}

void top_screen_draw(const struct top_page *page)
{
    (void)erase();
    for (size_t i = 0; i < page->count && i < (size_t)LINES; i++) {
        const struct top_line *line = &page->line[i];

        (void)attrset((int)attribute(line->style));
        // The reverse background of the header reaches to the right edge.
        if (line->style == TOP_HEADER) {
            (void)mvhline((int)i, 0, ' ' | A_REVERSE, COLS);
        }
        (void)mvaddnstr((int)i, 0, line->text, COLS);
    }
    (void)attrset(A_NORMAL);
    (void)refresh();
}

int top_screen_key(int wait_ms)
{
    timeout(wait_ms);
    int key = getch();
    return key == ERR ? 0 : key == KEY_RESIZE ? -1 : key;
}
