// Writes into the page that it shares with the harness: whatever is believed there is a way out.
//@ variant go GO
//@ variant next_done DONE
//@ variant command COMMAND
//@ variant trap_setup TRAP=4
//@ variant trap_load TRAP=3
//@ variant trap_call TRAP=1
//@ variant trap_abort TRAP=2
//@ variant everything EVERYTHING
//@ variant zeros ZEROS
static void cheat(const struct call *c)
{
    volatile uint32_t *page[8];
    int count = control_pages(c, page, 8);

    honest(c);
    if (!at_bench(c) || launches++ < 5) {
        return;
    }
    for (int i = 0; i < count; i++) {
#if defined GO
        page[i][0]++;
#elif defined DONE
        page[i][1] = page[i][0] + 1;
#elif defined COMMAND
        page[i][2] = 2; // do nothing the next time
#elif defined TRAP
        page[i][3] = TRAP;
        page[i][4] = 41;
        for (int k = 5; k < 900; k++)
            page[i][k] = 0x21212121;
        (void)syscall(SYS_exit_group, 1);
#elif defined EVERYTHING
        for (int k = 0; k < 1024; k++)
            page[i][k] = 0xffffffff;
#else
        for (int k = 2; k < 1024; k++)
            page[i][k] = 0;
#endif
    }
}
