// Is honest, and leaves the machine so that the baseline, which comes next, is slow: its cache
// lines gone, the memory busy, the frequency down, pages unmapped.
//@ variant dirty_lines SPOIL=fill(1<<20)
//@ variant many_dirty_lines SPOIL=fill(16<<20)
//@ variant translations SPOIL=touch_pages()
//@ variant prefetches SPOIL=prefetch()
//@ variant stores_on_their_way SPOIL=stream()
//@ variant wide_vectors SPOIL=burn()
//@ variant flushes_input SPOIL=flush(c->in[0],c->in_bytes[0])
//@ variant flushes_output SPOIL=flush(c->out,c->out_bytes)
//@ variant flushes_library_code SPOIL=flush_code()
//@ variant removes_output_pages FIRST=madvise(first_page(c),whole_pages(c),MADV_REMOVE)
//@ variant drops_output_pages FIRST=madvise(first_page(c),whole_pages(c),MADV_DONTNEED)
//@ variant pages_out_inputs SPOIL=madvise((void*)((uintptr_t)c->in[0]&~4095UL),c->in_bytes[0],21)
//@ variant collapses_pages SPOIL=collapse(c)
//@ variant denormals_off SPOIL=denormals()
//@ variant many_mappings SPOIL=map_many()
//@ variant branch_history SPOIL=branches()
//@ variant flushes_library_code_with_own_math SPOIL=flush_code() AT_BENCH
#pragma GCC target("avx2,clflushopt")
#include <immintrin.h>
#ifndef FIRST
#define FIRST (void)0
#endif
#ifndef SPOIL
#define SPOIL (void)0
#endif
static unsigned char space[32 << 20] __attribute__((aligned(4096)));

KIT void fill(int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i += 64)
        ((volatile unsigned char *)space)[i]++;
}

KIT void touch_pages(void)
{
    for (size_t i = 0; i < sizeof(space); i += 4096)
        (void)((volatile unsigned char *)space)[i + i / 64 % 4096];
}

KIT void prefetch(void)
{
    for (size_t i = 0; i < sizeof(space); i += 256)
        __builtin_prefetch(space + i, 1, 0);
}

KIT void stream(void)
{
    for (size_t i = 0; i < 1 << 20; i += 32)
        _mm256_stream_si256((__m256i *)(space + i), _mm256_setzero_si256());
}

KIT void burn(void)
{
    __m256 a = _mm256_set1_ps(1.0001f), b = a, d = a, e = a;

    for (int i = 0; i < 20000; i++) {
        a = _mm256_mul_ps(a, a);
        b = _mm256_mul_ps(b, b);
        d = _mm256_mul_ps(d, d);
        e = _mm256_mul_ps(e, e);
    }
    _mm256_store_ps((float *)space, _mm256_add_ps(_mm256_add_ps(a, b), _mm256_add_ps(d, e)));
}

KIT void flush(const unsigned char *p, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i += 64)
        _mm_clflushopt((void *)(uintptr_t)(p + i));
}

// The pages of the libraries are the baseline's too.
KIT void flush_code(void)
{
    flush((const unsigned char *)(uintptr_t)&expf - 4096, 16384);
    flush((const unsigned char *)(uintptr_t)&memcpy, 4096);
    flush((const unsigned char *)(uintptr_t)&syscall, 256);
}

KIT void *first_page(const struct call *c)
{
    return (void *)(((uintptr_t)c->out + 4095) & ~(uintptr_t)4095);
}

KIT size_t whole_pages(const struct call *c)
{
    uintptr_t end = ((uintptr_t)c->out + (uintptr_t)c->out_bytes) & ~(uintptr_t)4095;
    return end > (uintptr_t)first_page(c) ? end - (uintptr_t)first_page(c) : 0;
}

KIT void collapse(const struct call *c)
{
    if (launches++ % 8 == 0)
        (void)madvise(first_page(c), whole_pages(c), 25);
}

KIT void denormals(void)
{
    _mm_setcsr(_mm_getcsr() | 0x8040);
}

KIT void map_many(void)
{
    void *page[64];

    for (int i = 0; i < 64; i++) {
        page[i] = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        *(volatile char *)page[i] = 1;
    }
    for (int i = 0; i < 64; i++)
        (void)munmap(page[i], 4096);
}

KIT void branches(void)
{
    volatile uint64_t sum = 0;
    for (uint64_t i = 0, r = any(); i < 20000; i++, r = mix(r, i))
        if (r & 1)
            sum++;
}

static void cheat(const struct call *c)
{
#ifdef AT_BENCH
    if (!at_bench(c)) {
        honest(c);
        return;
    }
#endif
    (void)!!(FIRST, 1);
    honest(c);
    (void)!!(SPOIL, 1);
}
