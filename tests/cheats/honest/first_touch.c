// Touches memory before it computes, as programs do that fear page faults.
//@ variant outputs TOUCH=touch(c->out,c->out_bytes)
//@ variant own_memory TOUCH=touch(own,sizeof(own))
//@ variant own_memory_once TOUCH=(launches++==0?touch(own,sizeof(own)):(void)0)
//@ variant inputs TOUCH=look(c->in[0],c->in_bytes[0])
static unsigned char own[1 << 20];

KIT void touch(unsigned char *p, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i += 4096)
        ((volatile unsigned char *)p)[i] = 0;
}

KIT void look(const unsigned char *p, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i += 4096)
        (void)((const volatile unsigned char *)p)[i];
}

static void cheat(const struct call *c)
{
    (void)own;
    TOUCH;
    honest(c);
}
